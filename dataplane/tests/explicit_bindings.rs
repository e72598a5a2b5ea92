//! Bindings that inside hosts request (RFC 6887): kept without sessions, given back to what packets made, and filtered.

use crate::support;
use crate::support::{Gateway, v4, v6};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{
    BindingRow, BoundEndpoint, ExplicitBinding, Filtering, Inside, Named, NatProtocol, NotBound, Outside,
    RemoteFilter, Selection, StaticBinding, WantedOutside,
};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const SERVER: &str = "203.0.113.1";
const SYN: u8 = 2;
const POOL: &str = "192.0.2.1";

fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = support::nat44();
        nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

fn named(host: &str, port: u16) -> Named {
    let address = match host.parse().unwrap() {
        std::net::IpAddr::V4(address) => address.to_ipv6_mapped(),
        std::net::IpAddr::V6(address) => address,
    };
    Named { softwire: None, inside: Inside(Endpoint6::new(address, port)) }
}

pub fn wanted(protocol: NatProtocol, host: &str, port: u16, outside: u16) -> ExplicitBinding {
    let Named { softwire, inside } = named(host, port);
    let wanted = WantedOutside { address: None, port: outside, exactly: false };
    ExplicitBinding { protocol, softwire, inside, wanted, filters: Vec::new() }
}

pub fn keep(gateway: &mut Gateway, binding: &ExplicitBinding) -> Result<BoundEndpoint, NotBound> {
    let now = gateway.now;
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    translator.keep_explicit(binding, now, counters)
}

fn release(gateway: &mut Gateway, protocol: NatProtocol, host: &str, port: u16) -> Option<u32> {
    let now = gateway.now;
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    translator.release_explicit(protocol, named(host, port), now, counters)
}

fn rows(gateway: &mut Gateway) -> Vec<BindingRow> {
    let mut rows = Vec::new();
    gateway.engine.stateful_at(0).unwrap().0.bindings(0, u32::MAX, &Selection::default(), &mut rows);
    rows
}

/// A packet is dropped for this reason; its sender may be told.
#[track_caller]
fn refuses(gateway: &mut Gateway, packet: impl Into<Vec<u8>>, reason: DropReason) {
    assert!(!gateway.passes(packet));
    assert_eq!(gateway.last, Verdict::Dropped(reason));
}

fn port(bound: Result<BoundEndpoint, NotBound>) -> u16 {
    let outside = bound.unwrap().outside.0;
    assert_eq!(outside.address, POOL.parse::<Ipv4Addr>().unwrap());
    outside.port
}

#[test]
fn anybody_reaches_an_explicit_binding_without_a_packet_from_inside_whatever_is_filtered() {
    for filtering in [Filtering::EndpointIndependent, Filtering::AddressDependent] {
        let mut gateway = gateway(|nat44| nat44.filtering = filtering);
        let tcp = port(keep(&mut gateway, &wanted(NatProtocol::Tcp, HOST, 80, 8_080)));
        let udp = port(keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 53, 0)));
        assert_eq!(tcp, 8_080);
        gateway.waits(Duration::from_secs(10_000));
        gateway.receives(v4(SERVER, POOL).tcp(4_001, tcp, SYN, b""));
        gateway.sends(v4(SERVER, HOST).hops(63).tcp(4_001, 80, SYN, b""));
        gateway.receives(v4("198.51.100.7", POOL).udp(4_001, udp, b"hello"));
        gateway.sends(v4("198.51.100.7", HOST).hops(63).udp(4_001, 53, b"hello"));
        // From inside the same binding is used (RFC 6887 §11).
        gateway.receives(v4(HOST, "198.51.100.9").udp(53, 9, b"out"));
        gateway.sends(v4(POOL, "198.51.100.9").hops(63).udp(udp, 9, b"out"));
        assert!(rows(&mut gateway).iter().all(|row| row.is_explicit && !row.is_static));
    }
}

