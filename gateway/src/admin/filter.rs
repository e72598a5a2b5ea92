//! The filter of a query for sessions and bindings.

use crate::inside_endpoint;
use serde::{Deserialize, Serialize};
use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6, protocol};
use std::fmt;

/// A filter as it is written: in a request's query, or on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// `ADDRESS`, `PREFIX/LENGTH` or `[ADDRESS]:PORT`, IPv6.
    pub inside: Option<String>,
    /// `ADDRESS`, `PREFIX/LENGTH` or `ADDRESS:PORT`, IPv4.
    pub outside: Option<String>,
    /// `ADDRESS`, `PREFIX/LENGTH` or `ADDRESS:PORT`, IPv4.
    pub remote: Option<String>,
    /// A port (or ICMP identifier) of any of the three.
    pub port: Option<u16>,
    /// `tcp`, `udp`, `icmp`, `gre`, `esp`, `ipv6` or `ipip`.
    pub protocol: Option<String>,
    /// The most rows to answer with.
    pub limit: Option<usize>,
    /// Where to continue: `next` of the previous page.
    pub cursor: Option<String>,
}

/// A parsed filter. `None` matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The inside endpoint.
    pub inside: Option<(Prefix6, Option<u16>)>,
    /// The outside endpoint.
    pub outside: Option<(Prefix4, Option<u16>)>,
    /// The remote endpoint; bindings have none and never match.
    pub remote: Option<(Prefix4, Option<u16>)>,
    /// Any of the ports.
    pub port: Option<u16>,
    /// The protocol number; ICMP is [`protocol::ICMPV4`].
    pub protocol: Option<u8>,
}

/// What is wrong with a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The filter's name.
    pub name: &'static str,
    /// The given text.
    pub text: String,
    /// The expected form.
    pub wanted: &'static str,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: not {}", self.name, self.text.escape_debug(), self.wanted)
    }
}

impl std::error::Error for FilterError {}

impl Query {
    /// Reads the filter.
    pub fn filter(&self) -> Result<Filter, FilterError> {
        let wanted4 = "an IPv4 address, prefix or ADDRESS:PORT; write one such as 192.0.2.0/24";
        let inside = "an address, prefix, [ADDRESS]:PORT or IPv4 ADDRESS:PORT; write one such as 2001:db8:1::/64 or 10.0.0.0/8";
        Ok(Filter {
            inside: read("inside", &self.inside, inside_endpoint::side, inside)?,
            outside: read("outside", &self.outside, side4, wanted4)?,
            remote: read("remote", &self.remote, side4, wanted4)?,
            port: self.port,
            protocol: read("protocol", &self.protocol, protocol_number, PROTOCOLS)?,
        })
    }
}

impl Filter {
    /// Whether it lets a session through; `inside` is `None` while a packet from outside waits for a binding.
    pub fn admits_session(
        &self,
        number: u8,
        inside: Option<Endpoint6>,
        outside: Endpoint4,
        remote: Endpoint4,
    ) -> bool {
        let is = |port| inside.is_some_and(|inside| inside.port == port);
        self.admits_sides(number, inside, outside)
            && self.remote.is_none_or(|side| matches4(side, remote))
            && self.port.is_none_or(|port| is(port) || [outside.port, remote.port].contains(&port))
    }

    /// Whether it lets a binding through.
    pub fn admits_binding(&self, number: u8, inside: Endpoint6, outside: Endpoint4) -> bool {
        self.admits_sides(number, Some(inside), outside)
            && self.remote.is_none()
            && self.port.is_none_or(|port| [inside.port, outside.port].contains(&port))
    }

    fn admits_sides(&self, number: u8, inside: Option<Endpoint6>, outside: Endpoint4) -> bool {
        self.protocol.is_none_or(|wanted| wanted == number)
            && self.inside.is_none_or(|side| inside.is_some_and(|inside| matches6(side, inside)))
            && self.outside.is_none_or(|side| matches4(side, outside))
    }
}

fn matches6((prefix, port): (Prefix6, Option<u16>), endpoint: Endpoint6) -> bool {
    prefix.contains(endpoint.address) && port.is_none_or(|port| port == endpoint.port)
}

