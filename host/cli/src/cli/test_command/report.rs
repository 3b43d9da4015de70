//! Reports the results: lines for the terminal, and JUnit XML for other programs.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use quick_xml::{
    Writer,
    events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event},
};

use super::snapshots::Pending;
use wharf_base::text::{self, escaped};

/// A finished case.
#[derive(Debug)]
pub struct Finished {
    pub name: String,
    /// The file and line of the case. `None` for the case of the lists.
    pub place: Option<(PathBuf, usize)>,
    pub took: Duration,
    pub problems: Vec<String>,
    /// A new or changed snapshot that was not accepted.
    pub pending: Option<Pending>,
    /// Whether a new or changed snapshot was accepted.
    pub accepted: bool,
}

impl Finished {
    pub fn passed(&self) -> bool {
        self.problems.is_empty() && self.pending.is_none()
    }

    /// Returns the lines that say what is wrong.
    fn wrong(&self) -> Vec<String> {
        let all: Vec<String> = self.problems.iter().cloned().chain(self.pending.iter().map(Pending::shown)).collect();
        all.iter().flat_map(|problem| problem.lines()).map(escaped).collect()
    }

    /// Returns the line of the case, followed by lines that say what is wrong.
    pub fn lines(&self) -> Vec<String> {
        let (name, ms) = (&self.name, self.took.as_millis());
        if self.passed() {
            let accepted = if self.accepted { ", its snapshot was written" } else { "" };
            return vec![format!("ok    {name}  {ms} ms{accepted}")];
        }
        let place = self.place.as_ref().map(|(file, line)| format!("  ({}:{line})", text::path(file)));
        let mut lines = vec![format!("FAIL  {name}  {ms} ms{}", place.unwrap_or_default())];
        lines.extend(self.wrong().iter().map(|line| format!("        {line}")));
        lines
    }
}

/// Formats the results as JUnit XML, with one suite per file of cases.
pub fn junit(plugin: &str, all: &[Finished]) -> Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let mut whole = BytesStart::new("testsuites");
    counted(&mut whole, plugin, all.iter());
    writer.write_event(Event::Start(whole))?;
    let mut rest = all;
    while let Some(first) = rest.first() {
        let file = |one: &Finished| one.place.as_ref().map(|(file, _)| file.clone());
        let end = rest.iter().position(|one| file(one) != file(first)).unwrap_or(rest.len());
        let (suite, behind) = rest.split_at(end);
        rest = behind;
        let name = file(first).map_or("lists".to_owned(), |file| text::path(&file));
        let mut start = BytesStart::new("testsuite");
        counted(&mut start, &name, suite.iter());
        writer.write_event(Event::Start(start))?;
        for one in suite {
            let mut start = BytesStart::new("testcase");
            start.push_attribute(("name", one.name.as_str()));
            start.push_attribute(("classname", name.as_str()));
            start.push_attribute(("time", seconds(one.took).as_str()));
            if one.passed() {
                writer.write_event(Event::Empty(start))?;
                continue;
            }
            writer.write_event(Event::Start(start))?;
            // XML cannot represent most control characters, so the lines are escaped.
            let lines = one.wrong();
            let mut failure = BytesStart::new("failure");
            failure.push_attribute(("message", lines.first().map_or("", String::as_str)));
            writer.write_event(Event::Start(failure))?;
            writer.write_event(Event::Text(BytesText::new(&lines.join("\n"))))?;
            writer.write_event(Event::End(BytesEnd::new("failure")))?;
            writer.write_event(Event::End(BytesEnd::new("testcase")))?;
        }
        writer.write_event(Event::End(BytesEnd::new("testsuite")))?;
    }
    writer.write_event(Event::End(BytesEnd::new("testsuites")))?;
    let text = String::from_utf8(writer.into_inner()).context("JUnit")?;
    Ok(text + "\n")
}

fn counted<'a>(start: &mut BytesStart<'_>, name: &str, all: impl Iterator<Item = &'a Finished> + Clone) {
    let failed = all.clone().filter(|one| !one.passed()).count();
    start.push_attribute(("name", name));
    start.push_attribute(("tests", all.clone().count().to_string().as_str()));
    start.push_attribute(("failures", failed.to_string().as_str()));
    start.push_attribute(("time", seconds(all.map(|one| one.took).sum()).as_str()));
}

fn seconds(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64())
}
