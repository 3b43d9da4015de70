//! What was measured: a table for people, JSON for machines, a plot of the axes.

use std::{borrow::Cow, fmt::Write as _, path::Path};

use anyhow::Result;
use serde_json::{Value, json};

/// Which side of its target a figure must be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    AtLeast,
    AtMost,
}

/// One figure with a target.
pub struct Row {
    pub name: Cow<'static, str>,
    pub figure: f64,
    pub unit: &'static str,
    pub wanted: Wanted,
    pub target: f64,
    /// What it was made of.
    pub detail: String,
}

impl Row {
    fn met(&self) -> bool {
        match self.wanted {
            Wanted::AtLeast => self.figure >= self.target,
            Wanted::AtMost => self.figure <= self.target,
        }
    }

    /// A ratio that neither noise nor another processor explains: a third, or three times, what is wanted. Absolute figures never fail a run.
    fn far_off(&self) -> bool {
        let margin = if self.unit == "×" { 3.0 } else { f64::INFINITY };
        match self.wanted {
            Wanted::AtLeast => self.figure < self.target / margin,
            Wanted::AtMost => self.figure > self.target * margin,
        }
    }
}

/// One point on an axis.
pub struct Point {
    pub axis: &'static str,
    pub at: String,
    pub calls_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
}

#[derive(Default)]
pub struct Report {
    pub rows: Vec<Row>,
    pub points: Vec<Point>,
    pub notes: Vec<String>,
}

/// The middle one of what was measured.
pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// To the terminal; where it is closed, nobody reads.
pub fn say(text: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "{text}").ok();
}

impl Report {
    pub fn row(&mut self, row: Row) {
        say(&line(&row));
        self.rows.push(row);
    }

    pub fn point(&mut self, point: Point) {
        say(&format!(
            "  {:<12} {:>12}  {:>9.0} calls/s  p50 {:>7.0} us  p99 {:>7.0} us",
            point.axis, point.at, point.calls_per_second, point.p50_us, point.p99_us
        ));
        self.points.push(point);
    }

    pub fn note(&mut self, note: String) {
        say(&format!("  {note}"));
        self.notes.push(note);
    }

    pub fn print(&self) {
        say("\nin short:");
        for row in &self.rows {
            say(&line(row));
        }
    }

    pub fn within_margins(&self) -> bool {
        let mut within = true;
        for row in self.rows.iter().filter(|row| row.far_off()) {
            say(&format!("far from its target: {}", row.name));
            within = false;
        }
        within
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let wanted = if row.wanted == Wanted::AtLeast { "at least" } else { "at most" };
                json!({ "name": row.name, "figure": row.figure, "unit": row.unit, "wanted": wanted,
                        "target": row.target, "met": row.met(), "detail": row.detail })
            })
            .collect();
        let points: Vec<Value> = self
            .points
            .iter()
            .map(|point| {
                json!({ "axis": point.axis, "at": point.at, "calls_per_second": point.calls_per_second,
                        "p50_us": point.p50_us, "p99_us": point.p99_us })
            })
            .collect();
        let all = json!({ "rows": rows, "points": points, "notes": self.notes });
        std::fs::write(folder.join("bench.json"), serde_json::to_string_pretty(&all)?)?;
        std::fs::write(folder.join("bench.svg"), self.plot())?;
        Ok(())
    }

    /// A panel for each axis: bars as long as the rate.
    fn plot(&self) -> String {
        let mut axes: Vec<&str> = self.points.iter().map(|point| point.axis).collect();
        axes.dedup();
        let mut body = String::new();
        let mut y = 20;
        for axis in axes {
            let points: Vec<&Point> = self.points.iter().filter(|point| point.axis == axis).collect();
            let most = points.iter().map(|point| point.calls_per_second).fold(1.0, f64::max);
            writeln!(body, r#"<text x="10" y="{y}" font-weight="bold">{axis}, calls per second</text>"#).ok();
            y += 8;
            for point in points {
                let width = point.calls_per_second / most * 400.0;
                let middle = y + 13;
                writeln!(
                    body,
                    r##"<text x="130" y="{middle}" text-anchor="end">{}</text><rect x="140" y="{y}" width="{width:.0}" height="16" fill="#4a7ab5"/><text x="{:.0}" y="{middle}">{:.0}</text>"##,
                    point.at,
                    width + 146.0,
                    point.calls_per_second
                )
                .ok();
                y += 20;
            }
            y += 26;
        }
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{y}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>
{body}</svg>
"#
        )
    }
}

fn line(row: &Row) -> String {
    let (sign, met) = (if row.wanted == Wanted::AtLeast { "≥" } else { "≤" }, if row.met() { "met" } else { "MISSED" });
    format!("{:<52} {:>8.2} {:<3} ({sign} {} {met})  {}", row.name, row.figure, row.unit, row.target, row.detail)
}
