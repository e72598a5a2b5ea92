//! The report as one HTML file: no other file, no script, nothing from the network.

use super::chapter::Chapter;
use super::facts;
use super::grid::{Grid, absolute, distributions, headlines, over_rounds, ratios, remarks};
use super::native::native_ratios;
use super::palette::{self, COLOURS};
use super::plots::{Plot, plots, styles};
use super::svg::{Direction, Style, escape, network};
use crate::analyse::{Finding, Outcome, View};
use crate::results::{Commands, Results, Sample, commands};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// The whole report.
pub fn html(results: &Results, chapters: &[Chapter<'_>]) -> String {
    let (light, dark) = palette::variables();
    let names: Vec<_> = chapters.iter().map(|chapter| chapter.about.name).collect();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Sixway lab: {}</title>\n<style>\n\
         :root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{}{STYLE}</style>\n</head>\n<body>\n",
        escape(&names.join(", ")),
        classes()
    );
    page.push_str(&patterns());
    head(&mut page, results, chapters);
    page.push_str("<main>\n");
    for chapter in chapters {
        write_chapter(&mut page, chapter, results);
    }
    page.push_str("</main>\n");
    foot(&mut page, results);
    page.push_str("</body>\n</html>\n");
    page
}

/// A class for each colour.
fn classes() -> String {
    (0..COLOURS).map(|at| format!(".c{at}{{color:var(--c{at})}}\n")).collect()
}

/// Hatches for what was published, in each colour.
fn patterns() -> String {
    let pattern = |at: usize| {
        format!(
            r#"<pattern id="hatch-c{at}" class="c{at}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-width="3"/></pattern>"#
        )
    };
    let all: String = (0..COLOURS).map(pattern).collect();
    format!(
        "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>{all}</defs></svg>\n"
    )
}

fn head(page: &mut String, results: &Results, chapters: &[Chapter<'_>]) {
    let header = &results.header;
    page.push_str("<header>\n<p class=\"brand\">Sixway lab</p>\n<h1>Results</h1>\n");
    writeln!(
        page,
        "<p class=\"lead\">{}. {}.</p>",
        escape(&facts::version(header)),
        facts::progress(results)
    )
    .ok();
    page.push_str("<dl class=\"facts\">\n");
    let fact = |page: &mut String, name: &str, text: &str| {
        writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(text)).ok();
    };
    fact(page, "Machine", &facts::machine(header));
    fact(page, "Noise", &facts::noise(&results.samples));
    fact(page, "Licence of the data", &header.licence);
    page.push_str("</dl>\n");
    if chapters.len() > 1 {
        page.push_str("<nav aria-label=\"Experiments\"><ul>\n");
        for chapter in chapters {
            let (name, question) = (chapter.about.name, escape(chapter.about.question));
            writeln!(page, "<li><a href=\"#{name}\">{name}</a><span>{question}</span></li>").ok();
        }
        page.push_str("</ul></nav>\n");
    }
    page.push_str("</header>\n");
}

fn write_chapter(page: &mut String, chapter: &Chapter<'_>, results: &Results) {
    let about = chapter.about;
    let view = View::of(results, about.name);
    writeln!(
        page,
        "<section id=\"{0}\">\n<h2>{0}</h2>\n<p class=\"lead\">{1}</p>",
        about.name,
        escape(about.question)
    )
    .ok();
    writeln!(page, "<p class=\"source\">{}.</p>", escape(about.source)).ok();
    findings(page, &chapter.findings);
    headlines(chapter.headlines, &view).iter().for_each(|grid| write_grid(page, grid, "h3"));
    page.push_str("<h3>The network</h3>\n");
    match chapter.drawing {
        Some(drawing) => {
            writeln!(
                page,
                "<figure class=\"topology\">{}{}</figure>",
                network(drawing, Direction::Right),
                network(drawing, Direction::Down)
            )
            .ok();
        }
        None => {
            writeln!(page, "<pre class=\"topology\">{}</pre>", escape(about.topology)).ok();
        }
    }
    figures(page, chapter, &view);
    for table in about.tables {
        let asked = &results.header.asked;
        let grids = [
            absolute(table, &view, about.published, asked),
            ratios(table, &view),
            native_ratios(table, &view),
            over_rounds(table, &view),
        ];
        grids.iter().flatten().for_each(|grid| write_grid(page, grid, "h3"));
    }
    more(page, chapter, results, &view);
    let command = facts::command(about.name, &results.header.asked);
    writeln!(page, "<h3>To repeat it</h3>\n<pre class=\"command\">{}</pre>\n</section>", escape(&command))
        .ok();
}

fn findings(page: &mut String, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.push_str("<ul class=\"findings\">\n");
    for Finding { statement, outcome, evidence } in findings {
        let (class, sign) = match outcome {
            Outcome::Holds => ("holds", "✓"),
            Outcome::DoesNotHold => ("fails", "✗"),
            Outcome::NotShown => ("open", "○"),
        };
        let (statement, evidence) = (escape(statement), escape(evidence));
        writeln!(
            page,
            "<li class=\"{class}\"><b><i aria-hidden=\"true\">{sign}</i> {}</b><span>{statement} <small>{evidence}</small></span></li>",
            outcome.text()
        )
        .ok();
    }
    page.push_str("</ul>\n");
}

