use super::*;
use crate::nat::ownership::Ownership;
use crate::nat::pool::PoolConfig;
use crate::nat::timeouts::Timeouts;
use crate::nat::{Config, Spread};
use crate::verdict::WorkerId;
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_wire::Endpoint6;

fn config() -> Config {
    Config {
        pool: PoolConfig { addresses: vec!["192.0.2.0/28".parse().unwrap()], ports: vec![1_024..=65_535] },
        filtering: Filtering::EndpointIndependent,
        static_bindings: Vec::new(),
        timeouts: Timeouts::default(),
        limits: StateLimits { bindings: 100, ..StateLimits::default() },
        subscribers: crate::nat::SubscriberPolicy::new(64),
    }
}

/// One address with two ports.
fn narrow() -> Config {
    let pool = PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![2_000..=2_001] };
    Config { pool, ..config() }
}

fn table(config: &Config) -> BindingTable<Endpoint6> {
    let ownership = Ownership::<Ipv6Addr>::striped(1, Spread::new([1, 2], 64));
    let pool = Pool::new(&config.pool, &ownership, WorkerId(0), [1, 2]);
    BindingTable::new(config, pool, [1, 2])
}

/// The endpoint of a subscriber of its own.
fn inside(host: u16, port: u16) -> Inside<Endpoint6> {
    Inside(Endpoint6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, host, 0, 0, 0, host), port))
}

const PLAIN: Clock = Clock::START;

fn bind(
    table: &mut BindingTable<Endpoint6>,
    protocol: NatProtocol,
    inside: Inside<Endpoint6>,
) -> Result<u32, DropReason> {
    table.bind(protocol, inside, PLAIN, &mut Counters::default())
}

fn port(table: &BindingTable<Endpoint6>, slot: u32) -> u16 {
    table.get(slot).outside.0.port
}

#[test]
fn a_host_keeps_its_outside_address_in_every_bib_as_long_as_it_has_bindings() {
    let mut table = table(&config());
    let slots: Vec<u32> = (0..30)
        .map(|n| bind(&mut table, NatProtocol::ALL[usize::from(n % 3)], inside(1, 5_000 + n)).unwrap())
        .collect();
    let address = table.get(slots[0]).outside.0.address;
    assert!(slots.iter().all(|slot| table.get(*slot).outside.0.address == address));
    for slot in slots {
        table.remove(slot, 0, &mut Counters::default());
    }
    assert_eq!((table.len(), table.hosts.len()), (0, 0));
}

#[test]
fn a_full_table_refuses_and_forgets_nothing() {
    let mut table =
        table(&Config { limits: StateLimits { bindings: 2, ..StateLimits::default() }, ..config() });
    let one = bind(&mut table, NatProtocol::Udp, inside(1, 1)).unwrap();
    bind(&mut table, NatProtocol::Udp, inside(2, 1)).unwrap();
    assert_eq!(bind(&mut table, NatProtocol::Udp, inside(3, 1)), Err(DropReason::BindingTableFull));
    assert_eq!(table.find_inside(NatProtocol::Udp, inside(1, 1)), Some(one));
    assert_eq!(table.find_outside(NatProtocol::Udp, table.get(one).outside), Some(one));
}

#[test]
fn a_static_binding_says_why_it_cannot_be_made() {
    let mut table =
        table(&Config { limits: StateLimits { bindings: 2, ..StateLimits::default() }, ..config() });
    let at = |address: &str, port| Outside(Endpoint4::new(address.parse().unwrap(), port));
    let new = |host, outside| StaticBinding {
        protocol: NatProtocol::Tcp,
        softwire: None,
        inside: inside(host, 80),
        outside,
    };
    table.bind_static(&new(1, at("192.0.2.1", 80))).unwrap();
    let refused = |table: &mut BindingTable<Endpoint6>, new| table.bind_static(&new).unwrap_err();
    assert_eq!(refused(&mut table, new(1, at("192.0.2.1", 81))), StaticBindingError::InsideInUse);
    assert_eq!(refused(&mut table, new(2, at("192.0.2.1", 80))), StaticBindingError::OutsideInUse);
    assert_eq!(refused(&mut table, new(2, at("198.51.100.1", 80))), StaticBindingError::NotInPool);
    table.bind_static(&new(2, at("192.0.2.2", 80))).unwrap();
    assert_eq!(refused(&mut table, new(3, at("192.0.2.3", 80))), StaticBindingError::TableFull);
}

/// Binds a port of a host, ends the binding in second 10, and returns the port.
fn use_port(table: &mut BindingTable<Endpoint6>, protocol: NatProtocol, host: u16) -> u16 {
    let slot = bind(table, protocol, inside(host, 6_000)).unwrap();
    let port = port(table, slot);
    table.remove(slot, 10, &mut Counters::default());
    port
}

