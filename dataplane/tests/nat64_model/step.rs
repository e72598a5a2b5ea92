//! What happens in a run, drawn at random: few hosts, ports and remotes, so that they meet often.

use crate::nat64_model::model::{POOL, SECOND};
use proptest::prelude::*;
use sixway_dataplane::nat::NatProtocol;
use sixway_dataplane::parse::{ACK, FIN, RST, SYN};
use sixway_wire::Endpoint4;
use std::net::{Ipv4Addr, Ipv6Addr};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Out {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        remote: u8,
        remote_port: u16,
        flags: u8,
    },
    In {
        protocol: NatProtocol,
        outside: u8,
        remote: u8,
        remote_port: u16,
        flags: u8,
    },
    ErrorFromOutside {
        protocol: NatProtocol,
        outside: u8,
        remote: u8,
        remote_port: u16,
    },
    ErrorFromInside {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        remote: u8,
        remote_port: u16,
    },
    /// One more packet of a session.
    Again {
        session: u8,
        from_inside: bool,
        flags: u8,
    },
    Wait(u64),
    EndSession(u8),
    EndBinding(u8),
    AddStatic {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        outside: u8,
    },
    RemoveStatic(u8),
}

pub(crate) fn protocol() -> impl Strategy<Value = NatProtocol> {
    prop_oneof![4 => Just(NatProtocol::Tcp), 2 => Just(NatProtocol::Udp), 1 => Just(NatProtocol::Icmp)]
}

pub(crate) fn flags() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => Just(SYN),
        3 => Just(SYN | ACK),
        4 => Just(ACK),
        3 => Just(FIN | ACK),
        2 => Just(RST),
        1 => any::<u8>(),
    ]
}

pub(crate) fn inside_port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(80u16), Just(81), Just(5_000), Just(5_001)]
}

pub(crate) fn remote_port() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(80u16), 1 => Just(1_024)]
}

pub(crate) fn time() -> impl Strategy<Value = u64> {
    let exact = prop_oneof![Just(6u64), Just(60), Just(240), Just(300), Just(7_200), Just(7_440), Just(1)];
    prop_oneof![
        3 => exact.prop_map(|seconds| seconds * SECOND),
        1 => (0..10_000u64).prop_map(|seconds| seconds * SECOND),
        2 => 0..8 * SECOND,
        1 => Just(SECOND - 1),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (host, remote, any_index) = (0u8..3, 0u8..4, any::<u8>());
    prop_oneof![
        10 => (protocol(), host.clone(), inside_port(), remote.clone(), remote_port(), flags()).prop_map(
            |(protocol, host, port, remote, remote_port, flags)| Step::Out { protocol, host, port, remote, remote_port, flags }),
        10 => (protocol(), any_index, remote.clone(), remote_port(), flags()).prop_map(
            |(protocol, outside, remote, remote_port, flags)| Step::In { protocol, outside, remote, remote_port, flags }),
        1 => (protocol(), any::<u8>(), remote.clone(), remote_port()).prop_map(
            |(protocol, outside, remote, remote_port)| Step::ErrorFromOutside { protocol, outside, remote, remote_port }),
        1 => (protocol(), host.clone(), inside_port(), remote, remote_port()).prop_map(
            |(protocol, host, port, remote, remote_port)| Step::ErrorFromInside { protocol, host, port, remote, remote_port }),
        20 => (any::<u8>(), any::<bool>(), flags()).prop_map(
            |(session, from_inside, flags)| Step::Again { session, from_inside, flags }),
        6 => time().prop_map(Step::Wait),
        1 => any::<u8>().prop_map(Step::EndSession),
        1 => any::<u8>().prop_map(Step::EndBinding),
        1 => (protocol(), host, inside_port(), any::<u8>()).prop_map(
            |(protocol, host, port, outside)| Step::AddStatic { protocol, host, port, outside }),
        1 => any::<u8>().prop_map(Step::RemoveStatic),
    ]
}

pub(crate) fn host(number: u8) -> Ipv6Addr {
    let subscriber = u128::from(number % 2) << 64;
    Ipv6Addr::from_bits((0x2001_0db8 << 96) + subscriber + u128::from(number) + 1)
}

/// The third and fourth remote are the pool's own addresses: hairpins.
pub(crate) fn remote(number: u8, port: u16, protocol: NatProtocol) -> Endpoint4 {
    let address = match number {
        0 | 1 => Ipv4Addr::new(203, 0, 113, 1 + number),
        _ => POOL[usize::from(number - 2)],
    };
    Endpoint4::new(address, if protocol == NatProtocol::Icmp { 0 } else { port })
}
