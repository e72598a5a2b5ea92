//! The contents of advertisements, and their division into packets that fit the link (RFC 4861 §6.2.3).
//!
//! Every packet has the header and the source link-layer address; options keep their order: the MTU, the prefixes, the routes, DNS, NAT64,
//! the portal. An option is never cut, and the same option is never in two packets.

use super::prefixes::{MAX_STALE, Prefixes, StalePrefix};
use super::settings::{Link, Settings};
use crate::neighbour_discovery::{NdOption, Pref64, RouteInformation, RouterAdvertisement, ScaledLifetime};
use sixway_dataplane::Instant;
use sixway_wire::Prefix6;

/// IPv6's header and the fixed part of an advertisement.
const HEADERS: usize = 40 + 16;

/// Whether the router stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdvertisementKind {
    /// Everything as it is set.
    Usual,
    /// RFC 4861 §6.2.5, RFC 4191 §4: the router, its routes, its name servers and its NAT64 are withdrawn. Prefixes are not mentioned: the
    /// router that stays, or comes back, advertises them.
    Goodbye,
}

/// The advertisement in as many packets as it takes, at least one; options that are too large for any packet are left out.
pub(super) fn advertisements(
    settings: &Settings,
    prefixes: &Prefixes,
    link: &Link,
    tone: AdvertisementKind,
    now: Instant,
) -> Vec<RouterAdvertisement> {
    let first = source_link_layer(link);
    let room = room(settings, link) - first.as_ref().map_or(0, NdOption::length);
    let mut parts: Vec<Vec<NdOption>> = vec![Vec::new()];
    let mut used = 0;
    for option in options(settings, prefixes, tone, now).into_iter().filter(NdOption::fits) {
        let length = option.length();
        if length > room {
            continue;
        }
        if used + length > room {
            parts.push(Vec::new());
            used = 0;
        }
        used += length;
        if let Some(part) = parts.last_mut() {
            part.push(option);
        }
    }
    parts
        .into_iter()
        .map(|part| header(settings, tone, first.iter().cloned().chain(part).collect()))
        .collect()
}

/// Into how many packets these settings may grow, with as many stale prefixes as there can be; `None` if an option is too large for any.
pub(super) fn most_parts(settings: &Settings, link: &Link) -> Option<usize> {
    let now = Instant::default();
    let mut prefixes = Prefixes::new(&settings.prefixes);
    let all = options(settings, &prefixes, AdvertisementKind::Usual, now);
    let room = room(settings, link) - source_link_layer(link).map_or(0, |option| option.length());
    if !all.iter().all(|option| option.fits() && option.length() <= room) {
        return None;
    }
    for number in 0..MAX_STALE as u128 {
        let prefix = Prefix6::holding(core::net::Ipv6Addr::from_bits(number << 64 | 1 << 127), 64);
        let until = Instant(u64::MAX);
        prefixes.add_stale(now, StalePrefix { prefix, on_link: true, autonomous: true, until });
    }
    Some(advertisements(settings, &prefixes, link, AdvertisementKind::Usual, now).len())
}

fn room(settings: &Settings, link: &Link) -> usize {
    let mtu = settings.mtu.map_or(link.mtu(), |mtu| mtu.min(link.mtu()));
    usize::from(mtu).saturating_sub(HEADERS)
}

/// ISATAP computes link-layer addresses from IPv6 addresses (RFC 5214 §7.1); only a LAN needs the option.
fn source_link_layer(link: &Link) -> Option<NdOption> {
    match link {
        Link::Multicast { link_layer, .. } => {
            link_layer.map(|address| NdOption::SourceLinkLayer(address.to_vec()))
        }
        Link::Isatap { .. } => None,
    }
}

fn header(settings: &Settings, tone: AdvertisementKind, options: Vec<NdOption>) -> RouterAdvertisement {
    RouterAdvertisement {
        hop_limit: settings.hop_limit,
        managed: settings.managed,
        other: settings.other,
        preference: settings.preference,
        router_lifetime: match tone {
            AdvertisementKind::Usual => settings.router_lifetime(),
            AdvertisementKind::Goodbye => 0,
        },
        reachable_time: settings.reachable_time,
        retrans_timer: settings.retrans_timer,
        options,
    }
}

fn options(settings: &Settings, prefixes: &Prefixes, tone: AdvertisementKind, now: Instant) -> Vec<NdOption> {
    let lifetime = |own: Option<u32>| match tone {
        AdvertisementKind::Usual => own.unwrap_or(settings.usual_lifetime()),
        AdvertisementKind::Goodbye => 0,
    };
    let mut options = Vec::new();
    if tone == AdvertisementKind::Usual {
        options.extend(settings.mtu.map(|mtu| NdOption::Mtu(u32::from(mtu))));
        options.extend(prefixes.information(now).map(NdOption::Prefix));
    }
    options.extend(settings.routes.iter().map(|route| {
        let (prefix, preference) = (route.prefix, route.preference);
        NdOption::Route(RouteInformation { prefix, preference, lifetime: lifetime(route.lifetime) })
    }));
    let (servers, names) = (settings.dns_servers.clone(), settings.dns_search.clone());
    let dns = lifetime(settings.dns_lifetime);
    options.extend((!servers.is_empty()).then_some(NdOption::Rdnss { lifetime: dns, servers }));
    options.extend((!names.is_empty()).then_some(NdOption::Dnssl { lifetime: dns, names }));
    options.extend(settings.pref64.iter().filter_map(|entry| {
        let lifetime = ScaledLifetime::from_secs(lifetime(entry.lifetime));
        Pref64::new(entry.prefix, lifetime).ok().map(NdOption::Pref64)
    }));
    if tone == AdvertisementKind::Usual {
        options.extend(settings.captive_portal.clone().map(NdOption::CaptivePortal));
    }
    options
}
