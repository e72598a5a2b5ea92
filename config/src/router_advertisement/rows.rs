//! The prefixes and routes of an advertisement.

use std::time::Duration;

use serde::Serialize;
use sixway_wire::Prefix6;

use super::lifetime::{Lifetime, RouterPreference, read_lifetime};
use super::names::Names;
use crate::fault::{Place, Report};
use crate::section::Reader;
use crate::text;

/// A prefix of the link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdvertisedPrefix {
    /// The prefix, if it is fixed.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix6>,
    /// Else the mechanism whose delegated prefix it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The number of the /64 within that prefix.
    pub subnet: u32,
    /// AdvOnLinkFlag.
    pub on_link: bool,
    /// AdvAutonomousFlag.
    pub autonomous: bool,
    /// AdvValidLifetime.
    pub valid_lifetime: Lifetime,
    /// AdvPreferredLifetime.
    pub preferred_lifetime: Lifetime,
}

/// A more specific route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdvertisedRoute {
    /// The destinations.
    #[serde(serialize_with = "text::one")]
    pub prefix: Prefix6,
    /// Against other routers'.
    pub preference: RouterPreference,
    /// How long it holds.
    pub lifetime: Lifetime,
}

/// RFC 4861 §6.2.1, of AdvValidLifetime and AdvPreferredLifetime.
const FIXED: (Duration, Duration) = (Duration::from_secs(2_592_000), Duration::from_secs(604_800));
/// RFC 9096 §4: ND_VALID_LIMIT and ND_PREFERRED_LIMIT.
const FOLLOWED: (Duration, Duration) = (Duration::from_secs(5_400), Duration::from_secs(2_700));

impl AdvertisedPrefix {
    pub(super) fn read(
        row: &Reader,
        names: &Names,
        three: Option<Duration>,
        report: &mut Report,
    ) -> Option<Self> {
        let prefix = row.value("prefix", report).map(|v| {
            let prefix = v.prefix6(report)?;
            let address = prefix.address();
            if address.is_unicast_link_local() || address.is_multicast() {
                report.fault(&v.place, "is not a valid prefix for hosts (RFC 4861 §4.6.2)");
            }
            Some((prefix, v.place))
        });
        let from = row.value("from", report).map(|v| (v.text(report), v.place));
        let subnet = row.value("subnet", report).and_then(|v| Some((v.integer::<u32>(report)?, v.place)));
        let on_link = row.value("on_link", report).and_then(|v| v.boolean(report));
        let autonomous = row.value("autonomous", report).and_then(|v| v.boolean(report));
        let usual = if from.is_some() { FOLLOWED } else { FIXED };
        let at_least = |usual: Duration| three.map_or(usual, |three| usual.max(three));
        let defaults = (at_least(usual.0), at_least(usual.1));
        let valid = read_lifetime(row.value("valid_lifetime", report), Some(defaults.0), three, report);
        let preferred = match row.value("preferred_lifetime", report) {
            None => valid.map(|valid| {
                let usual = Lifetime::For(defaults.1);
                if valid.is_less_than(usual) { valid } else { usual }
            }),
            Some(v) => {
                let place = v.place.clone();
                read_lifetime(Some(v), None, three, report).inspect(|preferred| {
                    if valid.is_some_and(|valid| valid.is_less_than(*preferred)) {
                        report.fault(&place, "is more than valid_lifetime; lower it (RFC 4861 §4.6.2)");
                    }
                })
            }
        };
        let (prefix, from) = match (prefix, from) {
            (None, None) => {
                report.fault(
                    row.place(),
                    "has no prefix; write prefix = \"2001:db8:1::/64\", or from = a mechanism's name",
                );
                return None;
            }
            (Some(_), Some((_, place))) => {
                report.fault(&place, "cannot be combined with prefix; remove one");
                return None;
            }
            (Some(prefix), None) => {
                let (prefix, place) = prefix?;
                if autonomous == Some(true) && prefix.length() != 64 {
                    let what = "hosts configure addresses only from a /64 (RFC 4862 §5.5.3 d); write autonomous = false, or a /64";
                    report.warn(&place, format!("is {} bits long: {what}", prefix.length()));
                }
                (Some(prefix), None)
            }
            (None, Some((from, place))) => {
                let from = from?;
                check_subnet(&from, subnet.as_ref(), names, &place, report);
                (None, Some(from))
            }
        };
        Some(Self {
            prefix,
            from,
            subnet: subnet?.0,
            on_link: on_link?,
            autonomous: autonomous?,
            valid_lifetime: valid?,
            preferred_lifetime: preferred?,
        })
    }
}

fn check_subnet(
    from: &str,
    subnet: Option<&(u32, Place)>,
    names: &Names,
    place: &Place,
    report: &mut Report,
) {
    let Some((_, length)) = names.delegated.iter().find(|(name, _)| name == from) else {
        let what = "no [six_to_four] router and no [six_rd] customer edge has this name; add one, or write the name of one";
        report.fault(place, what);
        return;
    };
    let (Some(length), Some((subnet, at))) = (length, subnet) else { return };
    match 64_u8.checked_sub(*length) {
        None => {
            report.fault(place, format!("its delegated prefix is {length} bits long and contains no /64"))
        }
        Some(bits) if bits < 32 && *subnet >> bits != 0 => {
            let most = (1_u64 << bits) - 1;
            report.fault(at, format!("is out of range for the delegated /{length}; write 0 to {most}"));
        }
        Some(_) => {}
    }
}

impl AdvertisedRoute {
    pub(super) fn read(row: &Reader, three: Option<Duration>, report: &mut Report) -> Option<Self> {
        let prefix = row.value("prefix", report).and_then(|v| v.prefix6(report));
        let preference = row.value("preference", report).and_then(|v| v.word(report));
        let lifetime = read_lifetime(row.value("lifetime", report), three, three, report);
        Some(Self { prefix: prefix?, preference: preference?, lifetime: lifetime? })
    }
}
