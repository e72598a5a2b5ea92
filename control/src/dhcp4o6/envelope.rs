//! The DHCPv6 messages that carry DHCPv4 (RFC 7341 §6, §7.1), also through relay agents (RFC 8415 §9).
//!
//! ```text
//!      0                   1                   2                   3
//!     |    msg-type   |U|                   flags                   |
//!     |      option-code (87)         |           option-len        |
//!     |                        DHCPv4-message                       |
//! ```

use super::malformed::Malformed;
use core::net::Ipv6Addr;

/// RFC 7341 §6.1.
const DHCPV4_QUERY: u8 = 20;
/// RFC 7341 §6.1.
const DHCPV4_RESPONSE: u8 = 21;
/// RFC 8415 §7.3.
const RELAY_FORW: u8 = 12;
/// RFC 8415 §7.3.
const RELAY_REPL: u8 = 13;
/// RFC 7341 §7.1.
const OPTION_DHCPV4_MSG: u16 = 87;
/// RFC 8415 §21.10.
const OPTION_RELAY_MSG: u16 = 9;
/// RFC 8415 §21.18.
const OPTION_INTERFACE_ID: u16 = 18;
/// RFC 7341 §6.3: the Unicast flag, the first of 24 bits.
const UNICAST: u8 = 0x80;
/// RFC 8415 §7.6: HOP_COUNT_LIMIT.
const HOP_COUNT_LIMIT: usize = 8;
/// Octets in front of a relay message's options.
const RELAY_HEADER: usize = 34;

/// RFC 8415 §7.2: clients listen here.
pub const CLIENT_PORT: u16 = 546;
/// RFC 8415 §7.2: servers and relay agents.
pub const SERVER_PORT: u16 = 547;
/// RFC 8415 §7.1: All_DHCP_Relay_Agents_and_Servers.
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// A relay agent that a query came through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayHop {
    /// hop-count.
    pub hops: u8,
    /// link-address.
    pub link: Ipv6Addr,
    /// peer-address: whom it had the query from.
    pub peer: Ipv6Addr,
    /// The Interface-Id option, which goes back.
    pub interface: Option<Vec<u8>>,
}

/// A DHCPV4-QUERY or DHCPV4-RESPONSE, and the relay agents around it, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Whether it is a response.
    pub is_response: bool,
    /// The Unicast flag of a query (RFC 7341 §8).
    pub is_unicast: bool,
    /// The relay agents.
    pub relays: Vec<RelayHop>,
    /// The DHCPv4 message.
    pub dhcpv4: Vec<u8>,
}

impl Envelope {
    /// A query.
    pub const fn query(dhcpv4: Vec<u8>, is_unicast: bool) -> Self {
        Self { is_response: false, is_unicast, relays: Vec::new(), dhcpv4 }
    }

    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    /// Why it is discarded.
    pub fn parse(mut octets: &[u8]) -> Result<Self, Malformed> {
        let mut relays = Vec::new();
        loop {
            let kind = *octets.first().ok_or(Malformed::Truncated)?;
            match kind {
                RELAY_FORW | RELAY_REPL => {
                    if relays.len() == HOP_COUNT_LIMIT {
                        return Err(Malformed::TooManyRelays);
                    }
                    let (hop, inside) = relay(octets)?;
                    relays.push(hop);
                    octets = inside;
                }
                DHCPV4_QUERY | DHCPV4_RESPONSE => {
                    let flags = *octets.get(1).ok_or(Malformed::Truncated)?;
                    let options = octets.get(4..).ok_or(Malformed::Truncated)?;
                    let mut found = None;
                    for option in Options(options) {
                        let (code, data) = option?;
                        if code == OPTION_DHCPV4_MSG && found.replace(data).is_some() {
                            return Err(Malformed::NoMessage);
                        }
                    }
                    let dhcpv4 = found.ok_or(Malformed::NoMessage)?.to_vec();
                    let is_response = kind == DHCPV4_RESPONSE;
                    // RFC 7341 §6.4: flags of a response are ignored.
                    let is_unicast = !is_response && flags & UNICAST != 0;
                    return Ok(Self { is_response, is_unicast, relays, dhcpv4 });
                }
                other => return Err(Malformed::OtherType(other)),
            }
        }
    }

    /// As the payload of a UDP datagram. Messages are at most 65,535 octets long; ours are shorter.
    pub fn to_octets(&self) -> Vec<u8> {
        let (kind, flags) = match (self.is_response, self.is_unicast) {
            (true, _) => (DHCPV4_RESPONSE, 0),
            (false, true) => (DHCPV4_QUERY, UNICAST),
            (false, false) => (DHCPV4_QUERY, 0),
        };
        let mut octets = vec![kind, flags, 0, 0];
        push(&mut octets, OPTION_DHCPV4_MSG, &self.dhcpv4);
        for hop in self.relays.iter().rev() {
            let kind = if self.is_response { RELAY_REPL } else { RELAY_FORW };
            let mut outer = vec![kind, hop.hops];
            outer.extend(hop.link.octets());
            outer.extend(hop.peer.octets());
            if let Some(interface) = &hop.interface {
                push(&mut outer, OPTION_INTERFACE_ID, interface);
            }
            push(&mut outer, OPTION_RELAY_MSG, &octets);
            octets = outer;
        }
        octets
    }
}

/// A relay message, and the message inside.
fn relay(octets: &[u8]) -> Result<(RelayHop, &[u8]), Malformed> {
    let (Some(header), Some(options)) = (octets.get(..RELAY_HEADER), octets.get(RELAY_HEADER..)) else {
        return Err(Malformed::Truncated);
    };
    let address = |from: usize| -> Result<Ipv6Addr, Malformed> {
        let octets = header.get(from..).and_then(|rest| rest.first_chunk::<16>());
        octets.map(|octets| Ipv6Addr::from(*octets)).ok_or(Malformed::Truncated)
    };
    let (mut inside, mut interface) = (None, None);
    for option in Options(options) {
        match option? {
            (OPTION_RELAY_MSG, data) => inside = Some(data),
            (OPTION_INTERFACE_ID, data) => interface = Some(data.to_vec()),
            (_, _) => {}
        }
    }
    let hop = RelayHop { hops: header[1], link: address(2)?, peer: address(18)?, interface };
    Ok((hop, inside.ok_or(Malformed::NoMessage)?))
}

fn push(octets: &mut Vec<u8>, code: u16, data: &[u8]) {
    octets.extend(code.to_be_bytes());
    octets.extend((data.len() as u16).to_be_bytes());
    octets.extend(data);
}

/// DHCPv6 options, one after the other.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let Some((head, rest)) = self.0.split_first_chunk::<4>() else {
            self.0 = &[];
            return Some(Err(Malformed::Truncated));
        };
        let (code, length) = (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]));
        let Some((data, rest)) = rest.split_at_checked(length.into()) else {
            self.0 = &[];
            return Some(Err(Malformed::Truncated));
        };
        self.0 = rest;
        Some(Ok((code, data)))
    }
}
