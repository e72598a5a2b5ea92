//! DS-Lite's AFTR (RFC 6333, RFC 6908), packet by packet through the whole gateway.

mod addresses;
mod attacks;
mod batches;
mod borders;
mod errors;
mod fragments;
mod gso;
mod model;
mod operating;
mod pcp;
mod sessions;
mod tunnel;
mod workers;

use crate::support;
use crate::support::{Build, Gateway, v4, v6};
use sixway_dataplane::mechanism::ds_lite::DsLiteConfig;
use sixway_dataplane::nat::{PoolConfig, StateLimits};
use sixway_dataplane::translate::Policy;
use std::net::Ipv4Addr;

pub const AFTR: &str = "2001:db8:ffff::1";
pub const OTHER_AFTR: &str = "2001:db8:ffff::2";
pub const B4: &str = "2001:db8:b4:100::1";
pub const NEIGHBOUR: &str = "2001:db8:b4:200::1";
pub const HOST: &str = "10.0.0.5";
pub const SERVER: &str = "203.0.113.1";
pub const STRANGER: &str = "203.0.113.2";
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const ACK: u8 = 16;

/// An AFTR at two addresses for 2001:db8:b4::/48, subscribers with a /56, pool 192.0.2.0/30.
pub fn aftr() -> DsLiteConfig {
    DsLiteConfig {
        limits: StateLimits { sessions: 1_000, bindings: 1_000, ..StateLimits::default() },
        policy: Policy { clamp_mss: false, ..Policy::default() },
        max_softwires: 100,
        ..DsLiteConfig::new(
            vec![AFTR.parse().unwrap(), OTHER_AFTR.parse().unwrap()],
            vec!["2001:db8:b4::/48".parse().unwrap()],
            PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![1..=65_535] },
        )
    }
}

pub fn gateway(edit: impl FnOnce(&mut DsLiteConfig)) -> Gateway {
    support::gateway(|config| {
        let mut aftr = aftr();
        edit(&mut aftr);
        config.others.push(aftr.into());
    })
}

/// An IPv4 packet in a softwire.
pub fn softwire(source: &str, destination: &str, inner: impl Into<Vec<u8>>) -> Build {
    v6(source, destination).protocol(4, &inner.into(), None)
}

/// From a B4 to the AFTR.
pub fn up(b4: &str, inner: impl Into<Vec<u8>>) -> Build {
    softwire(b4, AFTR, inner)
}

/// From the AFTR to a B4.
pub fn down(b4: &str, inner: impl Into<Vec<u8>>) -> Build {
    softwire(AFTR, b4, inner)
}

/// Source address and port (or identifier) of an IPv4 packet without options.
pub fn source(packet: &[u8]) -> (String, u16) {
    assert_eq!(packet[0], 0x45, "{}", support::hex(packet));
    let port_at = if packet[9] == 1 { 24 } else { 20 };
    let address = Ipv4Addr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap());
    (address.to_string(), u16::from_be_bytes([packet[port_at], packet[port_at + 1]]))
}

/// The host behind a B4 sends a datagram to the server; its outside endpoint.
pub fn opened(gateway: &mut Gateway, b4: &str) -> (String, u16) {
    gateway.receives(up(b4, v4(HOST, SERVER).udp(4_001, 53, b"question")));
    let sent = gateway.sent();
    gateway.counted_before();
    source(&sent)
}
