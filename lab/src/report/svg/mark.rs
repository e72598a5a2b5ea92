//! Series in figures: marker, line and name.

use crate::report::palette::COLOURS;
use std::fmt::Write as _;

/// How a series is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Style {
    /// Its name in the legend.
    pub name: String,
    /// Its place among the series of the chapter.
    pub place: usize,
    /// Whether a paper printed it.
    pub is_published: bool,
}

impl Style {
    /// The class that has its colour.
    pub(super) fn class(&self) -> String {
        format!("c{}", self.place % COLOURS)
    }

    /// Attributes of its line.
    pub(super) fn line(&self) -> &'static str {
        match (self.is_published, self.place / COLOURS % 2) {
            (true, _) => r#"fill="none" stroke="currentColor" stroke-width="1.3" stroke-dasharray="5 4""#,
            (false, 0) => r#"fill="none" stroke="currentColor" stroke-width="2""#,
            (false, _) => r#"fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="9 3""#,
        }
    }

    /// Its marker at a place; small if the value says nothing about the device.
    pub(super) fn marker(&self, (x, y): (f64, f64), is_small: bool) -> String {
        let r = if is_small { 2.2 } else { 4.2 };
        let points = |corners: &[(f64, f64)]| {
            let mut text = String::new();
            for (dx, dy) in corners {
                write!(text, "{:.1},{:.1} ", x + dx * r, y + dy * r).ok();
            }
            format!(r#"<polygon points="{}""#, text.trim_end())
        };
        let shape = match self.place % 7 {
            0 => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="{r}""#),
            1 => format!(
                r#"<rect x="{:.1}" y="{:.1}" width="{w:.1}" height="{w:.1}""#,
                x - r * 0.9,
                y - r * 0.9,
                w = r * 1.8
            ),
            2 => points(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            3 => points(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            4 => points(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            5 => points(&[(0.0, -1.2), (1.2, -0.2), (0.8, 1.1), (-0.8, 1.1), (-1.2, -0.2)]),
            _ => points(&[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ]),
        };
        let fill = if self.is_published { "var(--paper)" } else { "currentColor" };
        format!(r#"{shape} fill="{fill}" stroke="currentColor" stroke-width="1.4""#)
    }

    /// Line and marker for a legend.
    pub(in crate::report) fn swatch(&self) -> String {
        format!(
            r#"<svg class="{}" width="30" height="14" viewBox="0 0 30 14" aria-hidden="true"><path d="M1 7H29" {}/>{}/></svg>"#,
            self.class(),
            self.line(),
            self.marker((15.0, 7.0), false)
        )
    }
}

/// Text for HTML and SVG.
pub(in crate::report) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
