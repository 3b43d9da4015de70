//! A client that works in parallel with an attack, and the limits of the host.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use e2e::{Folder, Server, Session, json, memory_kib, plugin, scaled, text};

/// The longest time that an answer may take. On an idle machine it takes a hundredth of that; tests run in parallel.
const WORST: Duration = Duration::from_secs(6);
/// The memory of the process itself, without pages of its binary, and what the allocator keeps.
const SLACK_MIB: u64 = 96;

/// A config with `echo` as `by_echo`, and further lines.
pub fn config(folder: &Folder, more: &str) {
    folder.config(&format!("{more}\n[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n", plugin("echo")));
}

/// The latencies of answers.
#[derive(Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn p99(&mut self) -> Duration {
        self.0.sort();
        self.0.get(self.0.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
    }
}

/// How long the client may wait.
#[derive(Clone, Copy)]
pub enum Patience<'a> {
    Time,
    /// As long as the attack makes no more than so many steps, which it counts. This does not depend on the machine.
    Steps(&'a AtomicUsize, usize),
}

/// Makes one call and one ping; fails if they are not answered, or late.
async fn works(session: &mut Session<'_>, latencies: &mut Latencies, during: &str, patience: Patience<'_>) {
    let began = Instant::now();
    let steps = || match patience {
        Patience::Time => 0,
        Patience::Steps(steps, _) => steps.load(Ordering::Relaxed),
    };
    let before = steps();
    assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}), "{during}");
    latencies.0.push(began.elapsed());
    let result = session.call("by_echo", json!({ "message": "well" })).await;
    assert_eq!(text(&result), "well", "{during}");
    match patience {
        Patience::Time => {
            assert!(began.elapsed() < scaled(WORST), "{during}: the other client waits {:?}", began.elapsed());
        }
        Patience::Steps(_, most) => {
            let waited = steps() - before;
            assert!(waited <= most, "{during}: the other client waits for {waited} steps");
        }
    }
}

/// Runs an attack while a client works in parallel; returns the result of the attack.
pub async fn during<T>(session: &mut Session<'_>, what: &str, attack: impl Future<Output = T>) -> T {
    during_with(session, what, Patience::Time, attack).await
}

/// The same, for a client with this patience.
pub async fn during_with<T>(
    session: &mut Session<'_>,
    what: &str,
    patience: Patience<'_>,
    attack: impl Future<Output = T>,
) -> T {
    let mut attack = std::pin::pin!(attack);
    let mut latencies = Latencies::default();
    let done = loop {
        let working = works(session, &mut latencies, what, patience);
        tokio::select! {
            // The client first: otherwise an attack that never waits would use up the budget of this task each time, and the client, once
            // connected, would send its request only after hundreds of newer connections.
            biased;
            () = working => {}
            done = &mut attack => break done,
        }
    };
    works(session, &mut latencies, what, patience).await;
    println!("{what}: {} pings, p99 {:?}", latencies.0.len(), latencies.p99());
    done
}

/// Fails if memory use ever exceeded the limit, in MiB: `total_memory_mib` + `total_host_memory_mib`. Pages of files do not count: they are
/// those of the binary, twice as many without optimisation, and the kernel takes them back when it needs memory.
pub fn within(server: &Server, bound_mib: u64, what: &str) {
    let most = (memory_kib(server.pid(), "VmHWM") - memory_kib(server.pid(), "RssFile")) >> 10;
    println!("{what}: at most {most} MiB of {} MiB", bound_mib + SLACK_MIB);
    assert!(most <= bound_mib + SLACK_MIB, "{what}: {most} MiB");
}
