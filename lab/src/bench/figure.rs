//! A measured figure with its target, and how figures are shown.

use crate::terminal::{bold, cross, median, table, tick};
use serde_json::{Value, json};

/// The target of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// No target: for comparison only.
    None,
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
}

/// One figure: several repeats of it, judged by their median.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// One for each repeat.
    pub repeats: Vec<f64>,
    /// The target of a figure.
    pub target: Target,
}

impl Figure {
    /// A figure without target.
    pub fn new(name: impl Into<String>, unit: &'static str, repeats: Vec<f64>) -> Self {
        Self { name: name.into(), unit, repeats, target: Target::None }
    }

    /// The same with a target.
    pub fn to_reach(self, target: Target) -> Self {
        Self { target, ..self }
    }

    /// The middle of the repeats.
    pub fn median(&self) -> f64 {
        median(&self.repeats)
    }

    fn least(&self) -> f64 {
        self.repeats.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.repeats.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether the target is reached; `None` where there is none.
    pub fn reached(&self) -> Option<bool> {
        match self.target {
            Target::None => None,
            Target::AtLeast(least) => Some(self.median() >= least),
            Target::AtMost(most) => Some(self.median() <= most),
        }
    }

    fn row(&self) -> Vec<String> {
        let target = match self.target {
            Target::None => String::new(),
            Target::AtLeast(least) => format!("≥ {}", digits(least)),
            Target::AtMost(most) => format!("≤ {}", digits(most)),
        };
        let verdict = self.reached().map_or(String::new(), |reached| if reached { tick() } else { cross() });
        let cells = [digits(self.least()), digits(self.median()), digits(self.most())];
        let mut row = vec![self.name.clone()];
        row.extend(cells);
        row.extend([self.unit.to_owned(), target, verdict]);
        row
    }

    fn json(&self) -> Value {
        let (target, bound) = match self.target {
            Target::None => (Value::Null, Value::Null),
            Target::AtLeast(least) => (json!("at least"), json!(least)),
            Target::AtMost(most) => (json!("at most"), json!(most)),
        };
        json!({ "name": self.name, "unit": self.unit, "min": self.least(), "median": self.median(), "max": self.most(),
                "repeats": self.repeats, "target": target, "bound": bound, "reached": self.reached() })
    }
}

/// Figures that belong together.
#[derive(Clone, Debug)]
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// How they were measured, in a sentence or two.
    pub how: String,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
}

impl Section {
    /// Prints it as a table.
    pub fn print(&self) {
        println!("\n{}\n{}\n", bold(self.title), self.how);
        let rows: Vec<_> = self.figures.iter().map(Figure::row).collect();
        print!("{}", table(&["FIGURE", "MIN", "MEDIAN", "MAX", "UNIT", "TARGET", ""], &rows, true));
        self.skipped.iter().for_each(|what| println!("  – skipped: {what}"));
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let figures: Vec<_> = self.figures.iter().map(Figure::json).collect();
        json!({ "title": self.title, "how": self.how, "figures": figures, "skipped": self.skipped })
    }
}

fn digits(figure: f64) -> String {
    match figure.abs() {
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_judged() {
        let figure = |target| Figure::new("x", "ns", vec![30.0, 10.0, 20.0]).to_reach(target);
        assert_eq!(figure(Target::AtMost(20.0)).reached(), Some(true));
        assert_eq!(figure(Target::AtMost(19.0)).reached(), Some(false));
        assert_eq!(figure(Target::AtLeast(20.0)).reached(), Some(true));
        assert_eq!(figure(Target::AtLeast(21.0)).reached(), Some(false));
        assert_eq!(figure(Target::None).reached(), None);
    }
}
