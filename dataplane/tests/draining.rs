//! Addresses of a pool that are being drained: subscribers with bindings there keep them, and others get another address.

use crate::support;
use crate::support::{Gateway, v4};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{
    DrainingRow, Inside, NatProtocol, Outside, SavedSession, SessionState, StaticBinding, StaticBindingError,
};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};
use std::net::Ipv4Addr;
use std::time::Duration;

const SERVER: &str = "203.0.113.1";
/// Of a pool of two addresses.
const OLD: &str = "192.0.2.0";
const NEW: &str = "192.0.2.1";

fn nat44(edit: impl FnOnce(&mut Nat44Config)) -> Nat44Config {
    let mut nat44 = support::nat44();
    nat44.pool.addresses = vec!["192.0.2.0/31".parse().unwrap()];
    nat44.pool.ports = vec![2_000..=2_999];
    edit(&mut nat44);
    nat44
}

fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| config.nat44 = vec![nat44(edit)])
}

fn old() -> Prefix4 {
    Prefix4::holding(OLD.parse().unwrap(), 32)
}

fn source(packet: &[u8]) -> String {
    Ipv4Addr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap()).to_string()
}

fn port(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[20], packet[21]])
}

/// A host sends a datagram from this port; its outside endpoint.
fn sends(gateway: &mut Gateway, host: &str, from: u16) -> (String, u16) {
    gateway.receives(v4(host, SERVER).udp(from, 53, b""));
    let packet = gateway.sent();
    (source(&packet), port(&packet))
}

fn drain(gateway: &mut Gateway, drains: bool) {
    gateway.engine.stateful_at(0).unwrap().0.drain(old(), drains);
}

/// The row of the only prefix, from all steps, and how many they are.
fn whole(engine: &mut Engine, now: Instant) -> (DrainingRow, u32) {
    let translator = engine.stateful_at(0).unwrap().0;
    let (mut sum, mut from, mut steps) = (None::<DrainingRow>, Some(0), 0);
    while let Some(place) = from {
        let (rows, next) = translator.draining_rows(place, now);
        for row in rows {
            let sum = sum.get_or_insert(DrainingRow { bindings: 0, hosts: 0, portless: 0, ..row });
            assert_eq!(sum.prefix, row.prefix);
            sum.bindings += row.bindings;
            sum.hosts += row.hosts;
            sum.portless += row.portless;
        }
        (from, steps) = (next, steps + 1);
    }
    (sum.unwrap(), steps)
}

fn left(gateway: &mut Gateway) -> DrainingRow {
    let now = gateway.now;
    whole(&mut gateway.engine, now).0
}

/// A host that has a binding at the address that is to be drained, and that.
fn host_there(gateway: &mut Gateway) -> (String, u16) {
    let hosts = (1..40).map(|n| format!("10.0.0.{n}"));
    let mut found = hosts.filter_map(|host| {
        let (address, port) = sends(gateway, &host, 4_000);
        (address == OLD).then_some((host, port))
    });
    found.next().unwrap()
}

#[test]
fn a_host_keeps_its_address_until_its_last_binding_there_has_ended() {
    let mut gateway = gateway(|_| {});
    let (host, port) = host_there(&mut gateway);
    gateway.waits(Duration::from_secs(290));
    drain(&mut gateway, true);
    assert_eq!(sends(&mut gateway, &host, 4_000), (OLD.into(), port), "its binding goes on");
    gateway.receives(v4(SERVER, OLD).udp(53, port, b"answer"));
    assert_eq!(gateway.last, Verdict::Forward);
    gateway.sent();
    assert_eq!(sends(&mut gateway, &host, 4_001).0, OLD, "RFC 4787 REQ-2: its further bindings, too");
    assert_eq!(left(&mut gateway), DrainingRow { prefix: old(), bindings: 2, hosts: 1, portless: 0 });
    for n in 50..90 {
        assert_eq!(sends(&mut gateway, &format!("10.0.0.{n}"), 4_000).0, NEW);
    }
    gateway.waits(Duration::from_secs(301));
    assert_eq!(left(&mut gateway), DrainingRow { prefix: old(), bindings: 0, hosts: 0, portless: 0 });
    assert_eq!(sends(&mut gateway, &host, 4_000).0, NEW);
    drain(&mut gateway, false);
    let seen: Vec<_> = (100..140).map(|n| sends(&mut gateway, &format!("10.0.0.{n}"), 4_000).0).collect();
    assert!(seen.iter().any(|address| address == OLD), "it is given again");
}