fn figures(page: &mut String, chapter: &Chapter<'_>, view: &View<'_>) {
    let published = chapter.about.published;
    let styles = styles(view, published);
    let all: Vec<Plot> =
        chapter.figures.iter().flat_map(|figure| plots(figure, view, published, &styles)).collect();
    if all.is_empty() {
        return;
    }
    page.push_str("<h3>Figures</h3>\n");
    let common = all.iter().all(|plot| plot.styles.iter().all(|style| styles.contains(style)));
    let shown: Vec<&Style> =
        styles.iter().filter(|style| all.iter().any(|plot| plot.styles.contains(*style))).collect();
    if common {
        legend(page, &shown, all.iter().any(|plot| plot.has_small));
    }
    for together in all.chunk_by(|a, b| a.group == b.group) {
        if let Some(heading) = together.first().map(|plot| plot.group).filter(|group| !group.is_empty()) {
            writeln!(page, "<h4>{}</h4>", escape(heading)).ok();
        }
        draw(page, together, common);
    }
}

fn draw(page: &mut String, plots: &[Plot], common: bool) {
    page.push_str("<div class=\"plots\">\n");
    for plot in plots {
        writeln!(page, "<figure><figcaption>{}</figcaption>{}", escape(&plot.title), plot.svg).ok();
        if !common {
            legend(page, &plot.styles.iter().collect::<Vec<_>>(), plot.has_small);
        }
        page.push_str("</figure>\n");
    }
    page.push_str("</div>\n");
}

fn legend(page: &mut String, styles: &[&Style], has_small: bool) {
    page.push_str("<ul class=\"legend\">\n");
    for style in styles {
        let published = if style.is_published { " <em>published</em>" } else { "" };
        writeln!(page, "<li>{} {}{published}</li>", style.swatch(), escape(&style.name)).ok();
    }
    if has_small {
        page.push_str("<li class=\"note\">Small markers: the tester was at its limit, or the device was not. They say nothing about what the device can do.</li>\n");
    }
    page.push_str("</ul>\n");
}

/// What is read on demand: notes, distributions, commands, and what limited the rows.
fn more(page: &mut String, chapter: &Chapter<'_>, results: &Results, view: &View<'_>) {
    let about = chapter.about;
    if !about.notes.is_empty() {
        page.push_str("<h3>How it is measured</h3>\n<ul class=\"notes\">\n");
        for note in about.notes {
            writeln!(page, "<li>{}</li>", escape(note)).ok();
        }
        page.push_str("</ul>\n");
    }
    let grids: Vec<_> = about.tables.iter().flat_map(|table| distributions(table, view)).collect();
    if !grids.is_empty() {
        page.push_str("<details><summary>Distributions</summary>\n");
        grids.iter().for_each(|grid| write_grid(page, grid, "h4"));
        page.push_str("</details>\n");
    }
    let own: Vec<Sample> =
        results.samples.iter().filter(|sample| sample.cell.experiment == about.name).cloned().collect();
    let remarks = remarks(&own);
    if !remarks.is_empty() {
        writeln!(
            page,
            "<details><summary>Remarks on {} measurements</summary>\n<ul class=\"notes\">",
            remarks.len()
        )
        .ok();
        for (key, remark) in remarks {
            writeln!(page, "<li><code>{}</code> {}</li>", escape(&key), escape(&remark)).ok();
        }
        page.push_str("</ul></details>\n");
    }
    let commands = commands(&own);
    if !commands.is_empty() {
        page.push_str("<details><summary>Commands and configurations</summary>\n");
        for Commands { device, lines, .. } in commands {
            writeln!(page, "<h4>{}</h4>\n<pre>{}</pre>", escape(&device), escape(&lines.join("\n"))).ok();
        }
        page.push_str("</details>\n");
    }
}

fn write_grid(page: &mut String, grid: &Grid, level: &str) {
    writeln!(page, "<{level}>{}</{level}>", escape(&grid.title)).ok();
    if !grid.caption.is_empty() {
        writeln!(page, "<p class=\"caption\">{}</p>", escape(&grid.caption)).ok();
    }
    page.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (at, head) in grid.heads.iter().enumerate() {
        let class = if at < grid.names { " class=\"name\"" } else { "" };
        write!(page, "<th scope=\"col\"{class}>{}</th>", escape(head)).ok();
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &grid.rows {
        let classes = [("published", row.is_published), ("begins", row.begins)];
        let classes: Vec<_> = classes.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        write!(page, "<tr class=\"{}\">", classes.join(" ")).ok();
        for (at, (text, hint)) in row.cells.iter().enumerate() {
            let name = if at < grid.names { " class=\"name\"" } else { class_of(text) };
            let hint = if hint.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(hint)) };
            write!(page, "<td{name}{hint}>{}</td>", escape(text)).ok();
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// Long text is not set to the right as figures are.
fn class_of(text: &str) -> &'static str {
    if text.chars().count() > 20 { " class=\"long\"" } else { "" }
}

fn foot(page: &mut String, results: &Results) {
    page.push_str("<footer>\n<h2>Devices</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th class=\"name\">device</th><th class=\"name\">realm</th><th class=\"name\">version</th></tr></thead>\n<tbody>\n");
    for device in &results.header.devices {
        let lacks = device.cannot_run.as_deref().map(|why| format!("left out: {why}"));
        let version = lacks.unwrap_or_else(|| device.version.clone());
        writeln!(
            page,
            "<tr><td class=\"name\">{}</td><td class=\"name\">{}</td><td class=\"name\">{}</td></tr>",
            escape(&device.name),
            escape(&device.realm),
            escape(&version)
        )
        .ok();
    }
    page.push_str(
        "</tbody></table></div>\n<p>Ratios are those of paired rounds. A figure counts as a statement about a device only if the device’s core was the \
         one at its limit. All samples are in <code>samples.jsonl</code>, all values in <code>data.csv</code>.</p>\n</footer>\n",
    );
}