/// How many ports are in quarantine after each protocol's first binding has ended.
fn quarantined(config: &Config) -> [usize; 3] {
    let mut table = table(config);
    NatProtocol::ALL.map(|protocol| {
        let before = table.quarantined();
        use_port(&mut table, protocol, 1);
        table.quarantined() - before
    })
}

#[test]
fn ports_of_udp_and_icmp_are_quarantined_but_for_filtering_and_a_time_of_zero() {
    assert_eq!(NatProtocol::ALL, [NatProtocol::Tcp, NatProtocol::Udp, NatProtocol::Icmp]);
    assert_eq!(quarantined(&config()), [0, 1, 1]);
    for filtering in [Filtering::AddressDependent, Filtering::AddressAndPortDependent] {
        assert_eq!(quarantined(&Config { filtering, ..config() }), [0; 3]);
    }
    let timeouts = Timeouts { quarantine: Duration::ZERO, ..Timeouts::default() };
    assert_eq!(quarantined(&Config { timeouts, ..config() }), [0; 3]);
    let limits = StateLimits { quarantined_ports: 0, ..config().limits };
    assert_eq!(quarantined(&Config { limits, ..config() }), [0; 3]);
}

#[test]
fn a_port_is_another_subscribers_after_the_quarantine_or_if_no_other_is_free() {
    let mut table = table(&narrow());
    let first = use_port(&mut table, NatProtocol::Udp, 1);
    let mut counters = Counters::default();
    let second = table.bind(NatProtocol::Udp, inside(2, 6_000), PLAIN, &mut counters).unwrap();
    assert_ne!(port(&table, second), first, "the other one is free");
    assert_eq!(counters.quarantines_cut_short, 0);
    let early = table.bind(NatProtocol::Udp, inside(3, 6_000), PLAIN, &mut counters).unwrap();
    assert_eq!((port(&table, early), counters.quarantines_cut_short), (first, 1));
    assert_eq!(
        table.bind(NatProtocol::Udp, inside(4, 6_000), PLAIN, &mut counters),
        Err(DropReason::PortPoolEmpty)
    );
    table.remove(early, 10, &mut counters);
    assert!(!table.end_quarantine(129), "120 s from second 10");
    assert!(table.end_quarantine(130) && !table.end_quarantine(130));
    let slot = table.bind(NatProtocol::Udp, inside(4, 6_000), PLAIN, &mut counters).unwrap();
    assert_eq!((port(&table, slot), counters.quarantines_cut_short), (first, 1), "it is free");
}

#[test]
fn the_same_subscriber_has_its_port_again_and_that_is_not_counted() {
    let mut table = table(&narrow());
    let _others = use_port(&mut table, NatProtocol::Udp, 2);
    let own = use_port(&mut table, NatProtocol::Udp, 1);
    let mut counters = Counters::default();
    let slot = table.bind(NatProtocol::Udp, inside(1, 7_000), PLAIN, &mut counters).unwrap();
    assert_eq!((port(&table, slot), counters.quarantines_cut_short), (own, 0));
}

#[test]
fn a_full_quarantine_frees_the_oldest_port() {
    let limits = StateLimits { quarantined_ports: 2, bindings: 100, ..StateLimits::default() };
    let mut table = table(&Config { limits, ..config() });
    let mut counters = Counters::default();
    let slots: Vec<u32> = (1..=3)
        .map(|host| table.bind(NatProtocol::Udp, inside(host, 6_000), PLAIN, &mut counters).unwrap())
        .collect();
    let outside: Vec<_> = slots.iter().map(|slot| table.get(*slot).outside).collect();
    slots.into_iter().for_each(|slot| table.remove(slot, 10, &mut counters));
    assert_eq!((table.quarantined(), counters.quarantines_cut_short), (2, 1));
    assert!(!table.quarantine(NatProtocol::Udp, outside[0], 20), "there is no room");
    assert!(table.end_quarantine(130));
    assert!(table.quarantine(NatProtocol::Udp, outside[0], 20), "the oldest one is free");
}

#[test]
fn a_static_binding_takes_a_quarantined_port_and_leaves_none() {
    let mut table = table(&narrow());
    let port = use_port(&mut table, NatProtocol::Udp, 1);
    let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
    let binding =
        StaticBinding { protocol: NatProtocol::Udp, softwire: None, inside: inside(2, 80), outside };
    let slot = table.bind_static(&binding).unwrap();
    assert_eq!(table.quarantined(), 0);
    table.remove(slot, 10, &mut Counters::default());
    assert_eq!(table.quarantined(), 0, "the administrator knows what it was");
}
