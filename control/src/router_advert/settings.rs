//! What a router advertises, by the RFC's variables (RFC 4861 §6.2.1), and what is wrong with it.

use crate::neighbour_discovery::{DomainName, INFINITY, Preference};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Prefix6;

/// The link that is advertised on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A LAN: periodic advertisements to all nodes, from this interface.
    Multicast {
        /// The interface's link-local address, the source of all advertisements.
        address: Ipv6Addr,
        /// Its link-layer address; `None` leaves the option out, so that the load may be shared (RFC 4861 §6.2.3).
        link_layer: Option<[u8; 6]>,
        /// Its MTU in octets: no advertisement is larger.
        mtu: u16,
    },
    /// An ISATAP tunnel (RFC 5214 §8.2): only solicited advertisements, each to the soliciting host.
    Isatap {
        /// The tunnel's own IPv4 address.
        local: Ipv4Addr,
        /// The tunnel's MTU in octets.
        mtu: u16,
    },
}

impl Link {
    pub(super) const fn mtu(&self) -> u16 {
        match self {
            Self::Multicast { mtu, .. } | Self::Isatap { mtu, .. } => *mtu,
        }
    }
}

/// How solicitations on a LAN are answered (RFC 4861 §6.2.6). Over ISATAP it is always by unicast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solicited {
    /// To all nodes, at most every 3 s: the default.
    #[default]
    Multicast,
    /// To the soliciting host, if it has an address: other hosts are not woken up.
    Unicast,
}

/// An entry of AdvPrefixList.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisedPrefix {
    /// The prefix.
    pub prefix: Prefix6,
    /// AdvOnLinkFlag.
    pub on_link: bool,
    /// AdvAutonomousFlag; hosts make addresses of a /64 only (RFC 4862 §5.5.3).
    pub autonomous: bool,
    /// AdvValidLifetime in seconds.
    pub valid: u32,
    /// AdvPreferredLifetime in seconds; not larger than `valid`.
    pub preferred: u32,
    /// When the prefix itself ends, if that is known (a lease): no lifetime reaches beyond (RFC 9096 §3.3).
    pub ends: Option<Instant>,
}

impl AdvertisedPrefix {
    /// RFC 4861 §6.2.1: valid for 30 days, preferred for 7 days.
    pub const fn lasting(prefix: Prefix6) -> Self {
        Self { prefix, on_link: true, autonomous: true, valid: 2_592_000, preferred: 604_800, ends: None }
    }

    /// RFC 9096 §4: ND_VALID_LIMIT, 90 min, and ND_PREFERRED_LIMIT, 45 min, for a prefix derived from an address that may change (6to4, 6rd).
    pub const fn changing(prefix: Prefix6) -> Self {
        Self { prefix, on_link: true, autonomous: true, valid: 5_400, preferred: 2_700, ends: None }
    }

    /// Valid and preferred lifetime to advertise now.
    pub(super) fn lifetimes(&self, now: Instant) -> (u32, u32) {
        let left =
            self.ends.map_or(INFINITY, |ends| u32::try_from(ends.since(now).as_secs()).unwrap_or(INFINITY));
        (self.valid.min(left), self.preferred.min(left))
    }
}

/// A route to advertise (RFC 4191).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisedRoute {
    /// The destinations.
    pub prefix: Prefix6,
    /// Its preference.
    pub preference: Preference,
    /// Lifetime in seconds; `None` is 3 × MaxRtrAdvInterval.
    pub lifetime: Option<u32>,
}

/// A NAT64 prefix to advertise (RFC 8781).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisedPref64 {
    /// The prefix: /32, /40, /48, /56, /64 or /96.
    pub prefix: Prefix6,
    /// Lifetime in seconds, rounded up to a multiple of 8, 65,528 at most; `None` is 3 × MaxRtrAdvInterval.
    pub lifetime: Option<u32>,
}

