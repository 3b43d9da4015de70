//! Parses metrics like a generic program, without knowledge of wharf.

use e2e::{Exchange, PATIENCE, Server};
use prometheus_parse::{LineInfo, Sample, Scrape, Value};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

/// All metrics at one point in time.
pub struct Scraped {
    pub text: String,
    samples: Vec<Sample>,
}

impl Scraped {
    /// Fails on a line that it does not understand.
    pub fn parse(text: String) -> Self {
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF");
        for line in lines {
            assert!(!matches!(LineInfo::parse(line), LineInfo::Ignored | LineInfo::Empty), "{line:?} in\n{text}");
        }
        let samples = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap().samples;
        Self { text, samples }
    }

    /// The sum of all series with this name and these labels. For a histogram, the number of its values.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&Sample| {
            sample.metric == name && labels.iter().all(|(label, value)| sample.labels.get(label) == Some(value))
        };
        self.samples.iter().filter(fits).map(|sample| number(&sample.value)).sum()
    }

    /// The value of a label of the only series with this name and these labels.
    pub fn label(&self, name: &str, labels: &[(&str, &str)], wanted: &str) -> String {
        let fits = |sample: &&Sample| {
            sample.metric == name && labels.iter().all(|(label, value)| sample.labels.get(label) == Some(value))
        };
        let found: Vec<&Sample> = self.samples.iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?} in\n{}", self.text);
        found[0].labels.get(wanted).expect("such a label").to_owned()
    }

    /// The names of all series, as queries name them.
    pub fn names(&self) -> Vec<&str> {
        let names = self.text.lines().filter(|line| !line.starts_with('#'));
        names.filter_map(|line| line.split(['{', ' ']).next()).collect()
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
        Value::Histogram(buckets) => buckets.iter().map(|bucket| bucket.count).fold(0.0, f64::max),
        Value::Summary(_) => panic!("wharf has no summaries"),
    }
}

/// The address of the metrics of a wharf with `[admin]`.
pub async fn admin_of(server: &Server) -> String {
    let line = server.wait_for_log("serving metrics at http://").await;
    line.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned()
}

/// A request to the listener for metrics, with this host.
pub async fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = timeout(PATIENCE, TcpStream::connect(address)).await.expect("no connection").unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let mut exchange = Exchange::of(Box::new(stream), e2e::Recorder::default());
    exchange.read_head().await;
    exchange
}

/// The metrics of a wharf with `[admin]`.
pub async fn scrape(server: &Server) -> Scraped {
    let mut exchange = ask(&admin_of(server).await, "GET", "/metrics", &[]).await;
    assert_eq!(exchange.status(), 200);
    let kind = exchange.header("content-type").unwrap_or_default().to_owned();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    Scraped::parse(exchange.text().await)
}
