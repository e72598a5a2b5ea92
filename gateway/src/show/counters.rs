//! `sixway show counters` and `sixway show drops`.

use super::colour::Colour;
use super::quantity::{ago, count};
use super::table::Table;
use crate::view::{CounterRow, DropRow};

/// The table of counters; one column for each worker if there are several.
pub fn counters(rows: &[CounterRow], colour: Colour) -> String {
    let workers = rows.first().map_or(0, |row| row.by_worker.len());
    let names: Vec<String> = (0..workers).map(|worker| format!("WORKER {worker}")).collect();
    let mut titles = vec!["COUNTER", "VALUE"];
    if workers > 1 {
        titles.extend(names.iter().map(String::as_str));
    }
    titles.push("DESCRIPTION");
    let mut table = Table::new(&titles);
    for row in rows {
        let mut cells = vec![row.name.clone(), count(row.value)];
        if workers > 1 {
            let shares = row.by_worker.iter().map(|value| count(*value));
            cells.extend(shares.chain(std::iter::repeat("–".to_owned())).take(workers));
        }
        cells.push(row.help.clone());
        table.row(cells);
    }
    table.text(colour)
}

/// The table of drops, greatest count first; reasons that never occurred are left out.
pub fn drops(rows: &[DropRow], colour: Colour) -> String {
    let mut rows: Vec<&DropRow> = rows.iter().filter(|row| row.count > 0).collect();
    if rows.is_empty() {
        return "No packets were dropped.\n".into();
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    let samples: Vec<_> = rows.iter().map(|row| (&row.reason, &row.sample)).collect();
    let mut table = Table::new(&["REASON", "COUNT", "LAST", "MEANING", "RESPONSE"]);
    for row in rows {
        table.row(vec![
            row.reason.clone(),
            count(row.count),
            ago(row.last_seconds),
            row.help.clone(),
            row.answer.clone(),
        ]);
    }
    let mut text = table.text(colour);
    if samples.iter().any(|(_, sample)| sample.is_some()) {
        text.push_str("\nThe last packet of each:\n");
    }
    for (reason, sample) in samples.iter().filter_map(|(reason, sample)| Some((reason, sample.as_ref()?))) {
        text.push_str(&format!("  {reason}: {sample}\n"));
    }
    text
}
