//! `[[nat64]]`: stateful translation (RFC 6146).

use serde::Serialize;
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::translate::address::non_global::non_global_part;
use sixway_dataplane::translate::address::rfc6052::{Rfc6052, WELL_KNOWN_PREFIX};
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::{Claims, Owner};
use crate::fault::{Place, Report, did_you_mean};
use crate::limits::{self, Subscribers};
use crate::pool::{Pool, ReadPool};
use crate::schema::{PORT_TIMEOUT, STATIC, TIMEOUTS};
use crate::section::Reader;
use crate::static_binding::{Static, read_static};
use crate::static_rules::StaticRules;
use crate::text;
use crate::timeouts::Timeouts;
use crate::translation::Translation;
use crate::translator_prefix::{read_prefix, read_prefixes4};
use crate::word::{self, words, words_of};

pub use sixway_dataplane::nat::{Filtering, NatProtocol};

words_of! {
    Filtering {
        EndpointIndependent = "endpoint-independent",
        AddressDependent = "address-dependent",
        AddressAndPortDependent = "address-and-port-dependent",
    }
}

words! {
    /// Which sources packets into the prefix may have.
    ReversePath {
        /// Those that are routed to the interface that the packet came in by (RFC 3704 §2.2).
        Strict = "strict",
        /// Those that are routed anywhere (RFC 3704 §2.4).
        Loose = "loose",
        /// Any.
        Off = "off",
    }
}

/// A NAT64, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nat64 {
    /// Its name.
    pub name: String,
    /// Pref64::/n.
    #[serde(serialize_with = "text::prefix")]
    pub prefix: Rfc6052,
    /// Prefixes whose hosts may create bindings; empty: any.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Prefix6>,
    /// Remote IPv4 addresses with which sessions are not allowed.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub exclude_ipv4: Vec<Prefix4>,
    /// This host's IPv4 addresses that inside hosts may create sessions to.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub allow_own: Vec<Prefix4>,
    /// Which sources packets into the prefix may have.
    pub reverse_path: ReversePath,
    /// The name of its pool.
    pub pool: String,
    /// The remote hosts that may send through a binding.
    #[serde(serialize_with = "word::serialize")]
    pub filtering: Filtering,
    /// Limits of the tables of all workers together; those of a subscriber, an IPv6 /64, apply at each worker.
    #[serde(flatten, serialize_with = "limits::serialize")]
    pub limits: StateLimits,
    /// The subscribers: their prefix length.
    #[serde(flatten)]
    pub subscribers: Subscribers<Prefix6>,
    /// The choices of RFC 7915.
    #[serde(flatten)]
    pub translation: Translation,
    /// Whether control connections of FTP are read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ftp_alg: bool,
    /// When a silent session ends.
    pub timeouts: Timeouts,
    /// Bindings that are always there.
    #[serde(rename = "static")]
    pub static_bindings: Vec<Static>,
}

/// The context for reading a NAT64.
pub(crate) struct Nat64Context<'r, 'p> {
    pub index: usize,
    pub mtu: Option<u16>,
    pub pools: &'p [ReadPool],
    /// Which pools are taken, and where.
    pub taken: &'r mut Vec<(String, Place)>,
    pub claims: &'r mut Claims,
    pub report: &'r mut Report,
}

