//! `wharf audit`: verifies the hash chain of the audit log, and prints its entries. On a terminal each entry is one line, escaped so
//! that text from clients and plugins cannot deceive the terminal; elsewhere the JSON of the file is printed.

use std::{
    collections::VecDeque,
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
use wharf_base::{
    failed::OrFailed,
    paths::FileId,
    text::{escaped, escaped_json, hex},
};
use wharf_config::config::{self, CommandLine};
use wharf_plugins::audit::{
    chain::{Hash, Verifier},
    files,
};

/// The longest line that is read. With the default limit on messages, wharf writes only shorter ones.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// How often the file is checked in addition to watching it, which may be impossible or miss a change.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

pub fn run(command: Audit) -> Result<ExitCode> {
    match command {
        Audit::Verify { logs, log, heads } if logs.is_empty() => verify_all(&[log.path()?], &heads),
        Audit::Verify { logs, heads, .. } => {
            let logs: Vec<_> = logs.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
            verify_all(&logs, &heads)
        }
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
            bail!("there is no config: name one with -c, or name the audit log with --file");
        };
        let config = config::load(Some(&file), &CommandLine::default())?;
        let audit = config.startup.audit.as_ref();
        let audit = audit.with_context(|| {
            format!("{}: there is no [audit] in this config, so there is no audit log", file.display())
        })?;
        Ok(audit.file.clone())
    }
}

/// Returns the next line without its line break, or `None` at the end. An unfinished last line is not returned, but left in `rest`.
fn next_line(reader: &mut impl BufRead, rest: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    let left = MAX_LINE_BYTES.saturating_sub(rest.len() as u64);
    reader.by_ref().take(left).read_until(b'\n', rest).context("the audit log cannot be read").or_failed()?;
    if rest.last() != Some(&b'\n') {
        return if rest.len() as u64 >= MAX_LINE_BYTES {
            bail!("a line is longer than {} MiB, so this is not an audit log", MAX_LINE_BYTES >> 20)
        } else {
            Ok(None)
        };
    }
    rest.pop();
    Ok(Some(std::mem::take(rest)))
}

