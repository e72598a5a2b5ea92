//! The policy for one query.

use super::not_synthesised::NotSynthesised;
use super::rules::{Rule, Rules};
use crate::dns64::settings::Synthesis;
use crate::dns64::special_address::WELL_KNOWN;
use arrayvec::ArrayVec;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum prefixes that one IPv4 address is embedded in; further ones are not used.
pub(in crate::dns64) const MOST_PREFIXES: usize = 8;

/// The result of embedding an A record's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dns64) enum Embedded {
    /// At least one address.
    Some,
    /// None: excluded by a rule.
    ExcludedByRule,
    /// None: no host has that address: 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/4 or 240.0.0.0/4.
    NoHost,
    /// None: the translator refuses the address, or it is private and such are not synthesised from.
    ExcludedAddress,
    /// None: the address is not global, and the prefix is the well-known one (RFC 6052 §3.1).
    NotGlobal,
}

impl Embedded {
    /// Why there is no address, as EXTRA-TEXT of an EDE option (RFC 8914 §2).
    pub(in crate::dns64) const fn text(self) -> &'static str {
        match self {
            Self::Some => "",
            Self::ExcludedByRule => "not synthesised by local rule",
            Self::NoHost => "not the IPv4 address of a host",
            Self::ExcludedAddress => "an excluded IPv4 address",
            Self::NotGlobal => "not a global IPv4 address (RFC 6052 3.1)",
        }
    }
}

/// What holds for one client and one name. Of all rules that match, the first decides.
///
/// Rules without addresses decide on the whole query, those with addresses on single A records, so [`Self::synthesis`] and [`Self::hide_a`] say what holds for
/// all A records, and [`Self::embed`] and [`Self::hides`] what holds for one.
#[derive(Clone, Copy, Debug)]
pub(in crate::dns64) struct Ruling<'p> {
    rules: &'p Rules,
    prefixes: &'p [Rfc6052],
    not_synthesised: &'p NotSynthesised,
    named: &'p [u32],
    client: IpAddr,
    /// The first rule without addresses, and its place.
    whole: Option<(u32, &'p Rule)>,
}

impl<'p> Ruling<'p> {
    pub(super) fn new(
        rules: &'p Rules,
        (prefixes, not_synthesised): (&'p [Rfc6052], &'p NotSynthesised),
        named: &'p [u32],
        client: IpAddr,
    ) -> Ruling<'p> {
        let client = client.to_canonical();
        Self { rules, prefixes, not_synthesised, named, client, whole: rules.first(named, client) }
    }

    /// Whether AAAA records are synthesised. [`Synthesis::Never`] only if no A record may be synthesised from. [`Synthesis::Always`], with
    /// which AAAA records that are there are not examined, is for rules without addresses to say; in a rule with addresses it is as
    /// `Normal`.
    pub(in crate::dns64) fn synthesis(&self) -> Synthesis {
        let whole = self.whole.map_or(Synthesis::Normal, |(_, rule)| rule.synthesis);
        match whole {
            Synthesis::Never if self.single(|rule| rule.synthesis != Synthesis::Never) => Synthesis::Normal,
            Synthesis::Never | Synthesis::Normal | Synthesis::Always => whole,
        }
    }

    /// Whether every A record is withheld, so that a query for A needs no upstream.
    pub(in crate::dns64) fn hide_a(&self) -> bool {
        self.whole.is_some_and(|(_, rule)| rule.hide_a) && !self.single(|rule| !rule.hide_a)
    }

    /// Whether some A records may be withheld: call [`Self::hides`] for each.
    pub(in crate::dns64) fn hides_some(&self) -> bool {
        !self.hide_a() && (self.single(|rule| rule.hide_a) || self.whole.is_some_and(|(_, rule)| rule.hide_a))
    }

    /// Whether an A record with this address is withheld.
    pub(in crate::dns64) fn hides(&self, address: Ipv4Addr) -> bool {
        self.rule(address).is_some_and(|rule| rule.hide_a)
    }

    /// Appends the IPv6 addresses that embed this one, at most [`MOST_PREFIXES`] and as many as there is room for.
    pub(in crate::dns64) fn embed(
        &self,
        address: Ipv4Addr,
        into: &mut ArrayVec<Ipv6Addr, MOST_PREFIXES>,
    ) -> Embedded {
        let rule = self.rule(address);
        if rule.is_some_and(|rule| rule.synthesis == Synthesis::Never) {
            return Embedded::ExcludedByRule;
        }
        if self.not_synthesised.is_no_host(address) {
            return Embedded::NoHost;
        }
        let prefixes = rule.map(|rule| &rule.prefixes[..]).filter(|prefixes| !prefixes.is_empty());
        let mut embedded = Embedded::NotGlobal;
        // Not global either, but hosts find the prefix by them (RFC 7050 §3), the well-known one too.
        let finds_prefix = WELL_KNOWN.contains(&address);
        if !finds_prefix && self.not_synthesised.everywhere(address) {
            return Embedded::ExcludedAddress;
        }
        for prefix in prefixes.unwrap_or(self.prefixes) {
            let made = match finds_prefix {
                true => Some(prefix.embed_any(address)),
                false => prefix.embed(address).ok(),
            };
            let Some(made) = made else { continue };
            if !finds_prefix && self.not_synthesised.with(prefix.prefix(), address) {
                if embedded != Embedded::Some {
                    embedded = Embedded::ExcludedAddress;
                }
            } else if into.try_push(made).is_ok() {
                embedded = Embedded::Some;
            }
        }
        embedded
    }

    /// The rule for an A record.
    fn rule(&self, address: Ipv4Addr) -> Option<&'p Rule> {
        if self.rules.by_address() {
            return self.rules.first_for(self.named, self.client, address);
        }
        self.whole.map(|(_, rule)| rule)
    }

    /// Whether a rule for single records, before the one for all, is such.
    fn single(&self, is_such: impl Fn(&Rule) -> bool) -> bool {
        let end = self.whole.map_or(u32::MAX, |(place, _)| place);
        self.rules.by_address() && self.rules.with_addresses(self.named, self.client, end).any(is_such)
    }
}
