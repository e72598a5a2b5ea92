//! Values along an axis, as lines with markers and intervals.

use super::mark::{Style, escape};
use super::scale::{Scale, tick};
use std::fmt::Write as _;

/// A point of a line, in the unit in which it is written.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Point {
    /// Along the axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Half the width of its interval.
    pub half: f64,
    /// Whether it says nothing about the device.
    pub is_small: bool,
    /// What is shown when it is pointed at.
    pub hint: String,
}

/// A figure's content.
pub(in crate::report) struct Lines<'a> {
    /// What it shows, for those who hear it.
    pub label: &'a str,
    /// What is written at the axis.
    pub axis_title: &'a str,
    /// Whether values have a logarithmic scale.
    pub is_logarithmic: bool,
    /// Lines, in the order in which they are drawn.
    pub lines: Vec<(Style, Vec<Point>)>,
}

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 270.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 42.0;
const RIGHT: f64 = WIDTH - 16.0;
/// About the width of a digit.
const DIGIT: f64 = 7.2;

/// The figure.
pub(in crate::report) fn lines(figure: &Lines<'_>) -> String {
    let all = || figure.lines.iter().flat_map(|(_, points)| points);
    // A wide interval may leave the figure: the lines matter.
    let highest_mean = all().map(|point| point.y).fold(0.0, f64::max);
    let highest_end = all().map(|point| point.y + point.half).fold(0.0, f64::max);
    let highest = highest_end.min(highest_mean * 1.25);
    let lowest = all().map(|point| point.y).filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
    let ends = (BOTTOM, TOP);
    let vertical = match figure.is_logarithmic && lowest.is_finite() {
        true => Scale::decades(lowest, highest, ends),
        false => Scale::from_zero(highest, ends),
    };
    let ticks = vertical.ticks();
    let widest = ticks.iter().map(|value| tick(*value).chars().count()).max().unwrap_or(1);
    let left = 12.0 + DIGIT * widest as f64;
    let places = places(figure);
    let (first, last) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
    // Sizes of packets double; hosts are counted.
    let doubles = first > 0.0 && last / first >= 20.0;
    let horizontal = Scale::between(first, last, doubles, (left + 12.0, RIGHT - 10.0));

    let mut svg = format!(
        r#"<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#,
        escape(figure.label)
    );
    for value in ticks {
        let y = vertical.place(value);
        write!(svg, r#"<path class="grid" d="M{left:.1} {y:.1}H{RIGHT}"/>"#).ok();
        write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            left - 6.0,
            y + 4.0,
            tick(value)
        )
        .ok();
    }
    write!(svg, r#"<path class="axis" d="M{left:.1} {BOTTOM}H{RIGHT}"/>"#).ok();
    let marked = if places.len() > 14 { horizontal.ticks() } else { places };
    let mut free_from = 0.0;
    for value in marked {
        let (x, text) = (horizontal.place(value), tick(value));
        write!(svg, r#"<path class="axis" d="M{x:.1} {BOTTOM}v4"/>"#).ok();
        let half = DIGIT * text.chars().count() as f64 / 2.0;
        if x - half >= free_from {
            write!(
                svg,
                r#"<text class="tick" x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                BOTTOM + 18.0
            )
            .ok();
            free_from = x + half + 5.0;
        }
    }
    write!(
        svg,
        r#"<text class="title" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
        f64::midpoint(left, RIGHT),
        HEIGHT - 5.0,
        escape(figure.axis_title)
    )
    .ok();
    for (style, points) in &figure.lines {
        svg.push_str(&line(style, points, horizontal, vertical));
    }
    svg.push_str("</svg>");
    svg
}

/// All places on the axis, in their order.
fn places(figure: &Lines<'_>) -> Vec<f64> {
    let mut places: Vec<f64> =
        figure.lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn line(style: &Style, points: &[Point], horizontal: Scale, vertical: Scale) -> String {
    let mut svg = format!(r#"<g class="{}">"#, style.class());
    let mut path = String::new();
    for (at, point) in points.iter().enumerate() {
        let letter = if at == 0 { 'M' } else { 'L' };
        write!(path, "{letter}{:.1} {:.1}", horizontal.place(point.x), vertical.place(point.y)).ok();
    }
    write!(svg, r#"<path d="{path}" {}/>"#, style.line()).ok();
    for point in points {
        let (x, y) = (horizontal.place(point.x), vertical.place(point.y));
        if point.half > 0.0 {
            let (high, low) = (vertical.place(point.y + point.half), vertical.place(point.y - point.half));
            write!(
                svg,
                r#"<path d="M{x:.1} {high:.1}V{low:.1}M{:.1} {high:.1}h6M{:.1} {low:.1}h6" stroke="currentColor" stroke-width="1.2" fill="none"/>"#,
                x - 3.0,
                x - 3.0
            )
            .ok();
        }
        write!(
            svg,
            "{}><title>{}</title>{}",
            style.marker((x, y), point.is_small),
            escape(&point.hint),
            end_of(style)
        )
        .ok();
    }
    svg.push_str("</g>");
    svg
}

/// The end tag of a marker.
fn end_of(style: &Style) -> &'static str {
    match style.place % 7 {
        0 => "</circle>",
        1 => "</rect>",
        _ => "</polygon>",
    }
}
