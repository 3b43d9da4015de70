//! Checks what the machine provides: the cache folder, open files, file watches, memory and the kernel.

#![expect(clippy::disallowed_methods, reason = "reads the state of the machine")]

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, access, statvfs},
    process::{Resource, geteuid, getrlimit},
};

use super::finding::Finding;
use wharf_base::{
    machine::{self, Weight},
    text,
};
use wharf_config::config::{self, Config};

/// The free space that the compiled code of a few plugins needs.
const MIN_CACHE_BYTES: u64 = 256 << 20;
/// The number of open files that a server with some plugins and connections needs.
const MIN_OPEN_FILES: u64 = 1024;
/// The memory that wharf and one plugin need.
const MIN_MEMORY_BYTES: u64 = 256 << 20;

/// Checks the machine. `proc`: the path of procfs.
pub fn look(proc: &Path, config: Option<&Config>) -> Vec<Finding> {
    let mut findings = vec![cache(config::cache_dir()), files(getrlimit(Resource::Nofile).maximum)];
    findings.extend(watches(proc));
    findings.extend(memory(proc, config));
    let trusted: Vec<PathBuf> =
        config.and_then(|config| config.file.clone()).into_iter().chain(config::cache_dir()).collect();
    findings.extend(granted(proc, Path::new("/sys"), &trusted));
    findings
}

fn cache(path: Option<PathBuf>) -> Finding {
    let about = "cache";
    let costs = "every start compiles all plugins again";
    let Some(path) = path else {
        return Finding::wrong(about, format!("there is no home directory, so {costs}"), "set HOME or XDG_CACHE_HOME");
    };
    let shown = text::path(&path);
    let Ok(metadata) = std::fs::symlink_metadata(&path) else {
        let Some(above) = path.ancestors().skip(1).find(|folder| folder.exists()) else {
            return Finding::wrong(
                about,
                format!("{shown} cannot be created"),
                "set XDG_CACHE_HOME to a folder of yours",
            );
        };
        return match access(above, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => room(&path, above),
            Err(_) => Finding::wrong(
                about,
                format!("{shown} cannot be created, since you may not write in {}, so {costs}", text::path(above)),
                "set XDG_CACHE_HOME to a folder of yours",
            ),
        };
    };
    if !metadata.is_dir() {
        return Finding::wrong(about, format!("{shown} is not a folder, so {costs}"), format!("remove it: rm {shown}"));
    }
    if metadata.uid() != geteuid().as_raw() {
        let says = format!("{shown} belongs to another user, so {costs}");
        return Finding::wrong(about, says, "remove it, or set XDG_CACHE_HOME to a folder of yours");
    }
    if metadata.mode() & 0o077 != 0 {
        let says = format!("other users have access to {shown}, which holds native code, so {costs}");
        return Finding::wrong(about, says, format!("chmod 700 {shown}"));
    }
    match access(&path, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => room(&path, &path),
        Err(_) => Finding::wrong(about, format!("{shown} cannot be written, so {costs}"), format!("chmod 700 {shown}")),
    }
}

/// Checks the free space for the cache on the file system of `at`.
fn room(path: &Path, at: &Path) -> Finding {
    let free = statvfs(at).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let shown = text::path(path);
    if free < MIN_CACHE_BYTES {
        let says = format!("only {} MiB are free for {shown}", free >> 20);
        return Finding::wrong("cache", says, "free some space, or set XDG_CACHE_HOME to a folder on another disk");
    }
    Finding::fine("cache", shown)
}

fn files(most: Option<u64>) -> Finding {
    match most {
        Some(most) if most < MIN_OPEN_FILES => Finding::wrong(
            "open files",
            format!("at most {most}, and plugins and connections may need {MIN_OPEN_FILES}"),
            "raise the hard limit: `ulimit -Hn`, LimitNOFILE of systemd, or /etc/security/limits.conf",
        ),
        Some(most) => Finding::fine("open files", format!("up to {most}")),
        None => Finding::fine("open files", "without a limit"),
    }
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Checks the inotify limits, which apply per user. Wharf watches folders with inotify.
fn watches(proc: &Path) -> Option<Finding> {
    let limit = |name: &str| number(&proc.join("sys/fs/inotify").join(name));
    let (instances, watches) = (limit("max_user_instances")?, limit("max_user_watches")?);
    let (mut open, mut used) = (0_u64, 0_u64);
    for process in std::fs::read_dir(proc).into_iter().flatten().flatten() {
        let own = process.metadata().is_ok_and(|metadata| metadata.uid() == geteuid().as_raw());
        if !own || !process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        for file in std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            if std::fs::read_link(file.path()).is_ok_and(|to| to == Path::new("anon_inode:inotify")) {
                open += 1;
                let facts = std::fs::read_to_string(process.path().join("fdinfo").join(file.file_name()));
                used += facts.unwrap_or_default().lines().filter(|line| line.starts_with("inotify")).count() as u64;
            }
        }
    }
    let costs = "wharf polls for changes every 2 s";
    let key = |name: &str, now: u64| format!("sysctl fs.inotify.{name}={}", now.saturating_mul(4));
    Some(if open >= instances {
        let says = format!("all {instances} inotify instances are in use, so {costs}");
        Finding::wrong("watches", says, key("max_user_instances", instances))
    } else if used.saturating_add(64) >= watches {
        let says = format!("{used} of {watches} inotify watches are in use, so {costs}");
        Finding::wrong("watches", says, key("max_user_watches", watches))
    } else {
        Finding::fine("watches", format!("{open} of {instances} instances and {used} of {watches} watches in use"))
    })
}

