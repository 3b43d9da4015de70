//! What wharf takes for granted of the machine it runs on, and what of that does not hold here. `docs/threats.md` says for each point
//! what happens where it does not hold; `wharf doctor` and the log of each start say that it does not.

#![expect(clippy::disallowed_methods, reason = "the state of the machine is read here")]

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::text;

/// A clock that shows less than this, in seconds since 1970, was never set: 2026-01-01.
const EARLIEST_SECONDS: u64 = 1_767_225_600;

/// File systems on which a file may have several identities, or another one tomorrow.
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

/// How much it matters that something does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Everything that is promised holds, and a further wall is missing.
    Weaker,
    /// Something that is promised does not hold, or cannot be known to hold.
    Wrong,
}

/// Something that does not hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    pub about: &'static str,
    pub weight: Weight,
    pub says: String,
    /// What to do.
    pub remedy: &'static str,
}

impl Lack {
    fn new(about: &'static str, weight: Weight, says: impl Into<String>, remedy: &'static str) -> Self {
        Self { about, weight, says: says.into(), remedy }
    }
}

/// What was looked at, by the names that [`Lack::about`] has.
pub const LOOKED_AT: [&str; 5] = ["kernel", "proc", "swap", "clock", "file identities"];

/// What does not hold. `proc` and `sys`: where the kernel tells how it is. `trusted`: the files and folders that no plugin may write.
pub fn lacks(proc: &Path, sys: &Path, trusted: &[PathBuf]) -> Vec<Lack> {
    let all = [proc_is_there(proc), clock(SystemTime::now())];
    let mut all: Vec<Lack> = all.into_iter().flatten().chain(kernel(proc, sys)).chain(swap(proc, sys)).collect();
    all.extend(identities(trusted));
    all
}

/// What the kernel can, which not all can.
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
            "Linux {release} has no openat2, so files of folders that are open to plugins cannot be opened safely"
        );
        all.push(Lack::new(about, Weight::Wrong, says, "use Linux 5.6 or later"));
    }
    if version < (5, 13) || (!modules.is_empty() && !modules.contains("landlock")) {
        let says =
            format!("Linux {release} has no Landlock, so processes that compile plugins are shut in by limits alone");
        let remedy = "use Linux 5.13 or later, with landlock among its security modules (lsm=)";
        all.push(Lack::new(about, Weight::Weaker, says, remedy));
    } else if version < (6, 7) {
        let says = format!(
            "Landlock of Linux {release} knows no network, so processes that compile plugins could connect to servers"
        );
        all.push(Lack::new(about, Weight::Weaker, says, "use Linux 6.7 or later"));
    }
    all
}

/// The version of the kernel by the system call.
fn own_release() -> io::Result<String> {
    rustix::system::uname().release().to_str().map(str::to_owned).map_err(io::Error::other)
}

/// Whether wharf can find out about itself: it starts itself again to compile plugins, and looks up which file a handle is.
fn proc_is_there(proc: &Path) -> Option<Lack> {
    let there = std::fs::symlink_metadata(proc.join("self/exe")).is_ok() && proc.join("self/fd").is_dir();
    (!there).then(|| {
        let says = format!("{} does not tell about this process, so no plugin can be compiled", text::path(proc));
        Lack::new(
            "proc",
            Weight::Wrong,
            says,
            "mount /proc; for a service, leave this process visible (ProtectProc=invisible does)",
        )
    })
}

/// Whether the memory of calls, with what they were told and the secrets of plugins' configs, can come to lie on a disk. Calls are kept
/// apart all the same: what was swapped out is cleared after a call too.
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

/// Whether the clock was set: tokens, certificates, approvals and quotas end by it.
fn clock(now: SystemTime) -> Option<Lack> {
    let set = now >= SystemTime::UNIX_EPOCH + Duration::from_secs(EARLIEST_SECONDS);
    (!set).then(|| {
        let says = "the clock shows a time before 2026, and tokens, certificates and approvals end by it";
        Lack::new("clock", Weight::Wrong, says, "set the clock, and keep it right (NTP)")
    })
}

/// Whether the files that no plugin may write are known by their identities: device and number.
fn identities(trusted: &[PathBuf]) -> Option<Lack> {
    let uncertain = trusted.iter().find_map(|path| Some((path, uncertain_file_system(path)?)));
    uncertain.map(|(path, name)| {
        let says = format!(
            "{} lies on {name}, where one file can look like two, so a folder open to a plugin from which it can be written may not be recognised",
            text::path(path)
        );
        let remedy = "keep the config, the plugins and the cache on a local file system";
        Lack::new("file identities", Weight::Weaker, says, remedy)
    })
}

/// The name of the file system, if files on it may have several identities.
#[cfg(target_os = "linux")]
fn uncertain_file_system(path: &Path) -> Option<&'static str> {
    let kind = u64::try_from(rustix::fs::statfs(path).ok()?.f_type).ok()?;
    UNCERTAIN_IDENTITIES.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// On other systems, file systems have no numbers by which they are known.
#[cfg(not(target_os = "linux"))]
fn uncertain_file_system(_path: &Path) -> Option<&'static str> {
    None
}

/// What the kernel of another machine would tell: a folder with these files.
#[cfg(test)]
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[cfg(test)]
mod tests {
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
