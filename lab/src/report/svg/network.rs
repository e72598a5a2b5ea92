//! A network, drawn from left to right or from top to bottom.

use super::mark::escape;
use crate::analyse::{Drawing, Node, Part, Wire};
use std::fmt::Write as _;

/// In which direction columns follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Direction {
    /// To the right.
    Right,
    /// Down, for narrow screens.
    Down,
}

/// A box with its place.
struct Placed<'a> {
    node: &'a Node,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// Column and row as they are drawn.
    at: (u8, u8),
}

const MARGIN: f64 = 10.0;
/// About the width of a letter of the name, and of the lines below it.
const LETTER: (f64, f64) = (8.2, 6.6);
const LINE: f64 = 15.0;

/// The figure.
pub(in crate::report) fn network(drawing: &Drawing, direction: Direction) -> String {
    let placed = place(drawing.nodes, direction, room(drawing.links, direction));
    let width = placed.iter().map(|it| it.x + it.width).fold(0.0, f64::max) + MARGIN;
    let height = placed.iter().map(|it| it.y + it.height).fold(0.0, f64::max) + MARGIN;
    let class = if direction == Direction::Right { "wide" } else { "tall" };
    let mut svg = format!(
        r#"<svg class="network {class}" viewBox="0 0 {width:.0} {height:.0}" style="max-width:{width:.0}px" role="img" aria-label="the network">"#
    );
    for wire in drawing.links {
        if let (Some(a), Some(b)) = (placed.get(wire.ends.0), placed.get(wire.ends.1)) {
            svg.push_str(&draw_wire(wire, a, b));
        }
    }
    placed.iter().for_each(|it| svg.push_str(&draw_box(it)));
    svg.push_str("</svg>");
    svg
}

/// Room between columns: for the longest label of a link.
fn room(links: &[Wire], direction: Direction) -> f64 {
    let longest = links.iter().map(|wire| wire.label.chars().count()).max().unwrap_or(0) as f64;
    match direction {
        Direction::Right => (longest * LETTER.1 + 20.0).max(48.0),
        Direction::Down => 44.0,
    }
}

fn size(node: &Node) -> (f64, f64) {
    let longest = node.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0) as f64;
    let width = f64::max(node.name.chars().count() as f64 * LETTER.0, longest * LETTER.1) + 22.0;
    (width.max(84.0), 32.0 + LINE * node.lines.len() as f64)
}

fn place(nodes: &[Node], direction: Direction, room: f64) -> Vec<Placed<'_>> {
    let at = |node: &Node| match direction {
        Direction::Right => (node.column, node.row),
        Direction::Down => (node.row, node.column),
    };
    let widest = |column: u8| {
        nodes.iter().filter(|node| at(node).0 == column).map(|node| size(node).0).fold(0.0, f64::max)
    };
    let highest =
        |row: u8| nodes.iter().filter(|node| at(node).1 == row).map(|node| size(node).1).fold(0.0, f64::max);
    let (between_columns, between_rows) = match direction {
        Direction::Right => (room, 26.0),
        Direction::Down => (20.0, room),
    };
    let rows = nodes.iter().map(|node| at(node).1).max().unwrap_or(0);
    let columns = nodes.iter().map(|node| at(node).0).max().unwrap_or(0);
    let tall: f64 = (0..=rows).map(highest).sum::<f64>() + between_rows * f64::from(rows);
    let wide: f64 = (0..=columns).map(widest).sum::<f64>() + between_columns * f64::from(columns);
    let alone = |node: &Node| match direction {
        Direction::Right => nodes.iter().filter(|other| at(other).0 == at(node).0).count() == 1,
        Direction::Down => nodes.iter().filter(|other| at(other).1 == at(node).1).count() == 1,
    };
    let one = |node| {
        let (width, height) = size(node);
        let (column, row) = at(node);
        let left = MARGIN + (0..column).map(|it| widest(it) + between_columns).sum::<f64>();
        let top = MARGIN + (0..row).map(|it| highest(it) + between_rows).sum::<f64>();
        let mut x = left + (widest(column) - width) / 2.0;
        let mut y = top + (highest(row) - height) / 2.0;
        // A host that has its column for itself is in the middle.
        match (alone(node), direction) {
            (true, Direction::Right) => y = MARGIN + (tall - height) / 2.0,
            (true, Direction::Down) => x = MARGIN + (wide - width) / 2.0,
            (false, _) => (),
        }
        Placed { node, x, y, width, height, at: (column, row) }
    };
    nodes.iter().map(one).collect()
}

fn draw_wire(wire: &Wire, a: &Placed<'_>, b: &Placed<'_>) -> String {
    let middle = |it: &Placed<'_>| (it.x + it.width / 2.0, it.y + it.height / 2.0);
    let ((ax, ay), (bx, by)) = (middle(a), middle(b));
    // From border to border: along a row, else along a column.
    let is_across =
        (bx - ax).abs() - (a.width + b.width) / 2.0 > (by - ay).abs() - (a.height + b.height) / 2.0;
    let (start, end) = match is_across {
        true if bx > ax => ((a.x + a.width, ay), (b.x, by)),
        true => ((a.x, ay), (b.x + b.width, by)),
        false if by > ay => ((ax, a.y + a.height), (bx, b.y)),
        false => ((ax, a.y), (bx, b.y + b.height)),
    };
    let dash = if wire.is_tunnel { r#" stroke-dasharray="6 4""# } else { "" };
    let mut svg =
        format!(r#"<path class="wire" d="M{:.1} {:.1}L{:.1} {:.1}"{dash}/>"#, start.0, start.1, end.0, end.1);
    let skipped = a.at.0.abs_diff(b.at.0).max(a.at.1.abs_diff(b.at.1)) > 1;
    if !wire.label.is_empty() {
        let (x, y) = (f64::midpoint(start.0, end.0), f64::midpoint(start.1, end.1));
        let y = if is_across && !skipped { y - 6.0 } else { y + 4.0 };
        write!(
            svg,
            r#"<text class="label" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            escape(wire.label)
        )
        .ok();
    }
    svg
}

fn draw_box(it: &Placed<'_>) -> String {
    let Placed { node, x, y, width, height, .. } = it;
    let class = match node.part {
        Part::Device => "box device",
        Part::End | Part::Ends => "box",
        Part::Between => "box between",
    };
    let rectangle = |by: f64| {
        format!(
            r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}" rx="7"/>"#,
            x + by,
            y - by
        )
    };
    let mut svg = String::new();
    if node.part == Part::Ends {
        [6.0, 3.0].into_iter().for_each(|by| svg.push_str(&rectangle(by)));
    }
    svg.push_str(&rectangle(0.0));
    let middle = x + width / 2.0;
    write!(
        svg,
        r#"<text class="host" x="{middle:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
        y + 20.0,
        escape(node.name)
    )
    .ok();
    for (at, line) in node.lines.iter().enumerate() {
        let y = y + 37.0 + LINE * at as f64;
        write!(
            svg,
            r#"<text class="address" x="{middle:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            escape(line)
        )
        .ok();
    }
    svg
}