fn memory(proc: &Path, config: Option<&Config>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if number(&proc.join("sys/vm/overcommit_memory")) == Some(2) {
        findings.push(Finding::note(
            "memory",
            "the kernel does not overcommit memory, and sandboxes reserve much more than they use, so calls are slower",
            "sysctl vm.overcommit_memory=0",
        ));
    }
    if let Some(most) = getrlimit(Resource::As).current {
        let says = format!(
            "wharf is limited to {} MiB of address space, and sandboxes reserve more, so calls are slower",
            most >> 20
        );
        findings.push(Finding::note("memory", says, "`ulimit -v unlimited`"));
    }
    let group = std::fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let most = number(&Path::new("/sys/fs/cgroup").join(group).join("memory.max"));
    let wanted = config.map(|config| (config.startup.total_memory_bytes as u64).saturating_add(MIN_MEMORY_BYTES));
    match (most, wanted) {
        (Some(most), _) if most < MIN_MEMORY_BYTES => findings.push(Finding::wrong(
            "memory",
            format!("its control group has {} MiB", most >> 20),
            format!("give it {} MiB or more", MIN_MEMORY_BYTES >> 20),
        )),
        (Some(most), Some(wanted)) if most < wanted => findings.push(Finding::note(
            "memory",
            format!("its control group has {} MiB, and all calls together may need {} MiB", most >> 20, wanted >> 20),
            "lower total_memory_mib or total_concurrency in [limits], or raise the limit of the control group",
        )),
        _ => {}
    }
    if findings.is_empty() {
        findings.push(Finding::fine("memory", "no limit is too low"));
    }
    findings
}

/// Checks the properties of the machine that wharf relies on.
fn granted(proc: &Path, sys: &Path, trusted: &[PathBuf]) -> Vec<Finding> {
    let lacks = machine::lacks(proc, sys, trusted);
    let fine = machine::LOOKED_AT.into_iter().filter(|about| lacks.iter().all(|lack| lack.about != *about));
    let mut findings: Vec<Finding> = fine.map(|about| Finding::fine(about, "as wharf needs it")).collect();
    findings.extend(lacks.into_iter().map(|lack| match lack.weight {
        Weight::Weaker => Finding::note(lack.about, lack.says, lack.remedy),
        Weight::Wrong => Finding::wrong(lack.about, lack.says, lack.remedy),
    }));
    findings
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::cli::machine::finding::State;
    use wharf_testing::folder as proc;

    #[test]
    fn a_cache_that_cannot_be_used_is_told_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        assert_eq!(cache(Some(path.clone())).state, State::Fine, "it can be made");
        fs::write(&path, b"").unwrap();
        assert!(cache(Some(path.clone())).remedy.unwrap().starts_with("remove it: rm "));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(cache(Some(path.clone())).remedy.unwrap().starts_with("chmod 700 "));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(cache(Some(path)).state, State::Fine);
        assert_eq!(cache(None).state, State::Wrong);
    }

    #[test]
    fn limits_are_told_before_they_are_reached() {
        assert_eq!(files(Some(256)).state, State::Wrong);
        assert_eq!(files(Some(MIN_OPEN_FILES)).state, State::Fine);
        assert_eq!(files(None).state, State::Fine);
        let limits = |instances: &str, watches: &str| {
            let one = [
                ("sys/fs/inotify/max_user_instances", instances),
                ("sys/fs/inotify/max_user_watches", watches),
                ("7/fdinfo/3", "pos:\t0\ninotify wd:1 ino:1\ninotify wd:2 ino:2\n"),
                ("7/fd/none", ""),
            ];
            let proc = proc(&one);
            std::os::unix::fs::symlink("anon_inode:inotify", proc.path().join("7/fd/3")).unwrap();
            watches_of(&proc)
        };
        fn watches_of(proc: &tempfile::TempDir) -> Finding {
            watches(proc.path()).unwrap()
        }
        assert_eq!(limits("1", "8192").remedy.as_deref(), Some("sysctl fs.inotify.max_user_instances=4"));
        assert_eq!(limits("128", "66").remedy.as_deref(), Some("sysctl fs.inotify.max_user_watches=264"));
        assert_eq!(limits("128", "67").says, "1 of 128 instances and 2 of 67 watches in use");
    }

    #[test]
    fn an_old_kernel_and_a_mean_one_are_told() {
        let state = |release: &str| {
            let proc = proc(&[("sys/kernel/osrelease", release)]);
            let findings = granted(proc.path(), Path::new("/none"), &[]);
            findings.into_iter().find(|finding| finding.about == "kernel").unwrap().state
        };
        assert_eq!(state("5.4.0-99-generic\n"), State::Wrong);
        assert_eq!(state("5.10.1"), State::Note);
        assert_eq!(state("6.18.0"), State::Fine);
        let mean = proc(&[("sys/vm/overcommit_memory", "2\n")]);
        assert_eq!(memory(mean.path(), None).first().unwrap().remedy.as_deref(), Some("sysctl vm.overcommit_memory=0"));
    }
}
