//! What begins and ends in a NAT goes to its event sink, once and with its time.

use crate::support;
use crate::support::{Gateway, v4, v6};
use sixway_dataplane::Instant;
use sixway_dataplane::nat::{
    EventSink, Filtering, Inside, NatEvent, NatProtocol, Outside, PortlessEvent, SavedSession, SessionState,
    StaticBinding,
};
use sixway_dataplane::stateful::Stateful as _;
use sixway_wire::{Endpoint4, Endpoint6};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const HOST4: &str = "10.0.0.1";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const SYN: u8 = 2;
const SECOND: Duration = Duration::from_secs(1);

/// What was recorded, and since when.
#[derive(Clone, Default)]
struct Notes {
    seen: Arc<Mutex<Vec<(Instant, NatEvent)>>>,
    sessions: bool,
}

impl EventSink for Notes {
    fn wants_sessions(&self) -> bool {
        self.sessions
    }

    fn record(&mut self, at: Instant, event: NatEvent) {
        self.seen.lock().unwrap().push((at, event));
    }
}

impl Notes {
    fn of(gateway: &mut Gateway, sessions: bool) -> Self {
        let notes = Self { sessions, ..Self::default() };
        for translator in gateway.engine.stateful() {
            translator.set_event_sink(Box::new(notes.clone()));
        }
        notes
    }

    /// What was recorded since the last call: seconds since `start`, and words.
    fn since(&self, start: Instant) -> Vec<(u64, String)> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().map(|(at, event)| (at.since(start).as_secs(), words(event))).collect()
    }
}

fn words(event: NatEvent) -> String {
    let binding = |what: &str, it: sixway_dataplane::nat::BindingEvent| {
        let kind = if it.is_static { "static" } else { "dynamic" };
        format!("{what} {kind} {} {}", it.protocol.name(), it.inside.0)
    };
    let session = |what: &str, it: sixway_dataplane::nat::SessionEvent| {
        format!("{what} {} {} to {}", it.protocol.name(), it.inside.0, it.remote)
    };
    let portless = |what: &str, it: PortlessEvent| {
        let PortlessEvent { protocol, inside, outside, remote, id } = it;
        format!("{what} {protocol} {} as {} to {remote}, {id:?}", inside.0, outside.0)
    };
    match event {
        NatEvent::BindingCreated(it) => binding("+binding", it),
        NatEvent::BindingDeleted(it) => binding("-binding", it),
        NatEvent::SessionCreated(it) => session("+session", it),
        NatEvent::SessionDeleted(it) => session("-session", it),
        NatEvent::PortlessCreated(it) => portless("+portless", it),
        NatEvent::PortlessDeleted(it) => portless("-portless", it),
        NatEvent::BlockAllocated(it) => format!("+block {} {}", it.subscriber.0, it.first),
        NatEvent::BlockReleased(it) => format!("-block {} {}", it.subscriber.0, it.first),
    }
}

fn said(seconds: u64, text: &str) -> (u64, String) {
    (seconds, text.to_owned())
}

fn nat64() -> Gateway {
    support::gateway(|config| config.nat64.push(support::nat64()))
}

fn nat44() -> Gateway {
    support::gateway(|config| config.nat44.push(support::nat44()))
}

#[test]
fn a_binding_and_its_sessions_are_told_of_at_their_beginning_and_their_end() {
    let mut gateway = nat64();
    let (notes, start) = (Notes::of(&mut gateway, true), gateway.now);
    gateway.waits(5 * SECOND);
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, b""));
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, b"again"));
    gateway.waits(10 * SECOND);
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 54, b""));
    let inside = "udp [2001:db8:1::1]:1000";
    assert_eq!(
        notes.since(start),
        [
            said(5, &format!("+binding dynamic {inside}")),
            said(5, &format!("+session {inside} to 203.0.113.2:53")),
            said(15, &format!("+session {inside} to 203.0.113.2:54")),
        ]
    );
    gateway.waits(400 * SECOND);
    let mut ended = notes.since(start);
    ended.iter_mut().for_each(|(at, _)| {
        assert!((300..=415).contains(at), "{at} s");
        *at = 0;
    });
    assert_eq!(
        ended,
        [
            said(0, &format!("-session {inside} to 203.0.113.2:53")),
            said(0, &format!("-session {inside} to 203.0.113.2:54")),
            said(0, &format!("-binding dynamic {inside}")),
        ]
    );
}

#[test]
fn what_is_refused_while_a_syn_is_stored_is_not_told_of() {
    let mut gateway = support::gateway(|config| {
        let mut nat44 = support::nat44();
        nat44.limits.sessions = 4;
        config.nat44.push(nat44);
    });
    gateway.receives(v4(SERVER, "192.0.2.1").tcp(1, 2_000, SYN, b""));
    for port in 1..=3 {
        gateway.receives(v4(HOST4, SERVER).udp(1_000, port, b""));
    }
    let (notes, start) = (Notes::of(&mut gateway, true), gateway.now);
    gateway.receives(v4("10.0.0.2", SERVER).udp(1_000, 9, b""));
    assert_eq!(
        gateway.last,
        sixway_dataplane::Verdict::Dropped(sixway_dataplane::DropReason::SessionTableFull)
    );
    assert_eq!(notes.since(start), []);
}

