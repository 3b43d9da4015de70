//! Checks the assumptions that wharf makes about the machine it runs on. `docs/threats.md` says what happens where an assumption does not
//! hold; `wharf check --machine` and the log of each start report those that do not.

#![expect(clippy::disallowed_methods, reason = "the state of the machine is read here")]

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::text;

/// A clock that shows an earlier time was never set: 2026-01-01, in seconds since 1970.
const EARLIEST_SECONDS: u64 = 1_767_225_600;

/// File systems on which a file may have several identities (device and inode), or an identity that changes.
#[cfg(target_os = "linux")]
const UNCERTAIN_IDENTITIES: [(u64, &str); 7] = [
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x6969, "NFS"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x5346_544e, "NTFS"),
    (0x5346_414f, "AFS"),
];

/// How serious it is that an assumption does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// All guarantees hold, but one layer of defence is missing.
    Weaker,
    /// A guarantee does not hold, or cannot be checked.
    Wrong,
}

/// An assumption that does not hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    pub about: &'static str,
    pub weight: Weight,
    pub says: String,
    /// What the operator can do about it.
    pub remedy: &'static str,
}

impl Lack {
    fn new(about: &'static str, weight: Weight, says: impl Into<String>, remedy: &'static str) -> Self {
        Self { about, weight, says: says.into(), remedy }
    }
}

/// The names of all checks, as in [`Lack::about`].
pub const LOOKED_AT: [&str; 5] = ["kernel", "proc", "swap", "clock", "file identities"];

/// Returns the assumptions that do not hold. `proc` and `sys`: where procfs and sysfs are mounted. `trusted`: the files and folders
/// that no plugin may write.
pub fn lacks(proc: &Path, sys: &Path, trusted: &[PathBuf]) -> Vec<Lack> {
    let all = [proc_is_there(proc), clock(SystemTime::now())];
    let mut all: Vec<Lack> = all.into_iter().flatten().chain(kernel(proc, sys)).chain(swap(proc, sys)).collect();
    all.extend(identities(trusted));
    all
}

/// Checks that the kernel has the features that older kernels lack.
fn kernel(proc: &Path, sys: &Path) -> Vec<Lack> {
    let (about, mut all) = ("kernel", Vec::new());
    let Ok(release) = std::fs::read_to_string(proc.join("sys/kernel/osrelease")).or_else(|_| own_release()) else {
        return vec![Lack::new(about, Weight::Weaker, "its version cannot be read", "mount /proc")];
    };
    let release = text::escaped(release.trim());
    let mut parts = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let modules = std::fs::read_to_string(sys.join("kernel/security/lsm")).unwrap_or_default();
    if version < (5, 6) {
        let says = format!(
            "Linux {release} has no openat2, so files in folders that are open to plugins cannot be opened safely"
        );
        all.push(Lack::new(about, Weight::Wrong, says, "use Linux 5.6 or later"));
    }
    if version < (5, 13) || (!modules.is_empty() && !modules.contains("landlock")) {
        let says =
            format!("Linux {release} has no Landlock, so processes that compile plugins are confined by limits alone");
        let remedy = "use Linux 5.13 or later, with landlock among its security modules (lsm=)";
        all.push(Lack::new(about, Weight::Weaker, says, remedy));
    } else if version < (6, 7) {
        let says = format!(
            "Landlock of Linux {release} does not cover the network, so processes that compile plugins could connect to servers"
        );
        all.push(Lack::new(about, Weight::Weaker, says, "use Linux 6.7 or later"));
    }
    all
}

/// Returns the version of the kernel according to `uname`.
fn own_release() -> io::Result<String> {
    rustix::system::uname().release().to_str().map(str::to_owned).map_err(io::Error::other)
}

/// Checks that /proc shows this process: wharf needs it to start its own executable for compiling plugins, and to look up the files of
/// its descriptors.
fn proc_is_there(proc: &Path) -> Option<Lack> {
    let there = std::fs::symlink_metadata(proc.join("self/exe")).is_ok() && proc.join("self/fd").is_dir();
    (!there).then(|| {
        let says = format!("{} does not show this process, so no plugin can be compiled", text::path(proc));
        Lack::new(
            "proc",
            Weight::Wrong,
            says,
            "mount /proc; for a service, keep this process visible to itself (ProtectProc=invisible does)",
        )
    })
}

/// Checks whether the memory of calls, with their arguments and the secrets of plugins' configs, can be written to a disk. Calls are
/// isolated from each other all the same: memory that was swapped out is cleared after a call too.
fn swap(proc: &Path, sys: &Path) -> Option<Lack> {
    let remedy = "for a service of systemd MemorySwapMax=0, for a container a swap limit of 0, else encrypt the swap";
    let group = std::fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let most = std::fs::read_to_string(sys.join("fs/cgroup").join(group).join("memory.swap.max"));
    if most.is_ok_and(|most| most.trim() == "0") {
        return None;
    }
    match std::fs::read_to_string(proc.join("swaps")) {
        Ok(swaps) if swaps.lines().count() <= 1 => None,
        Ok(_) => {
            let says =
                "this machine has swap, so the memory of calls, with secrets of plugins' configs, can be written to it";
            Some(Lack::new("swap", Weight::Weaker, says, remedy))
        }
        Err(error) => {
            let says = format!(
                "whether this machine has swap, to which the memory of calls can be written, cannot be read: {error}"
            );
            Some(Lack::new("swap", Weight::Weaker, says, remedy))
        }
    }
}

