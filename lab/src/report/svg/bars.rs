//! A bar for each device: its name above it, so that long names have room on a narrow screen.

use super::mark::{Style, escape};
use std::fmt::Write as _;

/// A bar.
pub(in crate::report) struct Bar {
    /// Its series.
    pub style: Style,
    /// What is written above it.
    pub name: String,
    /// The value, in the unit in which it is written.
    pub value: f64,
    /// Half the width of its interval.
    pub half: f64,
    /// The value as text.
    pub text: String,
    /// Whether it says nothing about the device.
    pub is_small: bool,
    /// What is shown when it is pointed at.
    pub hint: String,
}

const WIDTH: f64 = 440.0;
const LEFT: f64 = 4.0;
/// The longest bar; a value is written after it.
const LONGEST: f64 = 330.0;
const PITCH: f64 = 38.0;

/// The figure, under heads that tell groups of bars apart.
pub(in crate::report) fn bars(label: &str, groups: &[(String, Vec<Bar>)]) -> String {
    let all = || groups.iter().flat_map(|(_, bars)| bars);
    let highest = all().map(|bar| bar.value + bar.half).fold(f64::MIN_POSITIVE, f64::max);
    let heads = groups.iter().filter(|(head, _)| !head.is_empty()).count();
    let height = all().count() as f64 * PITCH + heads as f64 * 24.0 + 6.0;
    let mut svg = format!(
        r#"<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{}">"#,
        escape(label)
    );
    let mut y = 0.0;
    for (head, bars) in groups {
        if !head.is_empty() {
            y += 24.0;
            write!(svg, r#"<text class="head" x="{LEFT}" y="{:.1}">{}</text>"#, y - 6.0, escape(head)).ok();
        }
        for bar in bars {
            svg.push_str(&one(bar, highest, y));
            y += PITCH;
        }
    }
    svg.push_str("</svg>");
    svg
}

fn one(bar: &Bar, highest: f64, y: f64) -> String {
    let length = |value: f64| (value / highest * LONGEST).clamp(0.0, LONGEST);
    let (end, top) = (length(bar.value).max(1.5), y + 17.0);
    let fill = match bar.style.is_published {
        true => format!("url(#hatch-{})", bar.style.class()),
        false => "currentColor".to_owned(),
    };
    let faded = if bar.is_small { r#" fill-opacity="0.4""# } else { "" };
    let mut svg = format!(
        r#"<g class="{}"><rect x="{LEFT}" y="{top:.1}" width="{end:.1}" height="14" fill="{fill}" stroke="currentColor"{faded}><title>{}</title></rect>"#,
        bar.style.class(),
        escape(&bar.hint)
    );
    let mut after = end;
    if bar.half > 0.0 {
        let (low, high) = (length(bar.value - bar.half) + LEFT, length(bar.value + bar.half) + LEFT);
        after = after.max(high - LEFT);
        let middle = top + 7.0;
        write!(svg, r#"<path class="whisker" d="M{low:.1} {middle:.1}H{high:.1}m0 -4v8"/>"#).ok();
    }
    svg.push_str("</g>");
    write!(svg, r#"<text class="name" x="{LEFT}" y="{:.1}">{}</text>"#, y + 12.0, escape(&bar.name)).ok();
    write!(
        svg,
        r#"<text class="tick" x="{:.1}" y="{:.1}">{}</text>"#,
        LEFT + after + 7.0,
        top + 11.0,
        escape(&bar.text)
    )
    .ok();
    svg
}
