//! The operations that read the history: commits, branches, and their contents.

use std::collections::BTreeMap;

use gix::{
    ObjectId, Repository,
    bstr::ByteSlice,
    date::{Time, time::format::ISO8601},
    objs::Kind,
    revision::walk::Sorting,
    traverse::commit::simple::CommitTimeOrder,
};
use wharf_sdk::{Error, Result};

use crate::{
    changes,
    decode::told,
    open::reasons,
    patch, refs,
    revision::{self, submodule},
    side::{self, object, plain},
    state::State,
};

/// Lists the commits that can be reached from HEAD, newest first. A negative `most` means all of them.
pub fn log(repo: &Repository, most: i64, since: Option<&str>, until: Option<&str>) -> Result<String> {
    let moment =
        |name: &str, text: Option<&str>| text.filter(|text| !text.is_empty()).map(|text| when(name, text)).transpose();
    let (since, until) = (moment("start_timestamp", since)?, moment("end_timestamp", until)?);
    let head = side::head(repo)?.ok_or_else(|| match repo.head_name() {
        Ok(Some(name)) => {
            Error::failed(format!("your current branch '{}' does not have any commits yet", name.shorten()))
        }
        _ => Error::failed("there is no commit yet"),
    })?;
    let walk = repo.rev_walk([head]).sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst)).all()?;
    let (mut entries, mut boundary) = (Vec::new(), false);
    for info in walk {
        if usize::try_from(most).is_ok_and(|most| entries.len() >= most) {
            boundary = false;
            break;
        }
        let commit = object(repo, info?.id)?.try_into_commit()?;
        boundary |= side::is_boundary(repo, commit.id)?;
        let time = commit.time()?.seconds;
        if since.is_some_and(|since| time < since) || until.is_some_and(|until| time > until) {
            continue;
        }
        let told = told(&commit)?;
        let note = told.note.map(|note| format!("{note}\n")).unwrap_or_default();
        entries.push(format!(
            "Commit: {}\nAuthor: {}\nDate: {}\nMessage: {}\n{note}",
            commit.id,
            told.name,
            date(told.time),
            told.message
        ));
    }
    let end = match boundary {
        true => "\nThis clone is shallow: it does not have the commits before these.",
        false => "",
    };
    Ok(format!("Commit history:\n{}{end}", entries.join("\n")))
}

/// Formats a time as Python does.
fn date(time: Time) -> String {
    let text = time.format_or_unix(ISO8601);
    let (Some(day), Some(zone)) = (text.get(..19), text.get(20..)) else { return text };
    match zone.split_at_checked(3) {
        Some((hours, minutes)) => format!("{day}{hours}:{minutes}"),
        None => text,
    }
}

/// Parses a text as a moment, in seconds since 1970.
fn when(argument: &str, text: &str) -> Result<i64> {
    const DAY: i64 = 24 * 60 * 60;
    if text.starts_with('-') {
        return Err(Error::failed(format!("Invalid {argument}: '{text}' - cannot start with '-'")));
    }
    let now = Time::now_utc().seconds;
    match text.trim().to_ascii_lowercase().as_str() {
        "now" | "today" => return Ok(now),
        "yesterday" => return Ok(now - DAY),
        _ => {}
    }
    let clock = jiff::Timestamp::from_second(now)?.to_zoned(jiff::tz::TimeZone::UTC);
    // A date without a time means the current time on that day, as in git.
    for format in ["%Y-%m-%d", "%Y/%m/%d", "%b %d %Y", "%B %d %Y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y"] {
        if let Ok(date) = jiff::civil::Date::strptime(format, text.trim()) {
            let moment = date.to_datetime(clock.time()).to_zoned(jiff::tz::TimeZone::UTC)?;
            return Ok(moment.timestamp().as_second());
        }
    }
    for format in ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"] {
        if let Ok(time) = jiff::civil::DateTime::strptime(format, text.trim()) {
            return Ok(time.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp().as_second());
        }
    }
    if let Ok(time) = gix::date::parse(text.trim(), Some(clock)) {
        return Ok(time.seconds);
    }
    Err(Error::failed(format!(
        "{argument}: '{text}' is not a time; write one such as 2024-01-15T14:30:25, 2024-01-15, 2 weeks ago or yesterday"
    )))
}

