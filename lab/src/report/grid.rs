//! Tables, before they are written as HTML or Markdown.

use super::figure::{estimated, figure};
use crate::analyse::{Column, Group, Headline, Published, Table, View, middle, not_comparable, short};
use crate::results::{Asked, Sample, Unit};

/// A table.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    /// Its title.
    pub title: String,
    /// What holds for all rows.
    pub caption: String,
    /// The heads of its columns.
    pub heads: Vec<String>,
    /// How many columns at the left are words or places.
    pub names: usize,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Its cells, each with a remark that is shown when it is pointed at.
    pub cells: Vec<(String, String)>,
    /// Whether a paper printed it.
    pub is_published: bool,
    /// Whether it begins a new place on the axes.
    pub begins: bool,
}

/// A realm whose absolute figures are those of real machines; those of emulated ones are shown as ratios only.
fn is_real(realm: &str) -> bool {
    realm == "here" || realm.starts_with("remote")
}

/// The absolute figures of a table, with what was published.
pub(super) fn absolute(
    table: &Table,
    view: &View<'_>,
    published: &[Published],
    asked: &Asked,
) -> Option<Grid> {
    let rows = rows_of(table, view, true);
    if rows.is_empty() {
        return None;
    }
    let columns = columns_of(table, &rows);
    let shown_columns = with_deviations(table, &columns, &rows, published);
    let mut heads: Vec<_> = table.axes.iter().map(|axis| (*axis).to_owned()).collect();
    heads.push("device".to_owned());
    heads.extend(shown_columns.iter().map(|it| it.head()));
    heads.push("verdict".to_owned());
    let mut lines = Vec::new();
    let mut before = None;
    for group in &rows {
        let place = place(table, group);
        let begins = before.as_ref() != Some(&place);
        let mut first = begins;
        if begins {
            let has_some = |(paper, at): &(&Published, f64)| {
                shown_columns.iter().any(|it| paper.at(*at, it.column.value).is_some())
            };
            for paper in of_place(table, published, &place).into_iter().filter(has_some) {
                lines.push(published_row(paper, &place, &shown_columns, first));
                first = false;
            }
        }
        let mut cells = place_cells(&place);
        cells.push((group.cell.device.clone(), String::new()));
        cells.extend(shown_columns.iter().map(|it| it.cell(group)));
        cells.push((verdicts(group, &columns), String::new()));
        lines.push(Row { cells, is_published: false, begins: first });
        before = Some(place);
    }
    let caption = scale(asked) + &extent(&rows) + &uncertain(&rows, &columns);
    Some(Grid { title: table.title.to_owned(), caption, heads, names: table.axes.len() + 1, rows: lines })
}

/// A column as it is shown: a value, or the standard deviation of its observations.
struct Shown<'t> {
    column: &'t Column,
    unit: Unit,
    is_deviation: bool,
}

impl Shown<'_> {
    fn head(&self) -> String {
        match self.is_deviation {
            true => with_unit(&format!("{} sd", self.column.title), self.unit),
            false => with_unit(self.column.title, self.unit),
        }
    }

    fn cell(&self, group: &Group<'_>) -> (String, String) {
        match self.is_deviation {
            true => {
                let deviation = group.sd(self.column.value);
                (deviation.map_or_else(|| "–".to_owned(), |sd| figure(sd, self.unit)), String::new())
            }
            false => {
                let remark = not_comparable(group, self.column.value).unwrap_or_default();
                (shown(group, self.column.value), remark)
            }
        }
    }

    /// What the paper printed.
    fn published(&self, paper: &Published, at: f64) -> Option<f64> {
        match self.is_deviation {
            true => paper.at(at, &deviation(self.column.value)),
            false => paper.at(at, self.column.value),
        }
    }
}

/// The name of a deviation among what was published.
fn deviation(value: &str) -> String {
    format!("{value}-sd")
}

