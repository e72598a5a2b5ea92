//! The engine with the inside endpoints of NAT44 and of DS-Lite. With those of NAT64 it is tested in `mechanism/nat64`.

use super::*;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::nat::StateLimits;
use crate::nat::SubscriberLimits;
use crate::nat::config::Config;
use crate::nat::inside_key::InsideKey;
use crate::nat::permit::Filtering;
use crate::nat::pool::PoolConfig;
use crate::nat::protocol::NatProtocol;
use crate::nat::rows::Selection;
use crate::nat::sides::{Inside, Outside};
use crate::nat::softwire::{Softwire, SoftwireNetwork};
use crate::nat::softwires::{SoftwireId, Softwires};
use crate::nat::timeouts::{TCP_EST, TCP_TRANS, Timeouts, UDP_DEFAULT};
use crate::nat::{StaticBinding, StaticBindingError};
use crate::parse::Packet;
use crate::parse::{ACK, FIN, SYN};
use crate::verdict::WorkerId;
use core::fmt::Debug;
use core::net::Ipv4Addr;
use core::time::Duration;
use proptest::prelude::*;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

const SERVER: &str = "203.0.113.1";
const STRANGER: &str = "203.0.113.2";

/// What the mechanism of these tests answers.
#[derive(Debug)]
enum Flow<I> {
    Outward { outside: Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool },
    Inward { inside: Inside<I>, remote: Endpoint4 },
    Held,
}

/// A packet of a hundred octets.
struct Plain(Packet);

impl Arriving for Plain {
    fn packet(&self) -> &Packet {
        &self.0
    }

    fn octets(&self) -> &[u8] {
        &[0x45; 100]
    }

    fn segments(&self) -> u32 {
        1
    }

    fn earlier_mark(&self) -> Option<u32> {
        None
    }
}

/// Admits every remote address but one.
struct AllBut(Ipv4Addr);

impl<I> Mechanism<I> for AllBut {
    type Outcome = Flow<I>;

    fn outward(&self, outside: Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool) -> Flow<I> {
        Flow::Outward { outside, remote, is_hairpin }
    }

    fn inward(&self, inside: Inside<I>, remote: Endpoint4) -> Flow<I> {
        Flow::Inward { inside, remote }
    }

    fn held(&self) -> Flow<I> {
        Flow::Held
    }

    fn may_go_out(&self, _: Inside<I>, remote: Ipv4Addr) -> Result<(), DropReason> {
        if remote == self.0 { Err(DropReason::MartianDestination) } else { Ok(()) }
    }

    fn may_come_in(&self, _: Ipv4Addr) -> Result<(), DropReason> {
        Ok(())
    }

    fn may_go_on(&self, _: Inside<I>, _: Ipv4Addr) -> bool {
        true
    }
}

fn e4(address: &str, port: u16) -> Endpoint4 {
    Endpoint4::new(address.parse().unwrap(), port)
}

/// A host behind a softwire: all of them have the same address.
fn behind(softwire: u32, port: u16) -> Softwire {
    Softwire { id: SoftwireId(softwire), endpoint: e4("10.0.0.1", port) }
}

/// The softwires of these tests, each of a subscriber of its own.
fn name_softwires(bench: &mut Harness<Softwire>) {
    let mut names = Softwires::new(8, [1, 2]);
    for number in 0..8 {
        let remote = format!("2001:db8:0:{number}::1").parse().unwrap();
        assert_eq!(names.intern(remote), Some(SoftwireId(number)));
    }
    *bench.engine.names_mut() = names;
}

fn config<I: InsideKey>() -> Config<I> {
    Config {
        pool: PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![1_024..=65_535] },
        filtering: Filtering::EndpointIndependent,
        static_bindings: Vec::new(),
        timeouts: Timeouts::default(),
        limits: StateLimits { sessions: 1_000, bindings: 1_000, ..StateLimits::default() },
        subscribers: crate::nat::SubscriberPolicy::new(Config::<I>::SUBSCRIBER_BITS),
    }
}

/// An engine with a clock and counters.
struct Harness<I: InsideKey> {
    engine: Engine<I>,
    now: Instant,
    counters: Counters,
}

