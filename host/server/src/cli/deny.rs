//! `wharf deny`: takes grants away, without asking. What is denied is no longer granted afterwards, by no other entry either: to take
//! an entry away can open more than it closes, where a wider one counts in its place.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, bail, ensure};

use super::{check::granted, file::File, load::print};
use crate::{
    access::{
        capability::Access,
        grants::{Grants, dirs::Dir},
    },
    base::{
        paths::resolved,
        text::{self, toml_header},
    },
    config,
    egress::rule::{Rule, Written},
};

pub fn run(id: &str, what: &[String], config: Option<&Path>) -> Result<ExitCode> {
    let mut file = File::open(config)?;
    ensure!(file.is_there(), "{}: there is no such config file", text::path(&file.path));
    // What is wrong with the config already does not keep anything from being taken away.
    let was_right = file.problem().is_none();
    let before = match file.grants(id) {
        Err(error) if !what.is_empty() => bail!("{error:#}; mend that first, or take everything with --all"),
        before => before.unwrap_or_default(),
    };
    if what.is_empty() {
        ensure!(
            file.edited.deny_all(id),
            "{}: {} is not there, so there is nothing to take",
            text::path(&file.path),
            toml_header(&["plugins", id, "grants"])
        );
    }
    for one in what {
        let named = folder(one);
        let path = file.path.clone();
        let is_named = |host: &str| config::absolute(host, &path).is_ok_and(|host| Some(resolved(&host)) == named);
        if !file.edited.deny(id, one, is_named) {
            let by = Left::of(one, &before, &before).still.first().map(|by| format!(", and is open by {by}"));
            bail!(
                "{id} has no grant `{one}` of its own{}, so nothing was written; granted: {}; name a kind (http, roots, dirs, env, \
                 ask) or an entry as the config has it",
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
            "without `{one}`, what it is about would be open by {}, so nothing was written; deny that as well, in one command",
            still.join(" and by ")
        );
        lines.extend(notes.into_iter().map(|note| format!("note: {note}")));
    }
    let problem = file.problem();
    if let Some(problem) = problem.as_ref().filter(|_| was_right) {
        bail!("without that the config would be wrong, so nothing was written: {problem:#}");
    }
    lines.push(format!("granted: {}", granted(&after.describe())));
    file.write(&lines)?;
    if let Some(problem) = problem {
        print(&format!("FAILED: {problem:#}; a wharf that runs keeps its grants until this is mended"))?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// What is left of something that is denied.
#[derive(Default)]
struct Left {
    /// What would be open that was not, or is open all the same.
    still: Vec<String>,
    /// What is open that lies inside, and was before.
    notes: Vec<String>,
}

impl Left {
    fn of(what: &str, before: &Grants, after: &Grants) -> Self {
        let mut left = Self::default();
        if let Ok(denied) = Rule::parse(Written::url(what)) {
            for rule in after.http.0.rules.iter().filter(|rule| rule.meets(&denied)) {
                // Only a rule that counted for its part before opens nothing now.
                match rule.is_more_exact(&denied) {
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
                // Of two folders of which one is in the other, both have the lesser right.
                match was_read_only && dir.access == Access::ReadWrite {
                    true => left.still.push(words(dir)),
                    false => left.notes.push(format!("{} stays", words(dir))),
                }
            }
        }
        if let Some(access) = after.roots.0 {
            left.notes.push(format!("roots ({}) stays, and opens it if a client does", access.as_str()));
        }
        left
    }
}

/// The folder that somebody names where they are, if it looks like one.
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
            // Neither is inside the other, and in what they share another rule counts now.
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
            ("/srv/a", "roots = 'read'".into(), "", "roots (read) stays, and opens it if a client does"),
            ("TZ", "env = ['LANG']\nroots = 'read'".into(), "", ""),
        ] {
            let grants = |text: &str| Grants::parse(toml::from_str(text).unwrap(), &|path| Ok(path.into())).unwrap();
            let before = grants("dirs = [{ host = '/srv', access = 'read' }]");
            let left = Left::of(what, &before, &grants(&after));
            assert_eq!((&*left.still.join("; "), &*left.notes.join("; ")), (still, notes), "{what} {after}");
        }
    }
}
