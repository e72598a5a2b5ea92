//! What the senders send: small frames in few or many flows.

use super::frame::{CLIENTS, PORT, ethernet, in_ipv4, udp4, udp6};
use crate::load::Pattern;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Flows where there are few.
pub const FEW: u32 = 1_000;
/// Flows where there are many.
pub const MANY: u32 = 1_000_000;

pub const SITE4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
pub const RELAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SERVER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
pub const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2);
/// A host on the server's link, the last word of whose address the senders write.
pub const NATIVE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 1, 0);
/// The same in the site of 192.0.2.8.
pub const IN_SITE: Ipv6Addr = Ipv6Addr::new(0x2002, 0xc000, 0x208, 0, 0, 0, 1, 0);
/// The server as hosts behind the NAT64 write it, and behind SIIT and TAYGA.
pub const BY_NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xcb00, 0x7102);
pub const BY_PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0xcb00, 0x7102);
/// What SIIT calls the client.
pub const MAPPED: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);
/// Behind which the kernel hides what leaves.
pub const GATEWAY4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// The first of many IPv4 hosts behind the client; the senders write the last 16 bits.
pub const HOSTS4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
/// From where TAYGA takes a client's address.
pub const TAYGAS: Ipv4Addr = Ipv4Addr::new(192, 168, 255, 0);

fn pattern(program: &'static str, frame: Vec<u8>) -> Pattern {
    Pattern { program, frame, flows: FEW, at_random: false, train: None }
}

pub fn to6(destination: Ipv6Addr) -> impl Fn([u8; 6]) -> Pattern + 'static {
    move |door| pattern("frames6", ethernet(door, &udp6(CLIENTS, destination)))
}

/// New flows of these packets, each of 2 to this power.
pub fn new_flows(power: u32, of: impl Fn([u8; 6]) -> Pattern) -> impl Fn([u8; 6]) -> Pattern {
    move |door| Pattern { train: Some(power), ..of(door) }
}

pub fn to4(source: Ipv4Addr, destination: Ipv4Addr) -> impl Fn([u8; 6]) -> Pattern + 'static {
    move |door| pattern("frames4", ethernet(door, &udp4(source, 0, destination, PORT)))
}

/// The many flows, one after the other or at random.
pub fn many(at_random: bool) -> impl Fn([u8; 6]) -> Pattern {
    move |door| Pattern { flows: MANY, at_random, ..to6(BY_NAT64)(door) }
}

pub fn replies(door: [u8; 6]) -> Pattern {
    pattern("replies4", ethernet(door, &udp4(SERVER4, PORT, Ipv4Addr::UNSPECIFIED, 0)))
}

pub fn from_site(door: [u8; 6]) -> Pattern {
    // Six octets more than the smallest: the senders write whole words.
    let mut inner = udp6(IN_SITE, SERVER6);
    inner.extend([0; 4]);
    inner[5] += 4;
    inner[45] += 4;
    // The length counts twice in the checksum, in the pseudo-header and in the header.
    let field = u16::from_be_bytes([inner[46], inner[47]]);
    let sum = sixway_wire::checksum::update(
        field,
        sixway_wire::checksum::Sum::ZERO,
        sixway_wire::checksum::Sum::ZERO.word(8),
    );
    inner[46..48].copy_from_slice(&sum.to_be_bytes());
    pattern("frames41", ethernet(door, &in_ipv4(SITE4, RELAY, &inner)))
}

pub fn to_site(door: [u8; 6]) -> Pattern {
    pattern("frames6", ethernet(door, &udp6(NATIVE, IN_SITE)))
}
