//! `[[dns64.rule]]`: exceptions for clients, names and addresses.

use serde::Serialize;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::Prefix4;

use super::domain_name::Name;
use super::networks::Networks;
use super::prefixes::{self, TranslatorContext};
use crate::fault::{Place, Report};
use crate::schema::RULE;
use crate::section::Reader;
use crate::text;
use crate::word::words;

words! {
    /// Whether AAAA records are made.
    Synthesis {
        /// If the name has no AAAA record.
        Normal = "normal",
        /// Never.
        Never = "never",
        /// Always; existing AAAA records are ignored.
        Always = "always",
    }
}

words! {
    /// The handling of A records.
    ARecords {
        /// They are given out.
        Pass = "pass",
        /// They are not.
        Hide = "hide",
    }
}

words! {
    /// Over which version of IP a query comes.
    Over {
        /// IPv4.
        Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

/// An exception: all that is not empty must match.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Clients; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Networks>,
    /// The IP version of their queries; `None`: either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Names, and those below them; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Name>,
    /// Addresses of A records; empty: all.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Prefix4>,
    /// Whether AAAA records are made.
    pub synthesis: Synthesis,
    /// With these prefixes; empty: the DNS64's own.
    #[serde(rename = "prefix", serialize_with = "prefixes::many", skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Rfc6052>,
    /// The handling of A records.
    pub a_records: ARecords,
}

impl Rule {
    /// All rules, with the remarks on their combination.
    pub(super) fn read_all(
        section: &Reader,
        allow: Option<&Networks>,
        translation: &TranslatorContext,
        report: &mut Report,
    ) -> Option<Vec<Self>> {
        let rows = section.sections("rule", &RULE, report);
        let mut rules: Vec<(Option<Self>, Place)> = Vec::with_capacity(rows.len());
        for row in &rows {
            let one = Self::read(row, translation, report);
            if let Some(one) = &one {
                one.warn_of_no_use(&rules, allow, row.place(), report);
            }
            rules.push((one, row.place().clone()));
        }
        rules.into_iter().map(|(rule, _)| rule).collect()
    }

    fn read(row: &Reader, translation: &TranslatorContext, report: &mut Report) -> Option<Self> {
        let clients = match row.value("clients", report) {
            None => Some(None),
            Some(v) => {
                let place = v.place.clone();
                Networks::read(v, report).map(|networks| {
                    if networks.is_empty() {
                        report.fault(&place, "is empty; write prefixes, or remove it");
                    }
                    Some(networks)
                })
            }
        };
        let over = match row.value("over", report) {
            None => Some(None),
            Some(v) => v.word(report).map(Some),
        };
        let names = Name::read_all(row.value("names", report), report);
        let addresses = match row.value("addresses", report) {
            None => Some(Vec::new()),
            Some(v) => {
                let items = v.items();
                let read: Vec<_> = items.iter().filter_map(|item| item.prefix4(report)).collect();
                (read.len() == items.len()).then_some(read)
            }
        };
        let synthesis = row.value("synthesis", report).and_then(|v| {
            let synthesis = v.word(report)?;
            if synthesis == Synthesis::Always && addresses.as_ref().is_some_and(|list| !list.is_empty()) {
                let what = "cannot be combined with addresses, because it is decided before A records are known; remove one";
                report.fault(&v.place, what);
            }
            Some(synthesis)
        });
        let prefixes = match row.value("prefix", report) {
            None => Some(Vec::new()),
            Some(v) => {
                if synthesis == Some(Synthesis::Never) {
                    report.fault(&v.place, "cannot be combined with synthesis = \"never\"; remove one");
                }
                translation.read_all(v, report)
            }
        };
        let a_records = row.value("a_records", report).and_then(|v| v.word(report));
        Some(Self {
            clients: clients?,
            over: over?,
            names: names?,
            addresses: addresses?,
            synthesis: synthesis?,
            prefixes: prefixes?,
            a_records: a_records?,
        })
    }

    /// Whether everything that `other` matches also matches this one.
    fn holds(&self, other: &Self) -> bool {
        let clients = match (&self.clients, &other.clients) {
            (None, _) => true,
            (Some(own), Some(its)) => own.holds(its),
            (Some(_), None) => false,
        };
        let name = |name: &Name| self.names.iter().any(|own| name.is_within(own));
        let names = self.names.is_empty() || !other.names.is_empty() && other.names.iter().all(name);
        let address =
            |it: &Prefix4| self.addresses.iter().any(|own| own.length() <= it.length() && own.overlaps(*it));
        let addresses =
            self.addresses.is_empty() || !other.addresses.is_empty() && other.addresses.iter().all(address);
        let over = self.over.is_none() || self.over == other.over;
        clients && over && names && addresses
    }

    fn warn_of_no_use(
        &self,
        before: &[(Option<Self>, Place)],
        allow: Option<&Networks>,
        place: &Place,
        report: &mut Report,
    ) {
        let first = before.iter().find(|(other, _)| other.as_ref().is_some_and(|other| other.holds(self)));
        let local =
            |name: &Name| name.as_str() == "ipv4only.arpa" || name.as_str().ends_with(".ipv4only.arpa");
        let what = if let Some((_, other)) = first {
            let there = other.seen_from(place);
            format!(
                "never matches: the rule at {there} matches everything before it; move this rule before it"
            )
        } else if let (Some(clients), Some(allow)) = (&self.clients, allow)
            && !allow.meets(clients)
        {
            "never matches: its clients are refused; add them to dns64.allow".to_owned()
        } else if !self.names.is_empty() && self.names.iter().all(local) {
            "never matches: ipv4only.arpa is answered specially (RFC 8880 §7.1)".to_owned()
        } else {
            return;
        };
        report.warn(place, what);
    }
}
