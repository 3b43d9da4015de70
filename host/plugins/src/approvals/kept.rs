//! Approvals that are valid until they are revoked. They are stored in a file that all processes of this user share, with one line of JSON
//! each. Changes hold a file lock; look-ups read the file again if it has changed. If other users could change the file, or a line cannot
//! be parsed, no stored approval is valid.

#![expect(clippy::disallowed_methods, reason = "the file of the approvals is read and written here")]

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    rule::{ApprovalKey, ApprovalRule},
    subject::ApprovalSubject,
};
use wharf_base::{
    guard::check_private_file,
    paths::Stamp,
    places::{PoolRule, may_take},
    rewrite::rewrite,
    text::{escaped, hex},
};

/// The most approvals in the file.
const MAX_APPROVALS: usize = 1000;

/// The limit of approvals in the file. All processes of the user share the file, so its lines are counted.
pub static FILE: PoolRule = PoolRule {
    of: "approvals that are valid until they are revoked",
    number: "1000",
    taker: "client",
    until: "the operator revokes it",
    asking: "not held: it is taken after the person has said yes",
    gone: "held, since it is valid until it is revoked",
    gives_way: "nothing; the person is asked again",
    old: Duration::MAX,
};

const MAX_FILE_BYTES: u64 = 4 << 20;
/// The number of hexadecimal digits of an approval's id.
const ID_DIGITS: usize = 12;

/// One approval, as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedApproval {
    /// Identifies the approval for `wharf approvals revoke`.
    pub id: String,
    pub time: String,
    /// The principal whose calls are approved.
    pub principal: String,
    pub plugin: String,
    pub sha256: String,
    pub method: String,
    pub name: String,
    pub folders: Vec<String>,
    pub http: Vec<String>,
    /// What the approval is valid for, in words.
    #[serde(default = "any_arguments")]
    pub arguments: String,
    /// See [`ApprovalRule::of_kind`].
    kind: String,
}

fn any_arguments() -> String {
    ApprovalRule::Any.text()
}

impl RememberedApproval {
    pub fn of(subject: &ApprovalSubject<'_>, rule: &ApprovalRule, principal: &str) -> Self {
        let kind = hex(&rule.of_kind(&subject.kind()).0);
        let mut id = hex(&Sha256::digest(format!("{principal}\n{kind}")));
        id.truncate(ID_DIGITS);
        Self {
            id,
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            principal: principal.to_owned(),
            plugin: subject.plugin.to_owned(),
            sha256: hex(subject.digest),
            method: subject.method.as_str().to_owned(),
            name: subject.name.to_owned(),
            folders: subject.folders.iter().map(|(path, access)| format!("{path} ({})", access.as_str())).collect(),
            http: subject.http.clone(),
            arguments: rule.text(),
            kind,
        }
    }
}

/// The file of approvals, with its cached content.
pub struct Kept {
    path: PathBuf,
    read: Mutex<Option<(Stamp, Arc<[RememberedApproval]>)>>,
}

impl Kept {
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// Whether this principal has one of these approvals.
    pub fn has(&self, keys: &[ApprovalKey], principal: &str) -> bool {
        let keys: Vec<String> = keys.iter().map(|key| hex(&key.0)).collect();
        match self.all() {
            Ok(all) => all.iter().any(|one| one.principal == principal && keys.contains(&one.kind)),
            Err(error) => {
                tracing::warn!("stored approvals are ignored: {}", escaped(&format!("{error:#}")));
                false
            }
        }
    }

    /// Returns all approvals, the oldest first.
    pub fn all(&self) -> Result<Arc<[RememberedApproval]>> {
        let stamp = match Stamp::of(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Arc::default()),
            stamp => stamp.with_context(|| self.path.display().to_string())?,
        };
        let mut read = self.read.lock();
        if let Some((at, all)) = &*read
            && *at == stamp
        {
            return Ok(Arc::clone(all));
        }
        let all: Arc<[RememberedApproval]> = self::read(&self.path)?.into();
        *read = Some((stamp, Arc::clone(&all)));
        Ok(all)
    }

    /// Adds an approval, or replaces it if it exists.
    pub fn add(&self, approval: RememberedApproval) -> Result<()> {
        self.change(|all| {
            all.retain(|one| one.id != approval.id);
            let held = all.iter().filter(|one| one.principal == approval.principal).count();
            ensure!(
                may_take(held, MAX_APPROVALS.saturating_sub(all.len()), MAX_APPROVALS),
                "{held} of {} approvals belong to {}; the file holds at most {MAX_APPROVALS}, a share of which is reserved for \
                 others; revoke some with `wharf approvals revoke`",
                all.len(),
                escaped(&approval.principal)
            );
            all.push(approval);
            Ok(())
        })
    }

    /// Removes the approvals that `revoked` selects, and returns them.
    pub fn revoke(&self, revoked: impl Fn(&RememberedApproval) -> bool) -> Result<Vec<RememberedApproval>> {
        let mut gone = Vec::new();
        if self.path.exists() {
            self.change(|all| {
                gone = all.extract_if(.., |one| revoked(one)).collect();
                Ok(())
            })?;
        }
        Ok(gone)
    }

    /// Rewrites the file atomically under its lock.
    fn change(&self, change: impl FnOnce(&mut Vec<RememberedApproval>) -> Result<()>) -> Result<()> {
        rewrite(&self.path, || {
            let mut all = if self.path.exists() { read(&self.path)? } else { Vec::new() };
            change(&mut all)?;
            let lines: Result<String> =
                all.iter().map(|one| Ok(format!("{}\n", serde_json::to_string(one)?))).collect();
            lines.and_then(|lines| {
                ensure!(lines.len() as u64 <= MAX_FILE_BYTES, "the file of approvals has no room for it");
                Ok(lines)
            })
        })
    }
}

