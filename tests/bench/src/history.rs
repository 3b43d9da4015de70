//! The history of each row of `cargo xtask bench --fixed`: how many times as fast as the fixed build wharf was, and the time that a call took,
//! by processor. A row fails if both have become worse than [`LEAST_OF_BEST`] of their best on the same processor.
//!
//! The ratio alone is not enough: a bad moment of the machine while the fixed build is measured makes it larger, and would raise the best for
//! good. The time alone is not enough either: the same processor is slower in a machine with more load.
//!
//! Processors are kept apart because the figures differ: a small fresh call was 1.66 times as fast on one processor and 1.05 times on another.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result, bail};

/// The part of a row's best that it must keep.
const LEAST_OF_BEST: f64 = 0.97;
/// Stands for a time that was not recorded.
const NOT_RECORDED: &str = "-";

/// What one run measured for one row.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// How many times as fast as the fixed build.
    pub times: f64,
    /// The time of a call on a core, in microseconds.
    pub core_us: Option<f64>,
}

/// The figures of one row on one processor, oldest first.
type Rows = BTreeMap<(String, String), Vec<Figure>>;

/// What is recorded.
pub struct History {
    text: String,
    rows: Rows,
    processor: String,
}

impl History {
    /// Reads the text of a history, of which the figures of this processor count.
    pub fn read(text: String, processor: String) -> Result<Self> {
        Ok(Self { rows: read(&text)?, text, processor })
    }

    /// Returns what is wrong with a figure of a row.
    pub fn fallen(&self, name: &str, figure: Figure) -> Option<String> {
        let recorded = self.rows.get(&(self.processor.clone(), name.to_owned()))?;
        fallen(recorded, figure).map(|problem| format!("{name}: {problem} on {}", self.processor))
    }

    /// Returns the text of the history with these rows added.
    pub fn with(&self, commit: &str, measured: &[(&str, Figure)]) -> String {
        let (mut text, processor) = (self.text.clone(), &self.processor);
        for (name, Figure { times, core_us }) in measured {
            let core_us = core_us.map_or_else(|| NOT_RECORDED.to_owned(), |us| format!("{us:.1}"));
            writeln!(text, "{commit}\t{processor}\t{name}\t{times:.3}\t{core_us}").ok();
        }
        text
    }
}

/// Returns the name of this machine's processor, with its family and model: many are sold under one name.
#[expect(clippy::disallowed_methods, reason = "/proc is not a file of any plugin or client")]
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(own, _)| own.trim() == name).map_or("unknown", |(_, value)| value.trim())
    };
    format!("{} (family {}, model {})", field("model name"), field("cpu family"), field("model"))
}

/// Reads the lines of a history: commit, processor, row, ratio and time, between tabs. Lines that begin with `#` are comments.
fn read(text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty()) {
        let read = || {
            let parts: Vec<&str> = line.split('\t').collect();
            let [_, processor, row, times, core_us] = parts.as_slice() else {
                bail!("not a commit, a processor, a row, a ratio and a time between tabs");
            };
            let number = |text: &str| text.parse::<f64>().with_context(|| format!("{text:?} is not a number"));
            let core_us = if *core_us == NOT_RECORDED { None } else { Some(number(core_us)?) };
            Ok((((*processor).to_owned(), (*row).to_owned()), Figure { times: number(times)?, core_us }))
        };
        let (row, figure) = read().with_context(|| format!("line {}", number + 1))?;
        rows.entry(row).or_default().push(figure);
    }
    Ok(rows)
}

/// Returns what is wrong with a figure, compared with those that were recorded.
fn fallen(recorded: &[Figure], now: Figure) -> Option<String> {
    let most = recorded.iter().map(|figure| figure.times).reduce(f64::max)?;
    let least_us = recorded.iter().filter_map(|figure| figure.core_us).reduce(f64::min);
    let slower = now.core_us.zip(least_us).is_none_or(|(now, least)| now > least / LEAST_OF_BEST);
    let us = |us: Option<f64>| us.map_or_else(|| "an unknown time".to_owned(), |us| format!("{us:.1} us"));
    (slower && now.times < most * LEAST_OF_BEST).then(|| {
        format!(
            "{:.3} × the fixed build and {}; one of both must be within {LEAST_OF_BEST} of its best, {most:.3} × and {},",
            now.times,
            us(now.core_us),
            us(least_us)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the problems of the newest figure of each row.
    fn newest(history: &str) -> Vec<String> {
        let rows = read(history).unwrap();
        rows.values()
            .filter_map(|figures| figures.split_last())
            .filter_map(|(last, rest)| fallen(rest, *last))
            .collect()
    }

    #[test]
    fn no_row_has_fallen() {
        assert_eq!(newest(include_str!("../history.tsv")), Vec::<String>::new());
    }

    #[test]
    fn a_row_falls_if_ratio_and_time_are_worse_than_their_best() {
        let fallen = |history: &str| newest(history).len();
        // Compared with the best and not with the last.
        assert_eq!(fallen("a\tp\tone\t1.00\t10\nb\tp\tone\t0.98\t10.2\nc\tp\tone\t0.96\t10.4\n"), 1);
        // Only the ratio: the fixed build was measured in a bad moment once.
        assert_eq!(fallen("a\tp\tone\t1.10\t10\nb\tp\tone\t1.00\t10.2\n"), 0);
        // Only the time: the machine is slower now.
        assert_eq!(fallen("a\tp\tone\t1.00\t10\nb\tp\tone\t0.98\t12\n"), 0);
        // The time is not known.
        assert_eq!(fallen("a\tp\tone\t1.00\t-\nb\tp\tone\t0.98\t-\n"), 0);
        assert_eq!(fallen("a\tp\tone\t1.00\t-\nb\tp\tone\t0.96\t-\n"), 1);
        // Rows and processors have nothing to do with each other.
        assert_eq!(fallen("a\tp\tone\t2\t5\na\tp\tother\t1\t10\na\tq\tone\t1\t10\n"), 0);
    }

    #[test]
    fn what_is_added_is_read_again() {
        let best = Figure { times: 1.2, core_us: Some(10.0) };
        let history = |text: &str, processor: &str| History::read(text.into(), processor.into()).unwrap();
        let text = history("# comment\n", "p").with("a", &[("one", best)]);
        assert_eq!(text, "# comment\na\tp\tone\t1.200\t10.0\n");
        let (other, history) = (history(&text, "q"), history(&text, "p"));
        assert_eq!(history.fallen("one", best), None);
        let slower = Figure { times: 1.1, core_us: Some(11.0) };
        assert_eq!(
            history.fallen("one", slower).unwrap(),
            "one: 1.100 × the fixed build and 11.0 us; one of both must be within 0.97 of its best, 1.200 × and 10.0 us, on p"
        );
        assert_eq!((history.fallen("other", slower), other.fallen("one", slower)), (None, None));
    }

    #[test]
    fn a_line_that_is_damaged_is_named() {
        let error = |history: &str| format!("{:#}", read(history).unwrap_err());
        assert_eq!(
            error("# comment\na\tp\tone\n"),
            "line 2: not a commit, a processor, a row, a ratio and a time between tabs"
        );
        assert!(error("a\tp\tone\tfast\t1").starts_with("line 1: \"fast\" is not a number"));
        assert!(error("a\tp\tone\t1\t").starts_with("line 1: \"\" is not a number"));
    }
}
