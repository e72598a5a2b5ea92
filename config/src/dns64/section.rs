//! The section with all its keys, resolved.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};

use super::bounds::Bounds;
use super::clients::ClientSettings;
use super::connections::Connections;
use super::context::Dns64Context;
use super::dnssec::Dnssec;
use super::listening::Listening;
use super::networks::Networks;
use super::prefixes::{self};
use super::reverse::Reverse;
use super::rule::Rule;
use super::upstreams::Upstreams;
use crate::fault::{Place, Report};
use crate::schema::DNSSEC;
use crate::section::Reader;
use crate::text;
use crate::word::words;

words! {
    /// Where queries for `ipv4only.arpa` are answered (RFC 8880 §7.1).
    Ipv4OnlyArpa {
        /// The DNS64 itself.
        Local = "local",
        /// An upstream; AAAA records are synthesised as for any name.
        Upstream = "upstream",
    }
}

words! {
    /// Where queries for special-use names are answered (RFC 6761, RFC 6303).
    SpecialNames {
        /// The DNS64 itself: they do not exist.
        Local = "local",
        /// An upstream.
        Upstream = "upstream",
    }
}

words! {
    /// The TTL of synthesised AAAA records (RFC 6147 §5.1.7).
    SynthesisedTtl {
        /// The lower of the A record's TTL and that of the negative answer for AAAA.
        Negative = "negative",
        /// The A record's.
        A = "a",
    }
}

/// A DNS64, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dns64 {
    /// The addresses to which clients send queries.
    #[serde(flatten)]
    pub listening: Listening,
    /// Pref64::/n, one AAAA record each; none only next to a NAT46.
    #[serde(rename = "prefix", serialize_with = "prefixes::many", skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Rfc6052>,
    /// Whether another machine translates them.
    pub translated_elsewhere: bool,
    /// Whether the well-known prefix may be used with non-global addresses; `None`: the setting of the translator here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translate_non_global: Option<bool>,
    /// AAAA records within these count as absent (RFC 6147 §5.1.4).
    #[serde(serialize_with = "text::many")]
    pub exclude: Vec<Prefix6>,
    /// Whether nothing is synthesised from private IPv4 addresses, and from this host's.
    pub exclude_private: bool,
    /// Whether AAAA records are synthesised from 240.0.0.0/4.
    pub synthesise_reserved: bool,
    /// The addresses that translators of this gateway refuse, by prefix.
    #[serde(skip)]
    pub exclude4: Vec<(Prefix6, Vec<Prefix4>)>,
    /// The clients that may query; `None`: hosts nearby, see [`Config::dns64_access`](super::Config::dns64_access).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Networks>,
    /// The TTL of what is made.
    pub synthesised_ttl: SynthesisedTtl,
    /// PTR queries for addresses within the prefixes (RFC 6147 §5.3.1).
    pub reverse: Reverse,
    /// The TTL of what is made for them.
    #[serde(serialize_with = "text::as_duration")]
    pub reverse_ttl: Duration,
    /// Where queries for `ipv4only.arpa` are answered.
    pub ipv4only_arpa: Ipv4OnlyArpa,
    /// Where queries for special-use names are answered.
    pub special_names: SpecialNames,
    /// Whether ANY gets one record (RFC 8482 §4.2).
    pub minimal_any: bool,
    /// Whether A and AAAA are queried at the same time (RFC 6147 §5.1.8).
    pub parallel: bool,
    /// What clients learn of this server.
    #[serde(flatten)]
    pub clients: ClientSettings,
    /// Bounds.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// Bounds of clients.
    #[serde(flatten)]
    pub connections: Connections,
    /// Whether each query is logged.
    pub query_log: bool,
    /// A file with records of this network, as `/etc/hosts` is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<PathBuf>,
    /// Where questions go; at least one.
    #[serde(rename = "upstream")]
    pub upstreams: Upstreams,
    /// Exceptions; the first that matches applies.
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// DNSSEC.
    pub dnssec: Dnssec,
}