#[test]
fn when_all_other_addresses_are_used_up_further_hosts_are_refused_and_nobody_is_evicted() {
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![2_000..=2_003]);
    let (host, port) = host_there(&mut gateway);
    drain(&mut gateway, true);
    gateway.counted_before();
    let mut passed = 0;
    for n in 50..60 {
        gateway.receives(v4(&format!("10.0.0.{n}"), SERVER).udp(4_000, 53, b""));
        match gateway.last {
            Verdict::Forward => passed += 1,
            verdict => assert_eq!(verdict, Verdict::Dropped(DropReason::PortPoolEmpty)),
        }
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    assert!(passed <= 4, "{passed}");
    let refused = 10 - passed;
    let passed = [("nat44.to_outside", passed), ("nat.bindings.made", passed), ("nat.sessions.made", passed)];
    let [out, bindings, sessions] = passed;
    gateway.counted([out, bindings, sessions, ("PortPoolEmpty", refused), ("icmp_errors.made", refused)]);
    assert_eq!(sends(&mut gateway, &host, 4_000), (OLD.into(), port));
}

#[test]
fn a_quarantined_port_of_a_draining_address_is_not_given_early() {
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![2_000..=2_000]);
    let hosts: Vec<_> = (1..=2).map(|n| sends(&mut gateway, &format!("10.0.0.{n}"), 4_000).0).collect();
    assert_ne!(hosts[0], hosts[1]);
    gateway.waits(Duration::from_secs(301));
    drain(&mut gateway, true);
    assert_eq!(left(&mut gateway).bindings, 0, "a port in quarantine is not a binding");
    assert_eq!(sends(&mut gateway, "10.0.0.3", 4_000).0, NEW);
    gateway.receives(v4("10.0.0.4", SERVER).udp(4_000, 53, b""));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PortPoolEmpty));
}

#[test]
fn sessions_of_another_process_are_restored_at_addresses_that_the_configuration_drains() {
    let mut gateway = gateway(|nat44| nat44.draining = vec![old()]);
    let host: Ipv4Addr = "10.0.0.1".parse().unwrap();
    let saved = SavedSession {
        softwire: None,
        local: None,
        protocol: NatProtocol::Udp,
        state: SessionState::Udp,
        inside: Inside(Endpoint6::new(host.to_ipv6_mapped(), 4_000)),
        outside: Outside(Endpoint4::new(OLD.parse().unwrap(), 2_345)),
        remote: Endpoint4::new(SERVER.parse().unwrap(), 53),
        age: Duration::ZERO,
        idle: Duration::ZERO,
        packets: [1; 2],
        octets: [100; 2],
        from_outside: false,
    };
    let now = gateway.now;
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    assert_eq!(translator.restore(&saved, now, counters), Ok(()));
    assert_eq!(left(&mut gateway), DrainingRow { prefix: old(), bindings: 1, hosts: 1, portless: 0 });
    assert_eq!(sends(&mut gateway, "10.0.0.1", 4_000), (OLD.into(), 2_345));
    for n in 2..40 {
        assert_eq!(sends(&mut gateway, &format!("10.0.0.{n}"), 4_000).0, NEW);
    }
}

#[test]
fn a_tunnel_without_ports_gets_another_address_and_one_that_exists_keeps_its_own() {
    const GRE: u8 = 47;
    let mut gateway = gateway(|_| {});
    let passes = |gateway: &mut Gateway, host: &str| {
        gateway.receives(v4(host, SERVER).protocol(GRE, &[0, 0, 8, 0], None));
        assert_eq!(gateway.last, Verdict::Forward);
        source(&gateway.sent())
    };
    // One host for each address, since a remote host sees one at a time without keys.
    let hosts = ["10.0.0.1", "10.0.0.2"];
    let seen = hosts.map(|host| passes(&mut gateway, host));
    let there = hosts[usize::from(seen[1] == OLD)];
    drain(&mut gateway, true);
    assert_eq!(left(&mut gateway).portless, 1);
    assert_eq!(passes(&mut gateway, there), OLD);
    gateway.waits(Duration::from_secs(3_600));
    assert_eq!(left(&mut gateway).portless, 0);
    assert_eq!(passes(&mut gateway, there), NEW);
}