#[test]
fn sessions_without_ports_are_told_of_with_what_they_have_in_place_of_ports() {
    let mut gateway = support::gateway(|config| {
        let mut nat44 = support::nat44();
        nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        nat44.portless.sessions = 2;
        config.nat44.push(nat44);
    });
    let esp = |spi: u32| v4(HOST4, SERVER).protocol(50, &[&spi.to_be_bytes()[..], &[7; 40]].concat(), None);
    gateway.receives(esp(1));
    let (notes, start) = (Notes::of(&mut gateway, false), gateway.now);
    gateway.receives(esp(2));
    gateway.waits(5 * SECOND);
    gateway.receives(v4(HOST4, SERVER).protocol(41, &[0x60; 40], None));
    gateway.receives(esp(2));
    assert_eq!(notes.since(start), [said(0, "+portless 50 10.0.0.1 as 192.0.2.1 to 203.0.113.2, Some(2)")]);
    // The first one has ended, and makes room.
    gateway.now = gateway.now + 295 * SECOND;
    gateway.receives(v4(HOST4, SERVER).protocol(41, &[0x60; 40], None));
    assert_eq!(
        notes.since(start),
        [
            said(300, "-portless 50 10.0.0.1 as 192.0.2.1 to 203.0.113.2, Some(1)"),
            said(300, "+portless 41 10.0.0.1 as 192.0.2.1 to 203.0.113.2, None"),
        ]
    );
    let nat44 = gateway.engine.stateful().next().unwrap().without_ports_mut();
    assert!(nat44.end(41, HOST4.parse().unwrap(), SERVER.parse().unwrap(), &mut Default::default()));
    gateway.waits(SECOND);
    assert_eq!(notes.since(start), [said(301, "-portless 41 10.0.0.1 as 192.0.2.1 to 203.0.113.2, None")]);
    gateway.waits(10 * SECOND);
    assert_eq!(notes.since(start), [said(311, "-portless 50 10.0.0.1 as 192.0.2.1 to 203.0.113.2, Some(2)")]);
    gateway.receives(v4(HOST4, SERVER).protocol(41, &[0x60; 40], None));
    let nat44 = gateway.engine.stateful().next().unwrap().without_ports_mut();
    assert!(nat44.end(41, HOST4.parse().unwrap(), SERVER.parse().unwrap(), &mut Default::default()));
    assert_eq!(nat44.occupancy().0, 0);
    gateway.waits(SECOND);
    let at = 312;
    assert_eq!(
        notes.since(start),
        [
            said(at - 1, "+portless 41 10.0.0.1 as 192.0.2.1 to 203.0.113.2, None"),
            said(at, "-portless 41 10.0.0.1 as 192.0.2.1 to 203.0.113.2, None"),
        ]
    );
}

#[test]
fn sessions_are_recorded_only_if_asked_for_and_ipv4_hosts_go_by_mapped_addresses() {
    let mut gateway = nat44();
    let (notes, start) = (Notes::of(&mut gateway, false), gateway.now);
    gateway.receives(v4(HOST4, SERVER).udp(1_000, 53, b""));
    gateway.receives(v4(HOST4, SERVER).udp(1_000, 54, b""));
    gateway.waits(400 * SECOND);
    let events: Vec<String> = notes.since(start).into_iter().map(|(_, text)| text).collect();
    let inside = "udp [::ffff:10.0.0.1]:1000";
    assert_eq!(events, [format!("+binding dynamic {inside}"), format!("-binding dynamic {inside}")]);
}

#[test]
fn the_outside_endpoint_of_an_event_is_that_of_the_packets() {
    let mut gateway = nat44();
    let notes = Notes::of(&mut gateway, true);
    gateway.receives(v4(HOST4, SERVER).udp(1_000, 53, b""));
    let sent = gateway.sent();
    let seen = notes.seen.lock().unwrap();
    let [(_, NatEvent::BindingCreated(binding)), (_, NatEvent::SessionCreated(session))] = seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(binding.outside.0.address.octets(), sent[12..16]);
    assert_eq!(binding.outside.0.port.to_be_bytes(), sent[20..22]);
    assert_eq!(session.outside, binding.outside);
}

