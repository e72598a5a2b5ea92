//! The four messages: router solicitation and advertisement, neighbour solicitation and advertisement (RFC 4861 §4.1 to §4.4).
//!
//! ```text
//!  Router Advertisement                    Neighbor Solicitation, Advertisement
//! +------+------+---------------+         +------+------+---------------+
//! | 134  |  0   |   Checksum    |         | 135  |  0   |   Checksum    |
//! +------+------+---------------+         +------+------+---------------+
//! | Hop  |MO Prf|Router Lifetime|         |RSO      Reserved            |
//! | Limit|      |               |         +-----------------------------+
//! +------+------+---------------+         |                             |
//! |       Reachable Time        |         +       Target Address        +
//! +-----------------------------+         |                             |
//! |        Retrans Timer        |         +-----------------------------+
//! +-----------------------------+         |  Options …
//! |  Options …
//! ```

use super::address::is_link_local;
use super::malformed::Malformed;
use super::option::NdOption;
use super::packet::{HOP_LIMIT, Received};
use super::preference::Preference;
use core::net::Ipv6Addr;
use sixway_wire::icmpv6::{
    NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, ROUTER_ADVERTISEMENT, ROUTER_SOLICITATION,
};
use sixway_wire::{checksum, protocol};

/// A host solicits advertisements (RFC 4861 §4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterSolicitation {
    /// Its options.
    pub options: Vec<NdOption>,
}

/// A router advertises itself and the link's parameters (RFC 4861 §4.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterAdvertisement {
    /// Cur Hop Limit that hosts should set in their packets; 0: unspecified.
    pub hop_limit: u8,
    /// M: addresses are given by DHCPv6.
    pub managed: bool,
    /// O: other information is given by DHCPv6.
    pub other: bool,
    /// Default Router Preference (RFC 4191 §2.2); Medium where the lifetime is 0.
    pub preference: Preference,
    /// Router Lifetime in seconds; 0: not a default router.
    pub router_lifetime: u16,
    /// Reachable Time in milliseconds; 0: unspecified.
    pub reachable_time: u32,
    /// Retrans Timer in milliseconds; 0: unspecified.
    pub retrans_timer: u32,
    /// Its options.
    pub options: Vec<NdOption>,
}

/// A node solicits a neighbour (RFC 4861 §4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourSolicitation {
    /// The target address.
    pub target: Ipv6Addr,
    /// Its options.
    pub options: Vec<NdOption>,
}

/// A node advertises itself (RFC 4861 §4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourAdvertisement {
    /// R: the sender is a router.
    pub router: bool,
    /// S: the answer to a solicitation.
    pub solicited: bool,
    /// O: replaces the link-layer address that is known.
    pub overrides: bool,
    /// Its target.
    pub target: Ipv6Addr,
    /// Its options.
    pub options: Vec<NdOption>,
}

/// A neighbour discovery message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Type 133.
    RouterSolicitation(RouterSolicitation),
    /// Type 134.
    RouterAdvertisement(RouterAdvertisement),
    /// Type 135.
    NeighbourSolicitation(NeighbourSolicitation),
    /// Type 136.
    NeighbourAdvertisement(NeighbourAdvertisement),
}

impl Message {
    /// Reads a message and makes every check of RFC 4861 §6.1.1, §6.1.2, §7.1.1 or §7.1.2.
    pub fn parse(received: &Received<'_>) -> Result<Self, Malformed> {
        let [kind, code, _, _, ..] = *received.message else { return Err(Malformed::TooShort) };
        if !(ROUTER_SOLICITATION..=NEIGHBOUR_ADVERTISEMENT).contains(&kind) {
            return Err(Malformed::OtherType);
        }
        if received.hop_limit != HOP_LIMIT {
            return Err(Malformed::HopLimit);
        }
        if !received.has_right_checksum() {
            return Err(Malformed::Checksum);
        }
        if code != 0 {
            return Err(Malformed::Code);
        }
        if received.source.is_multicast() {
            return Err(Malformed::MulticastSource);
        }
        match kind {
            ROUTER_SOLICITATION => parse_rs(received).map(Self::RouterSolicitation),
            ROUTER_ADVERTISEMENT => parse_ra(received).map(Self::RouterAdvertisement),
            NEIGHBOUR_SOLICITATION => parse_ns(received).map(Self::NeighbourSolicitation),
            _ => parse_na(received).map(Self::NeighbourAdvertisement),
        }
    }

