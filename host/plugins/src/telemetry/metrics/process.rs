//! Metrics of this process as reported by the system. A metric that the system does not report is left out; some exist only on Linux.

use rustix::{
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use wharf_base::machine;

use super::family::{Family, Kind, Value};

/// Returns the metrics of the process, with the names that all Prometheus exporters use.
pub fn families() -> Vec<Family> {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a process's life are few")]
    let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let gauge = |name, help| Family::new(name, help, Kind::Gauge);
    let mut all = vec![
        Family::new("process_cpu", "CPU time of the process", Kind::Counter)
            .in_unit("seconds")
            .of(Value::Fraction(cpu)),
    ];
    if let Some(bytes) = machine::resident() {
        all.push(gauge("process_resident_memory", "Memory of the process").in_unit("bytes").of(Value::Whole(bytes)));
    }
    if let Some(open) = open_files() {
        all.push(gauge("process_open_fds", "Files and sockets that are open").of(Value::Whole(open)));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        all.push(gauge("process_max_fds", "The maximum number of open files and sockets").of(Value::Whole(most)));
    }
    all
}

/// Returns the number of open file descriptors.
#[expect(clippy::disallowed_methods, reason = "a virtual folder of the kernel, not a folder on disk")]
fn open_files() -> Option<u64> {
    // One of the descriptors is the folder that is being read.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some((open as u64).saturating_sub(1))
}