#[test]
fn what_an_operator_does_is_an_event() {
    let mut gateway = nat64();
    let (notes, start) = (Notes::of(&mut gateway, true), gateway.now);
    let inside = Inside(Endpoint6::new(HOST.parse().unwrap(), 80));
    let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 8_080));
    let door = StaticBinding { protocol: NatProtocol::Udp, softwire: None, inside, outside };
    gateway.waits(3 * SECOND);
    let mut counters = sixway_dataplane::Counters::default();
    gateway.engine.nat64()[0].add_static(&door).unwrap();
    assert!(gateway.engine.nat64()[0].add_static(&door).is_err());
    gateway.receives(v4(SERVER, "192.0.2.1").udp(9, 8_080, b""));
    gateway.receives(v6(HOST, SERVER6).udp(7, 53, b""));
    let remote = Endpoint4::new(SERVER.parse().unwrap(), 53);
    let dynamic = Inside(Endpoint6::new(HOST.parse().unwrap(), 7));
    assert!(gateway.engine.nat64()[0].end_session(NatProtocol::Udp, dynamic.into(), remote, &mut counters));
    assert_eq!(gateway.engine.nat64()[0].remove_static(&door, 9, &mut counters), Some(true));
    let (door, other) = ("udp [2001:db8:1::1]:80", "udp [2001:db8:1::1]:7");
    assert_eq!(
        notes.since(start),
        [
            said(3, &format!("+binding static {door}")),
            said(3, &format!("+session {door} to 203.0.113.2:9")),
            said(3, &format!("+binding dynamic {other}")),
            said(3, &format!("+session {other} to 203.0.113.2:53")),
            said(3, &format!("-session {other} to 203.0.113.2:53")),
            said(3, &format!("-binding dynamic {other}")),
            said(3, &format!("-session {door} to 203.0.113.2:9")),
            said(3, &format!("-binding static {door}")),
        ]
    );
}

/// A binding that was made for a session that finds no room has a beginning and an end.
#[test]
fn a_binding_without_its_session_ends_where_it_began() {
    let mut gateway = support::gateway(|config| {
        let mut nat64 = support::nat64();
        nat64.limits.sessions = 1;
        config.nat64.push(nat64);
    });
    gateway.receives(v4(SERVER, "192.0.2.1").tcp(80, 4_000, SYN, b""));
    let (notes, start) = (Notes::of(&mut gateway, false), gateway.now);
    gateway.receives(v6(HOST, SERVER6).udp(1, 53, b""));
    gateway.receives(v6(HOST, SERVER6).udp(2, 53, b""));
    let events: Vec<String> = notes.since(start).into_iter().map(|(_, text)| text).collect();
    let made = events.iter().filter(|text| text.starts_with("+binding")).count();
    let ended = events.iter().filter(|text| text.starts_with("-binding")).count();
    let bindings = gateway.engine.nat64()[0].occupancy().bindings as usize;
    assert_eq!(made - ended, bindings, "{events:?}");
}

/// A SYN from a server is stored: its endpoint belongs to nobody yet.
fn with_stored_syn() -> (Gateway, Notes, Instant) {
    let mut gateway = support::gateway(|config| {
        let mut nat64 = support::nat64();
        nat64.filtering = Filtering::AddressDependent;
        config.nat64.push(nat64);
    });
    let (notes, start) = (Notes::of(&mut gateway, true), gateway.now);
    gateway.receives(v4(SERVER, "192.0.2.1").tcp(80, 4_000, SYN, b""));
    (gateway, notes, start)
}

#[test]
fn a_stored_syn_is_a_session_when_it_has_an_inside_host() {
    let (mut gateway, notes, start) = with_stored_syn();
    gateway.waits(60 * SECOND);
    assert_eq!(notes.since(start), [], "nobody's");
}

/// The endpoint of a stored SYN becomes that of a binding: the session that waits is the host's when it answers.
#[test]
fn a_session_that_waited_for_its_host_begins_when_the_host_answers() {
    let (mut gateway, notes, start) = with_stored_syn();
    let inside = Inside(Endpoint6::new(HOST.parse().unwrap(), 1_000));
    let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 4_000));
    let door = StaticBinding { protocol: NatProtocol::Tcp, softwire: None, inside, outside };
    gateway.engine.nat64()[0].add_static(&door).unwrap();
    gateway.waits(SECOND);
    gateway.receives(v6(HOST, SERVER6).tcp(1_000, 80, SYN, b""));
    let host = "tcp [2001:db8:1::1]:1000";
    let began =
        [said(0, &format!("+binding static {host}")), said(1, &format!("+session {host} to 203.0.113.2:80"))];
    assert_eq!(notes.since(start), began);
}

#[test]
fn a_session_of_another_process_is_not_a_beginning_and_has_an_end() {
    let mut gateway = nat64();
    let (notes, start) = (Notes::of(&mut gateway, true), gateway.now);
    let saved = SavedSession {
        softwire: None,
        local: None,
        protocol: NatProtocol::Udp,
        state: SessionState::Udp,
        inside: Inside(Endpoint6::new(HOST.parse().unwrap(), 1_000)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 4_000)),
        remote: Endpoint4::new(SERVER.parse().unwrap(), 53),
        age: SECOND,
        idle: SECOND,
        packets: [1, 0],
        octets: [100, 0],
        from_outside: false,
    };
    let (now, mut counters) = (gateway.now, sixway_dataplane::Counters::default());
    gateway.engine.nat64()[0].restore(&saved, now, &mut counters).unwrap();
    assert_eq!(notes.since(start), []);
    gateway.waits(400 * SECOND);
    let events: Vec<String> = notes.since(start).into_iter().map(|(_, text)| text).collect();
    let inside = "udp [2001:db8:1::1]:1000";
    let ended = [format!("-session {inside} to 203.0.113.2:53"), format!("-binding dynamic {inside}")];
    assert_eq!(events, ended);
}
