//! Requests (RFC 6887 §8.2, §11.1, §12.1), octets to values.

use super::filter::FilterOption;
use super::mapping::Nonce;
use super::message::{
    ANNOUNCE, HEADER, MAP, MAX_PAYLOAD, PEER, address_of, octets_of, suggested_address, take,
};
use super::nat::Suggested;
use super::option;
use super::result_code::ResultCode;
use core::net::IpAddr;

/// A set of ports that is wanted (RFC 7753).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSet {
    /// How many, at most.
    pub size: u16,
    /// Whether even ports are to have even ports.
    pub parity: bool,
}

/// A MAP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRequest {
    /// In seconds; 0 deletes.
    pub lifetime: u32,
    /// What the client knows.
    pub nonce: Nonce,
    /// The number of the transport protocol; 0: all.
    pub protocol: u8,
    /// The inside port; 0: all.
    pub port: u16,
    /// The host, if it is not the client.
    pub third_party: Option<IpAddr>,
    pub(super) suggested: Suggested,
    /// The client suggests an address that no NAT here can have.
    pub(super) is_impossible: bool,
    /// No other external endpoint will do.
    pub prefer_failure: bool,
    pub(super) filters: Vec<FilterOption>,
    /// More ports than one.
    pub port_set: Option<PortSet>,
    /// The client wants to know the NAT64's prefixes.
    pub prefix64: bool,
}

/// A PEER request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerRequest {
    /// In seconds.
    pub lifetime: u32,
    /// What the client knows.
    pub nonce: Nonce,
    /// The number of the transport protocol.
    pub protocol: u8,
    /// The inside port.
    pub port: u16,
    /// The host, if it is not the client.
    pub third_party: Option<IpAddr>,
    pub(super) suggested: Suggested,
    /// The client suggests an address that no NAT here can have.
    pub(super) is_impossible: bool,
    /// The remote host as the client sees it.
    pub remote: IpAddr,
    /// Its port.
    pub remote_port: u16,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// ANNOUNCE; whether the client wants to know the NAT64's prefixes.
    Announce(bool),
    /// MAP.
    Map(MapRequest),
    /// PEER.
    Peer(PeerRequest),
}

/// The fields that MAP and PEER have in common.
struct Fields {
    nonce: Nonce,
    protocol: u8,
    port: u16,
    suggested: Suggested,
    is_impossible: bool,
}

impl Request {
    /// Reads a request of version 2 with a whole header, which came from this address.
    ///
    /// # Errors
    /// What the client gets.
    pub fn parse(octets: &[u8], source: IpAddr) -> Result<Self, ResultCode> {
        let malformed = ResultCode::MalformedRequest;
        let mut rest = octets;
        let [_, opcode, _, _] = take(&mut rest).ok_or(malformed)?;
        let lifetime = u32::from_be_bytes(take(&mut rest).ok_or(malformed)?);
        let client: [u8; 16] = take(&mut rest).ok_or(malformed)?;
        if !matches!(opcode, ANNOUNCE | MAP | PEER) {
            return Err(ResultCode::UnsuppOpcode);
        }
        if octets.len() > MAX_PAYLOAD || !octets.len().is_multiple_of(4) || octets.len() < HEADER {
            return Err(malformed);
        }
        let fields = if opcode == ANNOUNCE { None } else { Some(Fields::take(&mut rest).ok_or(malformed)?) };
        let peer = if opcode == PEER { Some(remote(&mut rest).ok_or(malformed)?) } else { None };
        if client != octets_of(source) {
            return Err(ResultCode::AddressMismatch);
        }
        let options = option::parse(rest, opcode)?;
        // §13.1.
        if options.third_party == Some(source) {
            return Err(malformed);
        }
        let Some(Fields { nonce, protocol, port, suggested, is_impossible }) = fields else {
            return Ok(Self::Announce(options.prefix64));
        };
        if protocol == 0 && port != 0 {
            return Err(malformed);
        }
        let third_party = options.third_party;
        if let Some((remote, remote_port)) = peer {
            if protocol == 0 || port == 0 || remote_port == 0 {
                return Err(malformed);
            }
            return Ok(Self::Peer(PeerRequest {
                lifetime,
                nonce,
                protocol,
                port,
                third_party,
                suggested,
                is_impossible,
                remote,
                remote_port,
            }));
        }
        let prefers_failure = options.prefer_failure;
        if prefers_failure && (lifetime == 0 || suggested.port == 0 || options.port_set.is_some())
            || lifetime == 0 && !options.filters.is_empty()
            || lifetime != 0 && options.port_set.is_some_and(|(size, _)| size == 0)
        {
            return Err(ResultCode::MalformedOption);
        }
        Ok(Self::Map(MapRequest {
            lifetime,
            nonce,
            protocol,
            port,
            third_party,
            suggested,
            is_impossible,
            prefer_failure: prefers_failure,
            filters: options.filters,
            port_set: options.port_set.map(|(size, parity)| PortSet { size: size.max(1), parity }),
            prefix64: options.prefix64,
        }))
    }
}

impl Fields {
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let nonce = Nonce(take(rest)?);
        let [protocol, ..] = take::<4>(rest)?;
        let port = u16::from_be_bytes(take(rest)?);
        let suggested_port = u16::from_be_bytes(take(rest)?);
        let address = suggested_address(take(rest)?);
        let suggested = Suggested { address: address.ok().flatten(), port: suggested_port };
        Some(Self { nonce, protocol, port, suggested, is_impossible: address.is_err() })
    }
}

/// The remote endpoint of a PEER request.
fn remote(rest: &mut &[u8]) -> Option<(IpAddr, u16)> {
    let [high, low, _, _] = take(rest)?;
    let address = address_of(take(rest)?);
    Some((address, u16::from_be_bytes([high, low])))
}
