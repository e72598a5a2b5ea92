//! Changes that an operator may make at run time: static bindings are created and removed, sessions and bindings ended.

use super::filter::protocol_number;
use crate::inside_endpoint;
use serde::{Deserialize, Serialize};
use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_dataplane::nat::{Inside, Named as InsideName, NatProtocol, Outside, StaticBinding};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Make a static binding.
    Bind(StaticBinding),
    /// Remove a static binding, and end its sessions.
    Unbind(StaticBinding),
    /// End a dynamic binding and its sessions.
    EndBinding(NatProtocol, Outside<Endpoint4>),
    /// End a session.
    EndSession(NatProtocol, InsideName, Endpoint4),
    /// End the sessions of a protocol without ports between an inside host and a remote one.
    EndPortless(u8, Ipv4Addr, Ipv4Addr),
    /// Drain these addresses of the pool, or give them to hosts again.
    Drain(Prefix4, bool),
}

/// A binding or session as it is written in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// `[ADDRESS]:PORT`, IPv6.
    pub inside: Option<String>,
    /// The address of the B4 that the inside endpoint is behind (RFC 6333).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softwire: Option<String>,
    /// `ADDRESS:PORT`, IPv4.
    pub outside: Option<String>,
    /// `ADDRESS:PORT`, IPv4; for ICMP the port is 0.
    pub remote: Option<String>,
    /// The name of the translator; without it, the one that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
}

impl Named {
    /// The protocol; else what is wrong.
    pub fn protocol(&self) -> Result<NatProtocol, String> {
        let number = protocol_number(&self.protocol).and_then(NatProtocol::of);
        number.ok_or_else(|| format!("protocol {}: not tcp, udp or icmp", self.protocol.escape_debug()))
    }

    /// The number of a protocol without ports, the inside host and the remote one; else what is wrong. `None`: it is another protocol.
    pub fn portless(&self) -> Option<Result<(u8, Ipv4Addr, Ipv4Addr), String>> {
        let protocol = protocol_number(&self.protocol).and_then(PortlessProtocol::of)?;
        let ends = address4("inside", &self.inside).and_then(|inside| {
            let remote = address4("remote", &self.remote)?;
            Ok((protocol.number(), inside, remote))
        });
        Some(ends)
    }

    /// The inside endpoint; else what is wrong.
    pub fn inside(&self) -> Result<Inside<Endpoint6>, String> {
        let text = self.inside.as_ref().ok_or("inside is missing: [ADDRESS]:PORT")?;
        let wanted = "[ADDRESS]:PORT, or ADDRESS:PORT of IPv4; write one such as [2001:db8::80]:80";
        let endpoint = inside_endpoint::endpoint(text);
        endpoint.map(Inside).ok_or_else(|| format!("inside {}: not {wanted}", text.escape_debug()))
    }

    /// The B4, if one is named; else what is wrong.
    pub fn softwire(&self) -> Result<Option<Ipv6Addr>, String> {
        let Some(text) = &self.softwire else { return Ok(None) };
        let wanted = "the IPv6 address of a B4; write one such as 2001:db8:1::b4";
        text.parse().map(Some).map_err(|_| format!("softwire {}: not {wanted}", text.escape_debug()))
    }

    /// The inside endpoint with its B4; else what is wrong.
    pub fn inside_name(&self) -> Result<InsideName, String> {
        Ok(InsideName { softwire: self.softwire()?, ..self.inside()?.into() })
    }

    /// The outside endpoint; else what is wrong.
    pub fn outside(&self) -> Result<Outside<Endpoint4>, String> {
        endpoint4("outside", &self.outside).map(Outside)
    }

    /// The remote endpoint; else what is wrong.
    pub fn remote(&self) -> Result<Endpoint4, String> {
        endpoint4("remote", &self.remote)
    }

    /// The static binding; else what is wrong.
    pub fn binding(&self) -> Result<StaticBinding, String> {
        Ok(StaticBinding {
            protocol: self.protocol()?,
            softwire: self.softwire()?,
            inside: self.inside()?,
            outside: self.outside()?,
        })
    }
}

fn address4(name: &str, text: &Option<String>) -> Result<Ipv4Addr, String> {
    let text = text.as_ref().ok_or_else(|| format!("{name} is missing: ADDRESS"))?;
    text.parse().map_err(|_| {
        format!("{name} {}: not an IPv4 ADDRESS; write one such as 192.0.2.1", text.escape_debug())
    })
}

fn endpoint4(name: &str, text: &Option<String>) -> Result<Endpoint4, String> {
    let text = text.as_ref().ok_or_else(|| format!("{name} is missing: ADDRESS:PORT"))?;
    let wanted = "an IPv4 ADDRESS:PORT; write one such as 192.0.2.1:80";
    let socket: SocketAddrV4 =
        text.parse().map_err(|_| format!("{name} {}: not {wanted}", text.escape_debug()))?;
    Ok(Endpoint4::new(*socket.ip(), socket.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_or_refused_with_what_would_be_right() {
        let named = Named {
            protocol: "udp".into(),
            inside: Some("[2001:db8::80]:53".into()),
            outside: Some("192.0.2.1:53".into()),
            ..Named::default()
        };
        let binding = named.binding().unwrap();
        assert_eq!(binding.protocol, NatProtocol::Udp);
        assert_eq!(binding.inside.0.to_string(), "[2001:db8::80]:53");
        assert_eq!(binding.outside.0.to_string(), "192.0.2.1:53");
        assert!(named.remote().unwrap_err().contains("missing"));
        let wrong = Named { protocol: "gre".into(), outside: Some("192.0.2.1".into()), ..named };
        assert!(wrong.protocol().unwrap_err().contains("gre"));
        assert!(wrong.outside().unwrap_err().contains("ADDRESS:PORT"));
        assert!(wrong.portless().unwrap().unwrap_err().contains("inside [2001:db8::80]:53: not an IPv4"));
        let gre = Named {
            protocol: "GRE".into(),
            inside: Some("10.0.0.1".into()),
            remote: Some("203.0.113.1".into()),
            ..Named::default()
        };
        let ends = (47, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(203, 0, 113, 1));
        assert_eq!(gre.portless(), Some(Ok(ends)));
        assert!(Named { remote: None, ..gre.clone() }.portless().unwrap().is_err());
        assert_eq!(Named { protocol: "udp".into(), ..gre }.portless(), None);
    }
}
