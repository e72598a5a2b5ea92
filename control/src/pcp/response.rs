//! Responses (RFC 6887 §7.2, §8.2), values to octets.

use super::filter::FilterOption;
use super::mapping::Mapping;
use super::message::{HEADER, MAP, MAX_PAYLOAD, RESPONSE, RESULT, VERSION, octets_of};
use super::option::{FILTER, PORT_SET, PREFER_FAILURE, PREFIX64, THIRD_PARTY};
use super::request::MapRequest;
use super::result_code::ResultCode;
use core::net::IpAddr;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::Endpoint4;

/// Octets of a MAP message without options.
const MAP_LENGTH: usize = HEADER + 36;
/// Octets of a PEER message without options.
const PEER_LENGTH: usize = HEADER + 56;
/// Where the inside port of MAP and PEER is; the external port and address follow.
const INTERNAL_PORT: usize = HEADER + 16;

/// Why there is an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) result: ResultCode,
    /// How long the same request will have the same result, in seconds.
    pub(super) lifetime: u32,
}

impl From<ResultCode> for Failure {
    fn from(result: ResultCode) -> Self {
        Self { result, lifetime: result.lifetime() }
    }
}

/// An error response: a copy of the request.
pub(super) fn error(request: &[u8], Failure { result, lifetime }: Failure, epoch: u32) -> Vec<u8> {
    let mut octets: Vec<u8> = request.iter().copied().take(MAX_PAYLOAD).collect();
    octets.resize(octets.len().next_multiple_of(4).max(HEADER), 0);
    set_header(&mut octets, (result, lifetime), epoch);
    if !result.is_unparsed() {
        put(&mut octets, 12, &[0; 12]);
    }
    octets
}

/// A success response to ANNOUNCE.
pub(super) fn announce(request: &[u8], epoch: u32) -> Vec<u8> {
    success(request, HEADER, 0, epoch)
}

/// A success response to MAP. Without an external endpoint, it is that of the request (§15.1).
pub(super) fn map(request: &[u8], external: Option<(u16, Endpoint4)>, lifetime: u32, epoch: u32) -> Vec<u8> {
    assigned(success(request, MAP_LENGTH, lifetime, epoch), external)
}

/// A success response to PEER.
pub(super) fn peer(request: &[u8], external: (u16, Endpoint4), lifetime: u32, epoch: u32) -> Vec<u8> {
    let mut octets = assigned(success(request, PEER_LENGTH, lifetime, epoch), Some(external));
    put(&mut octets, MAP_LENGTH + 2, &[0; 2]);
    octets
}

/// A MAP response without a request (§14.2); an error names the external endpoint that cannot be provided any more.
pub(super) fn update(mapping: &Mapping, outcome: Failure, epoch: u32) -> Vec<u8> {
    let mut octets = vec![0; MAP_LENGTH];
    put(&mut octets, 0, &[VERSION, MAP]);
    put(&mut octets, HEADER, &mapping.nonce.map(|nonce| nonce.0).unwrap_or_default());
    put(&mut octets, HEADER + 12, &[mapping.transport.number()]);
    set_header(&mut octets, (outcome.result, outcome.lifetime), epoch);
    let mut octets = assigned(octets, Some((mapping.internal.port, mapping.external)));
    if mapping.is_third_party {
        third_party(&mut octets, mapping.internal.address);
    }
    if mapping.prefers_failure {
        option(&mut octets, PREFER_FAILURE, &[]);
    }
    for filter in &mapping.filters {
        let address = IpAddr::V4(filter.remote.address());
        let length = filter.remote.length();
        filter_option(&mut octets, &FilterOption::Admit { address, length, port: filter.port });
    }
    if mapping.size > 1 {
        port_set(&mut octets, mapping.size, mapping.internal.port);
    }
    octets
}

/// An announcement without a request (§14.1.3).
pub(super) fn announcement(epoch: u32) -> Vec<u8> {
    let mut octets = vec![0; HEADER];
    put(&mut octets, 0, &[VERSION]);
    set_header(&mut octets, (ResultCode::Success, 0), epoch);
    octets
}

