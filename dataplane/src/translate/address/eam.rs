//! Explicit address mappings (RFC 7757): a table that says which IPv6 prefix represents which IPv4 prefix.
//!
//! ```text
//!     192.0.2.128/26      ⇄  2001:db8:dddd::/64
//!     192.0.2.152         ⇄  2001:db8:dddd:0:6000::      the 6 suffix bits follow the IPv6 prefix,
//!                                                        the other 58 are zero, and ignored on the way back
//! ```
//!
//! Each column is searched on its own for the longest match (§3.3), so overlapping rows need not be symmetric (§5).

mod column;

use column::{Column, Four, Six, Slot};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// A row: an IPv4 prefix and the IPv6 prefix that represents it (RFC 7757 §3.2).
pub type Eam = (Prefix4, Prefix6);

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EamErrorKind {
    /// The IPv4 prefix has more suffix bits than the IPv6 prefix (RFC 7757 §3.2).
    SuffixTooLong,
    /// An earlier row, whose index this is, has the same IPv4 prefix (RFC 7757 §5).
    SameIpv4 {
        /// Index of the earlier row.
        first: usize,
    },
    /// An earlier row, whose index this is, has the same IPv6 prefix (RFC 7757 §5).
    SameIpv6 {
        /// Index of the earlier row.
        first: usize,
    },
    /// More rows than [`EamTable::MAX_ROWS`]; said once, of the first that is too many.
    TooMany,
}

/// A row that cannot be in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EamError {
    /// Index of the row among those given, from zero.
    pub index: usize,
    /// The row.
    pub row: Eam,
    /// What is wrong with it.
    pub kind: EamErrorKind,
}

impl fmt::Display for EamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (four, six) = self.row;
        match self.kind {
            EamErrorKind::SuffixTooLong => write!(
                f,
                "{four} has {} suffix bits, {six} only {}; the IPv6 side must have at least as many suffix bits (RFC 7757 §3.2)",
                32 - four.length(),
                128 - six.length()
            ),
            EamErrorKind::SameIpv4 { first } => {
                write!(
                    f,
                    "{four} is in row {} already; one prefix cannot have two mappings (RFC 7757 §5)",
                    first + 1
                )
            }
            EamErrorKind::SameIpv6 { first } => {
                write!(
                    f,
                    "{six} is in row {} already; one prefix cannot have two mappings (RFC 7757 §5)",
                    first + 1
                )
            }
            EamErrorKind::TooMany => write!(f, "a table has room for {} rows", EamTable::MAX_ROWS),
        }
    }
}

impl std::error::Error for EamError {}

/// A row that lies inside a shorter prefix of another row, in one column: lawful, but the two directions may not mirror
/// each other (RFC 7757 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EamOverlap {
    /// Index of the row with the longer prefix.
    pub inner: usize,
    /// Index of the row with the shorter prefix.
    pub outer: usize,
    /// Whether it is the IPv4 column; else the IPv6 column.
    pub in_ipv4: bool,
}

/// The table of explicit address mappings (RFC 7757 §3.1). It does not change; a new configuration is a new table.
///
/// Up to [`Self::MAX_ROWS`] rows, at 76 octets each and 16 KiB for the table.
pub struct EamTable {
    four: Column<Four>,
    six: Column<Six>,
    /// Where each row is in the IPv4 column.
    places: Vec<u32>,
}

impl EamTable {
    /// Most rows that a table has room for.
    pub const MAX_ROWS: usize = Slot::MAX_ROWS;

    /// Builds the table; as an error, everything that is wrong with the rows, in their order.
    pub fn new(entries: impl IntoIterator<Item = Eam>) -> Result<Self, Vec<EamError>> {
        let rows: Vec<Eam> = entries.into_iter().take(Self::MAX_ROWS + 1).collect();
        if let Some(row) = rows.get(Self::MAX_ROWS) {
            return Err(vec![EamError { index: Self::MAX_ROWS, row: *row, kind: EamErrorKind::TooMany }]);
        }
        let mut table = Self {
            four: Column::for_rows(&rows),
            six: Column::for_rows(&rows),
            places: Vec::with_capacity(rows.len()),
        };
        let mut errors = Vec::new();
        for (index, &row) in rows.iter().enumerate() {
            let mut fault = |kind| errors.push(EamError { index, row, kind });
            if 32 - row.0.length() > 128 - row.1.length() {
                fault(EamErrorKind::SuffixTooLong);
            }
            match table.four.insert(index, row) {
                Ok(place) => table.places.push(place as u32),
                Err(there) => fault(EamErrorKind::SameIpv4 { first: there.row() }),
            }
            if let Err(there) = table.six.insert(index, row) {
                fault(EamErrorKind::SameIpv6 { first: there.row() });
            }
        }
        if errors.is_empty() { Ok(table) } else { Err(errors) }
    }

