//! Checks that no other user can change what wharf trusts: neither a file itself, nor a link on the way to it, nor any folder
//! above it. For secrets, that nobody else can read them either.

#![expect(clippy::disallowed_methods, reason = "files that wharf trusts are checked here, wherever they are")]

use std::{os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result, bail, ensure};
use rustix::{
    fs::StatVfsMountFlags,
    process::{getegid, geteuid, getuid},
};

use crate::{
    access_list::{AccessList, Party, READ, WRITE},
    paths::hops,
    text,
};

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
    // In the mode, the bits of the group are those of everyone whom an access list names.
    let is_listed = mode & 0o070 != 0 && listed(path, READ)?.is_some();
    ensure!(
        mode & 0o007 == 0 && for_group && !is_listed,
        "{}: others may read this {what}; run `chmod 600` on it",
        text::path(path)
    );
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
    // The modes of what a container gets as a volume are not the operator's to choose. Where a folder is mounted read-only, nobody writes
    // it, whatever its mode is; what is in it has modes of its own.
    if metadata.is_dir() && is_read_only(path) {
        return Ok(());
    }
    let mode = metadata.mode();
    if mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_harmless(metadata.gid())) {
        bail!("{}: others may write this {what}; run `chmod go-w` on it", text::path(path));
    }
    if let Some(whom) = listed(path, WRITE)? {
        bail!(
            "{path}: the access list of this {what} lets {whom} write it; run `setfacl -b` on it",
            path = text::path(path)
        );
    }
    Ok(())
}

/// Returns somebody who is not trusted, and to whom the file's access list gives `right`. For a folder, so does the list that new files in
/// it get.
fn listed(path: &Path, right: u8) -> Result<Option<Party>> {
    for list in AccessList::of(path).with_context(|| format!("{}: its access list", text::path(path)))? {
        let mut parties = list.named_with(right);
        let stranger = parties.find(|party| match *party {
            Party::User(user) => !is_trusted(user),
            Party::Group(group) => !is_harmless(group),
        });
        if stranger.is_some() {
            return Ok(stranger);
        }
    }
    Ok(None)
}

/// Whether the mount that a folder is on is read-only.
fn is_read_only(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
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

/// Whether permissions of a group give no other user access.
fn is_harmless(group: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (groups, users) = (read("/etc/group"), read("/etc/passwd"));
    is_private_by(group, &groups, &users, is_trusted)
        || (is_own_group(group) && is_unknown_by(group, &groups, &users, &read("/etc/nsswitch.conf")))
}

/// Whether no user of this machine has a group: the group of a pod (`fsGroup` in Kubernetes) is only a number that its processes get.
/// Where users also come from elsewhere, such as LDAP, that cannot be known.
fn is_unknown_by(group: u32, groups: &str, users: &str, sources: &str) -> bool {
    let is = |line: &str, at: usize| line.split(':').nth(at).is_some_and(|field| field.parse() == Ok(group));
    let is_known = groups.lines().any(|line| is(line, 2)) || users.lines().any(|line| is(line, 3));
    let databases = ["passwd:", "group:", "initgroups:"];
    let mut lines = sources.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let is_local = lines.all(|line| {
        let Some(from) = databases.iter().find_map(|database| line.strip_prefix(database)) else { return true };
        from.split_whitespace().all(|source| matches!(source, "files" | "systemd") || source.starts_with('['))
    });
    !is_known && is_local
}

/// Whether a group has only trusted users as members, like the private group that many systems give each user.
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
    fn a_group_that_only_this_process_has_is_harmless() {
        let (groups, users) = ("root:x:0:\nteam:x:2000:ada\n", "root:x:0:0::/root:/bin/sh\nada:x:1000:3000::/h:/s\n");
        let local =
            "# group: ldap\npasswd: files systemd\ngroup:  files [NOTFOUND=return] systemd # sss\nhosts: files dns\n";
        for (group, sources, unknown) in [
            (4000, "", true),
            (4000, local, true),
            (2000, local, false),
            (3000, local, false),
            (4000, "group: files sss\n", false),
            (4000, "passwd: compat\n", false),
            (4000, "group:files\ninitgroups: ldap\n", false),
        ] {
            assert_eq!(is_unknown_by(group, groups, users, sources), unknown, "{group} {sources}");
        }
    }

    /// Returns a folder on a file system with access lists. A test that needs them and finds none fails.
    #[cfg(target_os = "linux")]
    fn folder_with_access_lists() -> tempfile::TempDir {
        let places = [std::env::temp_dir(), "/dev/shm".into(), "/var/tmp".into(), std::env::current_dir().unwrap()];
        let folders = places.iter().filter_map(|place| tempfile::tempdir_in(place).ok());
        let found = folders.into_iter().find(|folder| give(folder.path(), "access", &[]).is_ok());
        found.expect("no file system here has POSIX access lists: set TMPDIR to a folder on one that has")
    }

    /// Sets the access list of a file that its owner may read and write: `named` are tag, permissions and id of further entries.
    #[cfg(target_os = "linux")]
    fn give(path: &Path, list: &str, named: &[(u16, u16, u32)]) -> rustix::io::Result<()> {
        let mut entries = vec![(1, 7, u32::MAX), (4, 4, u32::MAX), (0x20, 4, u32::MAX)];
        if !named.is_empty() && !named.iter().any(|(tag, ..)| *tag == 0x10) {
            entries.push((0x10, 7, u32::MAX));
        }
        entries.extend(named);
        entries.sort_unstable();
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            bytes.extend(u16::to_le_bytes(tag).into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()));
        }
        rustix::fs::setxattr(path, format!("system.posix_acl_{list}"), &bytes, rustix::fs::XattrFlags::empty())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_an_access_list_names_counts() {
        let (user, group, mask) = (2, 8, 0x10);
        let folder = folder_with_access_lists();
        std::fs::create_dir(folder.path().join("way")).unwrap();
        let file = folder.path().join("way/file");
        std::fs::write(&file, b"").unwrap();
        let own = geteuid().as_raw();
        for (named, fits) in [
            (vec![], true),
            (vec![(user, 6, 54_321)], false),
            (vec![(user, 4, 54_321)], true),
            (vec![(user, 6, own)], true),
            (vec![(group, 6, 54_321)], false),
            (vec![(user, 6, own), (user, 2, 54_321)], false),
            // The mask takes the right away.
            (vec![(user, 6, 54_321), (mask, 4, u32::MAX)], true),
        ] {
            give(&file, "access", &named).unwrap();
            let checked = check_trusted_file(&file, "config");
            assert_eq!(checked.is_ok(), fits, "{named:?}: {checked:?}");
        }
        give(&file, "access", &[]).unwrap();
        for list in ["access", "default"] {
            give(file.parent().unwrap(), list, &[(user, 7, 54_321)]).unwrap();
            let refused = check_trusted_file(&file, "config").unwrap_err().to_string();
            assert!(refused.contains("lets user 54321 write it; run `setfacl -b`"), "{list}: {refused}");
            give(file.parent().unwrap(), list, &[]).unwrap();
            check_trusted_file(&file, "config").unwrap();
        }
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