impl<I: InsideKey> Harness<I> {
    fn new(config: &Config<I>) -> Self {
        let engine = Engine::new(config, (WorkerId(0), 1), [5, 6], [7, 8]);
        Self { engine, now: Instant::from_secs(1_000), counters: Counters::default() }
    }

    fn decide(&mut self, mut probe: Probe<I>) -> Result<Flow<I>, DropReason> {
        self.engine.warm(&mut probe);
        let packet = Packet { length: 100, transport_at: 20, ..Packet::EMPTY };
        let arrival = Plain(packet);
        let policy = AllBut(Ipv4Addr::new(240, 0, 0, 1));
        let (engine, now, counters) = (&mut self.engine, self.now, &mut self.counters);
        match probe.side {
            Side::Inside(inside) => engine.outbound(&arrival, (inside, &probe, now), &policy, counters),
            Side::Outside(outside) => engine.inbound(&arrival, (outside, &probe, now), &policy, counters),
            Side::Neither => panic!("the packet has a five-tuple"),
        }
    }

    fn out(
        &mut self,
        protocol: NatProtocol,
        inside: I,
        remote: Endpoint4,
        flags: u8,
    ) -> Result<Endpoint4, DropReason> {
        let mut probe = Probe::EMPTY;
        let ports = Ports { protocol, from: inside.port(), to: remote.port, flags };
        self.engine.look_inside(Inside(inside), remote, ports, &mut probe);
        match self.decide(probe)? {
            Flow::Outward { outside, remote: to, is_hairpin } => {
                assert_eq!(to.address, remote.address);
                assert_eq!(is_hairpin, self.engine.owns_outside(remote.address));
                Ok(outside.0)
            }
            other => panic!("{other:?}"),
        }
    }

    /// `None`: it is held.
    fn back(
        &mut self,
        protocol: NatProtocol,
        outside: Endpoint4,
        remote: Endpoint4,
        flags: u8,
    ) -> Result<Option<I>, DropReason> {
        let mut probe = Probe::EMPTY;
        let ports = Ports { protocol, from: remote.port, to: outside.port, flags };
        self.engine.look_outside(Outside(outside), remote, ports, &mut probe);
        match self.decide(probe)? {
            Flow::Inward { inside, remote: from } => {
                assert_eq!(from.address, remote.address);
                Ok(Some(inside.0))
            }
            Flow::Held => {
                self.counters.held += 1;
                Ok(None)
            }
            Flow::Outward { .. } => panic!("it came from outside"),
        }
    }

    fn udp(&mut self, inside: I, remote: Endpoint4) -> Result<Endpoint4, DropReason> {
        self.out(NatProtocol::Udp, inside, remote, 0)
    }

    fn udp_back(&mut self, outside: Endpoint4, remote: Endpoint4) -> Result<Option<I>, DropReason> {
        self.back(NatProtocol::Udp, outside, remote, 0)
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.engine.expire(self.now, usize::MAX, &mut self.counters, |_| ());
    }

    fn states(&self) -> Vec<&'static str> {
        let mut rows = Vec::new();
        assert_eq!(self.engine.sessions(0, u32::MAX, &Selection::default(), self.now, &mut rows), None);
        rows.iter().map(|row| row.state).collect()
    }
}

