//! `sixway show teredo-server`.

use super::colour::Colour;
use super::quantity::{count, plural};
use super::table::Table;
use crate::view::TeredoServerRow;

/// The Teredo server: a few lines, then what became of datagrams.
pub fn teredo_server(row: &Option<TeredoServerRow>, colour: Colour) -> String {
    let Some(row) = row else { return "[teredo_server] is not configured.\n".into() };
    let mut text = format!("{}\n", row.exposes);
    for address in &row.waits {
        text.push_str(&format!("waits for {address}, which this host does not have\n"));
    }
    for what in &row.troubles {
        text.push_str(&format!("cannot listen: {what}\n"));
    }
    text.push_str(&format!("last minute: {}\n", state(row)));
    let all = row.handled.iter().chain(&row.refused).chain(&row.counters);
    let mut table = Table::new(&["OUTCOME", "COUNT", "MEANING"]);
    for counted in all.filter(|counted| counted.value > 0) {
        table.row(vec![counted.name.clone(), count(counted.value), counted.help.clone()]);
    }
    text.push_str(&table.text(colour));
    text
}

/// The last minute, for the summary.
pub(super) fn state(row: &TeredoServerRow) -> String {
    let received = plural(row.received_last_minute, "datagram");
    format!("{received} · {} discarded", count(row.refused_last_minute))
}