impl Dns64 {
    pub(crate) fn read(section: &Reader, context: &mut Dns64Context) -> Option<Self> {
        let listening = Listening::read(section, context);
        let report = &mut *context.report;
        let translated_elsewhere =
            section.value("translated_elsewhere", report).and_then(|v| v.boolean(report));
        let translate_non_global = section.value("translate_non_global", report).map(|v| v.boolean(report));
        let translation = prefixes::TranslatorContext {
            translators: context.translators,
            elsewhere: translated_elsewhere.unwrap_or(true),
            non_global: translate_non_global.flatten(),
        };
        let prefixes = translation.own(section, report);
        let exclude = read_exclude(section, prefixes.as_deref(), report);
        let exclude_private = section.value("exclude_private", report).and_then(|v| v.boolean(report));
        let synthesise_reserved = read_reserved(section, context.translators.excluded(), report);
        let allow = read_allow(section, report);
        if let (Some(None), Some(listening)) = (&allow, &listening) {
            listening.require_allow(section, report);
        }
        let synthesised_ttl = section.value("synthesised_ttl", report).and_then(|v| v.word(report));
        let reverse = section.value("reverse", report).and_then(|v| Reverse::read(&v, report));
        let reverse_ttl = read_reverse_ttl(section, reverse.as_ref(), report);
        let ipv4only_arpa = section.value("ipv4only_arpa", report).and_then(|v| v.word(report));
        let special_names = section.value("special_names", report).and_then(|v| v.word(report));
        let minimal_any = section.value("minimal_any", report).and_then(|v| v.boolean(report));
        let parallel = section.value("parallel", report).and_then(|v| v.boolean(report));
        let bounds = Bounds::read(section, report);
        let connections = Connections::read(section, report);
        let query_log = section.value("query_log", report).and_then(|v| v.boolean(report));
        let hosts = match section.value("hosts", report) {
            None => Some(None),
            Some(v) => v.path(report).map(Some),
        };
        let rules = Rule::read_all(section, allow.as_ref().and_then(Option::as_ref), &translation, report);
        let upstreams =
            Upstreams::read(section, &translation, prefixes.as_deref(), listening.as_ref(), context);
        let clients = ClientSettings::read(section, listening.as_ref(), context);
        let dnssec = match &section.sections("dnssec", &DNSSEC, context.report)[..] {
            [written, ..] => Dnssec::read(written, context),
            [] => Dnssec::read(&section.child("dnssec", &DNSSEC), context),
        };
        Some(Self {
            listening: listening?,
            prefixes: prefixes?,
            translated_elsewhere: translated_elsewhere?,
            translate_non_global: translate_non_global.map_or(Some(None), |v| v.map(Some))?,
            exclude: exclude?,
            exclude_private: exclude_private?,
            synthesise_reserved: synthesise_reserved?,
            exclude4: context.translators.excluded().to_vec(),
            allow: allow?,
            synthesised_ttl: synthesised_ttl?,
            reverse: reverse?,
            reverse_ttl: reverse_ttl?,
            ipv4only_arpa: ipv4only_arpa?,
            special_names: special_names?,
            minimal_any: minimal_any?,
            parallel: parallel?,
            clients: clients?,
            bounds: bounds?,
            connections: connections?,
            query_log: query_log?,
            hosts: hosts?,
            upstreams: upstreams?,
            rules: rules?,
            dnssec: dnssec?,
        })
    }
}

fn read_exclude(section: &Reader, own: Option<&[Rfc6052]>, report: &mut Report) -> Option<Vec<Prefix6>> {
    let items = section.value("exclude", report)?.items();
    let mut read = Vec::with_capacity(items.len());
    for item in &items {
        let Some(prefix) = item.prefix6(report) else { continue };
        let covered = own.unwrap_or_default().iter().find(|own| prefix.overlaps(own.prefix()));
        if prefix.length() == 0 {
            let what = "contains every address: all AAAA records are ignored; a [[dns64.rule]] with synthesis = \"always\" does the same explicitly";
            report.warn(&item.place, what);
        } else if let Some(own) = covered {
            let what = "the prefix for synthesis: existing AAAA records within it are ignored";
            report.warn(&item.place, format!("{prefix} overlaps {}, {what}", own.prefix()));
        }
        read.push(prefix);
    }
    (read.len() == items.len()).then_some(read)
}

/// A translator that refuses the addresses makes them useless.
fn read_reserved(
    section: &Reader,
    excluded: &[(Prefix6, Vec<Prefix4>)],
    report: &mut Report,
) -> Option<bool> {
    let value = section.value("synthesise_reserved", report)?;
    let synthesise = value.boolean(report)?;
    let refuses = |list: &[Prefix4]| list.iter().any(|it| it.length() <= 4 && it.contains(RESERVED));
    if let Some((prefix, _)) = excluded.iter().find(|(_, list)| synthesise && refuses(list)) {
        let what =
            "the translator with the prefix {} refuses 240.0.0.0/4; change its exclude_ipv4, or remove this";
        report.fault(&value.place, what.replace("{}", &prefix.to_string()));
    }
    Some(synthesise)
}

/// The first reserved address (RFC 1112 §4).
const RESERVED: Ipv4Addr = Ipv4Addr::new(240, 0, 0, 0);

fn read_reverse_ttl(section: &Reader, reverse: Option<&Reverse>, report: &mut Report) -> Option<Duration> {
    let value = section.value("reverse_ttl", report)?;
    let makes_none = matches!(reverse, Some(Reverse::Ptr | Reverse::Off));
    let ttl = value.duration(report)?;
    if makes_none && value.is_written() {
        let what = "has no effect with reverse = \"ptr\" or \"off\"; remove it";
        report.warn(&value.place, what);
    }
    Some(ttl)
}

/// `None` within: it is not written.
fn read_allow(section: &Reader, report: &mut Report) -> Option<Option<Networks>> {
    let Some(value) = section.value("allow", report) else { return Some(None) };
    let place: Place = value.place.clone();
    let networks = Networks::read(value, report)?;
    if networks.is_empty() {
        report.fault(
            &place,
            "is empty: every client would be refused; write your clients' prefixes, or remove it",
        );
    }
    if let Some(all) = networks.everyone() {
        let what =
            "an open resolver is abused for reflection attacks (RFC 5358); write your clients' prefixes";
        report.warn(&place, format!("{all} lets everyone query: {what}"));
    }
    Some(Some(networks))
}