/// What holds for inside endpoints of every kind: `one` and `other` are endpoints of different hosts.
fn behaves<I: InsideKey + Debug>(one: I, other: I) {
    let (server, stranger) = (e4(SERVER, 53), e4(STRANGER, 53));
    let mut bench = Harness::new(&config());

    // Mapping: the same for every remote, another for another host; it leads back.
    let outside = bench.udp(one, server).unwrap();
    assert_eq!(bench.udp(one, stranger), Ok(outside));
    let others = bench.udp(other, server).unwrap();
    assert_ne!(outside, others);
    assert_eq!(bench.udp_back(outside, server), Ok(Some(one)));
    assert_eq!(bench.udp_back(others, server), Ok(Some(other)));
    assert_eq!((bench.counters.bindings_made, bench.counters.sessions_made), (2, 3));

    // Filtering: any remote host may use a binding, none an endpoint without one; an echo's identifier is mapped like a port.
    assert_eq!(bench.udp_back(outside, e4(STRANGER, 9)), Ok(Some(one)));
    let unused = Endpoint4::new(outside.address, outside.port ^ 0x4000);
    assert_eq!(bench.udp_back(unused, server), Err(DropReason::NoBinding));
    let echo = bench.out(NatProtocol::Icmp, one, e4(SERVER, 0), 0).unwrap();
    assert_eq!(bench.back(NatProtocol::Icmp, echo, e4(SERVER, 0), 0), Ok(Some(one)));
    assert_eq!(bench.udp(one, e4("240.0.0.1", 53)), Err(DropReason::MartianDestination));

    // A hairpin: seen from outside at both ends.
    assert!(bench.engine.owns_outside(others.address));
    assert_eq!(bench.udp(one, others), Ok(outside));
    assert_eq!(bench.udp_back(others, outside), Ok(Some(other)));

    // Errors are about the sender of the packet.
    assert_eq!(bench.engine.error_from_inside(NatProtocol::Udp, Inside(one), server), Ok(Outside(outside)));
    let about_another = bench.engine.error_from_inside(NatProtocol::Udp, Inside(one), e4(SERVER, 54));
    assert_eq!(about_another, Err(DropReason::NoSessionForError));
    let inward = bench.engine.error_from_outside(NatProtocol::Udp, Outside(outside), server);
    assert_eq!(inward, Ok(Inside(one)));

    // Expiry: all of it is forgotten, and what comes then finds nothing.
    bench.wait(UDP_DEFAULT + Duration::from_secs(2));
    assert_eq!((bench.engine.occupancy().bindings, bench.engine.occupancy().sessions), (0, 0));
    assert_eq!(bench.udp_back(outside, server), Err(DropReason::NoBinding));
}

/// TCP's states are those of the two sides.
fn tcp<I: InsideKey>(one: I) {
    let mut bench = Harness::new(&config());
    let server = e4(SERVER, 80);
    let outside = bench.out(NatProtocol::Tcp, one, server, SYN).unwrap();
    assert_eq!(bench.states(), ["inside init"]);
    assert_eq!(bench.back(NatProtocol::Tcp, outside, server, SYN | ACK), Ok(Some(one)));
    assert_eq!(bench.states(), ["established"]);
    bench.back(NatProtocol::Tcp, outside, server, FIN | ACK).unwrap();
    assert_eq!(bench.states(), ["fin from outside"]);
    bench.out(NatProtocol::Tcp, one, server, FIN | ACK).unwrap();
    assert_eq!(bench.states(), ["fin from both"]);
    bench.wait(TCP_TRANS + Duration::from_secs(2));
    assert!(bench.states().is_empty());

    let outside = bench.out(NatProtocol::Tcp, one, server, SYN).unwrap();
    bench.back(NatProtocol::Tcp, outside, server, SYN | ACK).unwrap();
    bench.wait(TCP_EST + Duration::from_secs(2));
    assert_eq!(bench.states(), ["trans"], "and its inside end is probed");
    // Without a binding an inbound SYN waits for one from inside.
    let unused = Endpoint4::new(outside.address, outside.port ^ 0x4000);
    assert_eq!(bench.back(NatProtocol::Tcp, unused, server, SYN), Ok(None));
}

#[test]
fn nat44_maps_filters_hairpins_and_forgets() {
    behaves(e4("10.0.0.1", 5_000), e4("10.0.0.2", 5_000));
    tcp(e4("10.0.0.1", 5_000));
}

#[test]
fn ds_lite_maps_filters_hairpins_and_forgets() {
    behaves(behind(1, 5_000), behind(2, 5_000));
    tcp(behind(1, 5_000));
}

#[test]
fn the_same_endpoint_in_two_realms_has_a_binding_in_each() {
    let outside: Vec<Endpoint4> = ["192.0.2.1/32", "192.0.2.2/32"]
        .into_iter()
        .map(|pool| {
            let pool = PoolConfig { addresses: vec![pool.parse().unwrap()], ports: vec![2_000..=2_000] };
            let mut realm = Harness::new(&Config { pool, ..config() });
            let outside = realm.udp(e4("10.0.0.1", 5_000), e4(SERVER, 53)).unwrap();
            assert_eq!(realm.udp_back(outside, e4(SERVER, 53)), Ok(Some(e4("10.0.0.1", 5_000))));
            outside
        })
        .collect();
    assert_eq!(outside, [e4("192.0.2.1", 2_000), e4("192.0.2.2", 2_000)]);
}

