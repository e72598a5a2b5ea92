//! `sixway show sessions`, `sixway show bindings` and `sixway show subscribers`.

use super::colour::Colour;
use super::quantity::{count, count_or_dash, duration};
use super::table::Table;
use crate::view::{BindingRow, Page, SessionRow, Subscribers};

/// The table of sessions.
pub fn sessions(page: &Page<SessionRow>, colour: Colour) -> String {
    let mut columns =
        vec!["PROTO", "INSIDE", "OUTSIDE", "REMOTE", "STATE", "IDLE", "ENDS IN", "PACKETS OUT/IN", "PATH"];
    // The addresses need not say which translator a session is of.
    let several = page.rows.iter().any(|row| row.mechanism != page.rows[0].mechanism);
    columns.extend(several.then_some("MECHANISM"));
    let has_b4s = page.rows.iter().any(|row| row.softwire.is_some());
    columns.extend(has_b4s.then_some("SOFTWIRE"));
    let mut table = Table::new(&columns);
    for row in &page.rows {
        let mut cells = vec![
            row.protocol.clone(),
            row.inside.clone(),
            row.outside.clone(),
            row.remote.clone(),
            row.state.clone(),
            row.idle_seconds.map_or_else(|| "–".into(), duration),
            duration(row.ends_in_seconds),
            format!("{}/{}", count_or_dash(row.packets_out), count_or_dash(row.packets_in)),
            row.path.clone(),
        ];
        cells.extend(several.then(|| row.mechanism.clone()));
        cells.extend(has_b4s.then(|| softwire(row.softwire.as_deref())));
        table.row(cells);
    }
    table.text(colour) + &shown(page)
}

/// The table of bindings.
pub fn bindings(page: &Page<BindingRow>, colour: Colour) -> String {
    let has_servers = page.rows.iter().any(|row| row.server.is_some());
    let has_b4s = page.rows.iter().any(|row| row.softwire.is_some());
    let mut columns = vec!["PROTO", "INSIDE", "OUTSIDE", "KIND", "SESSIONS", "MECHANISM", "WORKER"];
    columns.extend(has_servers.then_some("SERVER"));
    columns.extend(has_b4s.then_some("SOFTWIRE"));
    let mut table = Table::new(&columns);
    for row in &page.rows {
        let mut cells = vec![
            row.protocol.clone(),
            row.inside.clone(),
            row.outside.clone(),
            row.kind.clone(),
            count(row.sessions),
            row.mechanism.clone(),
            row.worker.to_string(),
        ];
        cells.extend(has_servers.then(|| row.server.clone().unwrap_or_default()));
        cells.extend(has_b4s.then(|| softwire(row.softwire.as_deref())));
        table.row(cells);
    }
    table.text(colour) + &shown(page)
}

/// The table of subscribers.
pub fn subscribers(found: &Subscribers, colour: Colour) -> String {
    let has_blocks = found.rows.iter().any(|row| !row.port_blocks.is_empty());
    let mut columns = vec![
        "SUBSCRIBER",
        "HOSTS",
        "TCP",
        "UDP",
        "ICMP",
        "SESSIONS",
        "FROM OUTSIDE",
        "NEW/S",
        "REFUSED",
        "MECHANISM",
        "WORKER",
    ];
    columns.extend(has_blocks.then_some("PORT BLOCKS"));
    let mut table = Table::new(&columns);
    for row in &found.rows {
        let numbers = [
            row.hosts.into(),
            row.tcp_ports.into(),
            row.udp_ports.into(),
            row.icmp_identifiers.into(),
            row.sessions.into(),
            row.sessions_from_outside.into(),
            row.new_sessions_per_second.into(),
            row.refused,
        ];
        let mut cells = vec![row.subscriber.clone()];
        cells.extend(numbers.map(count));
        cells.extend([row.mechanism.clone(), row.worker.to_string()]);
        cells.extend(has_blocks.then(|| row.port_blocks.join(" ")));
        table.row(cells);
    }
    let more = if (found.rows.len() as u64) < found.total { " (more: --top)" } else { "" };
    table.text(colour) + &format!("{} of {}{more}\n", count(found.rows.len() as u64), count(found.total))
}

/// The B4 of a row; those of other translators have none.
fn softwire(b4: Option<&str>) -> String {
    b4.unwrap_or("–").to_owned()
}

fn shown<T>(page: &Page<T>) -> String {
    let more = if page.next.is_some() { " (more: --limit)" } else { "" };
    format!("{} of {}{more}\n", count(page.rows.len() as u64), count(page.total))
}