impl Nat64 {
    pub(crate) fn read(section: &Reader, default_name: String, context: Nat64Context) -> Option<Self> {
        let Nat64Context { index, mtu, pools, taken, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let translation = Translation::read(section, mtu, report);
        let non_global = translation.as_ref().is_some_and(|t| t.translate_non_global);
        let prefix = section.value("prefix", report).and_then(|v| {
            let prefix = read_prefix(&v, non_global, report)?;
            claims.v6(prefix.prefix(), Owner::Nat64(index), &v.place);
            Some(prefix)
        });
        let pool = section.value("pool", report).and_then(|v| {
            let name = v.text(report)?;
            let pool = find_pool(&name, pools, taken, &v.place, report);
            if let Some(pool) = pool.filter(|_| prefix.is_some_and(|prefix| prefix.is_global_only())) {
                warn_of_non_global(pool, &v.place, report);
            }
            Some((name, pool))
        });
        let inside = section.value("inside", report).map(|v| v.items()).unwrap_or_default();
        let inside: Option<Vec<_>> = inside.iter().map(|item| item.prefix6(report)).collect();
        let exclude_ipv4 = read_prefixes4(section, "exclude_ipv4", report);
        let allow_own = read_prefixes4(section, "allow_own", report);
        let reverse_path = section.value("reverse_path", report).and_then(|v| v.word(report));
        let filtering = section.value("filtering", report).and_then(|v| v.word(report));
        let limits = limits::read(section, report);
        let exempt = section.value("exempt_subscribers", report).map(|v| v.items()).unwrap_or_default();
        let exempt = exempt.iter().map(|item| item.prefix6(report)).collect();
        let known_pool = pool.as_ref().and_then(|(_, pool)| *pool);
        let subscribers = Subscribers::read(section, exempt, (inside.clone(), known_pool), report);
        let ftp_alg = section.value("ftp_alg", report).and_then(|v| v.boolean(report));
        let timeouts = match &section.sections("timeouts", &TIMEOUTS, report)[..] {
            [written, ..] => Timeouts::read(written, &PORT_TIMEOUT, report),
            [] => Timeouts::read(&section.child("timeouts", &TIMEOUTS), &PORT_TIMEOUT, report),
        };
        let rules = StaticRules { prefix: prefix.map(|p| p.prefix()), inside4: None, pool: known_pool };
        let static_bindings = read_static(section, &STATIC, &rules, report);
        let (pool, _) = pool?;
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            prefix: prefix?,
            inside: inside?,
            exclude_ipv4: exclude_ipv4?,
            allow_own: allow_own?,
            reverse_path: reverse_path?,
            pool,
            filtering: filtering?,
            limits: limits?,
            subscribers: subscribers?,
            translation: translation?,
            ftp_alg: ftp_alg?,
            timeouts: timeouts?,
            static_bindings,
        })
    }
}

/// The pool of this name; no other translator can have it afterwards.
pub(crate) fn find_pool<'p>(
    name: &str,
    pools: &'p [ReadPool],
    taken: &mut Vec<(String, Place)>,
    place: &Place,
    report: &mut Report,
) -> Option<&'p Pool> {
    let before = taken.iter().find(|(other, _)| other == name).map(|(_, there)| there.clone());
    taken.push((name.to_owned(), place.clone()));
    if let Some(there) = before {
        let (other, there) = (there.path(), there.seen_from(place));
        report.fault(place, format!("is already used by {other} ({there}); write a [[pool]] for each"));
    }
    if let Some(found) = pools.iter().find(|pool| pool.name.as_deref() == Some(name)) {
        return found.pool.as_ref();
    }
    let names = || pools.iter().filter_map(|pool| pool.name.as_deref());
    let mend = match (did_you_mean(name, names()), names().count()) {
        (Some(near), _) => format!("did you mean \"{near}\"?"),
        (None, 0) => format!("write a [[pool]] with name = \"{name}\""),
        (None, _) => {
            format!("the pools are {}", names().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", "))
        }
    };
    report.fault(place, format!("no pool has this name; {mend}"));
    None
}

fn warn_of_non_global(pool: &Pool, place: &Place, report: &mut Report) {
    let Some((prefix, row)) = pool.addresses.iter().find_map(|p| Some((p, non_global_part(*p)?))) else {
        return;
    };
    report.warn(
        place,
        format!(
            "{prefix} is not globally reachable ({}), and {WELL_KNOWN_PREFIX} must not represent such addresses (RFC 6052 §3.1): \
             inside hosts cannot reach each other through the pool (hairpinning), nor servers at such addresses; \
             set translate_non_global = true, or use a prefix of your own",
            row.purpose
        ),
    );
}