#[test]
fn with_address_dependent_filtering_a_stranger_is_kept_out_of_a_softwire() {
    let mut bench = Harness::new(&Config { filtering: Filtering::AddressDependent, ..config() });
    let outside = bench.udp(behind(1, 5_000), e4(SERVER, 53)).unwrap();
    assert_eq!(bench.udp_back(outside, e4(STRANGER, 53)), Err(DropReason::Filtered));
    assert_eq!(bench.udp_back(outside, e4(SERVER, 54)), Ok(Some(behind(1, 5_000))));
}

#[test]
fn a_softwire_has_one_limit_whatever_addresses_are_behind_it() {
    let mut bench = Harness::new(&Config {
        limits: StateLimits {
            of_subscriber: SubscriberLimits { bindings: 2, ..SubscriberLimits::NONE },
            ..StateLimits::default()
        },
        ..config()
    });
    name_softwires(&mut bench);
    let other = Softwire { id: SoftwireId(1), endpoint: e4("10.0.0.2", 5_000) };
    bench.udp(behind(1, 5_000), e4(SERVER, 53)).unwrap();
    bench.udp(other, e4(SERVER, 53)).unwrap();
    assert_eq!(bench.udp(behind(1, 5_001), e4(SERVER, 53)), Err(DropReason::SubscriberLimit));
    assert!(bench.udp(behind(2, 5_000), e4(SERVER, 53)).is_ok());
}

#[test]
fn a_subscriber_of_nat44_has_a_prefix_of_the_configured_length() {
    let mut bench = Harness::new(&Config {
        limits: StateLimits {
            of_subscriber: SubscriberLimits { bindings: 1, ..SubscriberLimits::NONE },
            ..StateLimits::default()
        },
        subscribers: crate::nat::SubscriberPolicy::new(24),
        ..config::<Endpoint4>()
    });
    bench.udp(e4("10.0.0.1", 5_000), e4(SERVER, 53)).unwrap();
    assert_eq!(bench.udp(e4("10.0.0.2", 5_000), e4(SERVER, 53)), Err(DropReason::SubscriberLimit));
    assert!(bench.udp(e4("10.0.1.1", 5_000), e4(SERVER, 53)).is_ok());
}

#[test]
fn a_host_with_an_ipv4_address_is_told_that_no_binding_can_be_made() {
    // RFC 6888 REQ-11 B: Destination Unreachable, code 1.
    let refusals = [
        (
            DropReason::SubscriberLimit,
            Config {
                limits: StateLimits {
                    of_subscriber: SubscriberLimits { bindings: 1, ..SubscriberLimits::NONE },
                    ..StateLimits::default()
                },
                ..config()
            },
        ),
        (
            DropReason::BindingTableFull,
            Config { limits: StateLimits { bindings: 1, ..StateLimits::default() }, ..config() },
        ),
        (
            DropReason::SessionTableFull,
            Config { limits: StateLimits { sessions: 1, ..StateLimits::default() }, ..config() },
        ),
        (DropReason::PortPoolEmpty, {
            let pool =
                PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![2_000..=2_000] };
            Config { pool, ..config() }
        }),
    ];
    for (reason, config) in refusals {
        let mut bench = Harness::new(&config);
        bench.udp(e4("10.0.0.1", 5_000), e4(SERVER, 53)).unwrap();
        assert_eq!(bench.udp(e4("10.0.0.1", 5_001), e4(SERVER, 53)), Err(reason));
        assert_eq!(reason.answer().icmpv4, Some((3, 1)), "{reason:?}");
    }
}