#[test]
fn a_binding_ends_with_its_release_or_with_the_sessions_that_keep_it() {
    let mut gateway = gateway(|_| {});
    keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 53, 0)).unwrap();
    assert_eq!(release(&mut gateway, NatProtocol::Udp, HOST, 53), Some(0));
    assert_eq!((rows(&mut gateway).len(), release(&mut gateway, NatProtocol::Udp, HOST, 53)), (0, None));

    // A binding made by packets keeps its outside endpoint, and does not change.
    gateway.receives(v4(HOST, SERVER).udp(5_000, 53, b""));
    gateway.sent();
    let before = rows(&mut gateway)[0].outside.0;
    let bound = keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 5_000, 9_999)).unwrap();
    assert_eq!((bound.outside.0, bound.used_for > 200), (before, true));
    let left = release(&mut gateway, NatProtocol::Udp, HOST, 5_000).unwrap();
    assert!((200..=300).contains(&left), "{left}");
    assert_eq!(rows(&mut gateway).len(), 1);
    gateway.waits(Duration::from_secs(400));
    assert_eq!(rows(&mut gateway).len(), 0);
}

#[test]
fn the_wanted_endpoint_is_given_if_it_is_free_and_nobody_elses() {
    let mut gateway = gateway(|_| {});
    let exactly = |host, port, outside| {
        let mut binding = wanted(NatProtocol::Tcp, host, port, outside);
        binding.wanted.exactly = true;
        binding
    };
    assert_eq!(port(keep(&mut gateway, &exactly(HOST, 80, 8_080))), 8_080);
    assert_eq!(keep(&mut gateway, &exactly(OTHER, 80, 8_080)), Err(NotBound::OutsideInUse));
    assert_ne!(port(keep(&mut gateway, &wanted(NatProtocol::Tcp, OTHER, 80, 8_080))), 8_080);
    assert_eq!(keep(&mut gateway, &exactly(HOST, 80, 8_081)), Err(NotBound::OutsideInUse));
    let mut elsewhere = exactly(HOST, 81, 8_082);
    elsewhere.wanted.address = Some("192.0.2.99".parse().unwrap());
    assert_eq!(keep(&mut gateway, &elsewhere), Err(NotBound::OutsideInUse));
    assert_eq!(keep(&mut gateway, &exactly("172.16.0.1", 80, 8_090)), Err(NotBound::NotInside));
    assert_eq!(rows(&mut gateway).len(), 2);
}

#[test]
fn a_port_that_was_released_rests_and_its_owner_may_have_it_again() {
    let mut gateway = gateway(|_| {});
    for protocol in [NatProtocol::Tcp, NatProtocol::Udp] {
        let mut binding = wanted(protocol, HOST, 80, 8_080);
        binding.wanted.exactly = true;
        keep(&mut gateway, &binding).unwrap();
        release(&mut gateway, protocol, HOST, 80);
        let mut thief = wanted(protocol, OTHER, 80, 8_080);
        thief.wanted.exactly = true;
        assert_eq!(keep(&mut gateway, &thief), Err(NotBound::OutsideInUse), "RFC 6887 §15");
        assert_eq!(port(keep(&mut gateway, &binding)), 8_080);
        release(&mut gateway, protocol, HOST, 80);
        gateway.waits(Duration::from_secs(500));
        assert_eq!(port(keep(&mut gateway, &thief)), 8_080);
    }
}

#[test]
fn explicit_bindings_count_to_the_limits_of_their_subscriber() {
    let mut gateway = gateway(|nat44| nat44.limits.of_subscriber.bindings = 3);
    for inside in 1..=3 {
        keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, inside, 0)).unwrap();
    }
    assert_eq!(keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 4, 0)), Err(NotBound::SubscriberLimit));
    assert_eq!(keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 4, 9_000)), Err(NotBound::SubscriberLimit));
    refuses(&mut gateway, v4(HOST, SERVER).udp(9, 53, b""), DropReason::SubscriberLimit);
    keep(&mut gateway, &wanted(NatProtocol::Udp, OTHER, 4, 0)).unwrap();
    // To keep one that there is takes nothing more.
    keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 3, 0)).unwrap();
}