/// The columns, each CPU time with its deviation over the time, and others with theirs where the paper has it. Measurements of less than 0.2 s have none of a CPU time.
fn with_deviations<'t>(
    table: &Table,
    columns: &[(&'t Column, Unit)],
    rows: &[&Group<'_>],
    published: &[Published],
) -> Vec<Shown<'t>> {
    let mut all = Vec::new();
    for (column, unit) in columns {
        all.push(Shown { column, unit: *unit, is_deviation: false });
        let in_paper = |paper: &Published| {
            paper.series == table.series && paper.values.contains(&deviation(column.value).as_str())
        };
        let has_own = *unit == Unit::Cores && rows.iter().any(|group| group.sd(column.value).is_some());
        if has_own || published.iter().any(in_paper) {
            all.push(Shown { column, unit: *unit, is_deviation: true });
        }
    }
    all
}

/// The verdict of a row, with those of values that are of loads of their own, where they differ.
fn verdicts(group: &Group<'_>, columns: &[(&Column, Unit)]) -> String {
    let row = group.verdict();
    let other = |(column, _): &(&Column, Unit)| {
        let own = group.own_verdict(column.value).filter(|own| own.text() != row.text())?;
        Some(format!("{}: {}", column.title, own.text()))
    };
    let others: Vec<_> = columns.iter().filter_map(other).collect();
    match others.is_empty() {
        true => row.text().to_owned(),
        false => format!("{} ({})", row.text(), others.join(", ")),
    }
}

/// How long the measurements of a table took, and how much each sent, as far as they say.
fn extent(rows: &[&Group<'_>]) -> String {
    let measured = || rows.iter().flat_map(|group| &group.samples).filter(|sample| sample.failed.is_none());
    let range = |figures: Vec<f64>| -> Option<(f64, f64)> {
        let least = figures.iter().copied().min_by(f64::total_cmp)?;
        Some((least, figures.iter().copied().max_by(f64::total_cmp)?))
    };
    let value = |name: &str| range(measured().filter_map(|it| Some(it.values.get(name)?.value)).collect());
    let words = |(least, greatest): (f64, f64), write: &dyn Fn(f64) -> String| {
        let (least, greatest) = (write(least), write(greatest));
        if least == greatest { least } else { format!("{least} to {greatest}") }
    };
    let seconds =
        |seconds: f64| if seconds < 10.0 { format!("{seconds:.2}") } else { format!("{seconds:.0}") };
    let loads = value("duration").map(|(least, greatest)| (least / 1e3, greatest / 1e3));
    let took = match loads {
        Some(range) => Some(format!(" The load of a measurement took {} s", words(range, &seconds))),
        None => range(measured().map(|it| it.took).filter(|took| *took > 0.0).collect()).map(|range| {
            format!(" A measurement took {} s with all that was built for it", words(range, &seconds))
        }),
    };
    let count = |count: f64| crate::terminal::thousands(count.round() as u64);
    let most = |name: &str| value(name).map_or(0.0, |(_, most)| most);
    let order = match (most("duplicated"), most("reordered")) {
        (0.0, 0.0) => String::new(),
        (twice, late) => {
            format!(", {} of them came twice and {} out of order at most", count(twice), count(late))
        }
    };
    let sent = value("sent").map(|range| format!("{} were sent{order}", words(range, &count)));
    match (took, sent) {
        (Some(took), Some(sent)) => format!("{took}; {sent}."),
        (Some(took), None) => format!("{took}."),
        (None, Some(sent)) => format!(" {sent}."),
        (None, None) => String::new(),
    }
}

/// A value with the mark of an uncertain one, or that it cannot be measured.
fn shown(group: &Group<'_>, name: &str) -> String {
    let Some((it, unit)) = group.value(name) else {
        return if group.not_measurable(name).is_some() { "not measurable" } else { "–" }.to_owned();
    };
    let mark = if group.uncertain(name).is_some() { "≈ " } else { "" };
    format!("{mark}{}", estimated(it, unit))
}

/// What the uncertain values of a table are, and why others cannot be measured: a sentence for each device.
fn uncertain(rows: &[&Group<'_>], columns: &[(&Column, Unit)]) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for group in rows {
        for (Column { value, title }, _) in columns {
            let device = &group.cell.device;
            let sentence = match (group.uncertain(value), group.not_measurable(value)) {
                (Some(what), _) => format!(" ≈ {title} of {device}: {what}."),
                (None, Some(why)) => format!(" No {title} of {device}: {why}."),
                (None, None) => continue,
            };
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    sentences.concat()
}

/// Scale and repetitions, as they are printed with each table.
pub(super) fn scale(asked: &Asked) -> String {
    let rounds =
        if asked.repeats == 1 { "one round".to_owned() } else { format!("{} rounds", asked.repeats) };
    let interval = if asked.repeats == 1 { "" } else { "; means with 95 % confidence intervals" };
    format!("Scale {}, {rounds}{interval}.", asked.scale)
}

/// Each device over plain forwarding in its own realm, in the same rounds.
pub(super) fn ratios(table: &Table, view: &View<'_>) -> Option<Grid> {
    let rows = rows_of(table, view, false);
    let columns = columns_of(table, &rows);
    let mut lines: Vec<Row> = Vec::new();
    let mut before = None;
    for group in &rows {
        let Some(plain) = view.plain(group) else { continue };
        if plain.cell.device == group.cell.device {
            continue;
        }
        let place = place(table, group);
        let mut cells = place_cells(&place);
        cells.push((group.cell.device.clone(), String::new()));
        cells.push((plain.cell.device.clone(), String::new()));
        cells.extend(columns.iter().map(|(column, _)| {
            let bearing = view.ratio(group, plain, column.value);
            (bearing.text(), bearing.explained())
        }));
        lines.push(Row { cells, is_published: false, begins: before.as_ref() != Some(&place) });
        before = Some(place);
    }
    if lines.is_empty() {
        return None;
    }
    let mut heads: Vec<_> = table.axes.iter().map(|axis| (*axis).to_owned()).collect();
    heads.extend(["device".to_owned(), "over".to_owned()]);
    heads.extend(columns.iter().map(|(column, _)| column.title.to_owned()));
    let noise = view.noise.map_or_else(|| "not known".to_owned(), |noise| format!("{:.1} %", noise * 100.0));
    let caption = format!(
        "Each device over plain forwarding in its own realm and in the same rounds. The noise of this run is {noise}, and each interval has at least \
         twice as much on either side. A ratio is printed as a number if its interval excludes 1, and the rounds alone bear one whose ends differ by a \
         factor of 1.5 at most. \
         Otherwise it is “equal”, “more”, “less” or not printed."
    );
    let title = format!("{}: ratios to plain forwarding", table.title);
    Some(Grid { title, caption, heads, names: table.axes.len() + 2, rows: lines })
}

/// Rounds from which a report has their median and percentiles: RFC 8219 (§7.2, §9.2) demands twenty.
const MANY: usize = 20;

/// The median of each value over many rounds, with the 1st and 99th percentiles.
pub(super) fn over_rounds(table: &Table, view: &View<'_>) -> Option<Grid> {
    let rows = rows_of(table, view, true);
    let columns = columns_of(table, &rows);
    let cell = |group: &Group<'_>, (column, unit): &(&Column, Unit)| {
        let rounds: Vec<f64> = group.rounds(column.value).into_values().collect();
        middle(&rounds).filter(|it| it.n >= MANY).map(|it| {
            let [median, low, high] = [it.median, it.low, it.high].map(|it| figure(it, *unit));
            let mark = if group.uncertain(column.value).is_some() { "≈ " } else { "" };
            let remark = not_comparable(group, column.value).unwrap_or_else(|| format!("{} rounds", it.n));
            (format!("{mark}{median} ({low} to {high})"), remark)
        })
    };
    let line = |group: &&Group<'_>| {
        let figures: Vec<_> = columns.iter().map(|column| cell(group, column)).collect();
        figures.iter().any(Option::is_some).then(|| {
            let mut cells = place_cells(&place(table, group));
            cells.push((group.cell.device.clone(), String::new()));
            let missing = || ("–".to_owned(), format!("fewer than {MANY} rounds have it"));
            cells.extend(figures.into_iter().map(|it| it.unwrap_or_else(missing)));
            Row { cells, is_published: false, begins: false }
        })
    };
    let lines: Vec<Row> = rows.iter().filter_map(line).collect();
    let mut heads: Vec<_> = table.axes.iter().map(|axis| (*axis).to_owned()).collect();
    heads.push("device".to_owned());
    heads.extend(columns.iter().map(|(column, unit)| with_unit(column.title, *unit)));
    (!lines.is_empty()).then(|| Grid {
        title: format!("{}: medians", table.title),
        caption: format!(
            "The median over the rounds, with the 1st and 99th percentiles (RFC 8219 §12, RFC 2330 §11.3), of values that {MANY} rounds or more have.{}",
            uncertain(&rows, &columns)
        ),
        heads,
        names: table.axes.len() + 1,
        rows: lines,
    })
}

/// How values that are made of many observations are distributed.
pub(super) fn distributions(table: &Table, view: &View<'_>) -> Vec<Grid> {
    let rows = rows_of(table, view, true);
    let of_column = |(column, unit): &(&Column, Unit)| {
        let lines: Vec<Row> =
            rows.iter().filter_map(|group| distribution(table, group, column, *unit)).collect();
        let mut heads: Vec<_> = table.axes.iter().map(|axis| (*axis).to_owned()).collect();
        let columns =
            ["device", "mean", "sd", "min", "median", "90 %", "99 %", "99.9 %", "99.99 %", "max", "n"];
        heads.extend(columns.map(str::to_owned));
        (!lines.is_empty()).then(|| Grid {
            title: format!("{}: distribution of {}", table.title, with_unit(column.title, *unit)),
            caption: "Over single observations, such as packets. Quantiles are means over the rounds; min and max are those of all rounds.".to_owned(),
            heads,
            names: table.axes.len() + 1,
            rows: lines,
        })
    };
    columns_of(table, &rows).iter().filter_map(of_column).collect()
}

fn distribution(table: &Table, group: &Group<'_>, column: &Column, unit: Unit) -> Option<Row> {
    let quantiles = group.quantiles(column.value)?;
    let mut cells = place_cells(&place(table, group));
    cells.push((group.cell.device.clone(), String::new()));
    let mean = group.value(column.value).map(|(estimate, _)| estimate.mean);
    let all = [mean, group.sd(column.value)].into_iter().chain(quantiles.map(Some));
    cells.extend(all.map(|it| (it.map_or_else(|| "–".to_owned(), |it| figure(it, unit)), String::new())));
    cells.push((crate::terminal::thousands(group.observations(column.value)), String::new()));
    Some(Row { cells, is_published: false, begins: false })
}

/// A paper's ratios next to today's.
pub(super) fn headlines(headlines: &[Headline], view: &View<'_>) -> Option<Grid> {
    if headlines.is_empty() {
        return None;
    }
    let row = |headline: &Headline| {
        let today = headline.today(view);
        let ratio = today.number().map_or_else(|| "–".to_owned(), |it| short(it.value / headline.published));
        let plain = |text: String| (text, String::new());
        Row {
            cells: vec![
                plain(headline.statement.to_owned()),
                plain(headline.devices()),
                plain(short(headline.published)),
                plain(today.text()),
                plain(ratio),
                plain(today.explained()),
            ],
            is_published: false,
            begins: false,
        }
    };
    let heads =
        ["the paper’s ratio", "devices today", "published", "today", "today / published", "how certain"];
    Some(Grid {
        title: "The paper’s headlines".to_owned(),
        caption: String::new(),
        heads: heads.map(str::to_owned).to_vec(),
        names: 2,
        rows: headlines.iter().map(row).collect(),
    })
}

fn with_unit(title: &str, unit: Unit) -> String {
    match unit.text() {
        "" => title.to_owned(),
        unit => format!("{title}, {unit}"),
    }
}

/// The groups of a table, by place and then in the order of devices.
pub(super) fn rows_of<'v, 'a>(table: &Table, view: &'v View<'a>, only_real: bool) -> Vec<&'v Group<'a>> {
    let is_shown = |group: &&Group<'_>| {
        group.cell.series == table.series && (!only_real || is_real(view.realm(&group.cell.device)))
    };
    view.groups.iter().filter(is_shown).collect()
}

/// The columns that have values, each with its unit.
fn columns_of<'t>(table: &'t Table, rows: &[&Group<'_>]) -> Vec<(&'t Column, Unit)> {
    let unit =
        |column: &Column| rows.iter().find_map(|group| group.value(column.value).map(|(_, unit)| unit));
    table.columns.iter().filter_map(|column| Some((column, unit(column)?))).collect()
}

pub(super) fn place(table: &Table, group: &Group<'_>) -> Vec<f64> {
    table.axes.iter().map(|axis| group.cell.at(axis)).collect()
}

pub(super) fn place_cells(place: &[f64]) -> Vec<(String, String)> {
    place.iter().map(|at| (at.to_string(), String::new())).collect()
}

/// What the paper printed for this place, and where in the paper's rows.
fn of_place<'p>(table: &Table, published: &'p [Published], place: &[f64]) -> Vec<(&'p Published, f64)> {
    let of_series = published.iter().filter(|paper| paper.series == table.series);
    of_series.filter_map(|paper| Some((paper, paper.row(table.axes, place)?))).collect()
}

fn published_row((paper, at): (&Published, f64), place: &[f64], columns: &[Shown<'_>], begins: bool) -> Row {
    let figures = columns.iter().map(|it| {
        let printed = it.published(paper, at);
        (printed.map_or_else(|| "–".to_owned(), |printed| figure(printed, it.unit)), String::new())
    });
    let mut cells = place_cells(place);
    cells.push((paper.device.to_owned(), paper.source.to_owned()));
    cells.extend(figures);
    cells.push(("published".to_owned(), String::new()));
    Row { cells, is_published: true, begins }
}

/// What limits the rows: failures, and testers at their limit.
pub(super) fn remarks(samples: &[Sample]) -> Vec<(String, String)> {
    let remark = |sample: &Sample| match (&sample.failed, &sample.verdict) {
        (Some(why), _) => Some(format!("failed: {why}")),
        (None, crate::results::Verdict::TesterBound { why }) => {
            Some(format!("{why}: only the cost of a packet may be compared"))
        }
        (None, _) => None,
    };
    samples.iter().filter_map(|sample| Some((sample.cell.key(), remark(sample)?))).collect()
}
