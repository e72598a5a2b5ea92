//! The router advertisement of a server (RFC 4380 §5.3.2).

use crate::neighbour_discovery::{
    HOP_LIMIT, INFINITY, Message, NdOption, PrefixInformation, RouterAdvertisement,
};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::ICMPV6;
use sixway_wire::teredo::{TEREDO_PORT, TeredoInterface};
use sixway_wire::{Endpoint4, IPV6_MIN_MTU, Ipv6Header, Prefix6};

/// The link-local address of a server (RFC 4380 §5.3.2).
pub(super) const fn link_local(server: Ipv4Addr) -> Ipv6Addr {
    let mapped = Endpoint4::new(server, TEREDO_PORT);
    TeredoInterface { flags: 0x8000, mapped }.link_local()
}

/// The advertisement to the sender of a solicitation, as an IPv6 packet.
pub(super) fn advertisement(server: Ipv4Addr, destination: Ipv6Addr) -> Vec<u8> {
    let network = Ipv6Addr::from_bits(0x2001_0000_u128 << 96 | u128::from(server.to_bits()) << 64);
    let prefix = PrefixInformation {
        prefix: Prefix6::holding(network, 64),
        on_link: false,
        autonomous: true,
        valid: INFINITY,
        preferred: INFINITY,
    };
    let advertisement = RouterAdvertisement {
        options: vec![NdOption::Prefix(prefix), NdOption::Mtu(IPV6_MIN_MTU as u32)],
        ..RouterAdvertisement::default()
    };
    let source = link_local(server);
    let message = Message::RouterAdvertisement(advertisement).to_octets(source, destination);
    let header =
        Ipv6Header { hop_limit: HOP_LIMIT, ..Ipv6Header::new(source, destination, ICMPV6, message.len()) };
    let mut packet = header.octets().to_vec();
    packet.extend(message);
    packet
}
