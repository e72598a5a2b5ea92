//! Figures of a chapter: which values go into which plot. Emulated machines are not drawn in a figure with real ones.

use super::figure::{estimated, figure};
use super::svg::{Bar, Lines, Point, Style, bars, lines};
use crate::analyse::{Figure, Group, Kind, Published, View, not_comparable};
use crate::results::Unit;

/// A figure that is drawn.
pub(super) struct Plot {
    /// The heading under which it stands, or `""`.
    pub group: &'static str,
    /// Its title with the unit.
    pub title: String,
    /// The picture.
    pub svg: String,
    /// The series that it has.
    pub styles: Vec<Style>,
    /// Whether it has values that say nothing about the device.
    pub has_small: bool,
}

/// How the devices of a chapter are drawn: each alike in all its figures; those that were published follow.
pub(super) fn styles(view: &View<'_>, published: &[Published]) -> Vec<Style> {
    let mut all: Vec<Style> = Vec::new();
    let names = view.groups.iter().map(|group| (group.cell.device.as_str(), false));
    for (name, is_published) in names.chain(published.iter().map(|paper| (paper.device, true))) {
        if !all.iter().any(|style| style.name == name) {
            all.push(Style { name: name.to_owned(), place: all.len(), is_published });
        }
    }
    all
}

/// The plots of a figure: one for all real devices with what was published, and one for each emulated machine.
pub(super) fn plots(
    figure: &Figure,
    view: &View<'_>,
    published: &[Published],
    styles: &[Style],
) -> Vec<Plot> {
    let is_shown = |group: &&Group<'_>| {
        group.cell.series == figure.series
            && figure.at.iter().all(|(axis, at)| group.cell.at(axis) == *at)
            && group.value(figure.value).is_some()
            && (figure.devices.is_empty() || figure.devices.contains(&group.cell.device.as_str()))
    };
    let groups: Vec<_> = view.groups.iter().filter(is_shown).collect();
    let mut realms: Vec<&str> = Vec::new();
    for group in &groups {
        let realm = view.realm(&group.cell.device);
        if !realms.contains(&realm) {
            realms.push(realm);
        }
    }
    let of_realm = |realm: &str| {
        let own: Vec<_> =
            groups.iter().copied().filter(|group| view.realm(&group.cell.device) == realm).collect();
        let papers = if realm == "here" { published } else { &[] };
        let mut plot = match figure.kind {
            Kind::Lines => along_axis(figure, &own, papers, styles)?,
            Kind::Bars => as_bars(figure, &own, papers, styles)?,
        };
        if realm != "here" {
            plot.title = format!("{} ({realm})", plot.title);
        }
        Some(plot)
    };
    realms.into_iter().filter_map(of_realm).collect()
}

fn titled(figure: &Figure, unit: Unit) -> String {
    let mut letters = figure.title.chars();
    let title: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    match unit.text() {
        "" => title,
        unit => format!("{title}, {unit}"),
    }
}

/// Other axes than the figure's, in which groups of one device differ: they are lines of their own.
fn rest(figure: &Figure, group: &Group<'_>) -> String {
    let other = group
        .cell
        .point
        .iter()
        .filter(|(axis, _)| **axis != figure.axis && !figure.at.iter().any(|(fixed, _)| fixed == axis));
    other.map(|(axis, at)| format!("{axis} {at}")).collect::<Vec<_>>().join(", ")
}