/// Shows a commit with its changes, a file, or the names in a folder.
pub fn show(repo: &Repository, text: &str) -> Result<String> {
    if let Some((path, commit)) = submodule(repo, text)? {
        return Ok(format!(
            "{path} is a submodule at the commit {commit}; its files are in a repository of its own, whose repo_path ends in {path}"
        ));
    }
    let object = revision::named(repo, text)?;
    match object.kind {
        Kind::Blob => return Ok(object.data.to_str_lossy().into_owned()),
        Kind::Tree => {
            let tree = object.try_into_tree()?;
            let names = tree.iter().map(|entry| {
                let entry = entry?;
                Ok(format!("{}{}", plain(entry.filename()), if entry.mode().is_tree() { "/" } else { "" }))
            });
            return Ok(names.collect::<Result<Vec<_>>>()?.join("\n"));
        }
        Kind::Commit | Kind::Tag => {}
    }
    let commit = side::object(repo, revision::peeled(repo, object.id, Kind::Commit)?)?.try_into_commit()?;
    let told = told(&commit)?;
    let mut text = format!(
        "commit {}\nAuthor: {} <{}>\nDate:   {}\n\n",
        commit.id,
        told.name,
        told.email,
        told.time.format_or_unix(ISO8601)
    );
    for line in told.message.trim_end_matches('\n').split('\n') {
        text.push_str(&format!("    {line}\n"));
    }
    if let Some(note) = told.note {
        text.push_str(&format!("\n{note}\n"));
    }
    let old = match side::parents(repo, &commit)?.first() {
        Some(parent) => Some(revision::peeled(repo, *parent, Kind::Tree)?),
        None => None,
    };
    if side::is_boundary(repo, commit.id)? {
        text.push_str(
            "\nThis clone is shallow: it does not have the commit before this one, so every file is shown as new.\n",
        );
    }
    let new = side::of_tree(repo, Some(commit.tree_id()?.detach()))?;
    for change in changes::between(repo, &side::of_tree(repo, old)?, &new)? {
        let name = |prefix: &str, side: &Option<(gix::bstr::BString, side::File)>| match side {
            Some((path, _)) => format!("{prefix}{}", plain(path.as_bstr())),
            None => "/dev/null".to_owned(),
        };
        text.push_str(&format!("\n--- {}\n+++ {}\n", name("a/", &change.old), name("b/", &change.new)));
        let file = |side: &Option<(gix::bstr::BString, side::File)>| side.as_ref().map(|(_, file)| file.clone());
        let (old, new) = (file(&change.old), file(&change.new));
        if old.as_ref().map(|file| file.id) == new.as_ref().map(|file| file.id) {
            continue;
        }
        match patch::hunks(repo, old.as_ref(), new.as_ref(), 3)? {
            Some(hunks) => text.push_str(&hunks.to_str_lossy()),
            None => text.push_str(&format!(
                "Binary files {} and {} differ\n",
                name("a/", &change.old),
                name("b/", &change.new)
            )),
        }
    }
    Ok(text)
}

/// Lists the branches, like `git branch`.
pub fn branches(repo: &Repository, kind: &str, contains: Option<&str>, without: Option<&str>) -> Result<String> {
    let (local, remote) = match kind {
        "local" => (true, false),
        "remote" => (false, true),
        "all" => (true, true),
        other => return Err(Error::failed(format!("Invalid branch type: {other}; it is local, remote or all"))),
    };
    let commit = |text: Option<&str>| -> Result<Option<ObjectId>> {
        text.filter(|text| !text.is_empty()).map(|text| revision::commit(repo, text)).transpose()
    };
    let (contains, without) = (commit(contains)?, commit(without)?);
    let wanted = |tip: ObjectId| -> Result<bool> {
        let has = |commit: ObjectId| -> Result<bool> {
            Ok(tip == commit || repo.merge_base(tip, commit)?.is_some_and(|base| base == commit))
        };
        Ok(contains.map_or(Ok(true), has)? && !without.map_or(Ok(false), has)?)
    };
    let current = repo.head_name()?;
    let elsewhere = refs::checked_out_elsewhere(repo)?;
    let (mut lines, mut broken) = (Vec::new(), Vec::new());
    if local && current.is_none() && side::head(repo)?.map_or(Ok(false), wanted)? {
        lines.push(format!("* {}", State::of(repo)?.no_branch(repo)?));
    }
    let mut sorted = BTreeMap::new();
    for (prefix, listed, before) in
        [("refs/heads/", local, ""), ("refs/remotes/", remote, if local { "remotes/" } else { "" })]
    {
        if !listed {
            continue;
        }
        for reference in repo.references()?.prefixed(prefix)? {
            let mut reference = match reference {
                Ok(reference) => reference,
                Err(error) => {
                    broken.push(reasons(&error));
                    continue;
                }
            };
            let name = reference.name().as_bstr().to_owned();
            let short = plain(name.strip_prefix(prefix.as_bytes()).unwrap_or(&name).as_bstr());
            let leads = reference.target().try_name().map(|name| name.shorten().to_string());
            let tip = match reference.peel_to_id() {
                Ok(tip) => tip.detach(),
                Err(error) => {
                    broken.push(format!("{}: {}", plain(name.as_bstr()), reasons(&error)));
                    continue;
                }
            };
            if !wanted(tip)? {
                continue;
            }
            let mark = match &current {
                Some(current) if current.as_bstr() == name => "*",
                _ if elsewhere.contains_key(&name) => "+",
                _ => " ",
            };
            let arrow = leads.map_or_else(String::new, |leads| format!(" -> {leads}"));
            sorted.insert(name, format!("{mark} {before}{short}{arrow}"));
        }
    }
    lines.extend(sorted.into_values());
    if !broken.is_empty() {
        lines.push("Not shown, because they are broken:".to_owned());
        lines.extend(broken.into_iter().map(|line| format!("\t{line}")));
    }
    Ok(lines.join("\n"))
}