/// Adds the options of a MAP request that were processed; a set of ports if it has more than one.
pub(super) fn map_options(octets: &mut Vec<u8>, request: &MapRequest, set: Option<(u16, u16)>) {
    if let Some(host) = request.third_party {
        third_party(octets, host);
    }
    if request.prefer_failure {
        option(octets, PREFER_FAILURE, &[]);
    }
    for filter in &request.filters {
        filter_option(octets, filter);
    }
    if let Some((size, first)) = set.filter(|(size, _)| *size > 1) {
        port_set(octets, size, first);
    }
}

/// Adds the option that names the host.
pub(super) fn third_party(octets: &mut Vec<u8>, host: IpAddr) {
    option(octets, THIRD_PARTY, &octets_of(host));
}

/// Adds the prefixes of NAT64s (RFC 7225 §4.1); their suffixes are null.
pub(super) fn prefixes64(octets: &mut Vec<u8>, prefixes: &[Rfc6052]) {
    for prefix in prefixes {
        let prefix = prefix.prefix();
        let mut data = [0; 14];
        data[1] = prefix.length() / 8;
        let octets_of_prefix = prefix.address().octets();
        for (to, from) in data.iter_mut().skip(2).zip(octets_of_prefix) {
            *to = from;
        }
        option(octets, PREFIX64, &data);
    }
}

fn port_set(octets: &mut Vec<u8>, size: u16, first: u16) {
    let ([a, b], [c, d]) = (size.to_be_bytes(), first.to_be_bytes());
    option(octets, PORT_SET, &[a, b, c, d, 0]);
}

fn filter_option(octets: &mut Vec<u8>, filter: &FilterOption) {
    let (address, length, port) = match *filter {
        FilterOption::Clear => (IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED), 0, 0),
        FilterOption::Admit { address: address @ IpAddr::V4(_), length, port } => {
            (address, length + 96, port)
        }
        FilterOption::Admit { address: address @ IpAddr::V6(_), length, port } => (address, length, port),
    };
    let [high, low] = port.to_be_bytes();
    let mut data = vec![0, length, high, low];
    data.extend(octets_of(address));
    option(octets, FILTER, &data);
}

fn option(octets: &mut Vec<u8>, code: u8, data: &[u8]) {
    let [high, low] = (data.len() as u16).to_be_bytes();
    octets.extend([code, 0, high, low]);
    octets.extend_from_slice(data);
    octets.resize(octets.len().next_multiple_of(4), 0);
}

fn success(request: &[u8], length: usize, lifetime: u32, epoch: u32) -> Vec<u8> {
    let mut octets: Vec<u8> = request.iter().copied().take(length).collect();
    octets.resize(length, 0);
    put(&mut octets, 12, &[0; 12]);
    if length > HEADER {
        put(&mut octets, HEADER + 13, &[0; 3]);
    }
    set_header(&mut octets, (ResultCode::Success, lifetime), epoch);
    octets
}

fn assigned(mut octets: Vec<u8>, external: Option<(u16, Endpoint4)>) -> Vec<u8> {
    if let Some((port, external)) = external {
        put(&mut octets, INTERNAL_PORT, &port.to_be_bytes());
        put(&mut octets, INTERNAL_PORT + 2, &external.port.to_be_bytes());
        put(&mut octets, INTERNAL_PORT + 4, &octets_of(IpAddr::V4(external.address)));
    }
    octets
}

fn set_header(octets: &mut [u8], (result, lifetime): (ResultCode, u32), epoch: u32) {
    put(octets, 0, &[VERSION]);
    if let Some(opcode) = octets.get_mut(1) {
        *opcode |= RESPONSE;
    }
    put(octets, 2, &[0]);
    put(octets, RESULT, &[result as u8]);
    put(octets, 4, &lifetime.to_be_bytes());
    put(octets, 8, &epoch.to_be_bytes());
}

fn put(octets: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = octets.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}