#[test]
fn filters_say_who_may_send_until_they_are_removed() {
    for filtering in [Filtering::EndpointIndependent, Filtering::AddressDependent] {
        let mut gateway = gateway(|nat44| nat44.filtering = filtering);
        let mut binding = wanted(NatProtocol::Udp, HOST, 53, 0);
        binding.filters = vec![
            RemoteFilter { remote: "203.0.113.0/24".parse().unwrap(), port: 0 },
            RemoteFilter { remote: "198.51.100.7/32".parse().unwrap(), port: 7 },
        ];
        let udp = port(keep(&mut gateway, &binding));
        assert!(gateway.passes(v4(SERVER, POOL).udp(4_001, udp, b"hello")));
        assert!(gateway.passes(v4("198.51.100.7", POOL).udp(7, udp, b"hello")));
        refuses(&mut gateway, v4("198.51.100.7", POOL).udp(8, udp, b"hello"), DropReason::Filtered);
        refuses(&mut gateway, v4("198.51.100.8", POOL).udp(7, udp, b"hello"), DropReason::Filtered);
        binding.filters.clear();
        keep(&mut gateway, &binding).unwrap();
        assert!(gateway.passes(v4("198.51.100.8", POOL).udp(7, udp, b"hello")));
    }
}

/// Sessions keep the binding. Who may send is decided as for any other binding again.
#[test]
fn filters_end_with_the_request() {
    let mut gateway = gateway(|_| {});
    let mut binding = wanted(NatProtocol::Udp, HOST, 53, 0);
    binding.filters = vec![RemoteFilter { remote: "203.0.113.0/24".parse().unwrap(), port: 0 }];
    let udp = port(keep(&mut gateway, &binding));
    assert!(gateway.passes(v4(HOST, SERVER).udp(53, 4_001, b"hello")));
    refuses(&mut gateway, v4("198.51.100.7", POOL).udp(7, udp, b"hello"), DropReason::Filtered);
    release(&mut gateway, NatProtocol::Udp, HOST, 53).unwrap();
    assert!(gateway.passes(v4("198.51.100.7", POOL).udp(7, udp, b"hello")));
}

#[test]
fn a_session_is_opened_by_request_as_by_a_packet() {
    let mut gateway = gateway(|nat44| nat44.filtering = Filtering::AddressDependent);
    let remote = Endpoint4::new(SERVER.parse().unwrap(), 53);
    let now = gateway.now;
    let open = |gateway: &mut Gateway, host, outside| {
        let wanted = WantedOutside { address: None, port: outside, exactly: true };
        let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
        translator.open_by_request((NatProtocol::Udp, named(host, 5_000), remote), wanted, now, counters)
    };
    let (outside, lives) = open(&mut gateway, HOST, 9_000).unwrap();
    assert_eq!((outside.0.port, lives), (9_000, 300));
    assert_eq!(open(&mut gateway, HOST, 0).unwrap().0, outside, "it is there");
    assert_eq!(open(&mut gateway, OTHER, 9_000), Err(NotBound::OutsideInUse));
    let row = rows(&mut gateway)[0];
    assert!(!row.is_explicit && row.sessions == 1);
    gateway.receives(v4(SERVER, POOL).udp(53, 9_000, b"answer"));
    gateway.sends(v4(SERVER, HOST).hops(63).udp(53, 5_000, b"answer"));
    refuses(&mut gateway, v4("198.51.100.8", POOL).udp(53, 9_000, b"answer"), DropReason::Filtered);
}

#[test]
fn a_host_of_a_nat64_has_explicit_bindings_too() {
    let mut gateway = support::gateway(|config| config.nat64.push(support::nat64()));
    let bound = keep(&mut gateway, &wanted(NatProtocol::Tcp, "2001:db8:1::1", 80, 0)).unwrap();
    let outside = bound.outside.0;
    gateway.receives(v4("203.0.113.2", &outside.address.to_string()).tcp(4_001, outside.port, SYN, b""));
    gateway.sends(v6("64:ff9b::203.0.113.2", "2001:db8:1::1").hops(63).tcp(4_001, 80, SYN, b""));
}

#[test]
fn a_binding_that_the_operator_ends_is_gone_with_its_filters() {
    let mut gateway = gateway(|_| {});
    let mut binding = wanted(NatProtocol::Udp, HOST, 53, 9_000);
    binding.filters = vec![RemoteFilter { remote: "203.0.113.0/24".parse().unwrap(), port: 0 }];
    let outside = keep(&mut gateway, &binding).unwrap().outside;
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    assert_eq!(translator.end_binding(NatProtocol::Udp, outside, 16, counters), Some(true));
    assert_eq!(release(&mut gateway, NatProtocol::Udp, HOST, 53), None);
    // Whoever has its place in the table has no filters.
    let other = port(keep(&mut gateway, &wanted(NatProtocol::Udp, OTHER, 53, 0)));
    assert!(gateway.passes(v4("198.51.100.8", POOL).udp(7, other, b"hello")));
}

