//! `wharf audit`: checks the audit log, and prints lines of it. What is printed for people is one line for each, in which no text
//! of a client or plugin can deceive a terminal; otherwise it is the JSON of the file.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::mpsc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use notify::{RecursiveMode, Watcher};
use serde_json::Value;

use super::{
    arguments::{Audit, AuditLines, AuditLog},
    load::print,
};
use crate::{
    audit::{chain::Verifier, files},
    base::{
        failed::OrFailed,
        paths::FileId,
        text::{escaped, escaped_json, hex},
    },
    config::{self, CommandLine},
};

/// The longest line that is read. Longer than any that wharf writes with the largest message that a config allows by default.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// How often the file is looked at where it cannot be watched, or where the watch missed something.
const POLL: Duration = Duration::from_secs(2);

pub fn run(command: Audit) -> Result<ExitCode> {
    match command {
        Audit::Verify { log, head } => verify(&log.path()?, head),
        Audit::Show(which) => show(&which),
        Audit::Tail { lines, which } => tail(&which, lines),
    }
}

impl AuditLog {
    fn path(&self) -> Result<PathBuf> {
        if let Some(file) = &self.file {
            return Ok(std::path::absolute(file)?);
        }
        let Some(file) = config::find(self.config.config.as_deref())? else {
            bail!("there is no config: name one with -c, or the log itself with --file");
        };
        let config = config::load(Some(&file), &CommandLine::default())?;
        let audit = config.startup.audit.as_ref();
        let audit =
            audit.with_context(|| format!("{}: there is no [audit], so no audit log is kept", file.display()))?;
        Ok(audit.file.clone())
    }
}

/// The next line without its line break; None at the end. An unfinished line at the end counts as none, and is put into `rest`.
fn next_line(reader: &mut impl BufRead, rest: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    let left = MAX_LINE_BYTES.saturating_sub(rest.len() as u64);
    reader.by_ref().take(left).read_until(b'\n', rest).context("the audit log cannot be read").or_failed()?;
    if rest.last() != Some(&b'\n') {
        return if rest.len() as u64 >= MAX_LINE_BYTES {
            bail!("a line is too long for an audit log")
        } else {
            Ok(None)
        };
    }
    rest.pop();
    Ok(Some(std::mem::take(rest)))
}

