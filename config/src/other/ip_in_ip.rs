//! `[[ip_in_ip]]`: tunnels of either family over IPv6 (RFC 2473), and of IPv4 over IPv4 (RFC 2003).

use std::net::IpAddr;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use sixway_dataplane::classify::source_check::{is_martian4, is_martian6};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::ip_in_ip::{IpInIpConfig, IpInIpFault};
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_wire::{Prefix4, Prefix6};

use super::{FromSection, Other};
use crate::claims::{Claims, Owner};
use crate::configured_tunnel::{NO_HOSTS, is_of_hosts};
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::outer_end;
use crate::routes::Route;
use crate::schema::{Absent, Kind, OUTER_HEADER, Section, Times, key};
use crate::section::Reader;
use crate::text;
use crate::tunnels::Around;
use crate::value::Value;

/// The section's keys.
pub(crate) static IP_IN_IP: Section = Section {
    name: "ip_in_ip",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`ip_in_ip`; of several, `ip_in_ip-1`, `ip_in_ip-2`, …"),
                "What it is called in `sixway show` and in metrics.",
            ),
            key(
                "local",
                Kind::Address,
                Absent::FaultSuch("\"2001:db8::1\""),
                "This end: an address that is routed to this host and is on none of its interfaces. Tunnels may share it, and it may be the gateway's own.",
            ),
            key(
                "remote",
                Kind::Address,
                Absent::FaultSuch("\"2001:db8:7::1\""),
                "The other end, of the same family.",
            ),
            key(
                "prefixes",
                Kind::Networks,
                Absent::FaultSuch("[\"10.7.0.0/16\", \"2001:db8:70::/48\"]"),
                "What is behind the other end: it is routed into the tunnel, the longest prefix first. Between IPv4 ends only IPv4 prefixes.",
            ),
            key(
                "strict_sources",
                Kind::Boolean,
                Absent::Default("true"),
                "Take only packets whose inner source lies within `prefixes`.",
            ),
            key(
                "encapsulation_limit",
                Kind::IntegerOr { word: "none", min: 0, max: 255 },
                Absent::Default("4"),
                "How many more tunnels a packet may enter, if it does not say so itself (RFC 2473 §6.6); `\"none\"`: no such option, and 8 octets less. Only with IPv6 ends.",
            ),
            key(
                "mtu",
                Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
                Absent::Default("\"dynamic\""),
                "Octets of packet that go in whole: a number up to `tun.mtu`, or what the path to the other end is found to carry (RFC 2473 §6.7, RFC 2003 §5.1).",
            ),
        ],
        OUTER_HEADER,
    ],
};

/// A tunnel, resolved.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct IpInIp {
    /// What it is called.
    pub name: String,
    /// This end.
    #[serde(serialize_with = "text::one")]
    pub local: IpAddr,
    /// The other end.
    #[serde(serialize_with = "text::one")]
    pub remote: IpAddr,
    /// What is behind the other end.
    #[serde(serialize_with = "text::many")]
    pub prefixes: Vec<Route>,
    /// Whether inner sources must lie within them.
    pub strict_sources: bool,
    /// How many more tunnels a packet may enter; not with IPv4 ends.
    #[serde(flatten)]
    pub encapsulation_limit: EncapsulationLimit,
    /// How packets are put into the outer header.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

/// `encapsulation_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapsulationLimit {
    /// The ends are IPv4 addresses.
    Inapplicable,
    /// No option is written.
    None,
    /// This one.
    Some(u8),
}

impl Serialize for EncapsulationLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Inapplicable => {}
            Self::None => map.serialize_entry("encapsulation_limit", "none")?,
            Self::Some(limit) => map.serialize_entry("encapsulation_limit", limit)?,
        }
        map.end()
    }
}