fn along_axis(
    drawn: &Figure,
    groups: &[&Group<'_>],
    published: &[Published],
    styles: &[Style],
) -> Option<Plot> {
    let (_, unit) = groups.first()?.value(drawn.value)?;
    let factor = unit.factor();
    let mut all: Vec<(Style, Vec<Point>)> = Vec::new();
    let alone = [(drawn.value, "")];
    let values = if drawn.lines.is_empty() { &alone[..] } else { drawn.lines };
    for (group, (value, line)) in
        groups.iter().flat_map(|group| values.iter().map(move |value| (group, value)))
    {
        let style = styles.iter().find(|style| style.name == group.cell.device)?;
        let rest = rest(drawn, group);
        let parts = [style.name.as_str(), &rest, line].into_iter().filter(|part| !part.is_empty());
        let name = parts.collect::<Vec<_>>().join(", ");
        let Some((estimate, _)) = group.value(value) else { continue };
        let drawn = &Figure { value, ..*drawn };
        let point = Point {
            x: group.cell.at(drawn.axis),
            y: estimate.mean * factor,
            half: estimate.half_width.unwrap_or(0.0) * factor,
            is_small: not_comparable(group, drawn.value).is_some(),
            hint: hint(drawn, group, &name, unit),
        };
        match all.iter_mut().find(|(there, _)| there.name == name) {
            Some((_, points)) => points.push(point),
            None => all.push((Style { name, ..style.clone() }, vec![point])),
        }
    }
    // Lines of one device with several values of other axes have different markers.
    let count = all.len();
    let own: std::collections::BTreeSet<_> = all.iter().map(|(style, _)| style.place).collect();
    if own.len() < count {
        all.iter_mut().enumerate().for_each(|(at, (style, _))| style.place = at);
    }
    for paper in papers(drawn, published) {
        let style = styles.iter().find(|style| style.name == paper.device)?;
        let point = |(x, _): &(f64, &[f64])| {
            let y = paper.at(*x, drawn.value)? * factor;
            let hint = format!(
                "{} (published), {} {x}: {} {}",
                paper.device,
                drawn.axis,
                figure(y / factor, unit),
                unit.text()
            );
            Some(Point { x: *x, y, half: 0.0, is_small: false, hint })
        };
        let points: Vec<_> = paper.rows.iter().filter_map(point).collect();
        if !points.is_empty() {
            all.push((style.clone(), points));
        }
    }
    all.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    // One place is not a line.
    let places: std::collections::BTreeSet<_> =
        all.iter().flat_map(|(_, points)| points.iter().map(|point| point.x.to_bits())).collect();
    if places.len() < 2 {
        return as_bars(&Figure { axis: "", ..*drawn }, groups, &[], styles);
    }
    if all.iter().all(|(_, points)| points.iter().all(|point| point.y == 0.0)) {
        return None;
    }
    let title = titled(drawn, unit);
    let label = format!("{title}, along {}", drawn.axis_title);
    let has_small = all.iter().any(|(_, points)| points.iter().any(|point| point.is_small));
    let styles = all.iter().map(|(style, _)| style.clone()).collect();
    let svg = lines(&Lines {
        label: &label,
        axis_title: drawn.axis_title,
        is_logarithmic: drawn.logarithmic,
        lines: all,
    });
    Some(Plot { group: drawn.group, title, svg, styles, has_small })
}

/// What papers have of a figure's series along its axis, unless it is of another place.
fn papers<'p>(drawn: &Figure, published: &'p [Published]) -> impl Iterator<Item = &'p Published> {
    let (series, axis, at) = (drawn.series, drawn.axis, drawn.at);
    let is_elsewhere = move |paper: &Published| {
        paper.fixed.iter().any(|(axis, fixed)| at.iter().any(|(of, place)| of == axis && place != fixed))
    };
    let is_meant = move |paper: &&Published| paper.series == series && paper.axis == axis;
    published.iter().filter(is_meant).filter(move |paper| !is_elsewhere(paper))
}

fn hint(figure: &Figure, group: &Group<'_>, name: &str, unit: Unit) -> String {
    let place = match figure.axis {
        "" => String::new(),
        axis => format!(", {axis} {}", group.cell.at(axis)),
    };
    let value = group.value(figure.value).map(|(it, unit)| estimated(it, unit)).unwrap_or_default();
    format!("{name}{place}: {value} {} ({})", unit.text(), group.verdict().text())
}

