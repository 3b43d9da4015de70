//! The history of each row of `cargo xtask bench --fixed`: how many times as fast as the fixed build wharf was. A row that falls below
//! [`LEAST_OF_BEST`] of its best ever fails.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result, ensure};

use crate::report::Row;

/// The part of the best figure of a row that it must keep.
const LEAST_OF_BEST: f64 = 0.97;

/// The figures of one row, oldest first.
type Rows = BTreeMap<String, Vec<f64>>;

/// Reads the lines of a history: commit, row and figure, between tabs. Lines that begin with `#` are comments.
fn read(text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty()) {
        let parts: Vec<&str> = line.split('\t').collect();
        ensure!(parts.len() == 3, "line {}: not a commit, a row and a figure between tabs", number + 1);
        let figure = parts.last().and_then(|figure| figure.parse().ok());
        let figure: f64 = figure.with_context(|| format!("line {}: the figure is not a number", number + 1))?;
        rows.entry(parts.get(1).copied().unwrap_or_default().to_owned()).or_default().push(figure);
    }
    Ok(rows)
}

/// Returns what is wrong with these figures, which are the newest of their rows.
fn fallen(rows: &Rows) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, figures) in rows {
        let best = figures.iter().copied().fold(0.0, f64::max);
        let last = figures.last().copied().unwrap_or_default();
        if last < best * LEAST_OF_BEST {
            problems.push(format!(
                "{name}: {last:.3} × is {:.3} of its best, {best:.3} ×, and must be at least {LEAST_OF_BEST}",
                last / best
            ));
        }
    }
    problems
}

/// Compares measured rows with their history. Returns what is wrong.
pub fn check(history: &str, measured: &[Row]) -> Result<Vec<String>> {
    let mut rows = read(history)?;
    for row in measured {
        rows.entry(row.name.to_string()).or_default().push(row.figure);
    }
    Ok(fallen(&rows))
}

/// Returns the history with these rows added.
pub fn with(history: &str, commit: &str, measured: &[Row]) -> String {
    let mut text = history.to_owned();
    for row in measured {
        writeln!(text, "{commit}\t{}\t{:.3}", row.name, row.figure).ok();
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
        let slow = "a\tone\t1.00\nb\tone\t0.98\nc\tone\t0.96\na\tother\t2\n";
        let problems = fallen(&read(slow).unwrap());
        assert_eq!(problems, ["one: 0.960 × is 0.960 of its best, 1.000 ×, and must be at least 0.97"]);
        assert_eq!(fallen(&read("a\tone\t1.00\nb\tone\t0.98\n").unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_damaged_is_named() {
        assert!(read("# comment\na\tone\n").unwrap_err().to_string().starts_with("line 2: "));
        assert!(read("a\tone\tfast").unwrap_err().to_string().contains("not a number"));
    }
}
