//! The section with all its keys, resolved.

use std::net::Ipv6Addr;
use std::time::Duration;

use serde::{Serialize, Serializer};
use sixway_wire::Prefix6;

use crate::domain_name::is_domain_name;
use crate::fault::Report;
use crate::interface_name::{NO_INTERFACE, is_interface_name};
use crate::schema::{ADVERTISED_PREFIX, ADVERTISED_ROUTE};
use crate::section::Reader;
use crate::text;
use crate::value::Value;

use super::lifetime::{Lifetime, RouterPreference, read_lifetime, warn_of_short};
use super::names::Names;
use super::rows::{AdvertisedPrefix, AdvertisedRoute};

/// Which NAT64 prefix is advertised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pref64 {
    /// Those of the DNS64, else that of this gateway's own translator.
    Auto,
    /// None.
    None,
    /// This one.
    Prefix(Prefix6),
}

impl Serialize for Pref64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::None => serializer.serialize_str("none"),
            Self::Prefix(prefix) => serializer.collect_str(prefix),
        }
    }
}

fn servers<S: Serializer>(value: &Option<Vec<Ipv6Addr>>, serializer: S) -> Result<S::Ok, S::Error> {
    text::many(value.as_deref().unwrap_or_default(), serializer)
}

/// The advertisements on a link, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterAdvertisement {
    /// The interface, unless it is over ISATAP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The ISATAP router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// MaxRtrAdvInterval.
    #[serde(serialize_with = "text::as_duration")]
    pub max_interval: Duration,
    /// MinRtrAdvInterval.
    #[serde(serialize_with = "text::as_duration")]
    pub min_interval: Duration,
    /// AdvDefaultLifetime.
    #[serde(serialize_with = "text::as_duration")]
    pub router_lifetime: Duration,
    /// As a default router.
    pub preference: RouterPreference,
    /// AdvManagedFlag.
    pub managed: bool,
    /// AdvOtherConfigFlag.
    pub other: bool,
    /// AdvCurHopLimit.
    pub hop_limit: u8,
    /// AdvLinkMTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// AdvReachableTime.
    #[serde(serialize_with = "text::as_duration")]
    pub reachable_time: Duration,
    /// AdvRetransTimer.
    #[serde(serialize_with = "text::as_duration")]
    pub retransmit_timer: Duration,
    /// Recursive DNS servers; `None`: the DNS64, where it listens on the interface.
    #[serde(serialize_with = "servers", skip_serializing_if = "Option::is_none")]
    pub rdnss: Option<Vec<Ipv6Addr>>,
    /// DNS search list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dnssl: Vec<String>,
    /// How long both hold.
    pub dns_lifetime: Lifetime,
    /// URI of the captive portal's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captive_portal: Option<String>,
    /// The NAT64 prefix.
    pub pref64: Pref64,
    /// How long it holds.
    #[serde(serialize_with = "text::as_duration")]
    pub pref64_lifetime: Duration,
    /// Whether a final advertisement is sent.
    pub goodbye: bool,
    /// Prefixes of the link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<AdvertisedPrefix>,
    /// More specific routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<AdvertisedRoute>,
}

/// RFC 4861 §6.2.1: maximum of AdvDefaultLifetime.
const LONGEST: Duration = Duration::from_secs(9_000);

/// RFC 8910 §2: longer ones do not fit into DHCPv4.
const LONGEST_URI: usize = 255;

