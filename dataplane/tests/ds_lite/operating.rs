//! What operators, the event log and another process see: the softwire of a session is its B4's address.

use super::*;
use crate::support::fast_path::MemoryFastPath;
use sixway_dataplane::nat::{
    BindingEvent, EventSink, Inside, Named, NatEvent, NatProtocol, NotAdopted, Outside, SavedSession,
    Selection, SessionRow, StaticBinding, StaticBindingError,
};
use sixway_dataplane::{DropReason, Instant, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex};

const DOOR: &str = "192.0.2.1";

fn mapped(host: &str, port: u16) -> Inside<Endpoint6> {
    let host: Ipv4Addr = host.parse().unwrap();
    Inside(Endpoint6::new(host.to_ipv6_mapped(), port))
}

fn endpoint(address: &str, port: u16) -> Endpoint4 {
    Endpoint4::new(address.parse().unwrap(), port)
}

fn b4(text: &str) -> Option<Ipv6Addr> {
    Some(text.parse().unwrap())
}

fn sessions(gateway: &mut Gateway, inside: Option<&str>) -> Vec<SessionRow> {
    let (mut rows, now) = (Vec::new(), gateway.now);
    let selection = Selection { inside: inside.map(|text| text.parse().unwrap()), ..Selection::default() };
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    assert_eq!(translator.sessions(0, 10_000, &selection, now, &mut rows), None);
    rows
}

/// A server of the host behind a B4.
fn door(softwire: &str, port: u16) -> StaticBinding {
    StaticBinding {
        protocol: NatProtocol::Tcp,
        softwire: b4(softwire),
        inside: mapped(HOST, 80),
        outside: Outside(endpoint(DOOR, port)),
    }
}

#[test]
fn sessions_are_shown_selected_and_ended_by_their_softwire() {
    let mut gateway = gateway(|_| {});
    opened(&mut gateway, B4);
    opened(&mut gateway, NEIGHBOUR);
    let rows = sessions(&mut gateway, None);
    let mut seen: Vec<_> = rows.iter().map(|row| (row.softwire, row.inside)).collect();
    seen.sort();
    assert_eq!(seen, [(b4(B4), Some(mapped(HOST, 4_001))), (b4(NEIGHBOUR), Some(mapped(HOST, 4_001)))]);
    assert_eq!(sessions(&mut gateway, Some("2001:db8:b4:100::/56")).len(), 1);
    assert_eq!(sessions(&mut gateway, Some("2001:db8:b5::/48")).len(), 0);
    assert_eq!(sessions(&mut gateway, Some("::ffff:10.0.0.0/104")).len(), 2);
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    let remote = endpoint(SERVER, 53);
    let named = |softwire| Named { softwire, inside: mapped(HOST, 4_001) };
    assert!(!translator.end_session(NatProtocol::Udp, named(None), remote, counters), "of no softwire");
    assert!(translator.end_session(NatProtocol::Udp, named(b4(B4)), remote, counters));
    let rows = sessions(&mut gateway, None);
    assert_eq!(rows.iter().map(|row| row.softwire).collect::<Vec<_>>(), [b4(NEIGHBOUR)]);
    // It is forgotten with the next tick.
    gateway.waits(std::time::Duration::ZERO);
    assert_eq!(gateway.engine.ds_lite()[0].softwires().len(), 1);
}

#[test]
fn subscribers_are_shown_by_the_prefix_of_their_b4s() {
    let mut gateway = gateway(|_| {});
    opened(&mut gateway, B4);
    opened(&mut gateway, "2001:db8:b4:101::7");
    opened(&mut gateway, NEIGHBOUR);
    let (mut rows, now) = (Vec::new(), gateway.now);
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    translator.subscribers(0, 100, None, now, &mut rows);
    let mut seen: Vec<_> = rows.iter().map(|row| (row.address.to_string(), row.bits, row.sessions)).collect();
    seen.sort();
    assert_eq!(seen, [("2001:db8:b4:100::".to_owned(), 56, 2), ("2001:db8:b4:200::".to_owned(), 56, 1)]);
}

#[test]
fn a_static_binding_leads_into_its_softwire_before_that_has_sent_anything() {
    let mut gateway = gateway(|aftr| aftr.static_bindings = vec![door(B4, 80), door(NEIGHBOUR, 81)]);
    for (softwire, port) in [(B4, 80), (NEIGHBOUR, 81)] {
        gateway.receives(v4(STRANGER, DOOR).tcp(5_000, port, SYN, b""));
        gateway.sends(down(softwire, v4(STRANGER, HOST).hops(63).tcp(5_000, 80, SYN, b"")));
        gateway.receives(up(softwire, v4(HOST, STRANGER).tcp(80, 5_000, SYN | ACK, b"")));
        gateway.sends(v4(DOOR, STRANGER).hops(63).tcp(port, 5_000, SYN | ACK, b""));
    }
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    assert_eq!(translator.remove_static(&door(B4, 81), 100, counters), None, "another softwire's");
    assert_eq!(translator.remove_static(&door(B4, 80), 100, counters), Some(true));
    gateway.waits(std::time::Duration::ZERO);
    assert_eq!(gateway.engine.ds_lite()[0].softwires().len(), 1);
    gateway.receives(v4(STRANGER, DOOR).tcp(5_001, 80, SYN, b""));
    assert_eq!(gateway.last, Verdict::Held);
}

