//! One record with uncompressed names, and the positions of names in the data of each type.

use crate::dns64::name::{Name, expand_within, measure};

/// Types that are examined (IANA's registry of DNS parameters).
pub mod rtype {
    #![allow(missing_docs, reason = "the names are the registry's")]
    pub const A: u16 = 1;
    pub const NS: u16 = 2;
    pub const CNAME: u16 = 5;
    pub const SOA: u16 = 6;
    pub const PTR: u16 = 12;
    pub const HINFO: u16 = 13;
    pub const AAAA: u16 = 28;
    pub const DNAME: u16 = 39;
    pub const DS: u16 = 43;
    pub const RRSIG: u16 = 46;
    pub const NSEC: u16 = 47;
    pub const DNSKEY: u16 = 48;
    pub const NSEC3: u16 = 50;
    pub const ANY: u16 = 255;
}

/// A record of the question's class; its names are written out, in the case that the upstream gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its owner.
    pub owner: Box<[u8]>,
    /// TYPE.
    pub rtype: u16,
    /// TTL, in seconds.
    pub ttl: u32,
    /// RDATA.
    pub data: Box<[u8]>,
}

impl Record {
    /// Of an RRSIG record: the type that it covers (RFC 4034 §3.1.1).
    #[must_use]
    pub fn covered(&self) -> Option<u16> {
        let signs = self.rtype == rtype::RRSIG;
        self.data.first_chunk().filter(|_| signs).map(|covered| u16::from_be_bytes(*covered))
    }

    /// Of an RRSIG record: the zone that signed (RFC 4034 §3.1.7).
    #[must_use]
    pub fn signer(&self) -> Option<&[u8]> {
        let rest = self.data.get(18..).filter(|_| self.rtype == rtype::RRSIG)?;
        rest.get(..measure(rest)?)
    }
}

/// The positions of names in a record's data.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Octets before the first name.
    before: usize,
    /// Then: character strings (RFC 1035 §3.3).
    strings: usize,
    /// Then: names.
    names: usize,
    /// Octets behind the last name; `None`: any number.
    behind: Option<usize>,
    /// Whether the names may be written compressed (RFC 3597 §4: only where RFC 1035 defines the type).
    pub(crate) compressible: bool,
}

impl Layout {
    /// Of the types in which names were ever compressed (RFC 3597 §4), and of those of DNSSEC, in which they are not; `None`: a type without
    /// names, or with names that are never compressed.
    pub(crate) const fn of(rtype: u16) -> Option<Self> {
        let (before, strings, names, behind) = match rtype {
            2 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 39 => (0, 0, 1, Some(0)), // NS MD MF CNAME MB MG MR PTR DNAME
            6 => (0, 0, 2, Some(20)),                                  // SOA
            14 | 17 => (0, 0, 2, Some(0)),                             // MINFO RP
            15 | 18 | 21 | 36 => (2, 0, 1, Some(0)),                   // MX AFSDB RT KX
            24 | 46 => (18, 0, 1, None),                               // SIG RRSIG
            26 => (2, 0, 2, Some(0)),                                  // PX
            30 | 47 => (0, 0, 1, None),                                // NXT NSEC
            33 => (6, 0, 1, Some(0)),                                  // SRV
            35 => (4, 3, 1, Some(0)),                                  // NAPTR
            _ => return None,
        };
        let compressible = matches!(rtype, 2..=9 | 12 | 14 | 15);
        Some(Self { before, strings, names, behind, compressible })
    }

    /// Calls `name` with the place of each name in `data[at..end]`, which says where that name ends, and `plain` with what lies between.
    /// `None`: the data are not of this type.
    pub(crate) fn walk(
        &self,
        octets: &[u8],
        mut at: usize,
        end: usize,
        mut plain: impl FnMut(&[u8]) -> Option<()>,
        mut name: impl FnMut(usize) -> Option<usize>,
    ) -> Option<()> {
        let mut behind = at + self.before;
        for _ in 0..self.strings {
            behind += 1 + usize::from(*octets.get(behind)?);
        }
        plain(octets.get(at..behind).filter(|_| behind <= end)?)?;
        at = behind;
        for _ in 0..self.names {
            at = name(at).filter(|at| *at <= end)?;
        }
        let rest = octets.get(at..end)?;
        if self.behind.is_some_and(|length| length != rest.len()) {
            return None;
        }
        plain(rest)
    }
}

/// Appends the data at `at..end` of a message, whose first `absent` octets are not there, with names written out. `None`: they are not of
/// this type.
pub(crate) fn expand_data(
    message: &[u8],
    absent: usize,
    (rtype, at, end): (u16, usize, usize),
    out: &mut Vec<u8>,
) -> Option<()> {
    let data = message.get(at..end)?;
    let Some(layout) = Layout::of(rtype) else {
        let length = match rtype {
            rtype::A => 4,
            rtype::AAAA => 16,
            _ => data.len(),
        };
        out.extend_from_slice(data);
        return (data.len() == length).then_some(());
    };
    let out = std::cell::RefCell::new(out);
    let plain = |octets: &[u8]| {
        out.borrow_mut().extend_from_slice(octets);
        Some(())
    };
    layout.walk(message, at, end, plain, |at| {
        let mut name = Name::new();
        let behind = expand_within(message, absent, at, &mut name)?;
        out.borrow_mut().extend_from_slice(&name);
        Some(behind)
    })
}
