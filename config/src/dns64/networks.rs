//! Prefixes of both families: where clients are.

use std::net::IpAddr;

use serde::{Serialize, Serializer};
use sixway_wire::{Prefix4, Prefix6};

use crate::fault::Report;
use crate::route::Route;
use crate::text;
use crate::value::Value;

/// Prefixes of both families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// Of IPv4.
    pub v4: Vec<Prefix4>,
    /// Of IPv6.
    pub v6: Vec<Prefix6>,
}

impl Networks {
    pub(super) fn read(value: Value, report: &mut Report) -> Option<Self> {
        let (mut networks, mut whole) = (Self::default(), true);
        for item in value.items() {
            match item.network(report) {
                Some(Route::V4(prefix)) => networks.v4.push(prefix),
                Some(Route::V6(prefix)) => networks.v6.push(prefix),
                None => whole = false,
            }
        }
        whole.then_some(networks)
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether an address lies in one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => self.v4.iter().any(|prefix| prefix.contains(address)),
            IpAddr::V6(address) => self.v6.iter().any(|prefix| prefix.contains(address)),
        }
    }

    /// Whether each of `other` lies in one of these.
    pub(super) fn holds(&self, other: &Self) -> bool {
        let within4 = |it: &Prefix4| self.v4.iter().any(|p| p.length() <= it.length() && p.overlaps(*it));
        let within6 = |it: &Prefix6| self.v6.iter().any(|p| p.length() <= it.length() && p.overlaps(*it));
        other.v4.iter().all(within4) && other.v6.iter().all(within6)
    }

    /// Whether they have an address in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        other.v4.iter().any(|it| self.v4.iter().any(|p| p.overlaps(*it)))
            || other.v6.iter().any(|it| self.v6.iter().any(|p| p.overlaps(*it)))
    }

    /// The prefix that holds all addresses of its family, if there is one.
    pub(super) fn everyone(&self) -> Option<Route> {
        let v4 = self.v4.iter().find(|prefix| prefix.length() == 0).copied().map(Route::V4);
        v4.or_else(|| self.v6.iter().find(|prefix| prefix.length() == 0).copied().map(Route::V6))
    }
}

impl Serialize for Networks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all: Vec<Route> =
            self.v6.iter().copied().map(Route::V6).chain(self.v4.iter().copied().map(Route::V4)).collect();
        text::many(&all, serializer)
    }
}
