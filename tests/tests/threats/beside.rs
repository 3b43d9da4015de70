//! A client that wants to work, beside whatever else goes on; and the bounds that the host keeps.

use std::time::{Duration, Instant};

use e2e::{Folder, Server, Session, json, memory_kib, plugin, text};

/// How long an answer may take at the worst. Alone on a machine it is a hundredth of that; tests run side by side.
const WORST: Duration = Duration::from_secs(6);
/// What the binary itself and its sandboxes at rest take.
const SLACK_MIB: u64 = 128;

/// A config with `echo` as `by_echo`, and whatever else.
pub fn config(folder: &Folder, more: &str) {
    folder.config(&format!("{more}\n[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n", plugin("echo")));
}

/// How long answers took.
#[derive(Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn p99(&mut self) -> Duration {
        self.0.sort();
        self.0.get(self.0.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
    }
}

/// One call and one ping; fails if they are not answered, or late.
pub async fn works(session: &mut Session<'_>, latencies: &mut Latencies, during: &str) {
    let began = Instant::now();
    assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}), "{during}");
    latencies.0.push(began.elapsed());
    let result = session.call("by_echo", json!({ "message": "well" })).await;
    assert_eq!(text(&result), "well", "{during}");
    assert!(began.elapsed() < WORST, "{during}: the client beside it waits {:?}", began.elapsed());
}

/// Does something hostile while a client works beside it; what came of it.
pub async fn beside<T>(session: &mut Session<'_>, what: &str, attack: impl Future<Output = T>) -> T {
    let mut attack = std::pin::pin!(attack);
    let mut latencies = Latencies::default();
    let done = loop {
        let working = works(session, &mut latencies, what);
        tokio::select! {
            biased;
            done = &mut attack => break done,
            () = working => {}
        }
    };
    works(session, &mut latencies, what).await;
    println!("{what}: {} pings, p99 {:?}", latencies.0.len(), latencies.p99());
    done
}

/// Fails if more memory was ever in use than the bound, given in MiB: `total_memory_mib` + `total_host_memory_mib`.
pub fn within(server: &Server, bound_mib: u64, what: &str) {
    let most = memory_kib(server.pid(), "VmHWM") >> 10;
    println!("{what}: at most {most} MiB of {} MiB", bound_mib + SLACK_MIB);
    assert!(most <= bound_mib + SLACK_MIB, "{what}: {most} MiB");
}
