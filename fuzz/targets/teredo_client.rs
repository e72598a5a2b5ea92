//! A Teredo client and datagrams to its ports: arbitrary octets, and modified answers of a real server.
//!
//! The input is a row of datagrams: what it is, its port and the time before it (an octet), its length (two octets), and its octets. Those of an
//! answer are the mapped endpoint (six), and what the rest of the answer is changed by.

use sixway_control::Instant;
use sixway_control::teredo_client::{Action, Client, DISCOVERY, Local, Port, ServerAddresses, Settings};
use sixway_control::teredo_server::{self, Datagram, Server};
use sixway_wire::teredo::{TEREDO_PORT, is_global_unicast};
use sixway_wire::{Endpoint4, Prefix4};
use std::net::Ipv4Addr;
use std::time::Duration;

const PRIMARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const LOCAL: Endpoint4 = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5), 40_001);
const NEIGHBOUR: Endpoint4 = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 6), 40_001);
const MAPPED: [u8; 6] = [192, 0, 2, 7, 0x9c, 0x41];
const LINK: Prefix4 = Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 24);
const PORTS: [Port; 4] = [Port::Service, Port::Secondary, Port::Probe, Port::Discovery];
/// The nonce of an authentication without identifier and value.
const NONCE: std::ops::Range<usize> = 4..12;
/// Datagrams that a client may send by itself in a second, answers to its neighbours included.
const SENT_A_SECOND: u64 = 20;

/// The client, and what it did.
struct Host {
    client: Client,
    server: Server,
    /// The last solicitation, and where it went.
    asked: Option<(Ipv4Addr, Vec<u8>)>,
    nonces: Vec<Vec<u8>>,
    /// Whether an answer with one of these nonces has come.
    is_answered: bool,
    answers: u64,
    sent: u64,
}

pub fn run(octets: &[u8]) {
    let settings = Settings {
        learn_interval: true,
        local_discovery: true,
        ..Settings::new(vec![ServerAddresses { primary: PRIMARY, secondary: Some(SECONDARY) }])
    };
    let begun = Instant::from_secs(1_000);
    let mut host = Host {
        client: Client::new(settings, Some(Local { endpoint: LOCAL, subnets: vec![LINK] }), [7; 32]),
        server: Server::new(teredo_server::Settings::new(PRIMARY, Some(SECONDARY)), 7),
        asked: None,
        nonces: Vec::new(),
        is_answered: false,
        answers: 0,
        sent: 0,
    };
    host.client.start(begun);
    let (mut now, mut rest) = (begun, octets);
    host.acts(now);
    while let Some(([what, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        now = host.waits(now, Duration::from_secs(u64::from(what >> 4)));
        host.hears(*what, payload, now);
        host.acts(now);
        rest = behind;
        let most = SENT_A_SECOND * (now.since(begun).as_secs() + 1) + 2 * host.answers;
        assert!(host.sent <= most, "{} datagrams, {} answers", host.sent, host.answers);
    }
}

impl Host {
    /// Lets time pass; the client acts when it wants to.
    fn waits(&mut self, mut now: Instant, time: Duration) -> Instant {
        let end = now + time;
        while let Some(due) = self.client.due().filter(|due| *due <= end) {
            now = due.max(now);
            self.acts(now);
            assert!(self.client.due().is_none_or(|later| later > now), "nothing is due twice");
        }
        end
    }

    fn hears(&mut self, what: u8, payload: &[u8], now: Instant) {
        let port = PORTS[usize::from(what & 3)];
        let changed = (what & 4 != 0).then(|| self.answer(payload, now)).flatten();
        let (from, octets) = match changed {
            Some((from, octets)) => (Endpoint4::new(from, TEREDO_PORT), octets),
            None if what & 8 == 0 => (Endpoint4::new(PRIMARY, TEREDO_PORT), payload.to_vec()),
            None => (NEIGHBOUR, payload.to_vec()),
        };
        let has_nonce = octets.get(NONCE).is_some_and(|it| self.nonces.iter().any(|nonce| nonce == it));
        self.is_answered |= has_nonce;
        self.answers += u64::from(has_nonce);
        let _ = self.client.receive(port, from, &octets, now);
    }

    /// What the server answers to the last solicitation, changed.
    fn answer(&mut self, payload: &[u8], now: Instant) -> Option<(Ipv4Addr, Vec<u8>)> {
        let (mapped, changes) = payload.split_first_chunk().unwrap_or((&MAPPED, &[]));
        let [a, b, c, d, high, low] = *mapped;
        let mapped = Endpoint4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
        let (to, asked) = self.asked.clone()?;
        let mut octets = Vec::new();
        self.server.handle(Datagram { from: mapped, to, payload: &asked }, &mut octets, now).ok()?;
        octets.iter_mut().zip(changes).for_each(|(octet, change)| *octet ^= change);
        Some((to, octets))
    }

    fn acts(&mut self, now: Instant) {
        while let Some(action) = self.client.step(now) {
            match action {
                Action::Send { to, octets, .. } => self.sends(to, octets),
                Action::Use(state) => {
                    assert!(self.is_answered, "an address without an answer");
                    assert!(is_global_unicast(state.address.mapped().address), "{:?}", state.address);
                    assert_eq!(state.address.server, PRIMARY);
                }
                Action::LocalPeer(_, endpoint) => assert!(LINK.contains(endpoint.address), "{endpoint:?}"),
                Action::Close(_) | Action::Stop(_) => {}
            }
        }
    }

    fn sends(&mut self, to: Endpoint4, octets: Vec<u8>) {
        self.sent += 1;
        assert!(octets.len() <= 200, "{} octets", octets.len());
        if to.port == TEREDO_PORT && [PRIMARY, SECONDARY].contains(&to.address) {
            self.nonces.extend(octets.get(NONCE).map(<[u8]>::to_vec));
            self.asked = Some((to.address, octets));
        } else {
            assert!(to == DISCOVERY || LINK.contains(to.address), "to {to:?}");
        }
    }
}
