//! Reports the results: lines for the terminal, and JUnit XML for other programs.

use std::{
    path::{Path, PathBuf},
    time::Duration,
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

    /// The file of the case.
    fn file(&self) -> Option<&Path> {
        self.place.as_ref().map(|(file, _)| file.as_path())
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
pub fn junit(plugin: &str, all: &[Finished]) -> String {
    let mut text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n", counted(plugin, all));
    for suite in all.chunk_by(|one, next| one.file() == next.file()) {
        let name = suite.first().and_then(Finished::file).map_or("lists".to_owned(), text::path);
        text += &format!("  <testsuite {}>\n", counted(&name, suite));
        for one in suite {
            let (case, suite, time) = (xml(&one.name), xml(&name), seconds(one.took));
            let case = format!("    <testcase name=\"{case}\" classname=\"{suite}\" time=\"{time}\"");
            if one.passed() {
                text += &format!("{case}/>\n");
                continue;
            }
            let lines: Vec<String> = one.wrong().iter().map(|line| xml(line)).collect();
            let (message, all) = (lines.first().map_or("", String::as_str), lines.join("\n"));
            text += &format!("{case}>\n      <failure message=\"{message}\">{all}</failure>\n    </testcase>\n");
        }
        text += "  </testsuite>\n";
    }
    text + "</testsuites>\n"
}

/// Returns the attributes of a suite.
fn counted(name: &str, all: &[Finished]) -> String {
    let failed = all.iter().filter(|one| !one.passed()).count();
    let (name, tests, time) = (xml(name), all.len(), seconds(all.iter().map(|one| one.took).sum()));
    format!("name=\"{name}\" tests=\"{tests}\" failures=\"{failed}\" time=\"{time}\"")
}

/// Writes a text in one line of XML, which cannot represent most control characters and two others.
fn xml(text: &str) -> String {
    let text = escaped(text).replace(['\u{fffe}', '\u{ffff}'], "?");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn seconds(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_name_or_a_problem_contains_the_xml_is_well_formed() {
        let case = |name: &str, file: Option<&str>, problem: Option<&str>| Finished {
            name: name.to_owned(),
            place: file.map(|file| (file.into(), 1)),
            took: Duration::from_millis(1500),
            problems: problem.into_iter().map(str::to_owned).collect(),
            pending: None,
            accepted: false,
        };
        let wrong = case("\n\"<b>\" & 'c'\0\u{ffff}", Some("a.toml"), Some("it differs:\n- <a>\n+ ]]>\u{1b}[1m"));
        let all = [case("lists", None, None), wrong, case("one", Some("a.toml"), None)];
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="p" tests="3" failures="1" time="4.500">
  <testsuite name="lists" tests="1" failures="0" time="1.500">
    <testcase name="lists" classname="lists" time="1.500"/>
  </testsuite>
  <testsuite name="a.toml" tests="2" failures="1" time="3.000">
    <testcase name="\n&quot;&lt;b&gt;&quot; &amp; 'c'\u{0}?" classname="a.toml" time="1.500">
      <failure message="it differs:">it differs:
- &lt;a&gt;
+ ]]&gt;\u{1b}[1m</failure>
    </testcase>
    <testcase name="one" classname="a.toml" time="1.500"/>
  </testsuite>
</testsuites>
"#;
        assert_eq!(junit("p", &all), expected);
    }
}
