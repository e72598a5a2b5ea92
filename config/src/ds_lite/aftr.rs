//! `role = "aftr"`: the provider's end of all softwires, with a NAT (RFC 6333 §6).

use std::net::Ipv6Addr;

use serde::Serialize;
use sixway_dataplane::mechanism::ds_lite::DsLiteConfig;
use sixway_dataplane::nat::{SoftwireNetwork, StateLimits, SubscriberPolicy};
use sixway_dataplane::source_check::is_martian6;
use sixway_dataplane::translate::Policy;
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_wire::{Prefix4, Prefix6};

use super::role::DsLiteRole;
use super::softwire_static::SoftwireStatic;
use crate::claims::Owner;
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report};
use crate::limits::{self, Subscribers};
use crate::nat64::{Filtering, find_pool};
use crate::pool::{Pool, ReadPool};
use crate::schema::{DS_LITE_PORT_TIMEOUT, DS_LITE_TIMEOUTS};
use crate::section::Reader;
use crate::text;
use crate::timeouts::Timeouts;
use crate::translator_prefix::read_prefixes4;
use crate::tunnel_context::TunnelContext;
use crate::value::Value;
use crate::word;

/// Addresses of an AFTR, at most.
const MOST_ADDRESSES: usize = 256;

/// An AFTR, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aftr {
    /// Its name.
    pub name: String,
    role: DsLiteRole,
    /// Its IPv6 addresses, at which softwires end.
    #[serde(serialize_with = "text::many")]
    pub addresses: Vec<Ipv6Addr>,
    /// Prefixes of its B4s.
    #[serde(serialize_with = "text::many")]
    pub clients: Vec<Prefix6>,
    /// Sources of the hosts behind softwires.
    #[serde(serialize_with = "text::many")]
    pub inside: Vec<Prefix4>,
    /// Remote IPv4 addresses with which sessions are not allowed.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub exclude_ipv4: Vec<Prefix4>,
    /// This host's IPv4 addresses that hosts behind softwires may create sessions to.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub allow_own: Vec<Prefix4>,
    /// The name of its pool.
    pub pool: String,
    /// The filtering of packets from outside.
    #[serde(serialize_with = "word::serialize")]
    pub filtering: Filtering,
    /// Maximum number of softwires. With several workers, each may have twice its share.
    pub max_softwires: u32,
    /// Limits of the tables: of all workers together, but of a subscriber at each worker.
    #[serde(flatten, serialize_with = "limits::serialize")]
    pub limits: StateLimits,
    /// The subscribers: their prefix length.
    #[serde(flatten)]
    pub subscribers: Subscribers<Prefix6>,
    /// How packets are encapsulated.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
    /// Session timeouts.
    pub timeouts: Timeouts,
    /// Static bindings.
    #[serde(rename = "static")]
    pub static_bindings: Vec<SoftwireStatic>,
}

/// The pools, and which section uses each.
pub(crate) struct AftrPools<'r, 'p> {
    pub pools: &'p [ReadPool],
    pub taken: &'r mut Vec<(String, Place)>,
}