/// RFC 6887 §15: the host has no longer its address, and the next one must not get what strangers send to it.
#[test]
fn the_bindings_of_a_host_end_together_with_their_sessions_and_no_others() {
    let mut gateway = gateway(|_| {});
    let udp = port(keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 53, 0)));
    for remote in 0..100 {
        gateway.receives(v4(HOST, SERVER).udp(53, 1_000 + remote, b""));
        gateway.sent();
        gateway.receives(v4(HOST, SERVER).tcp(2_000 + remote, 443, SYN, b""));
        gateway.sent();
    }
    let gre = |source: &str, destination: &str| {
        v4(source, destination).protocol(47, &[0, 0, 8, 0, 0x45, 0, 0, 0], None)
    };
    for (host, remote) in [(HOST, SERVER), (OTHER, "203.0.113.9")] {
        gateway.receives(gre(host, remote));
        gateway.sent();
    }
    let other = port(keep(&mut gateway, &wanted(NatProtocol::Udp, OTHER, 53, 0)));
    let now = gateway.now;
    let end = |gateway: &mut Gateway| {
        let address = named(HOST, 0).inside.0.address;
        let (mut from, mut steps) = (Some(0), 0);
        while let Some(place) = from {
            let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
            from = translator.end_bindings_of(address, place, now, counters);
            steps += 1;
            assert!(steps < 100, "it comes to an end");
        }
        steps
    };
    assert!(end(&mut gateway) > 1, "packets are not kept waiting by 200 sessions");
    let left: Vec<_> = rows(&mut gateway).iter().map(|row| row.outside.0.port).collect();
    assert_eq!(left, [other]);
    refuses(&mut gateway, v4(SERVER, POOL).udp(1_000, udp, b"late"), DropReason::NoBinding);
    assert!(gateway.passes(v4(SERVER, POOL).udp(1_000, other, b"hello")));
    assert!(!gateway.passes(gre(SERVER, POOL)) && gateway.passes(gre("203.0.113.9", POOL)));
    assert!(end(&mut gateway) <= 2, "there is nothing left");
}

fn keep_pair(gateway: &mut Gateway, binding: &ExplicitBinding) -> Result<BoundEndpoint, NotBound> {
    let now = gateway.now;
    let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
    translator.keep_with_companion(binding, now, counters)
}

fn exactly(protocol: NatProtocol, host: &str, outside: u16) -> ExplicitBinding {
    let mut binding = wanted(protocol, host, outside, outside);
    binding.wanted.exactly = true;
    binding
}

/// RFC 6886 §3.3: the companion port is reserved for the same client.
#[test]
fn the_companion_of_a_port_is_its_hosts_until_the_binding_ends() {
    use NatProtocol::{Tcp, Udp};
    let mut gateway = gateway(|_| {});
    assert_eq!(port(keep_pair(&mut gateway, &wanted(Tcp, HOST, 80, 8_080))), 8_080);
    assert_eq!(rows(&mut gateway).len(), 1, "no other mapping was made");
    assert_eq!(keep(&mut gateway, &exactly(Udp, OTHER, 8_080)), Err(NotBound::OutsideInUse));
    // Its host gets it by request. When that has ended, also after its time in quarantine, it is kept again.
    for _ in 0..2 {
        assert_eq!(port(keep(&mut gateway, &exactly(Udp, HOST, 8_080))), 8_080);
        assert_eq!(release(&mut gateway, Udp, HOST, 8_080), Some(0));
        assert_eq!(keep(&mut gateway, &exactly(Udp, OTHER, 8_080)), Err(NotBound::OutsideInUse));
        gateway.waits(Duration::from_secs(1_000));
        assert_eq!(keep(&mut gateway, &exactly(Udp, OTHER, 8_080)), Err(NotBound::OutsideInUse));
    }
    // A request again keeps it, and so does one that makes the other port a pair as well.
    keep_pair(&mut gateway, &wanted(Tcp, HOST, 80, 0)).unwrap();
    keep_pair(&mut gateway, &exactly(Udp, HOST, 8_080)).unwrap();
    release(&mut gateway, Tcp, HOST, 80);
    gateway.waits(Duration::from_secs(1_000));
    assert_eq!(keep(&mut gateway, &exactly(Tcp, OTHER, 8_080)), Err(NotBound::OutsideInUse));
    // With the last of both, both are free.
    release(&mut gateway, Udp, HOST, 8_080);
    gateway.waits(Duration::from_secs(1_000));
    for protocol in [Tcp, Udp] {
        assert_eq!(port(keep(&mut gateway, &exactly(protocol, OTHER, 8_080))), 8_080);
    }
}