    /// Writes the message, with the checksum for these addresses.
    pub fn to_octets(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let mut out = vec![self.kind(), 0, 0, 0];
        let options = match self {
            Self::RouterSolicitation(solicitation) => {
                out.extend([0; 4]);
                &solicitation.options
            }
            Self::RouterAdvertisement(advertisement) => {
                emit_ra(advertisement, &mut out);
                &advertisement.options
            }
            Self::NeighbourSolicitation(solicitation) => {
                out.extend([0; 4]);
                out.extend(solicitation.target.octets());
                &solicitation.options
            }
            Self::NeighbourAdvertisement(advertisement) => {
                emit_na(advertisement, &mut out);
                &advertisement.options
            }
        };
        for option in options {
            option.emit(&mut out);
        }
        let sum = checksum::pseudo6(source, destination, protocol::ICMPV6, out.len() as u32).bytes(&out);
        out[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        out
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::RouterSolicitation(_) => ROUTER_SOLICITATION,
            Self::RouterAdvertisement(_) => ROUTER_ADVERTISEMENT,
            Self::NeighbourSolicitation(_) => NEIGHBOUR_SOLICITATION,
            Self::NeighbourAdvertisement(_) => NEIGHBOUR_ADVERTISEMENT,
        }
    }
}

/// Splits the fixed part off, and reads the options behind it.
fn fixed<const N: usize>(message: &[u8]) -> Result<(&[u8; N], Vec<NdOption>), Malformed> {
    let (fixed, options) = message.split_first_chunk().ok_or(Malformed::TooShort)?;
    Ok((fixed, NdOption::parse_all(options)?))
}

fn has_source_link_layer(options: &[NdOption]) -> bool {
    options.iter().any(|option| matches!(option, NdOption::SourceLinkLayer(_)))
}

fn parse_rs(received: &Received<'_>) -> Result<RouterSolicitation, Malformed> {
    let (_, options) = fixed::<8>(received.message)?;
    if received.source.is_unspecified() && has_source_link_layer(&options) {
        return Err(Malformed::LinkLayerOfNobody);
    }
    Ok(RouterSolicitation { options })
}

fn parse_ra(received: &Received<'_>) -> Result<RouterAdvertisement, Malformed> {
    let (fixed, options) = fixed::<16>(received.message)?;
    if !is_link_local(received.source) {
        return Err(Malformed::NotLinkLocal);
    }
    let router_lifetime = u16::from_be_bytes([fixed[6], fixed[7]]);
    // RFC 4191 §2.2: the reserved preference counts as medium, and so does any where the lifetime is 0.
    let preference = Preference::from_bits(fixed[5] >> 3).filter(|_| router_lifetime > 0);
    Ok(RouterAdvertisement {
        hop_limit: fixed[4],
        managed: fixed[5] & 0x80 != 0,
        other: fixed[5] & 0x40 != 0,
        preference: preference.unwrap_or_default(),
        router_lifetime,
        reachable_time: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        retrans_timer: u32::from_be_bytes([fixed[12], fixed[13], fixed[14], fixed[15]]),
        options,
    })
}

fn emit_ra(advertisement: &RouterAdvertisement, out: &mut Vec<u8>) {
    let preference =
        if advertisement.router_lifetime == 0 { Preference::Medium } else { advertisement.preference };
    out.push(advertisement.hop_limit);
    out.push(
        u8::from(advertisement.managed) << 7 | u8::from(advertisement.other) << 6 | preference.bits() << 3,
    );
    out.extend(advertisement.router_lifetime.to_be_bytes());
    out.extend(advertisement.reachable_time.to_be_bytes());
    out.extend(advertisement.retrans_timer.to_be_bytes());
}

fn target(fixed: &[u8; 24]) -> Result<Ipv6Addr, Malformed> {
    let mut octets = [0; 16];
    octets.copy_from_slice(&fixed[8..]);
    let target = Ipv6Addr::from(octets);
    if target.is_multicast() { Err(Malformed::MulticastTarget) } else { Ok(target) }
}

/// RFC 4291 §2.7.1: ff02::1:ff00:0/104.
fn is_solicited_node(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0xff02, 0, 0, 0, 0, 1, 0xff00..=0xffff, _])
}

fn parse_ns(received: &Received<'_>) -> Result<NeighbourSolicitation, Malformed> {
    let (fixed, options) = fixed::<24>(received.message)?;
    let target = target(fixed)?;
    if received.source.is_unspecified() {
        if !is_solicited_node(received.destination) {
            return Err(Malformed::NotSolicitedNode);
        }
        if has_source_link_layer(&options) {
            return Err(Malformed::LinkLayerOfNobody);
        }
    }
    Ok(NeighbourSolicitation { target, options })
}

fn parse_na(received: &Received<'_>) -> Result<NeighbourAdvertisement, Malformed> {
    let (fixed, options) = fixed::<24>(received.message)?;
    let solicited = fixed[4] & 0x40 != 0;
    if solicited && received.destination.is_multicast() {
        return Err(Malformed::SolicitedMulticast);
    }
    Ok(NeighbourAdvertisement {
        router: fixed[4] & 0x80 != 0,
        solicited,
        overrides: fixed[4] & 0x20 != 0,
        target: target(fixed)?,
        options,
    })
}

fn emit_na(advertisement: &NeighbourAdvertisement, out: &mut Vec<u8>) {
    let flags = u8::from(advertisement.router) << 7
        | u8::from(advertisement.solicited) << 6
        | u8::from(advertisement.overrides) << 5;
    out.extend([flags, 0, 0, 0]);
    out.extend(advertisement.target.octets());
}

#[cfg(test)]
mod tests;