#[test]
fn static_bindings_are_refused_to_those_who_are_no_clients_and_leave_nothing_behind() {
    let mut gateway = gateway(|_| {});
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    let no_client = translator.add_static(&door("2001:db8:b5::1", 80));
    assert_eq!(no_client, Err(StaticBindingError::NotInside));
    let public = StaticBinding { inside: mapped("198.51.100.1", 80), ..door(B4, 80) };
    assert_eq!(translator.add_static(&public), Err(StaticBindingError::NotInside));
    let bare = StaticBinding { softwire: None, ..door(B4, 80) };
    assert_eq!(translator.add_static(&bare), Err(StaticBindingError::OtherFamily));
    let elsewhere = StaticBinding { outside: Outside(endpoint("198.51.100.1", 80)), ..door(B4, 80) };
    assert_eq!(translator.add_static(&elsewhere), Err(StaticBindingError::NotInPool));
    assert_eq!(gateway.engine.ds_lite()[0].softwires().len(), 0);
}

#[test]
fn sessions_go_on_in_another_process_in_their_softwires() {
    let mut before = gateway(|_| {});
    let (outside, port) = opened(&mut before, B4);
    opened(&mut before, NEIGHBOUR);
    let (mut saved, now) = (Vec::new(), before.now);
    let (translator, _) = before.engine.stateful_at(0).unwrap();
    assert_eq!(translator.export(0, 10_000, now, &mut saved), None);
    saved.sort_by_key(|session| session.softwire);
    assert_eq!(saved.iter().map(|session| session.softwire).collect::<Vec<_>>(), [b4(B4), b4(NEIGHBOUR)]);
    // The neighbour is not a client any more.
    let mut after = gateway(|aftr| aftr.clients = vec!["2001:db8:b4:100::/56".parse().unwrap()]);
    let now = after.now;
    let (translator, counters) = after.engine.stateful_at(0).unwrap();
    assert_eq!(translator.restore(&saved[0], now, counters), Ok(()));
    assert_eq!(translator.restore(&saved[1], now, counters), Err(NotAdopted::AddressRefused));
    let bare = SavedSession { softwire: None, ..saved[0] };
    assert_eq!(translator.restore(&bare, now, counters), Err(NotAdopted::AddressRefused));
    assert_eq!(translator.restore(&saved[0], now, counters), Err(NotAdopted::SessionExists));
    assert_eq!(after.engine.ds_lite()[0].softwires().len(), 1);
    after.receives(v4(SERVER, &outside).udp(53, port, b"answer"));
    after.sends(down(B4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer")));
}

#[test]
fn sessions_of_hosts_that_may_not_send_any_more_do_not_go_on_in_another_process() {
    let mut before = gateway(|_| {});
    opened(&mut before, B4);
    let (mut saved, now) = (Vec::new(), before.now);
    before.engine.stateful_at(0).unwrap().0.export(0, 10_000, now, &mut saved);
    let restored = |edit: &dyn Fn(&mut SavedSession), inside: &str| {
        let mut after = gateway(|aftr| aftr.inside = vec![inside.parse().unwrap()]);
        let mut session = saved[0];
        edit(&mut session);
        let now = after.now;
        let (translator, counters) = after.engine.stateful_at(0).unwrap();
        translator.restore(&session, now, counters)
    };
    assert_eq!(restored(&|_| {}, "10.0.0.0/24"), Ok(()));
    // RFC 6333 §11: the networks inside are others now.
    assert_eq!(restored(&|_| {}, "192.168.0.0/16"), Err(NotAdopted::AddressRefused));
    // A file of sessions may be damaged.
    let with =
        |address: &'static str| move |session: &mut SavedSession| session.inside = mapped(address, 4_001);
    assert_eq!(restored(&with("127.0.0.1"), "0.0.0.0/0"), Err(NotAdopted::AddressRefused));
    assert_eq!(restored(&with("203.0.113.7"), "10.0.0.0/24"), Err(NotAdopted::AddressRefused));
    for remote in ["192.0.0.1", "169.254.1.1", "127.0.0.1"] {
        let edit = |session: &mut SavedSession| session.remote.address = remote.parse().unwrap();
        assert_eq!(restored(&edit, "10.0.0.0/8"), Err(NotAdopted::AddressRefused), "{remote}");
    }
}

#[test]
fn answers_come_from_the_address_that_the_b4_uses_also_in_another_process() {
    let mut before = gateway(|_| {});
    before.receives(softwire(B4, OTHER_AFTR, v4(HOST, SERVER).udp(4_001, 53, b"question")));
    let (outside, port) = source(&before.sent());
    let (mut saved, now) = (Vec::new(), before.now);
    before.engine.stateful_at(0).unwrap().0.export(0, 10_000, now, &mut saved);
    let answer = v4(SERVER, &outside).udp(53, port, b"answer");
    let inner = v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer");
    // There it may have another number, or is not configured any more.
    let addresses = |all: &[&str]| all.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
    for (configured, from) in [(&[AFTR, "2001:db8:ffff::3", OTHER_AFTR][..], OTHER_AFTR), (&[AFTR][..], AFTR)]
    {
        let mut after = gateway(|aftr| aftr.addresses = addresses(configured));
        let now = after.now;
        let (translator, counters) = after.engine.stateful_at(0).unwrap();
        assert_eq!(translator.restore(&saved[0], now, counters), Ok(()));
        after.receives(answer.clone());
        after.sends(softwire(from, B4, inner.clone()));
    }
}

/// Who began and ended what.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl EventSink for Notes {
    fn wants_sessions(&self) -> bool {
        true
    }

    fn record(&mut self, _: Instant, event: NatEvent) {
        let binding = |it: &BindingEvent| {
            let host = it.inside.0.address.to_canonical();
            format!("{} {host} {}", it.softwire.unwrap(), it.inside.0.port)
        };
        self.0.lock().unwrap().push(match event {
            NatEvent::BindingCreated(it) => format!("+{}", binding(&it)),
            NatEvent::BindingDeleted(it) => format!("-{}", binding(&it)),
            NatEvent::SessionCreated(it) => format!("+session {}", it.softwire.unwrap()),
            NatEvent::SessionDeleted(it) => format!("-session {}", it.softwire.unwrap()),
            NatEvent::BlockAllocated(it) => format!("+block {}/{}", it.subscriber.0, it.bits),
            NatEvent::BlockReleased(it) => format!("-block {}/{}", it.subscriber.0, it.bits),
            NatEvent::PortlessCreated(_) | NatEvent::PortlessDeleted(_) => unreachable!("{event:?}"),
        });
    }
}

#[test]
fn events_say_the_softwire_and_port_blocks_the_subscribers_prefix() {
    let blocks = sixway_dataplane::nat::BlockPolicy { size: 128, most: 4, idle_seconds: 60 };
    for (blocks, expected) in [
        (
            None,
            vec![
                format!("+{B4} {HOST} 4001"),
                format!("+session {B4}"),
                format!("-session {B4}"),
                format!("-{B4} {HOST} 4001"),
            ],
        ),
        (
            Some(blocks),
            vec![
                "+block 2001:db8:b4:100::/56".to_owned(),
                format!("+session {B4}"),
                format!("-session {B4}"),
                "-block 2001:db8:b4:100::/56".to_owned(),
            ],
        ),
    ] {
        let mut gateway = gateway(|aftr| aftr.subscribers.blocks = blocks);
        let notes = Notes::default();
        gateway.engine.stateful_at(0).unwrap().0.set_event_sink(Box::new(notes.clone()));
        opened(&mut gateway, B4);
        for _ in 0..20 {
            gateway.waits(std::time::Duration::from_secs(100));
        }
        assert_eq!(*notes.0.lock().unwrap(), expected);
    }
}

#[test]
fn the_log_never_names_another_customer_although_numbers_of_softwires_are_used_again() {
    let mut gateway = gateway(|aftr| aftr.max_softwires = 2);
    let notes = Notes::default();
    gateway.engine.stateful_at(0).unwrap().0.set_event_sink(Box::new(notes.clone()));
    for n in 1..40_u32 {
        let b4 = format!("2001:db8:b4:{n:x}00::1");
        opened(&mut gateway, &b4);
        let begun = std::mem::take(&mut *notes.0.lock().unwrap());
        assert_eq!(begun, [format!("+{b4} {HOST} 4001"), format!("+session {b4}")]);
        gateway.waits(std::time::Duration::from_secs(301));
        gateway.waits(std::time::Duration::from_secs(1));
        let ended = std::mem::take(&mut *notes.0.lock().unwrap());
        assert_eq!(ended, [format!("-session {b4}"), format!("-{b4} {HOST} 4001")]);
    }
}

#[test]
fn no_session_of_a_softwire_goes_to_the_fast_path() {
    let mut gateway = gateway(|_| {});
    let path = MemoryFastPath::new(100);
    gateway.engine.stateful_at(0).unwrap().0.set_fast_path(Some(Box::new(path.clone())), 2);
    for _ in 0..100 {
        assert!(gateway.passes(up(B4, v4(HOST, SERVER).udp(4_001, 53, b"data"))));
    }
    assert_eq!((path.len(), path.table().asked), (0, 0));
}

#[test]
fn what_the_host_itself_has_is_not_reached_through_a_softwire() {
    let mut gateway = support::gateway(|config| {
        config.host4 = vec!["198.51.100.1".parse().unwrap()];
        config.others.push(aftr().into());
    });
    gateway.counted_before();
    gateway.receives(up(B4, v4(HOST, "198.51.100.1").tcp(4_001, 22, SYN, b"")));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DestinationIsHost));
    gateway.sends_nothing();
}