#[test]
fn a_static_binding_of_a_softwire_belongs_to_it_alone() {
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(behind(1, 53)),
        outside: Outside(e4("192.0.2.1", 53)),
    };
    let again = StaticBinding { inside: Inside(behind(2, 53)), ..binding };
    let config = Config { static_bindings: vec![binding, again], ..config() };
    assert_eq!(config.faults(), [(1, StaticBindingError::OutsideInUse)]);
    let mut bench = Harness::new(&config);
    assert_eq!(bench.udp_back(e4("192.0.2.1", 53), e4(STRANGER, 9)), Ok(Some(behind(1, 53))));
    assert_eq!(bench.udp(behind(1, 53), e4(SERVER, 53)), Ok(e4("192.0.2.1", 53)));
    assert_ne!(bench.udp(behind(2, 53), e4(SERVER, 53)), Ok(e4("192.0.2.1", 53)));
}

#[test]
fn the_rows_of_one_softwire_can_be_selected() {
    let mut bench = Harness::new(&config());
    name_softwires(&mut bench);
    bench.udp(behind(1, 5_000), e4(SERVER, 53)).unwrap();
    bench.udp(behind(2, 5_000), e4(SERVER, 53)).unwrap();
    let mut rows = Vec::new();
    let selection = Selection {
        inside: SoftwireNetwork::Remote("2001:db8:0:2::/64".parse().unwrap()).into(),
        ..Selection::default()
    };
    assert_eq!(bench.engine.bindings(0, 10, &selection, &mut rows), None);
    assert_eq!(rows.iter().map(|row| row.inside.0).collect::<Vec<_>>(), [behind(2, 5_000)]);
}

#[test]
fn another_process_carries_the_sessions_of_softwires_on() {
    let mut old = Harness::new(&config());
    let outside = old.udp(behind(7, 5_000), e4(SERVER, 53)).unwrap();
    let mut saved = Vec::new();
    assert_eq!(old.engine.export(0, 10, old.now, &mut saved), None);
    let mut new = Harness::new(&config());
    let policy = AllBut(Ipv4Addr::BROADCAST);
    for one in &saved {
        assert_eq!(new.engine.restore(one, &policy, new.now, &mut new.counters), Ok(()));
    }
    assert_eq!(new.udp(behind(7, 5_000), e4(STRANGER, 53)), Ok(outside));
    assert_eq!(new.udp_back(outside, e4(SERVER, 53)), Ok(Some(behind(7, 5_000))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Hosts with one address behind a few softwires send and time passes: no two inside endpoints ever share an outside one, each
    /// keeps its own as long as it has a session, and what comes back goes to whom it is for.
    #[test]
    fn no_two_softwires_ever_share_a_binding(
        steps in prop::collection::vec((0u8..8, 0u32..4, 0u16..6, 0u16..3, 0u64..200), 1..120)
    ) {
        let pool = PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![2_000..=2_020] };
        let mut bench = Harness::new(&Config { pool, ..config() });
        // Inside endpoint to its outside endpoint and the second of its last packet.
        let mut model: BTreeMap<Softwire, (Endpoint4, u64)> = BTreeMap::new();
        let mut second = 1_000;
        for (kind, softwire, port, server, pass) in steps {
            if kind == 0 {
                second += pass;
                bench.wait(Duration::from_secs(pass));
                model.retain(|_, (_, last)| second < *last + UDP_DEFAULT.as_secs());
                continue;
            }
            let (inside, server) = (behind(softwire, 5_000 + port), e4(SERVER, 53 + server));
            match bench.udp(inside, server) {
                Ok(outside) => {
                    let is_anothers = model.iter().any(|(of, (held, _))| *of != inside && *held == outside);
                    prop_assert!(!is_anothers, "{outside} is given twice");
                    if let Some((held, _)) = model.get(&inside) {
                        prop_assert_eq!(*held, outside);
                    }
                    model.insert(inside, (outside, second));
                    prop_assert_eq!(bench.udp_back(outside, server), Ok(Some(inside)));
                }
                Err(reason) => {
                    prop_assert_eq!(reason, DropReason::PortPoolEmpty);
                    prop_assert!(model.len() >= 21, "{} of 21 ports are in use", model.len());
                }
            }
        }
        prop_assert_eq!(bench.engine.occupancy().bindings as usize, model.len());
    }
}
