//! The report as Markdown.

use super::chapter::Chapter;
use super::figure::{estimated, figure};
use crate::analyse::{Column, Group, Published, Table, groups};
use crate::results::{Asked, Header, Results, Sample, Unit, Verdict};
use std::fmt::Write as _;

/// The whole report.
pub fn markdown(results: &Results, chapters: &[Chapter<'_>]) -> String {
    let mut text = String::from("# Results of the lab\n\n");
    head(&mut text, results);
    for chapter in chapters {
        write_chapter(&mut text, chapter, results);
    }
    text
}

fn head(text: &mut String, results: &Results) {
    let Header { machine, started, lab, commit, licence, plan, .. } = &results.header;
    let commit = commit.as_deref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let below = if machine.virtualised { ", virtual" } else { "" };
    let governor = machine.governor.as_deref().unwrap_or("not visible");
    let measured = results.samples.iter().filter(|sample| sample.failed.is_none()).count();
    writeln!(text, "{started}, lab {lab}{commit}. {measured} of {} cells are measured.\n", plan.len()).ok();
    writeln!(
        text,
        "- machine: {} × {}{below}, {} MiB, Linux {}, clock {}, frequency governor {governor}, load {} at the start",
        machine.cpus, machine.cpu, machine.memory_mb, machine.kernel, machine.clock, machine.load
    )
    .ok();
    for device in &results.header.devices {
        let lacks = device.cannot_run.as_deref().map(|why| format!("left out: {why}"));
        writeln!(text, "- {} ({}): {}", device.name, device.realm, lacks.unwrap_or(device.version.clone()))
            .ok();
    }
    writeln!(text, "- {}", noise(&results.samples)).ok();
    writeln!(text, "- licence of the data: {licence}").ok();
}

/// The control's range: how different the same work took.
fn noise(samples: &[Sample]) -> String {
    let controls = || samples.iter().filter_map(|sample| sample.control);
    let (low, high) = (controls().fold(f64::INFINITY, f64::min), controls().fold(0.0, f64::max));
    match low.is_finite() {
        true => format!(
            "noise: a fixed piece of work took {} to {} ms between the measurements",
            figure(low, Unit::Milliseconds),
            figure(high, Unit::Milliseconds)
        ),
        false => "noise: not measured".to_owned(),
    }
}

fn write_chapter(text: &mut String, chapter: &Chapter<'_>, results: &Results) {
    let about = chapter.about;
    writeln!(text, "\n## {}\n\n{}\n\nSource: {}.\n", about.name, about.question, about.source).ok();
    writeln!(text, "```text\n{}\n```\n", about.topology).ok();
    for note in about.notes {
        writeln!(text, "- {note}").ok();
    }
    let own: Vec<_> =
        results.samples.iter().filter(|sample| sample.cell.experiment == about.name).cloned().collect();
    let groups = groups(&own);
    for table in about.tables {
        write_table(text, table, &groups, about.published, &results.header.asked);
    }
    if !chapter.findings.is_empty() {
        text.push_str("\n| statement | today | evidence |\n|---|---|---|\n");
    }
    for finding in &chapter.findings {
        writeln!(text, "| {} | {} | {} |", finding.statement, finding.outcome.text(), finding.evidence).ok();
    }
    remarks(text, &own);
    writeln!(text, "\nTo repeat it: `{}`", command(about.name, &results.header.asked)).ok();
}

fn write_table(
    text: &mut String,
    table: &Table,
    groups: &[Group<'_>],
    published: &[Published],
    asked: &Asked,
) {
    let rows: Vec<_> = groups.iter().filter(|group| group.cell.series == table.series).collect();
    let unit =
        |column: &Column| rows.iter().find_map(|group| group.value(column.value).map(|(_, unit)| unit));
    let columns: Vec<_> = table.columns.iter().filter_map(|column| Some((column, unit(column)?))).collect();
    writeln!(text, "\n### {}\n\nScale {}, {} repetitions.\n", table.title, asked.scale, asked.repeats).ok();
    let mut heads: Vec<_> = table.axes.iter().map(|axis| (*axis).to_owned()).collect();
    heads.push("device".to_owned());
    heads.extend(columns.iter().map(|(column, unit)| match unit.text() {
        "" => column.title.to_owned(),
        unit => format!("{}, {unit}", column.title),
    }));
    heads.push("verdict".to_owned());
    write_row(text, &heads);
    write_row(text, &vec!["---".to_owned(); heads.len()]);
    let mut before: Vec<f64> = Vec::new();
    let places = |group: &Group<'_>| table.axes.iter().map(|axis| group.cell.at(axis)).collect::<Vec<_>>();
    for group in &rows {
        let place = places(group);
        let mut row: Vec<_> = place.iter().map(f64::to_string).collect();
        row.push(group.cell.device.clone());
        row.extend(columns.iter().map(|(column, _)| {
            group.value(column.value).map_or_else(|| "–".to_owned(), |(it, unit)| estimated(it, unit))
        }));
        row.push(group.verdict().text().to_owned());
        if place != before {
            published_rows(text, table, published, &place, &columns);
            before = place;
        }
        write_row(text, &row);
    }
}

/// What the paper printed for this place: in italics, and without a verdict.
fn published_rows(
    text: &mut String,
    table: &Table,
    published: &[Published],
    place: &[f64],
    columns: &[(&Column, Unit)],
) {
    let [at] = place else { return };
    let of_table = |it: &&Published| it.series == table.series && table.axes == [it.axis];
    for paper in published.iter().filter(of_table) {
        let figures = columns.iter().map(|(column, unit)| {
            let printed = paper.at(*at, column.value);
            printed.map_or_else(|| "–".to_owned(), |printed| format!("*{}*", figure(printed, *unit)))
        });
        let row: Vec<_> = [at.to_string(), format!("*{}*", paper.device)]
            .into_iter()
            .chain(figures)
            .chain(["*published*".to_owned()])
            .collect();
        write_row(text, &row);
    }
}

fn write_row(text: &mut String, cells: &[String]) {
    writeln!(text, "| {} |", cells.join(" | ")).ok();
}

/// What limits the rows: failures, and testers at their limit.
fn remarks(text: &mut String, samples: &[Sample]) {
    let remark = |sample: &Sample| match (&sample.failed, &sample.verdict) {
        (Some(why), _) => Some(format!("failed: {why}")),
        (None, Verdict::TesterBound { why }) => {
            Some(format!("{why}: only the cost of a packet may be compared"))
        }
        (None, Verdict::DeviceBound | Verdict::NotLoaded | Verdict::Failed) => None,
    };
    let remarks: Vec<_> = samples
        .iter()
        .filter_map(|sample| Some(format!("- `{}`: {}", sample.cell.key(), remark(sample)?)))
        .collect();
    if !remarks.is_empty() {
        writeln!(text, "\n{}", remarks.join("\n")).ok();
    }
}

fn command(name: &str, asked: &Asked) -> String {
    let mut words = vec![format!("sixway-lab run {name}")];
    // A quick run divides the scale by ten.
    let scale = if asked.quick { asked.scale * 10.0 } else { asked.scale };
    words.push(format!("--scale {scale} --repeats {}", asked.repeats));
    if asked.quick {
        words.push("--quick".to_owned());
    }
    if !asked.devices.is_empty() {
        words.push(format!("--devices {}", asked.devices.join(",")));
    }
    words.extend(asked.set.iter().map(|(key, value)| format!("--set {key}={value}")));
    if !asked.pin {
        words.push("--no-pin".to_owned());
    }
    words.join(" ")
}
