//! A record in the form of a body.

use super::record::rtype;
use crate::dns64::name::skip;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A record in the form of a body.
pub(crate) struct RawRecord<'a> {
    /// Where it begins.
    pub(crate) at: usize,
    pub(crate) rtype: u16,
    pub(crate) class: u16,
    pub(crate) ttl: u32,
    pub(crate) data: &'a [u8],
    /// Where it ends.
    pub(crate) end: usize,
}

impl<'a> RawRecord<'a> {
    pub(crate) fn read(octets: &'a [u8], at: usize) -> Option<Self> {
        let fields_at = skip(octets, at)?;
        let fields = octets.get(fields_at..)?.first_chunk::<10>()?;
        let pair = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
        let end = fields_at + 10 + usize::from(pair(8));
        let data = octets.get(fields_at + 10..end)?;
        let ttl = u32::from(pair(4)) << 16 | u32::from(pair(6));
        Some(Self { at, rtype: pair(0), class: pair(2), ttl, data, end })
    }

    /// The address of an A or AAAA record.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.rtype {
            rtype::A => self.data.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into()),
            rtype::AAAA => self.data.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into()),
            _ => None,
        }
    }
}