fn verify(path: &Path, head: Option<[u8; 32]>) -> Result<ExitCode> {
    let mut verifier = Verifier::new(head);
    let files = files::open_all(path)?;
    let count = files.len();
    let mut unfinished = None;
    for (file, opened) in files {
        let (mut reader, mut rest) = (BufReader::new(opened), Vec::new());
        let mut number = 0;
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            number += 1;
            if let Err(wrong) = verifier.line(&line) {
                print(&format!("BROKEN at {}:{number}: {wrong}", file.display()))?;
                return Ok(ExitCode::FAILURE);
            }
        }
        if !rest.is_empty() {
            if file != path {
                print(&format!(
                    "BROKEN at {}:{}: the line is not whole, and others follow",
                    file.display(),
                    number + 1
                ))?;
                return Ok(ExitCode::FAILURE);
            }
            unfinished = Some(rest.len());
        }
    }
    let last = verifier.head();
    if head.is_some() && verifier.found.is_none() {
        let found =
            if last.seq == 0 { "there is none at all".to_owned() } else { format!("the last is line {}", last.seq) };
        print(&format!(
            "BROKEN at the end: no line has the hash of --head, {found}: lines were cut off after it was told, or it is of a line \
             that is no longer kept"
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    match verifier.first {
        None => print("ok: the log has no lines yet")?,
        Some(first) => {
            let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
            print(&format!("ok: lines {first} to {}, in {files}; the head is {}", last.seq, hex(&last.hash)))?;
            if first > 1 {
                print(&format!(
                    "note: the {} lines before line {first} are not kept any more, or were removed",
                    first - 1
                ))?;
            }
        }
    }
    if let Some(seq) = verifier.found {
        print(&format!("note: --head is the hash of line {seq}"))?;
    }
    if let Some(bytes) = unfinished {
        print(&format!("note: {bytes} bytes of an unfinished line follow; it is being written, or wharf was killed"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(which: &AuditLines) -> Result<ExitCode> {
    let json = which.json || !std::io::stdout().is_terminal();
    for (_, opened) in files::open_all(&which.log.path()?)? {
        let (mut reader, mut rest) = (BufReader::new(opened), Vec::new());
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            if !put(which, json, &line) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a line, if it is wanted. False: nobody reads any more.
fn put(which: &AuditLines, json: bool, line: &[u8]) -> bool {
    match shown(which, json, line) {
        None => true,
        Some(text) => writeln!(std::io::stdout().lock(), "{text}").is_ok(),
    }
}

/// Follows the log until nobody reads any more.
fn tail(which: &AuditLines, lines: usize) -> Result<ExitCode> {
    let path = which.log.path()?;
    let json = which.json || !std::io::stdout().is_terminal();
    let folder = path.parent().context("it has no folder")?;
    // Watched before anything is read, so that nothing is missed.
    let (sender, changes) = mpsc::sync_channel(1);
    let watcher = notify::recommended_watcher(move |_| {
        // If the channel is full, a change is noticed already.
        sender.try_send(()).ok();
    });
    // Where the system cannot watch, looking now and then has to do.
    let _watcher = watcher.ok().and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
        Some(watcher)
    });
    let mut open = files::open_all(&path)?;
    let (_, newest) = open.pop().context("there is no such audit log")?;
    let mut last = std::collections::VecDeque::new();
    let mut keep = |line: Vec<u8>| {
        if shown(which, json, &line).is_some() {
            last.push_back(line);
        }
        if last.len() > lines {
            last.pop_front();
        }
    };
    for (_, opened) in open {
        let (mut reader, mut rest) = (BufReader::new(opened), Vec::new());
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            keep(line);
        }
    }
    let mut id = FileId::of(&newest.metadata()?);
    let (mut reader, mut rest) = (BufReader::new(newest), Vec::new());
    while let Some(line) = next_line(&mut reader, &mut rest)? {
        keep(line);
    }
    if !last.iter().all(|line| put(which, json, line)) {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        // What stands at the path is looked at before the file is read to its end, since nothing is added once it was moved.
        let now = FileId::at(&path);
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            if !put(which, json, &line) {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if let Some(new) = now.filter(|new| *new != id) {
            // More than one may have been rotated away since.
            let mut open = files::open_all(&path)?;
            let known = |file: &File| file.metadata().is_ok_and(|metadata| FileId::of(&metadata) == id);
            if let Some(at) = open.iter().position(|(_, file)| known(file)) {
                open.drain(..=at);
            }
            for (_, opened) in open {
                id = FileId::of(&opened.metadata()?);
                (reader, rest) = (BufReader::new(opened), Vec::new());
                while let Some(line) = next_line(&mut reader, &mut rest)? {
                    if !put(which, json, &line) {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
            }
            if id == new {
                continue;
            }
        }
        match changes.recv_timeout(POLL) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            // There is no watcher, so this would return at once for ever.
            Err(mpsc::RecvTimeoutError::Disconnected) => wait(),
        }
    }
}

/// Waits a moment, where nothing can be watched.
fn wait() {
    let (_kept, never) = mpsc::channel::<()>();
    never.recv_timeout(POLL).ok();
}

/// A line as it is to be printed. None: it is not wanted.
fn shown(which: &AuditLines, json: bool, line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    // A line that cannot be read is shown unless one looks for something, since `verify` will name it.
    let entry: Value = serde_json::from_str(&text).unwrap_or_default();
    if !wanted(which, &entry) {
        return None;
    }
    Some(if json { escaped_json(&text) } else { for_people(&entry, &text) })
}

fn wanted(which: &AuditLines, entry: &Value) -> bool {
    let AuditLines { log: _, json: _, plugin, tool, principal, outcome, since, until } = which;
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let is = |key: &str, wanted: &Option<String>| wanted.is_none() || text(key) == wanted.as_deref();
    let time = text("time").and_then(|time| humantime::parse_rfc3339(time).ok());
    let after = |since: SystemTime| time.is_some_and(|time| time >= since);
    let before = |until: SystemTime| time.is_some_and(|time| time <= until);
    is("wharf.plugin", plugin)
        && is("gen_ai.tool.name", tool)
        && is("outcome", outcome)
        && principal.as_ref().is_none_or(|who| text("wharf.principal").is_some_and(|own| own.starts_with(who.as_str())))
        && since.is_none_or(after)
        && until.is_none_or(before)
}

/// What stands in the middle of a line for people, in this order, if it is there.
const NAMED: [&str; 5] =
    ["gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri", "wharf.completes", "wharf.plugin"];
/// What is left out for people, because it says nothing by itself or stands elsewhere.
const LEFT_OUT: [&str; 13] = [
    "seq",
    "prev",
    "time",
    "event",
    "outcome",
    "duration_us",
    "mcp.method.name",
    "wharf.principal",
    "wharf.arguments.hmac",
    "wharf.plugin.sha256",
    "mcp.protocol.version",
    "network.transport",
    "span_id",
];

/// One line for a person: when, what, of what, how it ended, who, how long; then everything else that says something.
fn for_people(entry: &Value, text: &str) -> String {
    let Some(members) = entry.as_object() else { return format!("unreadable: {}", escaped(text)) };
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let get = |key: &str| members.get(key).map(plain);
    let what = match (get("event"), get("mcp.method.name")) {
        (Some(event), Some(method)) if event != "call" => Some(format!("{event} {method}")),
        (event, method) => method.or(event),
    };
    let took = members.get("duration_us").and_then(Value::as_u64);
    let took = took.map(|micros| format!("{}.{:03} ms", micros / 1000, micros % 1000));
    let name = NAMED.iter().find_map(|key| get(key));
    let first = [get("time"), what, name, get("outcome"), get("wharf.principal"), took];
    let mut line: Vec<String> = first.into_iter().flatten().collect();
    for (key, value) in members {
        if !LEFT_OUT.contains(&key.as_str()) && !NAMED.contains(&key.as_str()) {
            line.push(format!("{key}={}", plain(value)));
        }
    }
    escaped(&line.join("  "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all() -> AuditLines {
        AuditLines {
            log: AuditLog { config: super::super::arguments::ConfigFile { config: None }, file: None },
            json: false,
            plugin: None,
            tool: None,
            principal: None,
            outcome: None,
            since: None,
            until: None,
        }
    }

    fn entry() -> Value {
        json!({
            "seq": 3, "prev": "00", "time": "2026-11-07T10:11:12.131Z", "event": "call", "outcome": "failed",
            "error.type": "tool_error", "duration_us": 1234, "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "a_\u{1b}[2J\nt", "wharf.principal": "token abc", "wharf.plugin": "a",
            "wharf.dirs": [{ "path": "/x", "access": "read" }],
        })
    }

    #[test]
    fn a_line_for_people_is_one_line() {
        let entry = entry();
        assert_eq!(
            for_people(&entry, ""),
            "2026-11-07T10:11:12.131Z  tools/call  a_\\u{1b}[2J\\nt  failed  token abc  1.234 ms  error.type=tool_error  \
             wharf.dirs=[{\"path\":\"/x\",\"access\":\"read\"}]"
        );
        assert_eq!(for_people(&json!(null), "x\u{1b}"), "unreadable: x\\u{1b}");
        let begun = json!({ "event": "begun", "mcp.method.name": "tools/call" });
        assert_eq!(for_people(&begun, ""), "begun tools/call");
    }

    #[test]
    fn only_what_is_wanted_is_shown() {
        let when = |text: &str| humantime::parse_rfc3339(text).ok();
        let text = |text: &str| Some(text.to_owned());
        for (which, is_wanted) in [
            (all(), true),
            (AuditLines { plugin: text("a"), ..all() }, true),
            (AuditLines { plugin: text("b"), ..all() }, false),
            (AuditLines { tool: text("a_\u{1b}[2J\nt"), ..all() }, true),
            (AuditLines { tool: text("t"), ..all() }, false),
            (AuditLines { principal: text("token a"), ..all() }, true),
            (AuditLines { principal: text("process"), ..all() }, false),
            (AuditLines { outcome: text("failed"), ..all() }, true),
            (AuditLines { outcome: text("done"), ..all() }, false),
            (AuditLines { since: when("2026-11-07T10:11:12Z"), ..all() }, true),
            (AuditLines { since: when("2026-11-07T10:11:13Z"), ..all() }, false),
            (AuditLines { until: when("2026-11-07T10:11:13Z"), ..all() }, true),
            (AuditLines { until: when("2026-11-07T10:11:12Z"), ..all() }, false),
            (AuditLines { outcome: text("failed"), plugin: text("b"), ..all() }, false),
        ] {
            assert_eq!(wanted(&which, &entry()), is_wanted, "{which:?}");
        }
    }
}