fn as_bars(drawn: &Figure, groups: &[&Group<'_>], published: &[Published], styles: &[Style]) -> Option<Plot> {
    let (_, unit) = groups.first()?.value(drawn.value)?;
    let mut all: Vec<(f64, Vec<Bar>)> = Vec::new();
    let mut used = Vec::new();
    let mut add = |at: f64, bar: Bar| match all.iter_mut().find(|(there, _)| *there == at) {
        Some((_, bars)) => bars.push(bar),
        None => all.push((at, vec![bar])),
    };
    for group in groups {
        let (style, (estimate, _)) =
            (styles.iter().find(|style| style.name == group.cell.device)?, group.value(drawn.value)?);
        let rest = rest(drawn, group);
        let name = if rest.is_empty() { style.name.clone() } else { format!("{}, {rest}", style.name) };
        used.push(style.clone());
        let bar = Bar {
            style: style.clone(),
            value: estimate.mean,
            half: estimate.half_width.unwrap_or(0.0),
            text: estimated(estimate, unit),
            is_small: not_comparable(group, drawn.value).is_some(),
            hint: hint(drawn, group, &name, unit),
            name,
        };
        add(if drawn.axis.is_empty() { 0.0 } else { group.cell.at(drawn.axis) }, bar);
    }
    for paper in papers(drawn, published) {
        let style = styles.iter().find(|style| style.name == paper.device)?;
        for (at, _) in paper.rows {
            let Some(value) = paper.at(*at, drawn.value) else { continue };
            used.push(style.clone());
            let (name, text) = (format!("{} (published)", paper.device), figure(value, unit));
            let hint = format!("{name}: {text} {}", unit.text());
            add(*at, Bar { style: style.clone(), name, value, half: 0.0, text, is_small: false, hint });
        }
    }
    let has_small = all.iter().any(|(_, bars)| bars.iter().any(|bar| bar.is_small));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let head =
        |at: f64| if drawn.axis.is_empty() { String::new() } else { format!("{} {at}", drawn.axis_title) };
    let groups: Vec<_> = all.into_iter().map(|(at, bars)| (head(at), bars)).collect();
    let title = titled(drawn, unit);
    used.sort_by_key(|style| style.place);
    used.dedup();
    Some(Plot { group: drawn.group, svg: bars(&title, &groups), title, styles: used, has_small })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, Results, Sample, Unit, Value, Verdict};
    use std::collections::BTreeMap;

    fn drawn(at: &'static [(&'static str, f64)]) -> Figure {
        Figure {
            group: "",
            title: "",
            series: "s",
            axis: "load",
            axis_title: "",
            value: "cpu",
            kind: Kind::Lines,
            at,
            logarithmic: false,
            lines: &[],
            devices: &[],
        }
    }

    const PAPER: Published = Published {
        device: "Linux",
        source: "a table",
        series: "s",
        axis: "load",
        fixed: &[("octets", 64.0)],
        values: &["cpu"],
        rows: &[(2.0, &[0.1])],
    };

    fn measured(load: f64) -> Sample {
        let point = [("link", 0.0), ("load", load), ("octets", 64.0)];
        let cell = Cell {
            experiment: "e".to_owned(),
            series: "s".to_owned(),
            device: "one".to_owned(),
            point: point.map(|(axis, at)| (axis.to_owned(), at)).into(),
            repeat: 0,
        };
        let values = BTreeMap::from([("cpu".to_owned(), Value::one(0.1, Unit::Cores))]);
        Sample { values, verdict: Verdict::DeviceBound, failed: None, ..Sample::failed(cell, "") }
    }

    #[test]
    fn lines_of_one_place_have_what_a_paper_has_of_it() {
        let results = Results { header: Header::default(), samples: vec![measured(1.0), measured(2.0)] };
        let view = View::of(&results, "e");
        let has = |at, paper: Published| {
            let all = styles(&view, &[paper]);
            let plot = plots(&drawn(at), &view, &[paper], &all).remove(0);
            plot.styles.iter().any(|it| it.is_published)
        };
        assert!(has(&[("octets", 64.0)], PAPER));
        assert!(has(&[("link", 0.0), ("octets", 64.0)], PAPER), "of any link, as in its table");
        assert!(!has(&[("octets", 64.0)], Published { fixed: &[("octets", 1_400.0)], ..PAPER }));
    }

    #[test]
    fn a_papers_figures_are_drawn_where_they_were_taken() {
        let papers = |at, paper: Published| super::papers(&drawn(at), &[paper]).count();
        assert_eq!(papers(&[], PAPER), 1);
        assert_eq!(papers(&[("octets", 64.0)], PAPER), 1);
        assert_eq!(papers(&[("octets", 1_400.0)], PAPER), 0, "of another size");
        assert_eq!(papers(&[("link", 100.0)], PAPER), 1, "of any link");
        assert_eq!(papers(&[], Published { axis: "octets", ..PAPER }), 0);
        assert_eq!(papers(&[], Published { series: "t", ..PAPER }), 0);
    }
}
