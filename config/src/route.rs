//! A route into the device as plain data, and the fewest prefixes for a set of addresses.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use sixway_wire::{Prefix4, Prefix6};

/// A destination that is routed into the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// IPv4 packets to these addresses.
    V4(Prefix4),
    /// IPv6 packets to these addresses.
    V6(Prefix6),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

/// `0.0.0.0/0`.
pub(crate) const DEFAULT_ROUTE4: Prefix4 = Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0);

/// `::/0`.
pub const DEFAULT_ROUTE6: Prefix6 = Prefix6::holding(Ipv6Addr::UNSPECIFIED, 0);

/// A prefix that can be joined with its neighbour.
pub(crate) trait Join: Copy + Ord {
    /// Whether all of `other` lies in it.
    fn holds(self, other: Self) -> bool;
    /// The prefix one bit shorter, if `self` and `other` are its two halves, in this order.
    fn join(self, other: Self) -> Option<Self>;
}

macro_rules! join {
    ($prefix:ty) => {
        impl Join for $prefix {
            fn holds(self, other: Self) -> bool {
                self.length() <= other.length() && self.overlaps(other)
            }
            fn join(self, other: Self) -> Option<Self> {
                let whole = Self::holding(self.address(), self.length().checked_sub(1)?);
                let halves = self.length() == other.length() && self != other && whole.holds(other);
                halves.then_some(whole)
            }
        }
    };
}
join!(Prefix4);
join!(Prefix6);

/// The fewest prefixes that hold exactly the same addresses, ascending.
pub(crate) fn aggregated<P: Join>(mut prefixes: Vec<P>) -> Vec<P> {
    prefixes.sort_unstable();
    let mut joined: Vec<P> = Vec::new();
    for mut prefix in prefixes {
        if joined.last().is_some_and(|last| last.holds(prefix)) {
            continue;
        }
        while let Some(whole) = joined.last().and_then(|last| last.join(prefix)) {
            joined.pop();
            prefix = whole;
        }
        joined.push(prefix);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix4> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn neighbours_are_joined_and_what_lies_within_another_is_left_out() {
        let some = prefixes(&[
            "192.0.2.3",
            "192.0.2.0/31",
            "192.0.2.2",
            "192.0.2.1",
            "198.51.100.4/30",
            "192.0.2.4/30",
        ]);
        assert_eq!(aggregated(some), prefixes(&["192.0.2.0/29", "198.51.100.4/30"]));
    }

    #[test]
    fn prefixes_that_are_no_two_halves_stay_apart() {
        let some = prefixes(&["192.0.2.1", "192.0.2.2", "192.0.2.4/31"]);
        assert_eq!(aggregated(some.clone()), some);
        assert_eq!(aggregated(prefixes(&["0.0.0.0/1", "128.0.0.0/1"])), prefixes(&["0.0.0.0/0"]));
    }
}
