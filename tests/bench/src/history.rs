//! The history of each row of `cargo xtask bench --fixed`: how many times as fast as the fixed build wharf was, by processor. A row that falls
//! below [`LEAST_OF_BEST`] of its best ever on the same processor fails.
//!
//! Processors are kept apart because the figures differ: a small fresh call was 1.66 times as fast on one processor and 1.05 times on another.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result, bail};

use crate::report::Row;

/// The part of the best figure of a row that it must keep.
const LEAST_OF_BEST: f64 = 0.97;

/// The figures of one row on one processor, oldest first.
type Rows = BTreeMap<(String, String), Vec<f64>>;

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

/// Reads the lines of a history: commit, processor, row and figure, between tabs. Lines that begin with `#` are comments.
fn read(text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty()) {
        let parts: Vec<&str> = line.split('\t').collect();
        let [_, processor, row, figure] = parts.as_slice() else {
            bail!("line {}: not a commit, a processor, a row and a figure between tabs", number + 1);
        };
        let figure = figure.parse().ok();
        let figure: f64 = figure.with_context(|| format!("line {}: the figure is not a number", number + 1))?;
        rows.entry(((*processor).to_owned(), (*row).to_owned())).or_default().push(figure);
    }
    Ok(rows)
}

/// Returns what is wrong with these figures, which are the newest of their rows.
fn fallen(rows: &Rows) -> Vec<String> {
    let mut problems = Vec::new();
    for ((processor, name), figures) in rows {
        let best = figures.iter().copied().fold(0.0, f64::max);
        let last = figures.last().copied().unwrap_or_default();
        if last < best * LEAST_OF_BEST {
            problems.push(format!(
                "{name}: {last:.3} × is {:.3} of its best on {processor}, {best:.3} ×, and must be at least {LEAST_OF_BEST}",
                last / best
            ));
        }
    }
    problems
}

/// Compares measured rows with their history. Returns what is wrong.
pub fn check(history: &str, processor: &str, measured: &[Row]) -> Result<Vec<String>> {
    let mut rows = read(history)?;
    for row in measured {
        rows.entry((processor.to_owned(), row.name.to_string())).or_default().push(row.figure);
    }
    Ok(fallen(&rows))
}

/// Returns the history with these rows added.
pub fn with(history: &str, commit: &str, processor: &str, measured: &[Row]) -> String {
    let mut text = history.to_owned();
    for row in measured {
        writeln!(text, "{commit}\t{processor}\t{}\t{:.3}", row.name, row.figure).ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_has_fallen() {
        let rows = read(include_str!("../history.tsv")).unwrap();
        assert_eq!(fallen(&rows), Vec::<String>::new());
    }

    #[test]
    fn a_fall_is_compared_with_the_best_and_not_with_the_last() {
        let slow = "a\tp\tone\t1.00\nb\tp\tone\t0.98\nc\tp\tone\t0.96\na\tp\tother\t2\na\tq\tone\t3\n";
        let problems = fallen(&read(slow).unwrap());
        assert_eq!(problems, ["one: 0.960 × is 0.960 of its best on p, 1.000 ×, and must be at least 0.97"]);
        assert_eq!(fallen(&read("a\tp\tone\t1.00\nb\tp\tone\t0.98\n").unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_damaged_is_named() {
        assert!(read("# comment\na\tp\tone\n").unwrap_err().to_string().starts_with("line 2: "));
        assert!(read("a\tp\tone\tfast").unwrap_err().to_string().contains("not a number"));
    }
}
