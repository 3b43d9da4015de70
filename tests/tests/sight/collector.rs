//! A collector: receives OTLP, and parses it with the message types of OpenTelemetry.

use std::{collections::BTreeMap, net::SocketAddr};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::StatusCode,
    routing::post,
};
use e2e::PATIENCE;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{Metric, metric::Data},
    trace::v1::Span,
};
use prost::Message;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

/// Shut down when it is dropped.
pub struct Collector {
    pub address: SocketAddr,
    seen: watch::Receiver<Seen>,
    _server: JoinSet<()>,
}

/// The received messages, in order.
#[derive(Default, Clone)]
pub struct Seen {
    pub spans: Vec<Span>,
    pub metrics: Vec<Metric>,
    /// The resource attributes of the sender, with each message.
    pub resources: Vec<BTreeMap<String, String>>,
    /// The header `authorization` of each message.
    pub authorizations: Vec<String>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = watch::channel(Seen::default());
        let app = Router::new()
            .route("/base/v1/traces", post(traces))
            .route("/base/v1/metrics", post(metrics))
            .layer(DefaultBodyLimit::disable())
            .with_state(sender);
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, seen, _server: server }
    }

    /// The lines of a config that send all telemetry here.
    pub fn config(&self, more: &str) -> String {
        format!("[telemetry]\notlp = \"http://{}/base\"\n{more}\n", self.address)
    }

    /// Waits until the received messages are as wanted, and returns them.
    pub async fn until(&self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = self.seen.clone();
        let found = timeout(PATIENCE, seen.wait_for(wanted)).await.map(|found| found.unwrap().clone());
        found.unwrap_or_else(|_| panic!("{:#?}", self.seen.borrow().spans))
    }
}

fn note(sender: &watch::Sender<Seen>, authorization: String, add: impl FnOnce(&mut Seen)) {
    sender.send_modify(|seen| {
        seen.authorizations.push(authorization);
        add(seen);
    });
}

fn authorization(request: &Request) -> String {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("content-type").as_deref(), Some("application/x-protobuf"));
    header("authorization").unwrap_or_default()
}

async fn body(request: Request) -> Bytes {
    axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap()
}

async fn traces(State(sender): State<watch::Sender<Seen>>, request: Request) -> StatusCode {
    let authorization = authorization(&request);
    let message = ExportTraceServiceRequest::decode(body(request).await).unwrap();
    note(&sender, authorization, |seen| {
        for one in message.resource_spans {
            seen.resources.push(attributes(&one.resource.unwrap().attributes));
            seen.spans.extend(one.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    });
    StatusCode::OK
}

async fn metrics(State(sender): State<watch::Sender<Seen>>, request: Request) -> StatusCode {
    let authorization = authorization(&request);
    let message = ExportMetricsServiceRequest::decode(body(request).await).unwrap();
    note(&sender, authorization, |seen| {
        for one in message.resource_metrics {
            seen.resources.push(attributes(&one.resource.unwrap().attributes));
            seen.metrics.extend(one.scope_metrics.into_iter().flat_map(|scope| scope.metrics));
        }
    });
    StatusCode::OK
}

/// Returns attributes as text; checks that each key occurs once.
pub fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |one: &KeyValue| match one.value.as_ref().and_then(|value| value.value.as_ref()).unwrap() {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let map: BTreeMap<String, String> = all.iter().map(|one| (one.key.clone(), text(one))).collect();
    assert_eq!(map.len(), all.len(), "{all:?}");
    map
}

/// The number of values in a histogram, over all its series.
pub fn counted(metric: &Metric) -> u64 {
    let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
    for point in &histogram.data_points {
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
        assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano < point.time_unix_nano);
    }
    histogram.data_points.iter().map(|point| point.count).sum()
}