impl EncapsulationLimit {
    fn read(section: &Reader, ends: Option<IpAddr>, report: &mut Report) -> Option<Self> {
        let value = section.value("encapsulation_limit", report)?;
        let limit = value.integer_or(report)?;
        if ends.is_some_and(|end| end.is_ipv4()) {
            if value.is_written() {
                report.fault(&value.place, "is for tunnels over IPv6; leave it out");
            }
            return Some(Self::Inapplicable);
        }
        Some(limit.map_or(Self::None, Self::Some))
    }
}

/// An address of a host, and where it stands.
fn read_end(section: &Reader, key: &str, report: &mut Report) -> Option<(IpAddr, Place)> {
    let value = section.value(key, report)?;
    let address = value.address(report)?;
    let is_no_hosts = match address {
        IpAddr::V4(address) => is_martian4(address),
        IpAddr::V6(address) => is_martian6(address),
    };
    if is_no_hosts {
        report.fault(
            &value.place,
            "is no address that a host can have beyond its link; write a unicast address",
        );
        return None;
    }
    Some((address, value.place))
}

/// The other end: none of this host's own.
fn check_remote(remote: IpAddr, place: &Place, host: &HostFacts, claims: &mut Claims, report: &mut Report) {
    match remote {
        IpAddr::V4(remote) => outer_end::check(remote, place, host, claims, report),
        IpAddr::V6(remote) => claims.v6(Prefix6::holding(remote, 128), Owner::OuterEnd, place),
    }
    if let Some(held) = host.addresses.iter().find(|it| it.address == remote) {
        let what = format!("is this host's own address on {}; write the other end's address", held.interface);
        report.fault(place, what);
    }
}

fn read_prefixes(value: Value, index: usize, claims: &mut Claims, report: &mut Report) -> Option<Vec<Route>> {
    let (place, mut whole, mut prefixes) = (value.place.clone(), true, Vec::new());
    for item in value.items() {
        let Some(prefix) = item.network(report) else {
            whole = false;
            continue;
        };
        match prefix {
            Route::V4(prefix) => claims.v4(prefix, Owner::Tunnel(index), &item.place),
            Route::V6(prefix) => {
                if !is_of_hosts(prefix) {
                    report.fault(&item.place, format!("{prefix} {NO_HOSTS}"));
                }
                claims.v6(prefix, Owner::Tunnel(index), &item.place);
            }
        }
        prefixes.push(prefix);
    }
    if whole && prefixes.is_empty() {
        report.fault(&place, "is empty; write what is behind the other end, such as [\"10.7.0.0/16\"]");
    }
    whole.then_some(prefixes)
}

/// How a fault is mended.
const fn mend(fault: IpInIpFault) -> &'static str {
    match fault {
        IpInIpFault::SameEnds => "write the other end's address as remote",
        IpInIpFault::MixedEnds => "write two addresses of one family",
        IpInIpFault::SixInFour => "write them in a [[tunnel]], whose local end is an address of this host",
    }
}

impl FromSection for IpInIp {
    fn read(section: &Reader, default_name: String, before: &[Option<Self>], around: Around) -> Option<Self> {
        let Around { index, mtu, host, claims, report } = around;
        let name = section.value("name", report).map(|v| v.text(report));
        let local = read_end(section, "local", report);
        let remote = read_end(section, "remote", report);
        if let Some((address, place)) = &local {
            match address {
                IpAddr::V4(address) => claims.v4(Prefix4::holding(*address, 32), Owner::TunnelEnd, place),
                IpAddr::V6(address) => claims.v6(Prefix6::holding(*address, 128), Owner::TunnelEnd, place),
            }
        }
        let prefixes = section.value("prefixes", report);
        let prefixes = prefixes.and_then(|v| read_prefixes(v, index, claims, report));
        let strict_sources = section.value("strict_sources", report).and_then(|v| v.boolean(report));
        let limit = EncapsulationLimit::read(section, local.as_ref().map(|(local, _)| *local), report);
        let encapsulation = Encapsulation::read(section, mtu, report);
        let ((local, local_at), (remote, remote_at)) = (local?, remote?);
        let tunnel = Self {
            name: name.unwrap_or(Some(default_name))?,
            local,
            remote,
            prefixes: prefixes?,
            strict_sources: strict_sources?,
            encapsulation_limit: limit?,
            encapsulation: encapsulation?,
        };
        if let Err(fault) = tunnel.config().check() {
            let place = if fault == IpInIpFault::SixInFour { &local_at } else { &remote_at };
            report.fault(place, format!("{fault}; {}", mend(fault)));
            return None;
        }
        check_remote(remote, &remote_at, host, claims, report);
        tunnel.check_way_to_remote(&remote_at, report);
        if let Some(other) = before.iter().flatten().find(|it| (it.local, it.remote) == (local, remote)) {
            let what =
                "runs between the same two ends; write one [[ip_in_ip]] with all prefixes, or another local";
            report.fault(section.place(), format!("{} {what}", other.name));
        }
        Some(tunnel)
    }
}

