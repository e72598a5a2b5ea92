//! `sixway show pcp`.

use super::colour::Colour;
use super::quantity::{count, plural};
use super::table::Table;
use crate::view::PcpRow;

/// The PCP server: a few lines, its mappings, then what became of requests.
pub fn pcp(row: &Option<PcpRow>, colour: Colour) -> String {
    let Some(row) = row else { return "[pcp] is not configured.\n".into() };
    let mut text = format!("listens on {}\n", row.interfaces.join(", "));
    for what in &row.waits {
        text.push_str(&format!("cannot listen: {what}\n"));
    }
    text.push_str(&format!("{} · Epoch Time {} s\n", state(row), count(row.epoch.into())));
    let mut table = Table::new(&["PROTOCOL", "INSIDE", "OUTSIDE", "PORTS", "ENDS IN", "BY", "FILTERS"]);
    for mapping in &row.table {
        table.row(vec![
            mapping.protocol.clone(),
            mapping.inside.clone(),
            mapping.outside.clone(),
            count(mapping.ports.into()),
            format!("{} s", count(mapping.ends_in.into())),
            mapping.by.clone(),
            count(mapping.filters as u64),
        ]);
    }
    if !row.table.is_empty() {
        text.push_str(&table.text(colour));
    }
    let mut table = Table::new(&["OUTCOME", "COUNT", "MEANING"]);
    let all = row.results.iter().chain(&row.ignored).chain(&row.counters);
    for counted in all.filter(|counted| counted.value > 0) {
        table.row(vec![counted.name.clone(), count(counted.value), counted.help.clone()]);
    }
    text.push_str(&table.text(colour));
    text
}

/// How full it is, for the summary.
pub(super) fn state(row: &PcpRow) -> String {
    let (mappings, ports) = (plural(row.mappings, "mapping"), plural(row.ports, "port"));
    format!("{mappings} · {ports} of {}", count(row.max_mappings))
}
