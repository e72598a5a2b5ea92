//! The tunnels' lists, as spans of shared arrays.

use super::header_form::{network, place, word};
use super::unoffered::UnofferedReason;
use crate::layout::{ADDRESSES4, Config, NETWORKS4, Network4, PREFIXES6, Prefix6 as Place6};
use core::net::Ipv4Addr;
use sixway_wire::{Prefix4, Prefix6};

/// A part of an array: first, count.
pub(super) type Span = [u8; 2];

/// What of the arrays is used.
#[derive(Default)]
pub(super) struct Lists {
    prefixes: Vec<Place6>,
    networks: Vec<Network4>,
    addresses: Vec<u32>,
}

impl Lists {
    pub(super) fn prefixes(&mut self, list: &[Prefix6]) -> Result<Span, UnofferedReason> {
        let places: Vec<_> = list.iter().copied().map(place).collect();
        append(&mut self.prefixes, &places, PREFIXES6, "prefixes of tunnels")
    }

    pub(super) fn networks(&mut self, list: &[Prefix4]) -> Result<Span, UnofferedReason> {
        let places: Vec<_> = list.iter().copied().map(network).collect();
        append(&mut self.networks, &places, NETWORKS4, "IPv4 networks of tunnels")
    }

    pub(super) fn addresses(&mut self, list: &[Ipv4Addr]) -> Result<Span, UnofferedReason> {
        let places: Vec<_> = list.iter().copied().map(word).collect();
        append(&mut self.addresses, &places, ADDRESSES4, "relays and routers of tunnels")
    }

    pub(super) fn write(self, config: &mut Config) {
        config.prefixes[..self.prefixes.len()].copy_from_slice(&self.prefixes);
        config.networks[..self.networks.len()].copy_from_slice(&self.networks);
        config.addresses[..self.addresses.len()].copy_from_slice(&self.addresses);
    }
}

/// The span of the list in the array: an existing equal span, or a new one at the end.
fn append<T: Copy + PartialEq>(
    array: &mut Vec<T>,
    list: &[T],
    room: usize,
    what: &'static str,
) -> Result<Span, UnofferedReason> {
    if list.is_empty() {
        return Ok([0, 0]);
    }
    let first = match array.windows(list.len()).position(|window| window == list) {
        Some(first) => first,
        None if array.len() + list.len() > room => return Err(UnofferedReason::TooMany { what, room }),
        None => {
            array.extend_from_slice(list);
            array.len() - list.len()
        }
    };
    Ok([first as u8, list.len() as u8])
}
