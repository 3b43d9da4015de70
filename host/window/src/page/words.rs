//! How times, sizes and ends of calls are written for a person.

use std::time::{Duration, UNIX_EPOCH};

use maud::{Markup, html};

use crate::{
    state::{SeenCall, SeenEnded},
    viewer::merged::WatchedProcess,
};

/// Writes a time, given in milliseconds since 1970, in UTC. The script writes it in the time zone of the browser.
pub fn time(millis: u64) -> Markup {
    // Times beyond the year 9999 cannot be written.
    let known = UNIX_EPOCH.checked_add(Duration::from_millis(millis)).filter(|_| millis < 253_402_300_800_000);
    let Some(at) = known else { return html! { "at an unknown time" } };
    let written = humantime::format_rfc3339_seconds(at).to_string();
    let shown = written.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(written) { (shown) } }
}

/// Writes how long something took, given in microseconds.
pub fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{}.{} ms", micros / 1000, micros / 100 % 10),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..60_000_000 => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
        _ => format!("{} min", micros / 60_000_000),
    }
}

/// Writes a number of bytes.
pub fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", count >> 20),
        _ => format!("{}.{} GiB", count >> 30, ((count & 0x3fff_ffff) * 10) >> 30),
    }
}

/// Writes a number with what it counts.
pub fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// About how many tokens a model reads of this many bytes.
pub fn tokens(bytes: u64) -> u64 {
    bytes.saturating_add(2) / 4
}

/// How a process is called.
pub fn process(process: &WatchedProcess) -> String {
    let about = &process.state.process;
    let command = if about.command.is_empty() { "wharf" } else { &about.command };
    format!("{command} ({})", about.pid)
}

/// How a call has ended, or that it runs, and the class of that for its colour.
pub fn end(process: &WatchedProcess, call: &SeenCall) -> (String, &'static str) {
    let Some(SeenEnded { how, why, .. }) = &call.ended else {
        return match process.is_gone {
            true => ("its process has ended".to_owned(), "bad"),
            false => ("runs".to_owned(), "runs"),
        };
    };
    let (words, class) = match how.as_str() {
        "done" => ("done", "good"),
        "asked" => ("asked a question", "good"),
        "failed" => ("failed", "bad"),
        "refused" => ("refused", "bad"),
        "timed_out" => ("took too long", "bad"),
        "over_limit" => ("went over a limit", "bad"),
        "crashed" => ("crashed", "bad"),
        "revoked" => ("stopped, since its access was taken back", "bad"),
        "cancelled" => ("cancelled by the client", "good"),
        other => (other, "bad"),
    };
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    (format!("{words}{why}"), class)
}

/// Who approved a call.
pub fn approval(word: &str) -> &str {
    match word {
        "client" => "approved at the client",
        "command" => "approved by a program",
        "session" => "approved for the session",
        "always" => "approved for always",
        "window" => "approved on this page",
        "refused" => "not approved",
        other => other,
    }
}

/// What a call did with a file.
pub fn did(word: &str) -> &str {
    match word {
        "read" => "read",
        "list" => "listed",
        "write" => "written",
        "make" => "made",
        "remove" => "removed",
        "move" => "moved",
        other => other,
    }
}

/// A bar that shows a part of a whole.
pub fn bar(part: u64, whole: u64, label: &str) -> Markup {
    let percent = if whole == 0 { 0 } else { (u128::from(part.min(whole)) * 100 / u128::from(whole)) as u64 };
    html! {
        svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.whole width="100" height="6" {}
            rect.part width=(percent) height="6" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_their_units() {
        for (micros, expected) in
            [(0, "0 µs"), (1_234, "1.2 ms"), (56_789, "56 ms"), (1_250_000, "1.2 s"), (125_000_000, "2 min")]
        {
            assert_eq!(took(micros), expected);
        }
        for (number, expected) in [
            (1_023, "1023 B"),
            (2_048, "2 KiB"),
            (3 << 20, "3 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(bytes(number), expected);
        }
        for (number, expected) in [(0, 0), (1, 0), (2, 1), (400, 100)] {
            assert_eq!(tokens(number), expected);
        }
        assert_eq!(time(0).into_string(), "<time datetime=\"1970-01-01T00:00:00Z\">1970-01-01 00:00:00 UTC</time>");
        assert_eq!(time(u64::MAX).into_string(), "at an unknown time");
    }
}
