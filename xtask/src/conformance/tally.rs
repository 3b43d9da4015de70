//! Adds up the suite's results: one `checks.json` per scenario, which lists checks with a status each.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// The number of checks by status. Checks that are only informational are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub success: usize,
    pub failure: usize,
    pub warning: usize,
    pub skipped: usize,
}

/// The scenarios of one run by name.
#[derive(Debug, Default)]
pub struct Tally(BTreeMap<String, Scenario>);

#[derive(Debug, Default)]
struct Scenario {
    counts: Counts,
    problems: Vec<String>,
}

impl Tally {
    /// Reads the results from the folder that the suite wrote them to.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut tally = Self::default();
        for entry in fs::read_dir(folder)? {
            let checks = entry?.path().join("checks.json");
            let Some(name) = checks.parent().and_then(Path::file_name).and_then(|name| name.to_str()) else { continue };
            if checks.is_file() {
                let text = fs::read_to_string(&checks)?;
                tally.add(scenario_of(name), &text).with_context(|| checks.display().to_string())?;
            }
        }
        Ok(tally)
    }

    fn add(&mut self, name: &str, text: &str) -> Result<()> {
        let checks: Vec<Value> = serde_json::from_str(text)?;
        let scenario = self.0.entry(name.to_owned()).or_default();
        if checks.is_empty() {
            scenario.problems.push("nothing was checked".into());
        }
        for check in &checks {
            scenario.count(check, may_skip(name));
        }
        Ok(())
    }

    pub fn scenarios(&self) -> usize {
        self.0.len()
    }

    pub fn sum(&self) -> Counts {
        self.0.values().fold(Counts::default(), |sum, Scenario { counts, .. }| Counts {
            success: sum.success + counts.success,
            failure: sum.failure + counts.failure,
            warning: sum.warning + counts.warning,
            skipped: sum.skipped + counts.skipped,
        })
    }

    /// Returns every failure and warning, scored or not, and every skipped check of a scenario that may not skip checks.
    pub fn problems(&self) -> Vec<String> {
        let with_name = |(name, scenario): (&String, &Scenario)| {
            scenario.problems.iter().map(|problem| format!("{name}: {problem}")).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(with_name).collect()
    }
}

impl Scenario {
    fn count(&mut self, check: &Value, may_skip: bool) {
        let status = text(check, "status");
        match status {
            "SUCCESS" => self.counts.success += 1,
            "FAILURE" => self.counts.failure += 1,
            "WARNING" => self.counts.warning += 1,
            "SKIPPED" => self.counts.skipped += 1,
            _ => {}
        }
        if !(matches!(status, "SUCCESS" | "INFO") || status == "SKIPPED" && may_skip) {
            let why = [text(check, "errorMessage"), text(check, "description")].into_iter().find(|why| !why.is_empty());
            self.problems.push(format!("{status} {}: {}", text(check, "id"), why.unwrap_or("no reason given")));
        }
    }
}

fn text<'a>(check: &'a Value, member: &str) -> &'a str {
    check.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a scenario may skip checks. The suite only plans the first of these; the others test an extension that wharf does not support.
fn may_skip(scenario: &str) -> bool {
    scenario == "tasks-status-notifications" || scenario.starts_with("sep-2640-skills-")
}

/// Returns the scenario's name from that of its folder, `server-<scenario>-2026-11-21T14-08-21-322Z`.
fn scenario_of(folder: &str) -> &str {
    const TIME: usize = "-2026-11-21T14-08-21-322Z".len();
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    match name.len().checked_sub(TIME).and_then(|end| name.split_at_checked(end)) {
        Some((scenario, time)) if time.ends_with('Z') && !scenario.is_empty() => scenario,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(scenarios: &[(&str, &str)]) -> Tally {
        let mut tally = Tally::default();
        for (name, text) in scenarios {
            tally.add(name, text).unwrap();
        }
        tally
    }

    #[test]
    fn folders_name_their_scenario() {
        for (folder, expected) in [
            ("server-tools-list-2026-11-21T14-08-21-322Z", "tools-list"),
            ("server-json-schema-2020-12-2026-11-21T14-08-21-322Z", "json-schema-2020-12"),
            // The scenario's own name begins with the prefix too.
            ("server-server-stateless-2026-11-21T14-08-21-322Z", "server-stateless"),
            ("server-ping", "ping"),
            ("ping", "ping"),
        ] {
            assert_eq!(scenario_of(folder), expected);
        }
    }

    #[test]
    fn checks_are_added_up_over_scenarios() {
        let tally = tally(&[
            ("ping", r#"[{"id":"a","status":"SUCCESS"},{"id":"wire","status":"SUCCESS"}]"#),
            ("polling", r#"[{"id":"b","status":"SUCCESS"},{"id":"c","status":"INFO"}]"#),
        ]);
        assert_eq!(tally.scenarios(), 2);
        assert_eq!(tally.sum(), Counts { success: 3, ..Counts::default() });
        assert_eq!(tally.problems(), Vec::<String>::new());
    }

    #[test]
    fn failures_and_warnings_are_problems_everywhere() {
        let tally = tally(&[(
            "tasks-lifecycle",
            r#"[{"id":"a","status":"FAILURE","description":"must","errorMessage":"did not"},
                {"id":"b","status":"WARNING","description":"should"},
                {"id":"c","status":"FAILURE"},
                {"id":"d","status":"CONFUSED"}]"#,
        )]);
        assert_eq!(tally.sum(), Counts { failure: 2, warning: 1, ..Counts::default() });
        assert_eq!(
            tally.problems(),
            [
                "tasks-lifecycle: FAILURE a: did not",
                "tasks-lifecycle: WARNING b: should",
                "tasks-lifecycle: FAILURE c: no reason given",
                "tasks-lifecycle: CONFUSED d: no reason given",
            ]
        );
    }

    #[test]
    fn only_some_scenarios_may_skip() {
        let skipped = r#"[{"id":"a","status":"SKIPPED","description":"not here"}]"#;
        let tally = tally(&[("tasks-status-notifications", skipped), ("server-session-lifecycle", skipped)]);
        assert_eq!(tally.sum().skipped, 2);
        assert_eq!(tally.problems(), ["server-session-lifecycle: SKIPPED a: not here"]);
    }

    #[test]
    fn a_scenario_without_checks_is_a_problem() {
        assert_eq!(tally(&[("ping", "[]")]).problems(), ["ping: nothing was checked"]);
        assert!(Tally::default().add("ping", "{}").is_err());
    }
}
