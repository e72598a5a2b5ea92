//! Data of Teredo's relays for `sixway show teredo` and metrics. The first worker has all peers.

use super::gateway::Gateway;
use crate::admin::AdminError;
use crate::show::plural;
use crate::view::{TeredoPeerRow, TeredoRow};
use crate::worker::Command;
use sixway_dataplane::mechanism::table::Kind;
use sixway_dataplane::mechanism::teredo::{PeerRow, PeerState};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::TeredoAddress;

/// How [`crate::config::TeredoClient`] says what it is.
const CLIENT: &str = "client of ";

/// Relays with their peers, at most `room` of each.
pub(super) async fn rows(gateway: &Gateway, room: usize) -> Result<Vec<TeredoRow>, AdminError> {
    let ends = gateway.udp_ends();
    let relays = gateway.facts.mechanisms.iter().filter(|it| it.kind == Kind::Teredo);
    let mut rows = Vec::new();
    for (index, relay) in relays.enumerate() {
        let mut row =
            TeredoRow { name: relay.name.clone(), serves: relay.serves.clone(), ..TeredoRow::default() };
        row.client = gateway.teredo_client().filter(|_| relay.serves.starts_with(CLIENT));
        row.local = ends.iter().find(|(name, _)| *name == relay.name).and_then(|(_, local)| local.clone());
        row.no_socket = gateway.udp_trouble(&relay.name).filter(|_| row.local.is_none());
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            let (whole, peers, next) =
                gateway.ask(0, |answer| Command::TeredoPeers(index as u16, from, answer)).await?;
            let of = |state: PeerState| whole.peers.get(state as usize).copied().unwrap_or_default();
            row.unreachable = of(PeerState::Unreachable);
            row.contacting = of(PeerState::Contacting);
            row.trusted = of(PeerState::Trusted);
            row.established = of(PeerState::Established);
            (row.waiting, row.bubbles, row.bubbles_limited) =
                (whole.waiting, whole.bubbles, whole.bubbles_limited);
            row.peers.extend(peers.iter().map(peer_row));
            row.has_more = next.is_some() || row.peers.len() > room;
            row.peers.truncate(room);
            cursor = next.filter(|_| row.peers.len() < room);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A relay or client in few words.
pub(super) fn state(row: &TeredoRow) -> String {
    let peers = row.established + row.trusted + row.contacting + row.unreachable;
    let peers = plural(peers.into(), "peer");
    match &row.client {
        Some(client) => format!("{} · {peers}", client.phase),
        None if row.local.is_none() => format!("no socket · {peers}"),
        None => peers,
    }
}

fn peer_row(peer: &PeerRow) -> TeredoPeerRow {
    TeredoPeerRow {
        address: peer.address.to_string(),
        endpoint: peer.endpoint.to_string(),
        state: peer.state.word().into(),
        why: why(peer),
        heard_seconds: peer.heard.map(|since| since.as_secs()),
        sent_seconds: peer.sent.map(|since| since.as_secs()),
        bubbles: peer.bubbles,
        waiting: peer.waiting,
    }
}

/// What the state means, in words.
fn why(peer: &PeerRow) -> String {
    let (bubbles, waiting) = (peer.bubbles, peer.waiting);
    match peer.state {
        PeerState::Unreachable => format!(
            "no answer to {bubbles} bubbles: the client is gone, its server does not forward, or its NAT has another mapping for each peer"
        ),
        PeerState::Contacting => {
            format!("bubbles sent: {bubbles}; packets that wait for the answer: {waiting}")
        }
        PeerState::Trusted => "it answered; nothing was sent to it lately".into(),
        PeerState::Established if peer.is_local => "packets pass both ways, on the same link".into(),
        PeerState::Established => match (peer.port, moved_from(peer)) {
            (Some(port), _) => format!("packets pass both ways, from the spare port {port}"),
            (None, Some(mapped)) => format!("packets pass both ways, by a nonce: its address says {mapped}"),
            (None, None) => "packets pass both ways".into(),
        },
    }
}

/// The endpoint in a client's address, if it has proven another one (RFC 6081 §5.2).
fn moved_from(peer: &PeerRow) -> Option<Endpoint4> {
    TeredoAddress::of(peer.address).map(TeredoAddress::mapped).filter(|mapped| *mapped != peer.endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::TeredoClientRow;

    #[test]
    fn a_peer_that_does_not_answer_has_the_reasons() {
        let peer = PeerRow {
            address: "2001:0:c633:6401::1".parse().unwrap(),
            endpoint: Endpoint4::new("198.51.100.18".parse().unwrap(), 40_000),
            state: PeerState::Unreachable,
            is_local: false,
            port: None,
            heard: None,
            sent: Some(std::time::Duration::from_secs(9)),
            bubbles: 4,
            waiting: 0,
        };
        let row = peer_row(&peer);
        assert!(row.why.starts_with("no answer to 4 bubbles"), "{}", row.why);
        assert_eq!(
            (&*row.endpoint, row.sent_seconds, row.heard_seconds),
            ("198.51.100.18:40000", Some(9), None)
        );
        let spare = PeerRow { state: PeerState::Established, port: Some(50_011), ..peer };
        assert_eq!(peer_row(&spare).why, "packets pass both ways, from the spare port 50011");
    }

    #[test]
    fn a_client_that_is_followed_to_another_endpoint_than_its_address_says_is_named() {
        let established = |address: &str, endpoint: &str, is_local: bool| PeerRow {
            address: address.parse().unwrap(),
            endpoint: Endpoint4::new(endpoint.parse().unwrap(), 40_000),
            state: PeerState::Established,
            is_local,
            port: None,
            heard: None,
            sent: None,
            bubbles: 0,
            waiting: 0,
        };
        let client = "2001:0:c633:6401:0:63bf:39cc:9bed";
        for (address, endpoint, is_local, why) in [
            (client, "198.51.100.18", false, "packets pass both ways"),
            (
                client,
                "198.51.100.19",
                false,
                "packets pass both ways, by a nonce: its address says 198.51.100.18:40000",
            ),
            (client, "10.0.0.6", true, "packets pass both ways, on the same link"),
            ("2001:db8::1", "198.51.100.19", false, "packets pass both ways"),
        ] {
            assert_eq!(peer_row(&established(address, endpoint, is_local)).why, why);
        }
    }

    #[test]
    fn a_relay_and_a_client_are_not_stateless() {
        let local = Some("198.51.100.34:3544".to_owned());
        let relay = TeredoRow { local, established: 2, unreachable: 1, ..TeredoRow::default() };
        assert_eq!(state(&relay), "3 peers");
        assert_eq!(state(&TeredoRow::default()), "no socket · 0 peers");
        let client = TeredoClientRow { phase: "qualified".into(), ..TeredoClientRow::default() };
        assert_eq!(state(&TeredoRow { client: Some(client), ..relay }), "qualified · 3 peers");
    }
}