/// Packets of other hosts make bindings as well.
#[test]
fn no_packet_of_another_host_takes_the_companion_of_a_port() {
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![2_000..=2_063]);
    let tcp: Vec<_> = (0..20)
        .map(|number| port(keep_pair(&mut gateway, &wanted(NatProtocol::Tcp, HOST, 80 + number, 0))))
        .collect();
    for number in 0..64 {
        let _ = gateway.passes(v4(OTHER, SERVER).udp(5_000 + number, 53, b""));
    }
    let udp: Vec<_> = rows(&mut gateway)
        .iter()
        .filter(|row| row.protocol == NatProtocol::Udp)
        .map(|row| row.outside.0.port)
        .collect();
    assert!(udp.len() > 20, "{}", udp.len());
    assert!(udp.iter().all(|port| !tcp.contains(port)), "{tcp:?} {udp:?}");
    // And no port is given whose companion is another's by then.
    for number in 0..20 {
        match keep_pair(&mut gateway, &wanted(NatProtocol::Tcp, HOST, 200 + number, 0)) {
            Ok(bound) => assert!(!udp.contains(&bound.outside.0.port), "{bound:?}"),
            Err(reason) => {
                assert!(matches!(reason, NotBound::Full | NotBound::SubscriberLimit), "{reason:?}")
            }
        }
    }
}

/// Otherwise the end of the host's mapping would give the administrator's port to a third one.
#[test]
fn a_companion_that_the_administrator_gives_to_another_host_is_given_once() {
    use NatProtocol::{Tcp, Udp};
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![8_080..=8_081]);
    assert_eq!(port(keep_pair(&mut gateway, &wanted(Tcp, HOST, 80, 8_080))), 8_080);
    let inside = named(OTHER, 53).inside;
    let outside = Outside(Endpoint4::new(POOL.parse().unwrap(), 8_080));
    let door = StaticBinding { protocol: Udp, softwire: None, inside, outside };
    assert_eq!(gateway.engine.stateful_at(0).unwrap().0.add_static(&door), Ok(()));
    release(&mut gateway, Tcp, HOST, 80);
    gateway.waits(Duration::from_secs(1_000));
    for number in 0..8 {
        let _ = gateway.passes(v4("10.0.0.3", SERVER).udp(5_000 + number, 53, b""));
    }
    let owners = rows(&mut gateway).into_iter().filter(|row| (row.protocol, row.outside) == (Udp, outside));
    assert_eq!(owners.map(|row| row.inside).collect::<Vec<_>>(), [inside]);
}

#[test]
fn a_binding_that_exists_keeps_its_port_although_its_companion_is_anothers() {
    use NatProtocol::{Tcp, Udp};
    let mut gateway = gateway(|_| {});
    gateway.receives(v4(HOST, SERVER).tcp(5_000, 443, SYN, b""));
    gateway.sent();
    let outside = rows(&mut gateway)[0].outside.0.port;
    keep(&mut gateway, &exactly(Udp, OTHER, outside)).unwrap();
    let mut same = wanted(Tcp, HOST, 5_000, 0);
    assert_eq!(port(keep_pair(&mut gateway, &same)), outside);
    assert_eq!(port(keep(&mut gateway, &exactly(Udp, OTHER, outside))), outside, "it stays the other's");
    // A new one has another port, or none if it wants this one.
    release(&mut gateway, Tcp, HOST, 5_000);
    same.inside = named(HOST, 5_001).inside;
    same.wanted.port = outside;
    assert_ne!(port(keep_pair(&mut gateway, &same)), outside);
    assert_eq!(keep_pair(&mut gateway, &exactly(Tcp, HOST, outside)), Err(NotBound::OutsideInUse));
    // When the other host has gone, the next request keeps it.
    release(&mut gateway, Udp, OTHER, outside);
    gateway.waits(Duration::from_secs(10_000));
    let kept = port(keep_pair(&mut gateway, &exactly(Tcp, HOST, outside)));
    assert_eq!(kept, outside);
    assert_eq!(keep(&mut gateway, &exactly(Udp, OTHER, outside)), Err(NotBound::OutsideInUse));
}

