//! Checks that no other user can change what wharf trusts: neither a file itself, nor a link on the way to it, nor any folder
//! above it. For secrets, that nobody else can read them either.

#![expect(clippy::disallowed_methods, reason = "files that wharf trusts are checked here, wherever they are")]

use std::{os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{getegid, geteuid, getuid};

use crate::{paths::hops, text};

/// Refuses a file that another user owns or may write or replace. `what`: what to call it in the message.
pub fn check_trusted_file(path: &Path, what: &str) -> Result<()> {
    let metadata = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", text::path(path)))?;
    if !metadata.is_file() {
        bail!("{}: not a file", text::path(path));
    }
    check(path, &metadata, what)?;
    check_way(path, what)
}

/// Refuses a file that another user could change, or may read. The file that the caller opens afterwards is the one that was checked
/// here (no TOCTOU race), since no other user can replace it in between.
pub fn check_private_file(path: &Path, what: &str) -> Result<()> {
    check_trusted_file(path, what)?;
    let mode = std::fs::metadata(path)?.mode();
    ensure!(mode & 0o077 == 0, "{}: others may read this {what}; run `chmod 600` on it", text::path(path));
    Ok(())
}

/// Refuses a private key that another user could change, or may read, with two exceptions: a key that belongs to root may be readable
/// by a group that wharf is in, as with `fsGroup` in Kubernetes and `ssl-cert` in Debian, and systemd itself controls who may read
/// a credential.
pub fn check_key_file(path: &Path, what: &str) -> Result<()> {
    check_trusted_file(path, what)?;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
    if credentials.is_some_and(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    let metadata = std::fs::metadata(path)?;
    let mode = metadata.mode();
    let for_group = mode & 0o070 == 0 || (metadata.uid() == 0 && is_own_group(metadata.gid()));
    ensure!(mode & 0o007 == 0 && for_group, "{}: others may read this {what}; run `chmod 600` on it", text::path(path));
    Ok(())
}

/// Whether this process is in the group.
fn is_own_group(group: u32) -> bool {
    let others = rustix::process::getgroups().unwrap_or_default();
    getegid().as_raw() == group || others.iter().any(|other| other.as_raw() == group)
}

/// Refuses a folder that another user owns or may write or replace.
pub fn check_trusted_directory(path: &Path, what: &str) -> Result<()> {
    let metadata = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", text::path(path)))?;
    if !metadata.is_dir() {
        bail!("{}: not a directory", text::path(path));
    }
    check(path, &metadata, what)?;
    check_way(path, what)
}

/// Checks the folders and links on the way, since a user who may write a folder may replace what is in it. In a sticky folder, only
/// the owner of an entry may replace it.
fn check_way(path: &Path, what: &str) -> Result<()> {
    let mut paths = hops(path);
    paths.extend(std::fs::canonicalize(path));
    for step in paths.iter().flat_map(|path| path.ancestors().skip(1)) {
        let Ok(metadata) = std::fs::symlink_metadata(step) else { continue };
        if metadata.is_symlink() {
            check_owner(step, metadata.uid(), &format!("link on the way to a {what}"))?;
        } else if metadata.mode() & 0o1000 == 0 {
            check(step, &metadata, &format!("folder on the way to a {what}"))?;
        }
    }
    let link = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_symlink);
    link.map_or(Ok(()), |link| check_owner(path, link.uid(), &format!("link to a {what}")))
}

fn check(path: &Path, metadata: &std::fs::Metadata, what: &str) -> Result<()> {
    check_owner(path, metadata.uid(), what)?;
    let mode = metadata.mode();
    if mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_private(metadata.gid())) {
        bail!("{}: others may write this {what}; run `chmod go-w` on it", text::path(path));
    }
    Ok(())
}

fn check_owner(path: &Path, owner: u32, what: &str) -> Result<()> {
    if is_trusted(owner) || (owner == UNMAPPED && in_user_namespace()) {
        return Ok(());
    }
    bail!(
        "{}: this {what} belongs to another user (uid {owner}), who could change it; use one of your own",
        text::path(path)
    );
}

fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw() || user == getuid().as_raw()
}

/// The owner that the kernel shows for files of users that this user namespace does not know, such as the real root.
const UNMAPPED: u32 = 65_534;

/// Whether this user namespace knows only some users of the machine, as in an unprivileged container.
fn in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = ["0", "0", "4294967295"];
    !map.is_empty() && map.split_whitespace().ne(whole)
}

/// Whether a group has only trusted users as members, like the private group that many systems give each user. Permissions of such
/// a group give no other user access.
fn is_private(group: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    is_private_by(group, &read("/etc/group"), &read("/etc/passwd"), is_trusted)
}

fn is_private_by(group: u32, groups: &str, users: &str, trusted: impl Fn(u32) -> bool) -> bool {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<String>>();
    let number = |fields: &[String], at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    let users: Vec<Vec<String>> = users.lines().map(fields).collect();
    let Some(entry) = groups.lines().map(fields).find(|entry| number(entry, 2) == Some(group)) else { return false };
    let members = entry.get(3).map_or("", String::as_str).split(',').filter(|name| !name.is_empty());
    let id_of = |name: &str| users.iter().find(|user| user.first().is_some_and(|own| own == name));
    let listed = members.into_iter().all(|name| id_of(name).and_then(|user| number(user, 2)).is_some_and(&trusted));
    let by_default = users.iter().filter(|user| number(user, 3) == Some(group));
    listed && by_default.into_iter().all(|user| number(user, 2).is_some_and(&trusted))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_group_is_private_if_nobody_else_is_in_it() {
        let users =
            "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/h:/s\nbob:x:1001:1000::/h:/s\neve:x:1002:1002::/h:/s\n";
        let groups = "root:x:0:\nada:x:1000:\nown:x:1002:\nteam:x:2000:ada,eve\nmine:x:2001:eve,root\nstaff:x:50:\n";
        let trusted = |user| user == 0 || user == 1002;
        for (group, private) in
            [(0, true), (1000, false), (1002, true), (2000, false), (2001, true), (50, true), (7, false)]
        {
            assert_eq!(is_private_by(group, groups, users, trusted), private, "{group}");
        }
        // To trust the user with the same number as the group is not enough, since bob is in it too.
        assert!(!is_private_by(1000, groups, users, |user| user == 1000));
    }

    #[test]
    fn every_folder_on_the_way_counts() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::fs::create_dir_all(base.join("open/inner")).unwrap();
        std::fs::create_dir_all(base.join("safe")).unwrap();
        std::fs::write(base.join("safe/file"), b"").unwrap();
        std::fs::write(base.join("open/inner/file"), b"").unwrap();
        symlink(base.join("safe/file"), base.join("open/inner/link")).unwrap();
        let mode = |path: &str, mode: u32| {
            std::fs::set_permissions(base.join(path), PermissionsExt::from_mode(mode)).unwrap();
        };
        let fits = |path: &str| check_trusted_file(&base.join(path), "plugin").is_ok();
        assert!(fits("safe/file") && fits("open/inner/file") && fits("open/inner/link"));
        mode("open", 0o777);
        assert!(fits("safe/file"));
        assert!(!fits("open/inner/file"), "the folder above its folder");
        assert!(!fits("open/inner/link"), "a link can be replaced, wherever it leads");
        mode("open", 0o1777);
        assert!(fits("open/inner/file"), "sticky");
        mode("safe/file", 0o666);
        assert!(!fits("safe/file"));
    }
}
