//! The contents of a message other than an upstream's records.

use crate::Instant;
use crate::dns64::cookie::COOKIE_OCTETS;
use arrayvec::ArrayVec;
use std::net::Ipv6Addr;

/// Addresses that one A record becomes: one for each prefix.
pub type Embedded = ArrayVec<Ipv6Addr, 8>;

/// The header flags, limits and options of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions<'a> {
    /// The time: TTLs are what is left of them.
    pub now: Instant,
    /// AD.
    pub authentic: bool,
    /// AA.
    pub authoritative: bool,
    /// All TTLs are this one: of what is stale (RFC 8767 §4).
    pub ttl: Option<u32>,
    /// A larger message is truncated; `None`: a stream's, which takes 65,535 octets.
    pub limit: Option<u16>,
    /// The extended error for EDNS clients (RFC 8914).
    pub extended_error: Option<(u16, &'a str)>,
    /// The extended error of the upstream, next to ours (RFC 8914 §2 allows several).
    pub upstream_error: Option<(u16, &'a str)>,
    /// The cookie for a client that has one (RFC 7873).
    pub cookie: Option<[u8; COOKIE_OCTETS]>,
    /// How long the stream may be idle, in tenths of a second, for a client that asks (RFC 7828).
    pub keepalive: Option<u16>,
    /// Our UDP payload size in the OPT record, in octets.
    pub udp_payload: u16,
    /// The message is padded if the client padded its query (RFC 8467): only where it is encrypted.
    pub pad: bool,
}

/// A record that is known here. Names in its data are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRecord<'a> {
    /// Its owner; `None`: the question's name.
    pub owner: Option<&'a [u8]>,
    /// TYPE.
    pub rtype: u16,
    /// TTL, in seconds.
    pub ttl: u32,
    /// RDATA.
    pub data: &'a [u8],
}