impl IpInIp {
    fn config(&self) -> IpInIpConfig {
        let (mut prefixes4, mut prefixes6) = (Vec::new(), Vec::new());
        for prefix in &self.prefixes {
            match prefix {
                Route::V4(prefix) => prefixes4.push(*prefix),
                Route::V6(prefix) => prefixes6.push(*prefix),
            }
        }
        let encapsulation_limit = match self.encapsulation_limit {
            EncapsulationLimit::Inapplicable | EncapsulationLimit::None => None,
            EncapsulationLimit::Some(limit) => Some(limit),
        };
        IpInIpConfig {
            local: self.local,
            remote: Some(self.remote),
            prefixes4,
            prefixes6,
            strict_sources: self.strict_sources,
            policy: TunnelPolicy { encapsulation_limit, ..self.encapsulation.engine() },
        }
    }

    /// What is routed into the tunnel may be the way to its other end, too.
    fn check_way_to_remote(&self, place: &Place, report: &mut Report) {
        let (whole, holding) = match self.remote {
            IpAddr::V4(remote) => {
                let whole = Prefix4::holding(remote, 32);
                let holds = |it: &&Route| matches!(it, Route::V4(prefix) if prefix.contains(remote));
                (Route::V4(whole), self.prefixes.iter().find(holds))
            }
            IpAddr::V6(remote) => {
                let whole = Prefix6::holding(remote, 128);
                let holds = |it: &&Route| matches!(it, Route::V6(prefix) if prefix.contains(remote));
                (Route::V6(whole), self.prefixes.iter().find(holds))
            }
        };
        if self.prefixes.contains(&whole) {
            let what = "the tunnel's own packets would be routed into it; leave it out of them";
            report.fault(place, format!("is one of prefixes: {what}"));
        } else if let Some(prefix) = holding {
            let what = "the tunnel's own packets need a narrower route, that does not lead into the device";
            report.warn(place, format!("lies in {prefix}, one of prefixes: {what}"));
        }
    }
}

impl Other for IpInIp {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        self.config().into()
    }

    fn serves(&self) -> String {
        let prefixes: Vec<String> = self.prefixes.iter().map(ToString::to_string).collect();
        format!("{} ⇄ {} · {}", self.local, self.remote, prefixes.join(" · "))
    }

    fn routes(&self) -> Vec<Route> {
        let local = match self.local {
            IpAddr::V4(local) => Route::V4(Prefix4::holding(local, 32)),
            IpAddr::V6(local) => Route::V6(Prefix6::holding(local, 128)),
        };
        self.prefixes.iter().copied().chain([local]).collect()
    }

    fn local(&self) -> Option<IpAddr> {
        Some(self.local)
    }

    fn serves_ipv4(&self) -> bool {
        self.prefixes.iter().any(|prefix| matches!(prefix, Route::V4(_)))
    }

    fn serves_ipv6(&self) -> bool {
        self.prefixes.iter().any(|prefix| matches!(prefix, Route::V6(_)))
    }
}