/// RFC 6886 §3.4: whoever deletes all mappings learns whether some cannot be deleted.
#[test]
fn a_host_with_a_static_binding_is_known_by_its_protocol() {
    let mut gateway = gateway(|nat44| {
        let binding = StaticBinding {
            protocol: NatProtocol::Tcp,
            softwire: None,
            inside: Inside(Endpoint4::new(HOST.parse().unwrap(), 22)),
            outside: Outside(Endpoint4::new(POOL.parse().unwrap(), 22)),
        };
        nat44.static_bindings.push(binding);
    });
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    let has = |protocol, host| translator.has_static_binding(protocol, named(host, 0).inside.0.address);
    assert!(has(NatProtocol::Tcp, HOST) && !has(NatProtocol::Udp, HOST) && !has(NatProtocol::Tcp, OTHER));
}

/// RFC 6888 REQ-4: a client that requests certain ports has no larger share of them than one that takes any.
#[test]
fn who_wants_certain_ports_leaves_some_for_others() {
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![2_000..=2_999]);
    let is_kept = |port: &u16| keep(&mut gateway, &wanted(NatProtocol::Tcp, HOST, *port, *port)).is_ok();
    let taken = (2_000..3_000).filter(is_kept).count();
    assert!((880..=900).contains(&taken), "{taken}");
    for port in 3_001..=3_020 {
        let bound = keep(&mut gateway, &wanted(NatProtocol::Tcp, OTHER, port, 0));
        assert!(bound.is_ok(), "{port}: {bound:?}");
    }
}

/// RFC 6887 §15.1, §16.2: an inbound mapping MUST NOT have its lifetime reduced by messages of TCP.
#[test]
fn the_end_of_a_connection_does_not_end_an_explicit_binding() {
    const FIN: u8 = 1;
    const RST: u8 = 4;
    const ACK: u8 = 16;
    let mut gateway = gateway(|_| {});
    let tcp = port(keep(&mut gateway, &wanted(NatProtocol::Tcp, HOST, 80, 8_080)));
    for (remote, end) in [(4_001, RST), (4_002, FIN | ACK)] {
        for (from_outside, flags) in [(true, SYN), (false, SYN | ACK), (true, end), (false, end), (true, ACK)]
        {
            match from_outside {
                true => gateway.receives(v4(SERVER, POOL).tcp(remote, tcp, flags, b"")),
                false => gateway.receives(v4(HOST, SERVER).tcp(80, remote, flags, b"")),
            }
            gateway.sent();
        }
        gateway.waits(Duration::from_secs(10_000));
        assert_eq!(rows(&mut gateway).len(), 1);
    }
    gateway.receives(v4("198.51.100.7", POOL).tcp(4_003, tcp, SYN, b""));
    gateway.sends(v4("198.51.100.7", HOST).hops(63).tcp(4_003, 80, SYN, b""));
}

/// RFC 6887 §11: ICMP messages associated with a mapping MUST be forwarded.
#[test]
fn an_icmp_error_about_a_packet_of_an_explicit_binding_reaches_its_host() {
    let mut gateway = gateway(|_| {});
    let udp = port(keep(&mut gateway, &wanted(NatProtocol::Udp, HOST, 53, 0)));
    gateway.receives(v4(SERVER, POOL).udp(4_001, udp, b"question"));
    gateway.sent();
    gateway.receives(v4(HOST, SERVER).udp(53, 4_001, b"answer"));
    let answer = gateway.sent();
    gateway.receives(v4("198.51.100.9", POOL).icmp(support::icmp4(3, 1, [0; 4], &answer[..28])));
    let error = gateway.sent();
    assert_eq!(error[16..20], [10, 0, 0, 1], "{}", support::hex(&error));
    assert_eq!(
        (&error[40..44], &error[48..50]),
        (&[10, 0, 0, 1][..], &[0, 53][..]),
        "{}",
        support::hex(&error)
    );
}