/// Verifies each of these logs. Each head must be the hash of a line of one of them.
fn verify_all(logs: &[PathBuf], heads: &[Hash]) -> Result<ExitCode> {
    let (mut whole, mut found) = (true, Vec::new());
    for log in logs {
        let prefix = if logs.len() == 1 { String::new() } else { format!("{}: ", log.display()) };
        match verify(log, &prefix, heads, &mut print)? {
            Some(verified) => found.push(verified),
            None => whole = false,
        }
    }
    let missing = heads.iter().filter(|head| !found.iter().any(|log| log.found.iter().any(|(hash, _)| hash == *head)));
    // If a log is broken, a head may be the hash of one of the lines that were not read.
    for head in missing.take(if whole { heads.len() } else { 0 }) {
        let last = match found.as_slice() {
            [log] if log.head().seq == 0 => "the log is empty: ".to_owned(),
            [log] => format!("the last line is {}: ", log.head().seq),
            _ => String::new(),
        };
        print(&format!(
            "BROKEN at the end: no line has the hash {}, a --head; {last}later lines were cut off, or the line with this hash was in a \
             file that rotation has removed",
            hex(head)
        ))?;
        whole = false;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Verifies one log. Returns `None` if it is broken. `prefix`: the beginning of each line about a whole log. `say`: takes the lines.
fn verify(
    path: &Path,
    prefix: &str,
    heads: &[Hash],
    say: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<Option<Verifier>> {
    let mut verifier = Verifier::new(heads);
    let files = files::open_all(path)?;
    let count = files.len();
    let mut unfinished = None;
    for (file, opened) in files {
        let (mut reader, mut rest) = (BufReader::new(opened), Vec::new());
        let mut number = 0;
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            number += 1;
            if let Err(wrong) = verifier.line(&line) {
                say(&format!("BROKEN at {}:{number}: {wrong}", file.display()))?;
                return Ok(None);
            }
        }
        if !rest.is_empty() {
            if file != path {
                say(&format!(
                    "BROKEN at {}:{}: the line is incomplete, and others follow",
                    file.display(),
                    number + 1
                ))?;
                return Ok(None);
            }
            unfinished = Some(rest.len());
        }
    }
    let last = verifier.head();
    match verifier.first {
        None => say(&format!("{prefix}ok: the log has no lines yet"))?,
        Some(first) => {
            let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
            say(&format!("{prefix}ok: lines {first} to {}, in {files}; the head is {}", last.seq, hex(&last.hash)))?;
            if first > 1 {
                say(&format!(
                    "{prefix}note: the {} lines before line {first} are missing: rotation has removed them, or someone else has",
                    first - 1
                ))?;
            }
        }
    }
    for (hash, seq) in &verifier.found {
        say(&format!("{prefix}note: --head {} is the hash of line {seq}", hex(hash)))?;
    }
    if let Some(bytes) = unfinished {
        say(&format!(
            "{prefix}note: an unfinished line of {bytes} bytes follows: it is being written, or wharf was killed"
        ))?;
    }
    Ok(Some(verifier))
}

/// Verifies one log. Returns whether it is unbroken, and what was found out.
pub fn verdict(path: &Path) -> Result<(bool, Vec<String>)> {
    let mut lines = Vec::new();
    let verified = verify(path, "", &[], &mut |line| {
        lines.push(escaped(line));
        Ok(())
    })?;
    Ok((verified.is_some(), lines))
}

/// Returns the last lines that contain a text, as they are printed for people, the newest one first.
pub fn last_lines(path: &Path, search: &str, most: usize) -> Result<Vec<String>> {
    let mut last = VecDeque::new();
    for (_, opened) in files::open_all(path)? {
        let (mut reader, mut rest) = (BufReader::new(opened), Vec::new());
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            let text = String::from_utf8_lossy(&line);
            let text = for_people(&serde_json::from_str(&text).unwrap_or_default(), &text);
            if text.contains(search) {
                last.push_front(text);
                last.truncate(most);
            }
        }
    }
    Ok(last.into())
}

/// Returns the audit log that a config turns on, whether or not this process has the variables of the server.
pub fn path_of(config: &Path) -> Result<PathBuf> {
    let config = super::file::File::existing(Some(config))?.config_elsewhere()?;
    Ok(config.startup.audit.as_ref().context("there is no [audit] in this config")?.file.clone())
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

/// Prints a line if it passes the filters. Returns false if stdout is closed.
fn put(which: &AuditLines, json: bool, line: &[u8]) -> bool {
    match shown(which, json, line) {
        None => true,
        Some(text) => writeln!(std::io::stdout().lock(), "{text}").is_ok(),
    }
}

/// Prints the last lines, and follows the log until stdout is closed.
fn tail(which: &AuditLines, lines: usize) -> Result<ExitCode> {
    let path = which.log.path()?;
    let json = which.json || !std::io::stdout().is_terminal();
    let folder = path.parent().context("the path of the audit log has no folder")?;
    // Watched before anything is read, so that nothing is missed.
    let (sender, changes) = mpsc::sync_channel(1);
    let watcher = notify::recommended_watcher(move |_| {
        // If the channel is full, a change is already pending.
        sender.try_send(()).ok();
    });
    // If the folder cannot be watched, polling has to do.
    let _watcher = watcher.ok().and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
        Some(watcher)
    });
    let mut open = files::open_all(&path)?;
    let (_, newest) = open.pop().context("there is no such audit log")?;
    let mut last = VecDeque::new();
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
        // The path is checked for another file before this one is read to its end: nothing is appended to a file after its rotation.
        let now = FileId::at(&path);
        while let Some(line) = next_line(&mut reader, &mut rest)? {
            if !put(which, json, &line) {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if let Some(new) = now.filter(|new| *new != id) {
            // The log may have been rotated more than once since.
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
        match changes.recv_timeout(POLL_INTERVAL) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            // Without a watcher the channel is disconnected, so `recv_timeout` returns at once.
            Err(mpsc::RecvTimeoutError::Disconnected) => wait(),
        }
    }
}

/// Sleeps for one [`POLL_INTERVAL`].
fn wait() {
    let (_kept, never) = mpsc::channel::<()>();
    never.recv_timeout(POLL_INTERVAL).ok();
}

/// Returns a line as it is to be printed, or `None` if a filter excludes it.
fn shown(which: &AuditLines, json: bool, line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    // A line that is not JSON becomes null, which is shown only without filters. `wharf audit verify` reports it.
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

/// The keys that name the subject of an entry. A line for people shows the first one that is present.
const NAME_KEYS: [&str; 5] =
    ["gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri", "wharf.completes", "wharf.plugin"];
/// The keys that are not listed at the end of a line for people, because they are shown elsewhere or mean nothing by themselves.
const HIDDEN_KEYS: [&str; 13] = [
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

/// Formats an entry as one line for people: time, event, subject, outcome, principal and duration, then all other members.
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
    let name = NAME_KEYS.iter().find_map(|key| get(key));
    let first = [get("time"), what, name, get("outcome"), get("wharf.principal"), took];
    let mut line: Vec<String> = first.into_iter().flatten().collect();
    for (key, value) in members {
        if !HIDDEN_KEYS.contains(&key.as_str()) && !NAME_KEYS.contains(&key.as_str()) {
            line.push(format!("{key}={}", plain(value)));
        }
    }
    escaped(&line.join("  "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_plugins::audit::chain::Head;

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
    #[expect(clippy::disallowed_methods, reason = "the test writes a log")]
    fn the_last_lines_that_contain_a_text_are_found_and_a_changed_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.jsonl");
        let (mut head, mut bytes) = (Head::NONE, Vec::new());
        for name in ["x1", "y", "x2"] {
            let members = json!({ "event": "call", "gen_ai.tool.name": name }).to_string();
            head = head.append(b"", members.trim_matches(['{', '}']).as_bytes(), &mut bytes);
        }
        std::fs::write(&log, &bytes).unwrap();
        assert_eq!(last_lines(&log, "x", 10).unwrap(), ["call  x2", "call  x1"]);
        assert_eq!(last_lines(&log, "", 1).unwrap(), ["call  x2"]);
        let (is_whole, lines) = verdict(&log).unwrap();
        assert!(is_whole && lines[0].starts_with("ok: lines 1 to 3"), "{lines:?}");
        std::fs::write(&log, String::from_utf8(bytes).unwrap().replace("\"y\"", "\"z\"")).unwrap();
        let (is_whole, lines) = verdict(&log).unwrap();
        assert!(!is_whole && lines[0].starts_with("BROKEN at "), "{lines:?}");
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
