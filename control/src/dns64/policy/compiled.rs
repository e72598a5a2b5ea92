//! The settings, compiled so that each query is evaluated without allocating.

use super::not_synthesised::NotSynthesised;
use super::ranges::Addresses;
use super::rules::Rules;
use super::ruling::Ruling;
use crate::dns64::reverse::embedded;
use crate::dns64::settings::{Access, Settings};
use sixway_dataplane::translate::address::rfc6052::{Rfc6052, WELL_KNOWN_PREFIX};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The settings, compiled for queries.
#[derive(Clone, Debug)]
pub(in crate::dns64) struct Policy {
    access: Addresses,
    exclude: Addresses,
    not_synthesised: NotSynthesised,
    prefixes: Vec<Rfc6052>,
    all_prefixes: Vec<Rfc6052>,
    makes_none: bool,
    pub(super) rules: Rules,
}

impl Policy {
    /// Takes what matters of the settings.
    pub(in crate::dns64) fn new(settings: &Settings) -> Self {
        Self {
            access: Addresses::new(&settings.access.v4, &settings.access.v6),
            exclude: Addresses::new(&[], &settings.exclude),
            not_synthesised: NotSynthesised::new(settings),
            prefixes: settings.prefixes.clone(),
            all_prefixes: all_prefixes(settings),
            makes_none: settings.prefixes.is_empty()
                && settings.rules.iter().all(|rule| rule.prefixes.is_empty()),
            rules: Rules::new(&settings.rules),
        }
    }

    /// Changes which clients may query, and this host's addresses.
    pub(in crate::dns64) fn set_access(&mut self, access: &Access) {
        self.access = Addresses::new(&access.v4, &access.v6);
        self.not_synthesised.set_host4(&access.host4);
    }

    /// Whether the client may query.
    pub(in crate::dns64) fn admits(&self, client: IpAddr) -> bool {
        self.access.contains(client)
    }

    /// What holds for a query of this client for this name, in lower-case wire form.
    pub(in crate::dns64) fn for_query(&self, client: IpAddr, name: &[u8]) -> Ruling<'_> {
        Ruling::new(&self.rules, (&self.prefixes, &self.not_synthesised), self.rules.for_name(name), client)
    }

    /// The prefixes that this client's addresses are made with, whatever the name and the address: those of the first rule for clients alone, else
    /// the settings'. For `ipv4only.arpa` (RFC 7050 §3).
    pub(in crate::dns64) fn prefixes_of(&self, client: IpAddr) -> &[Rfc6052] {
        match self.rules.first_unnamed(client) {
            Some(rule) if !rule.prefixes.is_empty() => &rule.prefixes,
            Some(_) | None => &self.prefixes,
        }
    }

    /// Every prefix that represents IPv4 here, the rules' and the well-known one included (RFC 6147 §5.3.1), the longest first.
    pub(in crate::dns64) fn all_prefixes(&self) -> &[Rfc6052] {
        &self.all_prefixes
    }

    /// The IPv4 address that the address of this reverse name represents, if AAAA records are made with it.
    pub(in crate::dns64) fn embedded(&self, name: &[u8]) -> Option<Ipv4Addr> {
        embedded(name, &self.all_prefixes, |address| self.not_synthesised.is_no_host(address))
    }

    /// Whether an AAAA record with this address counts as absent (RFC 6147 §5.1.4).
    pub(in crate::dns64) fn excluded(&self, address: Ipv6Addr) -> bool {
        self.exclude.contains6(address)
    }

    /// Whether there is no prefix, so that AAAA records are never made.
    pub(in crate::dns64) fn makes_none(&self) -> bool {
        self.makes_none
    }

    /// Whether nothing is excluded, so that no AAAA record needs to be examined.
    pub(in crate::dns64) fn excludes_nothing(&self) -> bool {
        self.exclude.is_empty()
    }
}

fn all_prefixes(settings: &Settings) -> Vec<Rfc6052> {
    let written = settings.prefixes.iter().chain(settings.rules.iter().flat_map(|rule| &rule.prefixes));
    let well_known = Rfc6052::new(WELL_KNOWN_PREFIX, false).ok();
    let mut all: Vec<Rfc6052> = Vec::new();
    for prefix in written.copied().chain(well_known) {
        if all.iter().all(|known| known.prefix() != prefix.prefix()) {
            all.push(prefix);
        }
    }
    all.sort_by_key(|prefix| std::cmp::Reverse(prefix.prefix().length()));
    all
}
