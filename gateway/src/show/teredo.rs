//! `sixway show teredo`.

use super::colour::Colour;
use super::quantity::{count, duration};
use super::table::Table;
use crate::view::{TeredoClientRow, TeredoRow};
use std::fmt::Write as _;

/// Relays and clients, each with its peers.
pub fn teredo(rows: &[TeredoRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "No Teredo relay or client is configured.\n".into();
    }
    rows.iter().map(|row| one(row, colour)).collect::<Vec<_>>().join("\n")
}

fn one(row: &TeredoRow, colour: Colour) -> String {
    let local = row.local.as_ref().map_or_else(
        || format!("no socket: {}", row.no_socket.as_deref().unwrap_or("it is about to be opened")),
        |local| format!("UDP {local}"),
    );
    let mut text = format!("{}: {} · {local}\n", row.name, row.serves);
    if let Some(client) = &row.client {
        text += &state(client);
    }
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

/// How a client is, in three lines at most.
fn state(client: &TeredoClientRow) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    let (why, server) = (client.why.as_ref(), or_none(&client.server));
    let mut text = client.phase.clone();
    text += &why.map(|why| format!(": {why}")).unwrap_or_default();
    text +=
        &client.next_seconds.map(|next| format!("; next attempt in {}", duration(next))).unwrap_or_default();
    text += &format!(" · server {server}");
    text +=
        &client.answered_seconds.map(|ago| format!(", answered {} ago", duration(ago))).unwrap_or_default();
    text.push('\n');
    if let Some(address) = &client.address {
        text += &format!(
            "address {address} · mapped to {} · NAT: {} · ports: {} · refreshed each {}\n",
            or_none(&client.mapped),
            client.nat,
            client.ports,
            duration(client.interval_seconds),
        );
    }
    if let Some(words) = &client.prediction {
        text += &format!("predicted ports: {words}\n");
    }
    if client.key_expires {
        text += "The server announced that the secret must be replaced.\n";
    }
    if let Some(why) = &client.last_refused {
        text += &format!("answers refused: {}, the last one because {why}\n", count(client.refused));
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
        let known = TeredoClientRow {
            phase: "qualified".into(),
            address: Some("2001:0:c633:6401::1".into()),
            mapped: Some("198.51.100.18:40000".into()),
            server: Some("198.51.100.1".into()),
            nat: "symmetric".into(),
            ports: "sequential".into(),
            prediction: Some("8 spare ports, 2 in use".into()),
            interval_seconds: 30,
            answered_seconds: Some(4),
            ..TeredoClientRow::default()
        };
        let client = TeredoRow { client: Some(known), ..row.clone() };
        let text = teredo(&[client], Colour::Never);
        for words in [
            "qualified · server 198.51.100.1, answered 4 s ago",
            "mapped to 198.51.100.18:40000",
            "NAT: symmetric",
            "predicted ports: 8 spare ports, 2 in use",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
        let no_socket = Some("this host does not have 198.51.100.34".into());
        let closed = TeredoRow { local: None, no_socket, peers: Vec::new(), ..row };
        assert!(
            teredo(&[closed], Colour::Never).contains("no socket: this host does not have 198.51.100.34")
        );
        assert_eq!(teredo(&[], Colour::Never), "No Teredo relay or client is configured.\n");
    }
}