impl Aftr {
    pub(super) fn read(
        section: &Reader,
        default_name: String,
        AftrPools { pools, taken }: AftrPools<'_, '_>,
        context: TunnelContext,
    ) -> Option<Self> {
        let TunnelContext { mtu, claims, report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let addresses = required(section, "addresses", "[\"2001:db8::a\"]", report).and_then(|v| {
            let place = v.place.clone();
            let items = v.items();
            refuse_number(items.len(), &place, report);
            for item in &items {
                if let Some(address) = item.address6(&mut Report::default()) {
                    claims.v6(Prefix6::holding(address, 128), Owner::TunnelEnd, &item.place);
                    if is_martian6(address) {
                        let what =
                            "is not a valid host address; write a unicast address that is not link-local";
                        report.fault(&item.place, what);
                    }
                }
            }
            items.iter().map(|item| item.address6(report)).collect::<Option<Vec<_>>>()
        });
        let clients = required(section, "clients", "[\"2001:db8:b4::/48\"]", report).and_then(|v| {
            let place = v.place.clone();
            let clients: Option<Vec<_>> = v.items().iter().map(|item| item.prefix6(report)).collect();
            if clients.as_ref().is_some_and(Vec::is_empty) {
                report
                    .fault(&place, "is empty; write the networks of the B4s, such as [\"2001:db8:b4::/48\"]");
            }
            let own = addresses
                .iter()
                .flatten()
                .find(|own| clients.iter().flatten().any(|prefix: &Prefix6| prefix.contains(**own)));
            if let Some(own) = own {
                let what =
                    format!("contains {own}, the AFTR's own address; write the networks of the B4s alone");
                report.fault(&place, what);
            }
            clients
        });
        let inside = match section.value("inside", report) {
            None => Some(DsLiteConfig::inside_by_default()),
            Some(_) => read_prefixes4(section, "inside", report),
        };
        let pool = required(section, "pool", "\"main\"", report).and_then(|v| {
            let name = v.text(report)?;
            let pool = find_pool(&name, pools, taken, &v.place, report);
            Some((name, pool))
        });
        let exclude_ipv4 = read_prefixes4(section, "exclude_ipv4", report);
        let allow_own = read_prefixes4(section, "allow_own", report);
        let filtering = section.value("filtering", report).and_then(|v| v.word(report));
        let max_softwires = section.value("max_softwires", report).and_then(|v| v.integer(report));
        let limits = limits::read(section, report);
        let exempt = section.value("exempt_subscribers", report).map(|v| v.items()).unwrap_or_default();
        let exempt = exempt.iter().map(|item| item.prefix6(report)).collect();
        let known_pool = pool.as_ref().and_then(|(_, pool)| *pool);
        let subscribers = Subscribers::read(section, exempt, (clients.clone(), known_pool), report);
        refuse_narrow_clients(section, clients.as_deref(), subscribers.as_ref(), report);
        let encapsulation = Encapsulation::read(section, mtu, report);
        let timeouts = match &section.sections("timeouts", &DS_LITE_TIMEOUTS, report)[..] {
            [written, ..] => Timeouts::read(written, &DS_LITE_PORT_TIMEOUT, report),
            [] => {
                let absent = section.child("timeouts", &DS_LITE_TIMEOUTS);
                Timeouts::read(&absent, &DS_LITE_PORT_TIMEOUT, report)
            }
        };
        let known = (clients.as_deref(), inside.as_deref(), known_pool);
        let static_bindings = SoftwireStatic::read_all(section, known, report);
        let (pool, _) = pool?;
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: DsLiteRole::Aftr,
            addresses: addresses?,
            clients: clients?,
            inside: inside?,
            exclude_ipv4: exclude_ipv4?,
            allow_own: allow_own?,
            pool,
            filtering: filtering?,
            max_softwires: max_softwires?,
            limits: limits?,
            subscribers: subscribers?,
            encapsulation: encapsulation?,
            timeouts: timeouts?,
            static_bindings,
        })
    }

    /// The settings of a worker's share of it.
    pub(crate) fn engine(&self, pool: Option<&Pool>, workers: u8) -> DsLiteConfig {
        let SubscriberPolicy { bits, exempt, exempt_destinations, blocks, deterministic } =
            self.subscribers.engine(&self.clients, pool);
        let exempt = exempt.into_iter().map(SoftwireNetwork::Remote).collect();
        let by_default = DsLiteConfig::tunnel_by_default();
        DsLiteConfig {
            inside: self.inside.clone(),
            excluded: self.exclude_ipv4.clone(),
            allow_own: self.allow_own.clone(),
            draining: pool.map(|pool| pool.draining.clone()).unwrap_or_default(),
            filtering: self.filtering,
            static_bindings: self.static_bindings.iter().map(SoftwireStatic::engine).collect(),
            timeouts: self.timeouts.engine(),
            limits: self.limits.of_each_worker(workers),
            // A worker may have more than its share of them.
            max_softwires: if workers > 1 {
                self.max_softwires.div_ceil(u32::from(workers)) * 2
            } else {
                self.max_softwires
            },
            subscribers: SubscriberPolicy { bits, exempt, exempt_destinations, blocks, deterministic },
            policy: Policy { clamp_mss: self.encapsulation.clamp_mss, ..Policy::default() },
            tunnel: TunnelPolicy {
                encapsulation_limit: by_default.encapsulation_limit,
                copies_dscp_out: by_default.copies_dscp_out,
                ..self.encapsulation.engine()
            },
            ..DsLiteConfig::new(
                self.addresses.clone(),
                self.clients.clone(),
                pool.map(Pool::engine).unwrap_or_default(),
            )
        }
    }
}

/// The value of a key that an AFTR must have; the schema cannot require it, since a B4 has none.
fn required<'a>(
    section: &Reader<'a>,
    key: &'static str,
    such: &str,
    report: &mut Report,
) -> Option<Value<'a>> {
    let value = section.value(key, report);
    if value.is_none() && !section.misspells(&[key]) {
        report.fault(section.place(), format!("has no {key}; write {key} = {such}"));
    }
    value
}

/// Softwires have a number of their local end in one octet.
fn refuse_number(addresses: usize, place: &Place, report: &mut Report) {
    match addresses {
        0 => report.fault(place, "is empty; write the AFTR's addresses, such as [\"2001:db8::a\"]"),
        1..=MOST_ADDRESSES => {}
        _ => report.fault(place, format!("has {addresses} addresses; write {MOST_ADDRESSES} at most")),
    }
}

/// Two customers whose networks are parts of one subscriber's prefix would share its limits.
fn refuse_narrow_clients(
    section: &Reader,
    clients: Option<&[Prefix6]>,
    subscribers: Option<&Subscribers<Prefix6>>,
    report: &mut Report,
) {
    let (Some(clients), Some(subscribers)) = (clients, subscribers) else { return };
    let bits = subscribers.prefix_length;
    if let Some(narrow) = clients.iter().find(|prefix| prefix.length() > bits)
        && let Some(v) = section.value("clients", report)
    {
        let what = format!(
            "{narrow} is a part of a subscriber, whose prefix has a length of {bits}; write a network of {bits} bits or fewer, or a greater subscriber_prefix_length"
        );
        report.fault(&v.place, what);
    }
}
