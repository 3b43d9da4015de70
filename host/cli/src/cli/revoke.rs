//! `wharf grant --revoke`: revokes grants, without asking. It refuses to write a config in which another entry still grants what was revoked:
//! where a wider entry takes over, removing a narrower one can open more than it closes.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Error, Result, bail, ensure};

use super::{arguments::OnePlugin, check::granted, file::File, load::print};
use wharf_base::{
    paths::resolved,
    text::{self, toml_header},
};
use wharf_config::config;
use wharf_egress::rule::{RawRule, Rule};
use wharf_policy::access::{
    capability::Access,
    grants::{Grants, dirs::Dir},
};

/// `what`: the kinds and entries to revoke; nothing means all of them.
pub fn run(OnePlugin { id, config }: &OnePlugin, what: &[String]) -> Result<ExitCode> {
    let mut file = File::existing(config.config.as_deref())?;
    let (lines, problem) = taken(&mut file, id, what)?;
    file.write(&lines)?;
    if let Some(problem) = problem {
        print(&format!("FAILED: {problem:#}; a running wharf keeps its grants until this is fixed"))?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes grants in a config that is not written yet. Returns what to say about it, and what is wrong with the config and was wrong before.
pub fn taken(file: &mut File, id: &str, what: &[String]) -> Result<(Vec<String>, Option<Error>)> {
    // Problems that the config already has do not prevent revoking a grant.
    let was_right = file.problem().is_none();
    let before = match file.grants(id) {
        Err(error) if !what.is_empty() => bail!("{error:#}; fix that first, or revoke everything with --revoke-all"),
        before => before.unwrap_or_default(),
    };
    if what.is_empty() {
        ensure!(
            file.edited.revoke_all(id),
            "{}: there is no {}, so there is nothing to revoke",
            text::path(&file.path),
            toml_header(&["plugins", id, "grants"])
        );
    }
    for one in what {
        let named = folder(one);
        let path = file.path.clone();
        let is_named = |host: &str| config::absolute(host, &path).is_ok_and(|host| Some(resolved(&host)) == named);
        if !file.edited.revoke(id, one, is_named) {
            let by = Left::of(one, &before, &before).still.first().map(|by| format!(", but {by} opens it"));
            bail!(
                "{id} has no grant `{one}`{}, so nothing was written; granted: {}; name a kind (http, roots, dirs, env, ask) or an \
                 entry as it is in the config",
                by.unwrap_or_default(),
                granted(&before.describe())
            );
        }
    }
    let after = file.grants(id)?;
    let mut lines = Vec::new();
    for one in what {
        let Left { still, notes } = Left::of(one, &before, &after);
        ensure!(
            still.is_empty(),
            "removing `{one}` would leave it open through {}, so nothing was written; revoke that as well, in the same command",
            still.join(" and through ")
        );
        lines.extend(notes.into_iter().map(|note| format!("note: {note}")));
    }
    let problem = file.problem();
    if let Some(problem) = problem.as_ref().filter(|_| was_right) {
        bail!("without that the config would be invalid, so nothing was written: {problem:#}");
    }
    lines.push(format!("granted: {}", granted(&after.describe())));
    Ok((lines, problem))
}

/// The access that remains to something that is revoked.
#[derive(Default)]
struct Left {
    /// Entries that would still open it, or would now open more than before.
    still: Vec<String>,
    /// Entries that open only something inside it, and did so before. They are mentioned, and stay.
    notes: Vec<String>,
}

impl Left {
    fn of(what: &str, before: &Grants, after: &Grants) -> Self {
        let mut left = Self::default();
        if let Ok(revoked) = Rule::parse(RawRule::url(what)) {
            for rule in after.http.0.rules.iter().filter(|rule| rule.meets(&revoked)) {
                // A more specific rule already decided about its own part before, so it opens nothing new.
                match rule.is_more_specific(&revoked) {
                    true => left.notes.push(format!("{rule} stays")),
                    false => left.still.push(rule.to_string()),
                }
            }
        }
        let Some(folder) = folder(what) else { return left };
        let was_read_only = before.dirs.0.iter().any(|dir| resolved(&dir.host) == folder && dir.access == Access::Read);
        for dir in &after.dirs.0 {
            let host = resolved(&dir.host);
            let words = |Dir { host, access, .. }: &Dir| format!("{} ({})", text::path(host), access.as_str());
            if folder.starts_with(&host) {
                left.still.push(words(dir));
            } else if host.starts_with(&folder) {
                // Of two nested folders, both get the lesser access, so a revoked read-only folder had restricted the other.
                match was_read_only && dir.access == Access::ReadWrite {
                    true => left.still.push(words(dir)),
                    false => left.notes.push(format!("{} stays", words(dir))),
                }
            }
        }
        if let Some(access) = after.roots.0 {
            left.notes.push(format!("roots ({}) stays, and opens the folder if a client does", access.as_str()));
        }
        left
    }
}

/// Returns the folder that an argument names relative to the current folder, or `None` if the argument does not look like a path.
fn folder(what: &str) -> Option<PathBuf> {
    let is_path = !what.contains("://") && (what.contains('/') || ["~", ".", ".."].contains(&what));
    let path = config::absolute_here(what).ok().filter(|_| is_path)?;
    Some(resolved(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_stay_open_is_said() {
        let token = "headers = { authorization = 'Bearer {t}' }";
        for (what, after, still, notes) in [
            (
                "https://a.example/x",
                format!("http = [{{ url = 'https://a.example', {token} }}]"),
                "GET HEAD https://a.example/ (with authorization)",
                "",
            ),
            (
                "https://a.example/x",
                "http = ['https://a.example/x/y', 'https://a.example/y']".into(),
                "",
                "GET HEAD https://a.example/x/y stays",
            ),
            (
                "https://b.a.example",
                "http = [{ url = 'https://*.a.example', methods = ['POST'] }]".into(),
                "POST https://*.a.example/",
                "",
            ),
            (
                "https://*.a.example",
                "http = ['https://b.a.example', 'https://a.example']".into(),
                "",
                "GET HEAD https://b.a.example/ stays",
            ),
            // Neither rule contains the other, and where they overlap the remaining one decides now.
            ("https://*.a.example/x", "http = ['https://b.a.example']".into(), "GET HEAD https://b.a.example/", ""),
            ("https://a.example", "http = ['http://a.example', 'https://a.example:8443']".into(), "", ""),
            (
                "/srv/a",
                "dirs = [{ host = '/srv', access = 'read' }, { host = '/srv/b', access = 'read' }]".into(),
                "/srv (read)",
                "",
            ),
            ("/srv/", "dirs = [{ host = '/srv/a', access = 'read' }]".into(), "", "/srv/a (read) stays"),
            ("/srv/", "dirs = [{ host = '/srv/a', access = 'read-write' }]".into(), "/srv/a (read-write)", ""),
            ("/srv/a", "roots = 'read'".into(), "", "roots (read) stays, and opens the folder if a client does"),
            ("TZ", "env = ['LANG']\nroots = 'read'".into(), "", ""),
        ] {
            let grants = |text: &str| Grants::parse(toml::from_str(text).unwrap(), &|path| Ok(path.into())).unwrap();
            let before = grants("dirs = [{ host = '/srv', access = 'read' }]");
            let left = Left::of(what, &before, &grants(&after));
            assert_eq!((&*left.still.join("; "), &*left.notes.join("; ")), (still, notes), "{what} {after}");
        }
    }
}