#[test]
fn static_bindings_are_left_and_counted_once_by_all_workers() {
    let at = Outside(Endpoint4::new(OLD.parse().unwrap(), 2_500));
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Tcp,
        inside: Inside(Endpoint4::new([10, 0, 0, 9].into(), 80)),
        outside: at,
    };
    let engine = |worker| {
        let nat44 = nat44(|nat44| {
            nat44.static_bindings = vec![binding];
            nat44.draining = vec![old()];
        });
        let config = EngineConfig {
            nat44: vec![nat44],
            worker: WorkerId(worker),
            workers: 3,
            seed: [1, 2],
            worker_key: [3, 5],
            ..EngineConfig::default()
        };
        Engine::new(&config).unwrap()
    };
    let mut workers: Vec<Engine> = (0..3).map(engine).collect();
    let now = Instant::from_secs(1_000);
    for n in 1..100 {
        let mut frame = Frame::holding(&Vec::from(v4(&format!("10.0.{n}.1"), SERVER).udp(4_000, 53, b"")));
        let mut out = Outbox::new(8);
        workers[0].process(std::slice::from_mut(&mut frame), now, &mut out);
        while let Verdict::HandOver(worker) = frame.verdict {
            workers[usize::from(worker.0)].take_over(std::slice::from_mut(&mut frame), now, &mut out);
        }
        assert_eq!((frame.verdict, source(frame.bytes())), (Verdict::Forward, NEW.into()));
    }
    let rows = workers.iter_mut().map(|engine| whole(engine, now).0);
    let rows: Vec<_> = rows.collect();
    let sum = |of: fn(&DrainingRow) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!((sum(|row| row.bindings), sum(|row| row.hosts)), (1, 1), "{rows:?}");
}

/// Someone asks again and again how far the draining of a large pool is: no step looks at all of it.
#[test]
fn what_is_left_of_a_large_pool_is_counted_in_steps() {
    let large: Prefix4 = "198.18.0.0/19".parse().unwrap();
    let mut gateway = gateway(|nat44| {
        nat44.pool.addresses = vec![large];
        nat44.limits.sessions = 20_000;
        nat44.limits.bindings = 20_000;
        nat44.pool.ports = vec![2_000..=2_000];
    });
    // Each address has one port, so that each host opens one more address.
    for n in 0..5_000_u32 {
        sends(&mut gateway, &Ipv4Addr::from_bits(0x0a00_0001 + n).to_string(), 4_000);
    }
    let now = gateway.now;
    gateway.engine.stateful_at(0).unwrap().0.drain(large, true);
    let (row, steps) = whole(&mut gateway.engine, now);
    assert_eq!((row.bindings, row.hosts, row.portless), (5_000, 5_000, 0));
    assert!(steps >= 3, "{steps} steps");
    // A place that is not there any more is the end.
    let translator = gateway.engine.stateful_at(0).unwrap().0;
    for from in [1 << 20, u32::MAX] {
        assert!(translator.draining_rows(from, now).0.is_empty());
    }
}

/// Two hosts of different workers: the second one is refused by both, whoever has the port.
#[test]
fn the_outside_endpoint_of_another_workers_static_binding_is_in_use_at_every_worker() {
    let engine = |worker| {
        let config = EngineConfig {
            nat44: vec![nat44(|_| {})],
            worker: WorkerId(worker),
            workers: 2,
            seed: [1, 2],
            worker_key: [3, 5],
            ..EngineConfig::default()
        };
        Engine::new(&config).unwrap()
    };
    let mut workers: Vec<Engine> = (0..2).map(engine).collect();
    let host = |n: u8| Ipv4Addr::new(10, 0, n, 1).to_ipv6_mapped();
    let of = |worker: u8, workers: &mut [Engine]| {
        let translator = workers[0].stateful_at(0).unwrap().0;
        (1..100).map(host).find(|host| translator.worker_of_inside(*host) == WorkerId(worker)).unwrap()
    };
    let hosts = [of(0, &mut workers), of(1, &mut workers)];
    for (first, second, port) in [(0, 1, 2_100), (1, 0, 2_100), (0, 1, 2_200), (1, 0, 2_200)] {
        let binding = |host| StaticBinding {
            protocol: NatProtocol::Tcp,
            softwire: None,
            inside: Inside(Endpoint6::new(host, 80)),
            outside: Outside(Endpoint4::new(NEW.parse().unwrap(), port)),
        };
        for worker in &mut workers {
            assert_eq!(worker.stateful_at(0).unwrap().0.add_static(&binding(hosts[first])), Ok(()));
        }
        for worker in &mut workers {
            let refused = worker.stateful_at(0).unwrap().0.add_static(&binding(hosts[second]));
            assert_eq!(refused, Err(StaticBindingError::OutsideInUse));
        }
        for worker in &mut workers {
            let (translator, counters) = worker.stateful_at(0).unwrap();
            let removed = translator.remove_static(&binding(hosts[first]), usize::MAX, counters);
            assert_eq!(removed, Some(true));
        }
    }
}