/// All that is advertised on a link. [`Settings::default`] has the RFC's defaults, and nothing else to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// MaxRtrAdvInterval in seconds, 4 to 1,800.
    pub max_interval: u16,
    /// MinRtrAdvInterval in seconds, 3 to 0.75 × MaxRtrAdvInterval; `None` is a third of MaxRtrAdvInterval.
    pub min_interval: Option<u16>,
    /// AdvDefaultLifetime in seconds: 0, or from MaxRtrAdvInterval to 9,000; `None` is 3 × MaxRtrAdvInterval.
    pub router_lifetime: Option<u16>,
    /// Default Router Preference (RFC 4191 §2.2).
    pub preference: Preference,
    /// AdvManagedFlag.
    pub managed: bool,
    /// AdvOtherConfigFlag.
    pub other: bool,
    /// AdvCurHopLimit; 0: unspecified.
    pub hop_limit: u8,
    /// AdvReachableTime in milliseconds, 3,600,000 at most; 0: unspecified.
    pub reachable_time: u32,
    /// AdvRetransTimer in milliseconds; 0: unspecified.
    pub retrans_timer: u32,
    /// AdvLinkMTU in octets; `None` sends no MTU option.
    pub mtu: Option<u16>,
    /// AdvPrefixList, 16 at most.
    pub prefixes: Vec<AdvertisedPrefix>,
    /// Routes, 17 at most (RFC 4191 §4).
    pub routes: Vec<AdvertisedRoute>,
    /// Recursive DNS servers, 8 at most.
    pub dns_servers: Vec<Ipv6Addr>,
    /// DNS search list, 8 at most.
    pub dns_search: Vec<DomainName>,
    /// Lifetime of both in seconds; `None` is 3 × MaxRtrAdvInterval.
    pub dns_lifetime: Option<u32>,
    /// NAT64 prefixes, 4 at most.
    pub pref64: Vec<AdvertisedPref64>,
    /// URI of the captive portal's API, 255 octets at most (RFC 8910).
    pub captive_portal: Option<String>,
    /// How solicitations are answered on a LAN.
    pub solicited: Solicited,
    /// How many advertisements with router lifetime 0 are sent at the end, 3 at most (MAX_FINAL_RTR_ADVERTISEMENTS); 0 where another
    /// router takes over with the same promises.
    pub goodbyes: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_interval: 600,
            min_interval: None,
            router_lifetime: None,
            preference: Preference::Medium,
            managed: false,
            other: false,
            hop_limit: 64,
            reachable_time: 0,
            retrans_timer: 0,
            mtu: None,
            prefixes: Vec::new(),
            routes: Vec::new(),
            dns_servers: Vec::new(),
            dns_search: Vec::new(),
            dns_lifetime: None,
            pref64: Vec::new(),
            captive_portal: None,
            solicited: Solicited::Multicast,
            goodbyes: 1,
        }
    }
}

impl Settings {
    /// The default of other lifetimes: 3 × MaxRtrAdvInterval, in seconds.
    pub const fn usual_lifetime(&self) -> u32 {
        3 * self.max_interval as u32
    }

    /// The router lifetime in seconds; by default 3 × MaxRtrAdvInterval (RFC 4861 §6.2.1), at most 9,000.
    pub fn router_lifetime(&self) -> u16 {
        self.router_lifetime.unwrap_or(self.max_interval.saturating_mul(3))
    }

    /// MinRtrAdvInterval and MaxRtrAdvInterval. Below 9 s the RFC's default for the first is larger than it allows itself; 0.75 × the
    /// second is taken.
    pub fn intervals(&self) -> (Duration, Duration) {
        let max = Duration::from_secs(u64::from(self.max_interval));
        let min = match self.min_interval {
            Some(seconds) => Duration::from_secs(u64::from(seconds)),
            None if self.max_interval >= 9 => (max * 33 / 100).max(Duration::from_secs(3)),
            None => (max * 3 / 4).max(Duration::from_secs(3)),
        };
        (min, max)
    }
}

/// A setting by its name in [`Settings`] or [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// [`Link`]
    Link,
    /// [`Settings::max_interval`]
    MaxInterval,
    /// [`Settings::min_interval`]
    MinInterval,
    /// [`Settings::router_lifetime`]
    RouterLifetime,
    /// [`Settings::reachable_time`]
    ReachableTime,
    /// [`Settings::mtu`]
    Mtu,
    /// [`Settings::prefixes`]
    Prefixes,
    /// [`Settings::routes`]
    Routes,
    /// [`Settings::dns_servers`]
    DnsServers,
    /// [`Settings::dns_search`]
    DnsSearch,
    /// [`Settings::pref64`]
    Pref64,
    /// [`Settings::captive_portal`]
    CaptivePortal,
    /// [`Settings::goodbyes`]
    Goodbyes,
    /// All of it together.
    Everything,
}

/// One fault of the settings, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFault {
    /// Which setting.
    pub setting: Setting,
    /// Which entry of it, from 0, where it is a list.
    pub entry: Option<usize>,
    /// What is wrong, with the clause.
    pub why: String,
}

impl fmt::Display for SettingsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry {
            Some(entry) => write!(f, "{:?}[{entry}]: {}", self.setting, self.why),
            None => write!(f, "{:?}: {}", self.setting, self.why),
        }
    }
}

impl core::error::Error for SettingsFault {}
