//! The report as Markdown.

use super::chapter::Chapter;
use super::escaped::{cell, line};
use super::facts;
use super::grid::{Grid, absolute, distributions, headlines, over_rounds, ratios, remarks};
use super::native::native_ratios;
use crate::analyse::View;
use crate::results::Results;
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
    let header = &results.header;
    writeln!(text, "{}. {}.\n", line(&facts::version(header)), facts::progress(results)).ok();
    writeln!(text, "- machine: {}", line(&facts::machine(header))).ok();
    for device in &header.devices {
        let lacks = device.cannot_run.as_deref().map(|why| format!("left out: {why}"));
        let said = lacks.unwrap_or(device.version.clone());
        writeln!(text, "- {}", line(&format!("{} ({}): {said}", device.name, device.realm))).ok();
    }
    writeln!(text, "- noise: {}", facts::noise(&results.samples)).ok();
    writeln!(text, "- licence of the data: {}", line(&header.licence)).ok();
}

fn write_chapter(text: &mut String, chapter: &Chapter<'_>, results: &Results) {
    let about = chapter.about;
    let view = View::of(results, about.name);
    writeln!(text, "\n## {}\n\n{}\n\nSource: {}.\n", about.name, about.question, about.source).ok();
    if !chapter.findings.is_empty() {
        text.push_str("| statement | today | evidence |\n|---|---|---|\n");
    }
    for finding in &chapter.findings {
        let cells = [finding.statement.as_str(), finding.outcome.text(), finding.evidence.as_str()];
        write_row(text, cells.into_iter().map(str::to_owned));
    }
    headlines(chapter.headlines, &view).iter().for_each(|grid| write_grid(text, grid));
    writeln!(text, "\n```text\n{}\n```\n", about.topology).ok();
    for note in about.notes {
        writeln!(text, "- {note}").ok();
    }
    for table in about.tables {
        let grids = [
            absolute(table, &view, about.published, &results.header.asked),
            ratios(table, &view),
            native_ratios(table, &view),
            over_rounds(table, &view),
        ];
        grids.iter().flatten().for_each(|grid| write_grid(text, grid));
        distributions(table, &view).iter().for_each(|grid| write_grid(text, grid));
    }
    let own: Vec<_> =
        results.samples.iter().filter(|sample| sample.cell.experiment == about.name).cloned().collect();
    let remarks = remarks(&own);
    if !remarks.is_empty() {
        text.push('\n');
    }
    for (key, remark) in remarks {
        writeln!(text, "- {}", line(&format!("`{key}`: {remark}"))).ok();
    }
    let command = facts::command(about.name, &results.header.asked);
    writeln!(text, "\nTo repeat it: `{}`", line(&command)).ok();
}

fn write_grid(text: &mut String, grid: &Grid) {
    writeln!(text, "\n### {}\n", line(&grid.title)).ok();
    if !grid.caption.is_empty() {
        writeln!(text, "{}\n", line(&grid.caption)).ok();
    }
    write_row(text, grid.heads.iter().cloned());
    write_row(
        text,
        grid.heads.iter().enumerate().map(
            |(at, _)| {
                if at < grid.names { "---".to_owned() } else { "---:".to_owned() }
            },
        ),
    );
    for row in &grid.rows {
        write_row(
            text,
            row.cells.iter().enumerate().map(|(at, (cell, _))| {
                // Places on the axes are not the paper's.
                match row.is_published && at + 1 >= grid.names && cell != "–" {
                    true => format!("*{cell}*"),
                    false => cell.clone(),
                }
            }),
        );
    }
}

fn write_row(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<_> = cells.map(|text| cell(&text)).collect();
    writeln!(text, "| {} |", cells.join(" | ")).ok();
}