fn matches4((prefix, port): (Prefix4, Option<u16>), endpoint: Endpoint4) -> bool {
    prefix.contains(endpoint.address) && port.is_none_or(|port| port == endpoint.port)
}

fn read<T>(
    name: &'static str,
    text: &Option<String>,
    parse: fn(&str) -> Option<T>,
    wanted: &'static str,
) -> Result<Option<T>, FilterError> {
    let Some(text) = text else { return Ok(None) };
    parse(text).map(Some).ok_or_else(|| FilterError { name, text: text.clone(), wanted })
}

fn side4(text: &str) -> Option<(Prefix4, Option<u16>)> {
    if let Ok(prefix) = text.parse() {
        return Some((prefix, None));
    }
    let (address, port) = text.split_once(':')?;
    Some((Prefix4::holding(address.parse().ok()?, 32), Some(port.parse().ok()?)))
}

/// The names of protocols.
pub(crate) const PROTOCOLS: &str = "tcp, udp, icmp, gre, esp, ipv6 or ipip";

/// The number of a protocol by its name; ICMP's is IPv4's.
pub(crate) fn protocol_number(text: &str) -> Option<u8> {
    let text = text.to_ascii_lowercase();
    match text.as_str() {
        "tcp" => Some(protocol::TCP),
        "udp" => Some(protocol::UDP),
        "icmp" | "icmpv6" => Some(protocol::ICMPV4),
        name => PortlessProtocol::ALL.into_iter().find(|it| it.name() == name).map(PortlessProtocol::number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query {
        let map: serde_json::Map<_, _> =
            pairs.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        serde_json::from_value(map.into()).unwrap()
    }

    fn session() -> (u8, Endpoint6, Endpoint4, Endpoint4) {
        let inside = Endpoint6::new("2001:db8:1::2".parse().unwrap(), 50_122);
        let outside = Endpoint4::new("192.0.2.3".parse().unwrap(), 41_022);
        let remote = Endpoint4::new("203.0.113.2".parse().unwrap(), 443);
        (protocol::TCP, inside, outside, remote)
    }

    fn admits(pairs: &[(&str, &str)]) -> bool {
        let (number, inside, outside, remote) = session();
        query(pairs).filter().unwrap().admits_session(number, Some(inside), outside, remote)
    }

    #[test]
    fn a_filter_admits_what_lies_in_all_its_parts() {
        assert!(admits(&[]));
        assert!(admits(&[("inside", "2001:db8:1::/64"), ("remote", "203.0.113.2:443"), ("protocol", "TCP")]));
        assert!(admits(&[("inside", "[2001:db8:1::2]:50122"), ("outside", "192.0.2.0/24")]));
        assert!(!admits(&[("inside", "[2001:db8:1::2]:50123")]));
        assert!(!admits(&[("outside", "192.0.2.4")]));
        assert!(!admits(&[("remote", "203.0.113.2:80")]));
        assert!(!admits(&[("protocol", "udp")]));
        assert!(!admits(&[("protocol", "gre")]));
        let numbers = ["gre", "ESP", "ipv6", "ipip"]
            .map(|name| query(&[("protocol", name)]).filter().unwrap().protocol);
        assert_eq!(numbers, [47, 50, 41, 4].map(Some));
    }

    #[test]
    fn a_port_may_be_any_of_the_three() {
        let (number, inside, outside, remote) = session();
        for port in [50_122, 41_022, 443] {
            let filter = Filter { port: Some(port), ..Filter::default() };
            assert!(filter.admits_session(number, Some(inside), outside, remote));
        }
        let filter = Filter { port: Some(443), ..Filter::default() };
        assert!(!filter.admits_binding(number, inside, outside));
    }

    #[test]
    fn a_filter_that_cannot_be_read_says_what_would_be_right() {
        for (name, text) in [
            ("inside", "192.0.2.1:x"),
            ("outside", "2001:db8::1"),
            ("remote", "1.2.3.4:x"),
            ("protocol", "sctp"),
        ] {
            let error = query(&[(name, text)]).filter().unwrap_err();
            assert_eq!((error.name, error.text.as_str()), (name, text));
        }
    }
}
