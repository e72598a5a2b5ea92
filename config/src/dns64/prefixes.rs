//! The prefixes with which AAAA records are synthesised, and the translators that have them.

use serde::Serializer;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};

use crate::fault::{Place, Report};
use crate::nat64::Nat64;
use crate::section::Reader;
use crate::siit::Siit;
use crate::text;
use crate::value::Value;

/// The translators of this gateway, as far as they have a prefix.
pub(crate) struct Translators {
    /// Stateful ones first.
    prefixes: Vec<Rfc6052>,
    /// How many of them are stateful.
    nat64: usize,
    /// Whether all could be read; otherwise there are no further remarks on them.
    known: bool,
    /// Whether the DNS64 answers without a prefix: for the clients of a NAT46, or behind a B4, where all hosts reach IPv4.
    needs_no_prefix: bool,
    /// The IPv4 addresses that they refuse.
    excluded: Vec<(Prefix6, Vec<Prefix4>)>,
}

impl Translators {
    pub fn of(nat64: &[Option<Nat64>], siit: &[Option<Siit>], needs_no_prefix: bool) -> Self {
        let stateful = nat64.iter().flatten().map(|nat64| nat64.prefix);
        let stateless = siit.iter().flatten().filter_map(|siit| siit.prefix);
        let refused = (nat64.iter().flatten().map(|it| (it.prefix.prefix(), it.exclude_ipv4.clone()))).chain(
            siit.iter().flatten().filter_map(|it| Some((it.prefix?.prefix(), it.exclude_ipv4.clone()))),
        );
        Self {
            prefixes: stateful.chain(stateless).collect(),
            nat64: nat64.len(),
            needs_no_prefix,
            excluded: refused.filter(|(_, addresses)| !addresses.is_empty()).collect(),
            known: nat64.iter().all(Option::is_some) && siit.iter().all(Option::is_some),
        }
    }

    /// The IPv4 addresses that they refuse, by prefix.
    pub(super) fn excluded(&self) -> &[(Prefix6, Vec<Prefix4>)] {
        &self.excluded
    }

    /// That of the first `[nat64]`.
    pub(super) fn first_nat64(&self) -> Option<Rfc6052> {
        self.prefixes.first().filter(|_| self.nat64 > 0 && self.known).copied()
    }

    /// Whether none has the prefix, as far as they could all be read.
    pub(super) fn lack(&self, prefix: Prefix6) -> bool {
        self.known && self.find(prefix).is_none()
    }

    pub(super) fn find(&self, prefix: Prefix6) -> Option<Rfc6052> {
        self.prefixes.iter().find(|it| it.prefix() == prefix).copied()
    }
}

/// The context in which prefixes are read.
pub(super) struct TranslatorContext<'r> {
    pub translators: &'r Translators,
    /// `translated_elsewhere`.
    pub elsewhere: bool,
    /// `translate_non_global`, if it is written.
    pub non_global: Option<bool>,
}

impl TranslatorContext<'_> {
    /// The prefixes of the DNS64 itself.
    pub fn own(&self, section: &Reader, report: &mut Report) -> Option<Vec<Rfc6052>> {
        if let Some(written) = section.value("prefix", report) {
            return self.read_all(written, report);
        }
        let Some(first) = self.translators.prefixes.first() else {
            if self.translators.needs_no_prefix {
                return Some(Vec::new());
            }
            if self.translators.known {
                let place = Place {
                    key: format!("{}.prefix", section.place().key).into(),
                    ..section.place().clone()
                };
                let what = "no translator of this gateway has a prefix; write a [nat64], or prefix = \"64:ff9b::/96\" and translated_elsewhere = true if another machine translates it";
                report.fault(&place, what);
            }
            return None;
        };
        let again = Rfc6052::new(first.prefix(), self.non_global.unwrap_or(!first.is_global_only())).ok()?;
        Some(vec![again])
    }

    /// Prefixes that are written.
    pub fn read_all(&self, value: Value, report: &mut Report) -> Option<Vec<Rfc6052>> {
        let place = value.place.clone();
        let items = value.items();
        if items.is_empty() {
            report.fault(&place, "is empty; write a prefix, or remove it");
            return None;
        }
        let mut prefixes: Vec<Rfc6052> = Vec::with_capacity(items.len());
        for item in &items {
            let Some(prefix) = self.read(item, report) else { continue };
            if prefixes.contains(&prefix) {
                report.fault(&item.place, format!("{} is written twice; remove one", prefix.prefix()));
            }
            prefixes.push(prefix);
        }
        if prefixes.len() > MOST {
            let what = format!("has {} prefixes; write at most {MOST}", prefixes.len());
            report.fault(&place, what);
        }
        (prefixes.len() == items.len()).then_some(prefixes)
    }

    /// One prefix.
    fn read(&self, item: &Value, report: &mut Report) -> Option<Rfc6052> {
        let prefix = item.prefix6(report)?;
        let here = self.translators.find(prefix);
        let non_global = self.non_global.unwrap_or(here.is_some_and(|it| !it.is_global_only()));
        let read = match Rfc6052::new(prefix, non_global) {
            Ok(read) => read,
            Err(error) => {
                report.fault(&item.place, format!("{prefix}: {error}"));
                return None;
            }
        };
        match here {
            None if !self.elsewhere && self.translators.known => {
                report.fault(
                    &item.place,
                    format!("no translator of this gateway has prefix {prefix}; {}", self.mend()),
                );
            }
            Some(here) if here.is_global_only() && !read.is_global_only() && !self.elsewhere => {
                let what = "the translator here refuses IPv4 addresses that are not global; set translate_non_global = true there too";
                report.fault(&item.place, format!("{prefix}: {what}"));
            }
            Some(_) | None => {}
        }
        Some(read)
    }

    fn mend(&self) -> String {
        let names: Vec<String> = self.translators.prefixes.iter().map(|it| it.prefix().to_string()).collect();
        let elsewhere = "translated_elsewhere = true if another machine translates it";
        match &names[..] {
            [] => format!("write a [nat64] with it, or {elsewhere}"),
            names => format!("write {}, or {elsewhere}", names.join(" or ")),
        }
    }
}

/// AAAA records that are synthesised from one A record.
const MOST: usize = 8;

/// A list of translation prefixes, as text.
pub(super) fn many<S: Serializer>(values: &[Rfc6052], serializer: S) -> Result<S::Ok, S::Error> {
    let prefixes: Vec<Prefix6> = values.iter().map(Rfc6052::prefix).collect();
    text::many(&prefixes, serializer)
}