/// Checks that the clock was set: it decides when tokens, certificates and approvals expire and when quotas are refilled.
fn clock(now: SystemTime) -> Option<Lack> {
    let set = now >= SystemTime::UNIX_EPOCH + Duration::from_secs(EARLIEST_SECONDS);
    (!set).then(|| {
        let says = "the clock shows a time before 2026, and it decides when tokens, certificates and approvals expire";
        Lack::new("clock", Weight::Wrong, says, "set the clock, and keep it right (NTP)")
    })
}

/// Checks that the files that no plugin may write can be recognized by their identities: device and inode.
fn identities(trusted: &[PathBuf]) -> Option<Lack> {
    let uncertain = trusted.iter().find_map(|path| Some((path, uncertain_file_system(path)?)));
    uncertain.map(|(path, name)| {
        let says = format!(
            "{} is on {name}, where one file can look like two, so wharf may not recognise a folder that lets a plugin write it",
            text::path(path)
        );
        let remedy = "keep the config, the plugins and the cache on a local file system";
        Lack::new("file identities", Weight::Weaker, says, remedy)
    })
}

/// Returns the name of the file system, if files on it may have several identities.
#[cfg(target_os = "linux")]
fn uncertain_file_system(path: &Path) -> Option<&'static str> {
    let kind = u64::try_from(rustix::fs::statfs(path).ok()?.f_type).ok()?;
    UNCERTAIN_IDENTITIES.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// Other systems do not identify file systems by numbers.
#[cfg(not(target_os = "linux"))]
fn uncertain_file_system(_path: &Path) -> Option<&'static str> {
    None
}

/// Returns the resident memory of this process in bytes: the second number in `statm`, which counts pages. `None`: the system does not say.
pub fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use wharf_testing::folder;

    use super::*;

    #[test]
    fn kernels_are_told_by_what_they_lack() {
        let seen = |release: &str, modules: &str| {
            let proc = folder(&[("sys/kernel/osrelease", release)]);
            let sys = folder(&[("kernel/security/lsm", modules)]);
            kernel(proc.path(), sys.path()).into_iter().map(|one| (one.weight, one.remedy)).collect::<Vec<_>>()
        };
        let landlock = "use Linux 5.13 or later, with landlock among its security modules (lsm=)";
        assert_eq!(
            seen("5.4.0-99-generic\n", ""),
            [(Weight::Wrong, "use Linux 5.6 or later"), (Weight::Weaker, landlock)]
        );
        assert_eq!(seen("5.10.1", ""), [(Weight::Weaker, landlock)]);
        assert_eq!(seen("6.12.0", "lockdown,yama"), [(Weight::Weaker, landlock)]);
        assert_eq!(seen("6.1.0", "landlock,yama"), [(Weight::Weaker, "use Linux 6.7 or later")]);
        assert_eq!(seen("6.12.0", "landlock"), []);
    }

    #[test]
    fn swap_is_told_unless_wharf_gets_none() {
        let some = "Filename Type Size Used Priority\n/dev/zram0 partition 2097148 0 100\n";
        let none = "Filename Type Size Used Priority\n";
        let says = |swaps: Option<&str>, most: Option<&str>| {
            let mut files = vec![("self/cgroup", "0::/system.slice/wharf.service\n")];
            files.extend(swaps.map(|swaps| ("swaps", swaps)));
            let most = most.map(|most| ("fs/cgroup/system.slice/wharf.service/memory.swap.max", most));
            swap(folder(&files).path(), folder(&most.into_iter().collect::<Vec<_>>()).path()).map(|lack| lack.says)
        };
        assert!(says(Some(some), None).unwrap().contains("has swap"));
        assert!(says(Some(some), Some("max\n")).unwrap().contains("has swap"));
        assert_eq!(says(Some(some), Some("0\n")), None);
        assert_eq!(says(Some(none), None), None);
        assert!(says(None, None).unwrap().contains("cannot be read"));
        assert_eq!(says(None, Some("0\n")), None);
    }

    #[test]
    fn a_clock_that_was_never_set_and_a_missing_proc_are_wrong() {
        assert_eq!(clock(SystemTime::UNIX_EPOCH).unwrap().weight, Weight::Wrong);
        assert_eq!(clock(SystemTime::now()), None);
        let nothing = folder(&[]);
        assert_eq!(proc_is_there(nothing.path()).unwrap().weight, Weight::Wrong);
        assert_eq!(proc_is_there(Path::new("/proc")), None);
    }
}
