//! Options of neighbour discovery messages (RFC 4861 §4.6 and later RFCs).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |     Type      |  Length / 8   |              ...              |
//! +---------------+---------------+-------------------------------+
//! ```

use super::domain_name::DomainName;
use super::malformed::Malformed;
use super::pref64::Pref64;
use super::preference::Preference;
use core::net::Ipv6Addr;
use sixway_wire::Prefix6;

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;
const ROUTE_INFORMATION: u8 = 24;
const RDNSS: u8 = 25;
const DNSSL: u8 = 31;
const CAPTIVE_PORTAL: u8 = 37;
const PREF64: u8 = 38;

/// A lifetime of all one bits means infinity (RFC 4861 §4.6.2, RFC 4191 §2.3, RFC 8106 §5.1).
pub const INFINITY: u32 = u32::MAX;

/// The greatest length of an option: 255 units of 8 octets.
const MAX_OPTION: usize = 2_040;

/// A prefix of the link (RFC 4861 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixInformation {
    /// The prefix.
    pub prefix: Prefix6,
    /// L: its addresses are on the link.
    pub on_link: bool,
    /// A: hosts may make addresses of it (RFC 4862).
    pub autonomous: bool,
    /// Valid Lifetime in seconds; [`INFINITY`] has no end.
    pub valid: u32,
    /// Preferred Lifetime in seconds.
    pub preferred: u32,
}

/// A route through the router (RFC 4191 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteInformation {
    /// The destinations.
    pub prefix: Prefix6,
    /// Which router is preferred, if several tell of this prefix.
    pub preference: Preference,
    /// Route Lifetime in seconds; [`INFINITY`] has no end.
    pub lifetime: u32,
}

/// An option that is known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NdOption {
    /// Source Link-Layer Address (RFC 4861 §4.6.1): the octets behind the length, padding included.
    SourceLinkLayer(Vec<u8>),
    /// Target Link-Layer Address (RFC 4861 §4.6.1).
    TargetLinkLayer(Vec<u8>),
    /// Prefix Information (RFC 4861 §4.6.2).
    Prefix(PrefixInformation),
    /// MTU of the link in octets (RFC 4861 §4.6.4).
    Mtu(u32),
    /// Route Information (RFC 4191 §2.3).
    Route(RouteInformation),
    /// Recursive DNS servers, with their lifetime in seconds (RFC 8106 §5.1).
    Rdnss {
        /// Lifetime in seconds.
        lifetime: u32,
        /// The servers, at least one.
        servers: Vec<Ipv6Addr>,
    },
    /// DNS search list, with its lifetime in seconds (RFC 8106 §5.2).
    Dnssl {
        /// Lifetime in seconds.
        lifetime: u32,
        /// The suffixes, at least one.
        names: Vec<DomainName>,
    },
    /// URI of the captive portal's API (RFC 8910 §2.3).
    CaptivePortal(String),
    /// NAT64 prefix (RFC 8781).
    Pref64(Pref64),
}

impl NdOption {
    /// Reads all options of a message. Unknown ones, and those whose own length or contents are wrong, are skipped; a length of zero or
    /// beyond the message's end refuses the message (RFC 4861 §6.1).
    pub fn parse_all(mut octets: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut options = Vec::new();
        while let [kind, rest @ ..] = octets {
            let units = *rest.first().ok_or(Malformed::OptionBeyondEnd)?;
            if units == 0 {
                return Err(Malformed::ZeroLengthOption);
            }
            let length = usize::from(units) * 8;
            let body = octets.get(2..length).ok_or(Malformed::OptionBeyondEnd)?;
            options.extend(Self::parse(*kind, body));
            octets = &octets[length..];
        }
        Ok(options)
    }

    fn parse(kind: u8, body: &[u8]) -> Option<Self> {
        match kind {
            SOURCE_LINK_LAYER => Some(Self::SourceLinkLayer(body.to_vec())),
            TARGET_LINK_LAYER => Some(Self::TargetLinkLayer(body.to_vec())),
            PREFIX_INFORMATION => parse_prefix(body).map(Self::Prefix),
            MTU if body.len() == 6 => Some(Self::Mtu(long(body, 2)?)),
            ROUTE_INFORMATION => parse_route(body).map(Self::Route),
            RDNSS => parse_rdnss(body),
            DNSSL => parse_dnssl(body),
            CAPTIVE_PORTAL => {
                let end = body.iter().rposition(|octet| *octet != 0)? + 1;
                let uri = core::str::from_utf8(&body[..end]).ok()?;
                (uri.is_ascii() && !uri.contains('\0')).then(|| Self::CaptivePortal(uri.to_owned()))
            }
            PREF64 => Pref64::parse(body).map(Self::Pref64),
            _ => None,
        }
    }

    /// The option's length on the wire in octets: a multiple of 8.
    pub fn length(&self) -> usize {
        let body = match self {
            Self::SourceLinkLayer(address) | Self::TargetLinkLayer(address) => address.len(),
            Self::Prefix(_) => 30,
            Self::Mtu(_) => 6,
            Self::Route(route) => 6 + route_octets(route.prefix.length()),
            Self::Rdnss { servers, .. } => 6 + 16 * servers.len(),
            Self::Dnssl { names, .. } => 6 + names.iter().map(|name| name.octets().len()).sum::<usize>(),
            Self::CaptivePortal(uri) => uri.len(),
            Self::Pref64(_) => Pref64::UNITS * 8 - 2,
        };
        (2 + body).next_multiple_of(8)
    }

