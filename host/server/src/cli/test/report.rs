//! What the author is told: lines at the terminal, and JUnit's XML for other programs.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use quick_xml::{
    Writer,
    events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event},
};

use super::snapshots::Pending;
use crate::base::text::{self, escaped};

/// A case that is over.
#[derive(Debug)]
pub struct Finished {
    pub name: String,
    /// Where it is written. None: it is the case of the lists.
    pub place: Option<(PathBuf, usize)>,
    pub took: Duration,
    pub problems: Vec<String>,
    /// A snapshot that has to be looked at.
    pub pending: Option<Pending>,
    /// Whether a snapshot was taken.
    pub taken: bool,
}

impl Finished {
    pub fn passed(&self) -> bool {
        self.problems.is_empty() && self.pending.is_none()
    }

    /// Everything that is wrong.
    fn wrong(&self) -> Vec<String> {
        let all: Vec<String> = self.problems.iter().cloned().chain(self.pending.iter().map(Pending::shown)).collect();
        all.iter().flat_map(|problem| problem.lines()).map(escaped).collect()
    }

    /// One line, and what is wrong below it.
    pub fn lines(&self) -> Vec<String> {
        let (name, ms) = (&self.name, self.took.as_millis());
        if self.passed() {
            let taken = if self.taken { ", its snapshot was written" } else { "" };
            return vec![format!("ok    {name}  {ms} ms{taken}")];
        }
        let place = self.place.as_ref().map(|(file, line)| format!("  ({}:{line})", text::path(file)));
        let mut lines = vec![format!("FAIL  {name}  {ms} ms{}", place.unwrap_or_default())];
        lines.extend(self.wrong().iter().map(|line| format!("        {line}")));
        lines
    }
}

/// The results as JUnit's XML: one suite for each file of cases.
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
            // XML has no form for most control characters.
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
