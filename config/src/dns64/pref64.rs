//! PREF64 compared with the rules: the advertised prefix must be the one with which addresses are synthesised.

use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::Prefix6;

use super::rule::Rule;
use super::section::Dns64;
use crate::fault::Report;
use crate::router_advertisement::{Pref64, RouterAdvertisement};
use crate::section::Reader;
use crate::section::place_of;

/// Clients get one or the other, and it is not known which clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Undecided<'d>(&'d [Rfc6052], &'d [Rfc6052]);

/// Which of a prefix's clients a rule applies to.
enum Held {
    All,
    Some,
    None,
}

impl Rule {
    /// For clients within this prefix, or for unknown clients.
    fn held(&self, hosts: Option<Prefix6>) -> Held {
        let (clients, hosts) = match (&self.clients, hosts) {
            (None, _) => return Held::All,
            (Some(_), None) => return Held::Some,
            (Some(clients), Some(hosts)) => (clients, hosts),
        };
        // Of two that overlap, the shorter contains the other; those that do not overlap do not matter.
        let shortest = clients.v6.iter().filter(|it| it.overlaps(hosts)).map(|it| it.length()).min();
        match shortest {
            None => Held::None,
            Some(length) if length <= hosts.length() => Held::All,
            Some(_) => Held::Some,
        }
    }
}

impl Dns64 {
    /// The prefixes of the addresses that clients within `hosts` get for any name and address, as they learn from `ipv4only.arpa` (RFC 7050 §3).
    /// `hosts` is empty if it is not known.
    pub(crate) fn prefixes_for(&self, hosts: &[Prefix6]) -> Result<&[Rfc6052], Undecided<'_>> {
        let Some((first, others)) = hosts.split_first() else { return self.prefixes_within(None) };
        let first = self.prefixes_within(Some(*first))?;
        for hosts in others {
            let own = self.prefixes_within(Some(*hosts))?;
            if own != first {
                return Err(Undecided(first, own));
            }
        }
        Ok(first)
    }

    fn prefixes_within(&self, hosts: Option<Prefix6>) -> Result<&[Rfc6052], Undecided<'_>> {
        let mut perhaps = Vec::new();
        let mut last = &self.prefixes[..];
        for rule in self.rules.iter().filter(|rule| rule.names.is_empty() && rule.addresses.is_empty()) {
            let own = if rule.prefixes.is_empty() { &self.prefixes[..] } else { &rule.prefixes[..] };
            match rule.held(hosts) {
                Held::None => {}
                Held::Some => perhaps.push(own),
                Held::All => {
                    last = own;
                    break;
                }
            }
        }
        let other = perhaps.into_iter().find(|perhaps| *perhaps != last);
        other.map_or(Ok(last), |other| Err(Undecided(last, other)))
    }

    /// A NAT64 prefix other than the one with which addresses for these hosts are synthesised, or no single known prefix.
    pub(crate) fn warn_of_other_prefix(
        &self,
        it: &RouterAdvertisement,
        hosts: &[Prefix6],
        written: &Reader,
        report: &mut Report,
    ) {
        let what = match (it.pref64, self.prefixes_for(hosts)) {
            (Pref64::None, _) | (Pref64::Auto, Ok(_)) => return,
            (Pref64::Auto, Err(Undecided(one, other))) => format!(
                "a [[dns64.rule]] holds for some hosts of this link only: addresses are made with {} or {}, and one advertisement tells all the same; write the one that is meant, or \"none\"",
                listed(one),
                listed(other)
            ),
            (Pref64::Prefix(told), Ok(own)) if !has(own, told) => format!(
                "[dns64] synthesises with {}, and hosts would use a different prefix; remove pref64, or write the same prefix in both",
                listed(own)
            ),
            (Pref64::Prefix(told), Err(Undecided(one, other))) if !has(one, told) && !has(other, told) => {
                format!(
                    "[dns64] synthesises with {} or {}, and hosts would use a different prefix; write one of these",
                    listed(one),
                    listed(other)
                )
            }
            (Pref64::Prefix(_), _) => return,
        };
        report.warn(&place_of(written, "pref64"), what);
    }
}

fn has(prefixes: &[Rfc6052], told: Prefix6) -> bool {
    prefixes.iter().any(|own| own.prefix() == told)
}

fn listed(prefixes: &[Rfc6052]) -> String {
    let prefixes: Vec<String> = prefixes.iter().map(|own| own.prefix().to_string()).collect();
    prefixes.join(", ")
}