fn read(path: &Path) -> Result<Vec<RememberedApproval>> {
    check_private_file(path, "file of approvals")?;
    let named = || path.display().to_string();
    let bytes = std::fs::metadata(path).with_context(named)?.len();
    ensure!(bytes <= MAX_FILE_BYTES, "{}: has {bytes} bytes, more than {MAX_FILE_BYTES}", named());
    let text = std::fs::read_to_string(path).with_context(named)?;
    let line = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}:{}: is not an approval; remove this line", named(), number + 1))
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use serde_json::Value;
    use wharf_protocol::Method;

    use super::*;
    use wharf_policy::access::capability::Access;

    fn subject(name: &str) -> ApprovalSubject<'_> {
        ApprovalSubject {
            method: Method::CallTool,
            name,
            arguments: &Value::Null,
            plugin: "files",
            digest: &[7; 32],
            definition: [1; 32],
            folders: vec![("/srv".into(), Access::ReadWrite)],
            guest_folders: vec![],
            http: vec![],
            grants: String::new(),
        }
    }

    fn key(subject: &ApprovalSubject<'_>) -> ApprovalKey {
        ApprovalRule::Any.of_kind(&subject.kind())
    }

    #[test]
    fn approvals_are_kept_until_they_are_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/wharf/approvals.jsonl");
        let (one, other) = (Kept::new(path.clone()), Kept::new(path.clone()));
        let (write, remove) = (subject("write"), subject("remove"));
        assert!(!one.has(&[key(&write)], "process"));
        one.add(RememberedApproval::of(&write, &ApprovalRule::Any, "process")).unwrap();
        one.add(RememberedApproval::of(&write, &ApprovalRule::Any, "process")).unwrap();
        assert_eq!(one.all().unwrap().len(), 1);
        // Another process sees the approval; it does not cover other principals or other calls.
        assert!(other.has(&[key(&write)], "process"));
        assert!(!other.has(&[key(&write)], "anonymous") && !other.has(&[key(&remove)], "process"));
        other.add(RememberedApproval::of(&remove, &ApprovalRule::Any, "process")).unwrap();
        let id = one.all().unwrap()[0].id.clone();
        assert_eq!(other.revoke(|approval| approval.id == id).unwrap().len(), 1);
        assert!(!one.has(&[key(&write)], "process") && one.has(&[key(&remove)], "process"));
    }

    #[test]
    fn one_client_does_not_fill_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.jsonl");
        let kept = Kept::new(path.clone());
        let mut lines = String::new();
        for number in 0..750 {
            let approval = RememberedApproval::of(&subject(&format!("tool{number}")), &ApprovalRule::Any, "key ann");
            lines.push_str(&format!("{}\n", serde_json::to_string(&approval).unwrap()));
        }
        std::fs::write(&path, lines).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let refused =
            kept.add(RememberedApproval::of(&subject("more"), &ApprovalRule::Any, "key ann")).unwrap_err().to_string();
        assert!(refused.contains("750 of 750 approvals belong to key ann"), "{refused}");
        kept.add(RememberedApproval::of(&subject("tool1"), &ApprovalRule::Any, "key ann")).unwrap();
        kept.add(RememberedApproval::of(&subject("more"), &ApprovalRule::Any, "key ben")).unwrap();
    }

    #[test]
    fn a_file_that_others_can_read_or_that_is_damaged_approves_of_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.jsonl");
        let kept = Kept::new(path.clone());
        let write = subject("write");
        kept.add(RememberedApproval::of(&write, &ApprovalRule::Any, "process")).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        assert!(!kept.has(&[key(&write)], "process"));
        mode(0o600);
        assert!(kept.has(&[key(&write)], "process"));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{}}\n")).unwrap();
        assert!(!kept.has(&[key(&write)], "process"));
        let error =
            format!("{:#}", kept.add(RememberedApproval::of(&write, &ApprovalRule::Any, "process")).unwrap_err());
        assert!(error.contains(":2: is not an approval"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{text}{{}}\n"), "nothing is lost");
    }

    #[test]
    fn those_who_add_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.jsonl");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let name = format!("tool{number}");
                    Kept::new(path.clone())
                        .add(RememberedApproval::of(&subject(&name), &ApprovalRule::Any, "process"))
                        .unwrap();
                });
            }
        });
        assert_eq!(Kept::new(path).all().unwrap().len(), 8);
    }
}