    /// A table without rows.
    pub fn empty() -> Self {
        Self { four: Column::for_rows(&[]), six: Column::for_rows(&[]), places: Vec::new() }
    }

    /// The IPv6 address of an IPv4 address (RFC 7757 §3.3.1); `None` if no row holds it.
    #[inline]
    pub fn to6(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        let bits = address.to_bits();
        let (slot, length) = self.four.longest(bits)?;
        if slot.other_length() == length + 96 {
            // The usual case: suffixes of equal length.
            let host = bits & !(u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0));
            return Some(Ipv6Addr::from_bits(slot.six() | u128::from(host)));
        }
        let suffix = bits & !(u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0));
        let trailing = trailing_bits(length, slot.other_length());
        Some(Ipv6Addr::from_bits(slot.six() | u128::from(suffix).checked_shl(trailing).unwrap_or(0)))
    }

    /// The IPv4 address of an IPv6 address (RFC 7757 §3.3.2); `None` if no row holds it.
    #[inline]
    pub fn to4(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let bits = address.to_bits();
        let (slot, length) = self.six.longest(bits)?;
        if length == slot.other_length() + 96 {
            let host = bits as u32 & !(u32::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0));
            return Some(Ipv4Addr::from_bits(slot.four() | host));
        }
        let suffix = bits & !(u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0));
        let trailing = trailing_bits(slot.other_length(), length);
        Some(Ipv4Addr::from_bits(slot.four() | suffix.checked_shr(trailing).unwrap_or(0) as u32))
    }

    /// Whether a row holds the IPv4 address.
    #[inline]
    pub fn contains4(&self, address: Ipv4Addr) -> bool {
        self.four.longest(address.to_bits()).is_some()
    }

    /// The length of the longest IPv6 prefix that holds the address.
    #[inline]
    pub fn length6(&self, address: Ipv6Addr) -> Option<u8> {
        self.six.longest(address.to_bits()).map(|(_, length)| length)
    }

    /// Loads the memory that [`Self::to6`] will look at first, so that a batch's cache misses overlap. The value has no
    /// meaning; keep it, or the load is optimised away.
    #[inline]
    pub fn warm4(&self, address: Ipv4Addr) -> u32 {
        self.four.warm(address.to_bits())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The row with this index, in the order in which they were given.
    pub fn row(&self, index: usize) -> Option<Eam> {
        let place = *self.places.get(index)? as usize;
        let slot = self.four.slot(place);
        let four = Prefix4::holding(Ipv4Addr::from_bits(slot.four()), self.four.length_at(place));
        Some((four, Prefix6::holding(Ipv6Addr::from_bits(slot.six()), slot.other_length())))
    }

    /// The rows, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = Eam> {
        (0..self.len()).filter_map(|index| self.row(index))
    }

    /// The rows that lie inside another row's prefix, in either column: worth a warning (RFC 7757 §5).
    pub fn overlaps(&self) -> impl Iterator<Item = EamOverlap> {
        self.iter().enumerate().flat_map(|(inner, (four, six))| {
            let outer4 = self.four.longest_below(four.address().to_bits(), four.length());
            let outer6 = self.six.longest_below(six.address().to_bits(), six.length());
            let found = |outer: Option<(&Slot, u8)>, in_ipv4| {
                outer.map(|(slot, _)| EamOverlap { inner, outer: slot.row(), in_ipv4 })
            };
            [found(outer4, true), found(outer6, false)].into_iter().flatten()
        })
    }

    /// Octets of memory that the table takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.four.memory() + self.six.memory() + self.places.capacity() * size_of::<u32>()
    }
}

impl fmt::Debug for EamTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EamTable({} rows)", self.len())
    }
}

/// How many more suffix bits the IPv6 prefix has: zero on the way to IPv6, discarded on the way back (RFC 7757 §3.3).
#[inline]
const fn trailing_bits(length4: u8, length6: u8) -> u32 {
    96 + length4 as u32 - length6 as u32
}

#[cfg(test)]
mod tests;