    /// Whether the option's length can be said: at most 2,040 octets.
    pub fn fits(&self) -> bool {
        self.length() <= MAX_OPTION
    }

    /// Writes the option, padded with zeros; one that does not [`fits`](Self::fits) is left out.
    pub fn emit(&self, out: &mut Vec<u8>) {
        if !self.fits() {
            return;
        }
        let end = out.len() + self.length();
        out.extend([self.kind(), (self.length() / 8) as u8]);
        match self {
            Self::SourceLinkLayer(address) | Self::TargetLinkLayer(address) => out.extend(address),
            Self::Prefix(prefix) => emit_prefix(prefix, out),
            Self::Mtu(mtu) => {
                out.extend([0, 0]);
                out.extend(mtu.to_be_bytes());
            }
            Self::Route(route) => emit_route(route, out),
            Self::Rdnss { lifetime, servers } => {
                out.extend([0, 0]);
                out.extend(lifetime.to_be_bytes());
                out.extend(servers.iter().flat_map(Ipv6Addr::octets));
            }
            Self::Dnssl { lifetime, names } => {
                out.extend([0, 0]);
                out.extend(lifetime.to_be_bytes());
                out.extend(names.iter().flat_map(|name| name.octets()));
            }
            Self::CaptivePortal(uri) => out.extend(uri.as_bytes()),
            Self::Pref64(pref64) => pref64.emit(out),
        }
        out.resize(end, 0);
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::SourceLinkLayer(_) => SOURCE_LINK_LAYER,
            Self::TargetLinkLayer(_) => TARGET_LINK_LAYER,
            Self::Prefix(_) => PREFIX_INFORMATION,
            Self::Mtu(_) => MTU,
            Self::Route(_) => ROUTE_INFORMATION,
            Self::Rdnss { .. } => RDNSS,
            Self::Dnssl { .. } => DNSSL,
            Self::CaptivePortal(_) => CAPTIVE_PORTAL,
            Self::Pref64(_) => PREF64,
        }
    }
}

fn long(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*body.get(at..)?.first_chunk()?))
}

/// The prefix of `length` bits whose first octets are given; bits behind the length are ignored, as the RFCs ask.
fn prefix(octets: &[u8], length: u8) -> Option<Prefix6> {
    let mut address = [0; 16];
    address.get_mut(..octets.len())?.copy_from_slice(octets);
    (length <= 128).then(|| Prefix6::holding(Ipv6Addr::from(address), length))
}

fn parse_prefix(body: &[u8]) -> Option<PrefixInformation> {
    let body: &[u8; 30] = body.try_into().ok()?;
    Some(PrefixInformation {
        prefix: prefix(&body[14..], body[0])?,
        on_link: body[1] & 0x80 != 0,
        autonomous: body[1] & 0x40 != 0,
        valid: long(body, 2)?,
        preferred: long(body, 6)?,
    })
}

fn emit_prefix(prefix: &PrefixInformation, out: &mut Vec<u8>) {
    out.push(prefix.prefix.length());
    out.push(u8::from(prefix.on_link) << 7 | u8::from(prefix.autonomous) << 6);
    out.extend(prefix.valid.to_be_bytes());
    out.extend(prefix.preferred.to_be_bytes());
    out.extend([0; 4]);
    out.extend(prefix.prefix.address().octets());
}

/// RFC 4191 §2.3: octets of the prefix field that a prefix length needs.
const fn route_octets(length: u8) -> usize {
    match length {
        0 => 0,
        1..=64 => 8,
        _ => 16,
    }
}

fn parse_route(body: &[u8]) -> Option<RouteInformation> {
    let (header, octets) = body.split_first_chunk::<6>()?;
    if octets.len() < route_octets(header[0]) {
        return None;
    }
    Some(RouteInformation {
        prefix: prefix(octets, header[0])?,
        preference: Preference::from_bits(header[1] >> 3)?,
        lifetime: long(header, 2)?,
    })
}

fn emit_route(route: &RouteInformation, out: &mut Vec<u8>) {
    out.extend([route.prefix.length(), route.preference.bits() << 3]);
    out.extend(route.lifetime.to_be_bytes());
    out.extend(&route.prefix.address().octets()[..route_octets(route.prefix.length())]);
}

/// RFC 8106 §5.3.1: an odd length of at least 3, and unicast addresses; else the option is discarded.
fn parse_rdnss(body: &[u8]) -> Option<NdOption> {
    let (addresses, rest) = body.get(6..)?.as_chunks::<16>();
    let servers: Vec<_> = addresses.iter().map(|octets| Ipv6Addr::from(*octets)).collect();
    let unicast = servers.iter().all(|server| !server.is_multicast() && !server.is_unspecified());
    let valid = rest.is_empty() && !servers.is_empty() && unicast;
    valid.then_some(NdOption::Rdnss { lifetime: long(body, 2)?, servers })
}

/// RFC 8106 §5.2: whole uncompressed names, and zeros behind the last.
fn parse_dnssl(body: &[u8]) -> Option<NdOption> {
    let mut rest = body.get(6..)?;
    let mut names = Vec::new();
    while rest.iter().any(|octet| *octet != 0) {
        let (name, behind) = DomainName::split(rest)?;
        names.push(name);
        rest = behind;
    }
    (!names.is_empty()).then_some(NdOption::Dnssl { lifetime: long(body, 2)?, names })
}

#[cfg(test)]
pub(super) mod tests;
