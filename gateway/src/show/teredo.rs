//! `sixway show teredo`.

use super::colour::Colour;
use super::quantity::{count, duration};
use super::table::Table;
use crate::view::TeredoRow;
use std::fmt::Write as _;

/// Relays and clients, each with its peers.
pub fn teredo(rows: &[TeredoRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "No Teredo relay is configured.\n".into();
    }
    rows.iter().map(|row| one(row, colour)).collect::<Vec<_>>().join("\n")
}

fn one(row: &TeredoRow, colour: Colour) -> String {
    let local = row.local.as_ref().map_or_else(
        || "no socket: the host does not have the address, or another program has the port".to_owned(),
        |local| format!("UDP {local}"),
    );
    let mut text = format!("{}: {} · {local}\n", row.name, row.serves);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "peers: {} established, {} trusted, {} contacting, {} unreachable · {} packets wait · bubbles: {} sent, {} not sent (rate)",
        count(row.established.into()),
        count(row.trusted.into()),
        count(row.contacting.into()),
        count(row.unreachable.into()),
        count(row.waiting.into()),
        count(row.bubbles),
        count(row.bubbles_limited),
    );
    if row.peers.is_empty() {
        return text;
    }
    let ago = |seconds: Option<u64>| seconds.map_or_else(|| "–".into(), duration);
    let mut table = Table::new(&["PEER", "ENDPOINT", "STATE", "HEARD", "SENT", "WHY"]);
    for peer in &row.peers {
        table.row(vec![
            peer.address.clone(),
            peer.endpoint.clone(),
            peer.state.clone(),
            ago(peer.heard_seconds),
            ago(peer.sent_seconds),
            peer.why.clone(),
        ]);
    }
    text += &table.text(colour);
    if row.has_more {
        text += "There are more peers.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::TeredoPeerRow;

    #[test]
    fn a_relay_is_shown_with_its_peers_and_without_a_socket_with_the_reason() {
        let peer = TeredoPeerRow {
            address: "2001:0:c633:6401::1".into(),
            endpoint: "198.51.100.18:40000".into(),
            state: "unreachable".into(),
            why: "no answer to 4 bubbles".into(),
            sent_seconds: Some(7),
            ..TeredoPeerRow::default()
        };
        let row = TeredoRow {
            name: "teredo_relay".into(),
            serves: "relay 2001::/32 ⇄ anybody".into(),
            local: Some("198.51.100.34:3544".into()),
            unreachable: 1,
            peers: vec![peer],
            ..TeredoRow::default()
        };
        let text = teredo(std::slice::from_ref(&row), Colour::Never);
        for words in [
            "UDP 198.51.100.34:3544",
            "1 unreachable",
            "198.51.100.18:40000",
            "no answer to 4 bubbles",
            "7 s",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
        let closed = TeredoRow { local: None, peers: Vec::new(), ..row };
        assert!(teredo(&[closed], Colour::Never).contains("another program has the port"));
        assert_eq!(teredo(&[], Colour::Never), "No Teredo relay is configured.\n");
    }
}