impl RouterAdvertisement {
    pub(crate) fn read(section: &Reader, names: &Names, report: &mut Report) -> Option<Self> {
        let (interface, over) = read_link(section, names, report)?;
        let max_interval = section.value("max_interval", report).and_then(|v| v.duration(report));
        let three = max_interval.map(|max| 3 * max);
        let min_interval = match section.value("min_interval", report) {
            None => max_interval.map(default_min),
            Some(v) => v.duration(report).inspect(|min| {
                if let Some(max) = max_interval.filter(|max| *min * 4 > *max * 3) {
                    let most = text::duration(max * 3 / 4);
                    report.fault(
                        &v.place,
                        format!("is more than three quarters of max_interval; write at most {most}"),
                    );
                }
            }),
        };
        let router_lifetime = match section.value("router_lifetime", report) {
            None => three.map(|three| three.min(LONGEST)),
            Some(v) => v.duration(report).inspect(|lifetime| {
                if !lifetime.is_zero() && max_interval.is_some_and(|max| *lifetime < max) {
                    report.fault(&v.place, "is less than max_interval: the router would expire between advertisements; write 0 s or a longer time");
                } else {
                    warn_of_short(Lifetime::For(*lifetime), three, &v.place, report);
                }
            }),
        };
        let preference = section.value("preference", report).and_then(|v| v.word(report));
        let managed = section.value("managed", report).and_then(|v| v.boolean(report));
        let other = section.value("other", report).and_then(|v| v.boolean(report));
        let hop_limit = section.value("hop_limit", report).and_then(|v| v.integer(report));
        let mtu = section.value("mtu", report).map(|v| v.integer(report));
        let reachable_time = section.value("reachable_time", report).and_then(|v| v.duration(report));
        let retransmit_timer = section.value("retransmit_timer", report).and_then(|v| v.duration(report));
        let rdnss = section.value("rdnss", report);
        let written = rdnss.is_some();
        let rdnss = read_list(rdnss, report, |item, report| {
            let address = item.address6(report)?;
            if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
                report.fault(&item.place, format!("{address} is not a valid server address"));
            }
            Some(address)
        });
        let dnssl = read_list(section.value("dnssl", report), report, |item, report| {
            let name = item.text(report)?;
            if !is_domain_name(&name) {
                report.fault(
                    &item.place,
                    format!("\"{name}\" is not a domain name; write one such as site.example"),
                );
            }
            Some(name)
        });
        let dns_lifetime = read_lifetime(section.value("dns_lifetime", report), three, three, report);
        let captive_portal = section.value("captive_portal", report).map(|v| {
            let uri = v.text(report)?;
            let absolute = uri.starts_with("https://") || uri.starts_with("urn:");
            if !absolute || uri.len() > LONGEST_URI || !uri.bytes().all(|b| b.is_ascii_graphic()) {
                let what = "is not a valid API URI; write one that begins with https://, at most 255 octets (RFC 8910 §2)";
                report.fault(&v.place, what);
            }
            Some(uri)
        });
        let pref64 = section.value("pref64", report).and_then(|v| read_pref64(&v, report));
        let pref64_lifetime = match section.value("pref64_lifetime", report) {
            None => three.map(|three| three.min(Duration::from_secs(65_528))),
            Some(v) => v.duration(report).inspect(|lifetime| {
                warn_of_short(Lifetime::For(*lifetime), three, &v.place, report);
            }),
        };
        let goodbye = section.value("goodbye", report).and_then(|v| v.boolean(report));
        let rows = section.sections("prefixes", &ADVERTISED_PREFIX, report);
        let prefixes: Vec<_> =
            rows.iter().map(|row| AdvertisedPrefix::read(row, names, three, report)).collect();
        let rows = section.sections("routes", &ADVERTISED_ROUTE, report);
        let routes: Vec<_> = rows.iter().map(|row| AdvertisedRoute::read(row, three, report)).collect();
        Some(Self {
            interface,
            over,
            max_interval: max_interval?,
            min_interval: min_interval?,
            router_lifetime: router_lifetime?,
            preference: preference?,
            managed: managed?,
            other: other?,
            hop_limit: hop_limit?,
            mtu: mtu.map_or(Some(None), |mtu| mtu.map(Some))?,
            reachable_time: reachable_time?,
            retransmit_timer: retransmit_timer?,
            rdnss: rdnss.map(|rdnss| written.then_some(rdnss))?,
            dnssl: dnssl?,
            dns_lifetime: dns_lifetime?,
            captive_portal: captive_portal.map_or(Some(None), |uri| uri.map(Some))?,
            pref64: pref64?,
            pref64_lifetime: pref64_lifetime?,
            goodbye: goodbye?,
            prefixes: prefixes.into_iter().collect::<Option<_>>()?,
            routes: routes.into_iter().collect::<Option<_>>()?,
        })
    }
}

/// RFC 4861 §6.2.1: a third of MaxRtrAdvInterval, or three quarters of one below 9 s; never less than 3 s.
fn default_min(max: Duration) -> Duration {
    let min = if max < Duration::from_secs(9) { max * 3 / 4 } else { max / 3 };
    Duration::from_secs(min.as_secs().max(3))
}

fn read_link(
    section: &Reader,
    names: &Names,
    report: &mut Report,
) -> Option<(Option<String>, Option<String>)> {
    let interface = section.value("interface", report).map(|v| (v.text(report), v.place));
    let over = section.value("over", report).map(|v| (v.text(report), v.place));
    match (interface, over) {
        (None, None) => {
            report.fault(
                section.place(),
                "has no link; write interface = \"eth1\", or over = an [isatap] router",
            );
            None
        }
        (Some(_), Some((_, place))) => {
            report.fault(&place, "cannot be combined with interface; remove one");
            None
        }
        (Some((interface, place)), None) => {
            let interface = interface?;
            let device = names.device == Some(&*interface);
            if device || interface == "lo" || !is_interface_name(&interface) {
                let what = match device {
                    true => "is the gateway's own device and has no hosts; write an interface with hosts",
                    false if interface == "lo" => "has no hosts; write an interface with hosts",
                    false => NO_INTERFACE,
                };
                report.fault(&place, what);
                return None;
            }
            let known = names.host.addresses.iter().any(|own| own.interface == interface);
            if !known && !names.host.addresses.is_empty() {
                let what = "this interface has no address yet; advertisements start when it has a link-local address";
                report.warn(&place, what);
            }
            Some((Some(interface), None))
        }
        (None, Some((over, place))) => {
            let over = over?;
            if !names.isatap.contains(&over) {
                report.fault(
                    &place,
                    "no [isatap] with role = \"router\" has this name; add one, or write the name of one",
                );
            }
            Some((None, Some(over)))
        }
    }
}

fn read_list<T>(
    value: Option<Value>,
    report: &mut Report,
    read: impl Fn(&Value, &mut Report) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(value) = value else { return Some(Vec::new()) };
    let items = value.items();
    let read: Vec<T> = items.iter().filter_map(|item| read(item, report)).collect();
    (read.len() == items.len()).then_some(read)
}

fn read_pref64(value: &Value, report: &mut Report) -> Option<Pref64> {
    if value.is_word("auto") {
        return Some(Pref64::Auto);
    }
    if value.is_word("none") {
        return Some(Pref64::None);
    }
    crate::translator_prefix::read_prefix(value, false, report).map(|prefix| Pref64::Prefix(prefix.prefix()))
}
