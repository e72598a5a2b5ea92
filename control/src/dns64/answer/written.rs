//! An answer as it is written: its question, its parts, and their records where they stand.

use super::record::{expand_data, rtype};
use super::{Answer, Part};
use crate::dns64::name::{Name, expand_within, skip};
use crate::dns64::query::HEADER;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A record as it is written in a body.
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

impl Answer {
    /// Key and body.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Name, type and class, as they stand in a question, the name in lower case.
    pub(crate) fn question(&self) -> &[u8] {
        &self.octets[1..self.key_length()]
    }

    /// CD, the name, type and class.
    fn key_length(&self) -> usize {
        1 + usize::from(self.name_length) + 4
    }

    /// A part's records as they follow the question.
    pub(crate) fn part(&self, part: Part) -> &[u8] {
        &self.octets[self.parts.range(self.key_length(), part)]
    }

    /// The records of a part, as they are written.
    pub(crate) fn raw_records(&self, part: Part) -> impl Iterator<Item = RawRecord<'_>> {
        let std::ops::Range { start: mut at, end } = self.parts.range(self.key_length(), part);
        std::iter::from_fn(move || {
            let record = RawRecord::read(&self.octets[..end], at)?;
            at = record.end;
            Some(record)
        })
    }

    /// A record as it is written.
    pub(crate) fn raw(&self, record: &RawRecord<'_>) -> &[u8] {
        &self.octets[record.at..record.end]
    }

    /// Its owner as it is written.
    pub(crate) fn raw_owner(&self, record: &RawRecord<'_>) -> &[u8] {
        &self.octets[record.at..record.end - record.data.len() - 10]
    }

    /// Appends the owner's name in full.
    pub(crate) fn expand_owner(&self, record: &RawRecord<'_>, out: &mut Name) -> Option<()> {
        expand_within(&self.octets, HEADER - 1, record.at, out).map(|_| ())
    }

    /// Appends the data, with names in full.
    pub(crate) fn expand_data(&self, record: &RawRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        let data = (record.rtype, record.end - record.data.len(), record.end);
        expand_data(&self.octets, HEADER - 1, data, out)
    }
}
