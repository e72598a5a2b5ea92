//! The state of the tunnels for `sixway show`.

use super::aftrs::AftrSource;
use crate::config::Word as _;
use crate::config::{
    AftrAt, B4, Config, ConfiguredTunnel, Isatap, IsatapRole, LocalAddress, Pool, Remote, SixRd, SixRdRole,
    SixToFour, Surroundings,
};
use crate::view::{RouterAdvertisementRow, SixRdRow};
use sixway_fastpath::Taken;
use sixway_wire::Prefix4;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The interfaces that may have an address, if no interface is configured for it.
pub(super) const ANY_INTERFACE: &str = "this host";

/// The tunnels as they are at the moment.
#[derive(Clone, Debug, Default)]
pub struct TunnelView {
    /// What each serves, by its name.
    pub serves: BTreeMap<String, String>,
    /// Tunnels and pools whose local address does not exist yet, and the interface that should have it.
    pub awaited: Vec<(String, String)>,
    /// B4s without a local address or an AFTR, and which of them is missing.
    pub waiting_b4s: Vec<(String, MissingEnd)>,
    /// The AFTRs in use, by B4.
    pub aftrs: BTreeMap<String, Ipv6Addr>,
    /// 6rd domains.
    pub six_rd: Vec<SixRdRow>,
    /// Router advertisements.
    pub advertisements: Vec<RouterAdvertisementRow>,
    /// Ends of tunnels in UDP by name, and where their sockets are bound.
    pub udp_ends: Vec<(String, Option<String>)>,
    /// The kernel's error if such a socket cannot be opened.
    pub udp_troubles: Vec<(String, String)>,
    /// Those without a socket because this host does not have the configured address.
    pub udp_missing: Vec<(String, Ipv4Addr)>,
    /// What steering took to the device.
    pub steered: Option<Taken>,
}

impl TunnelView {
    /// Upon these addresses, and with AFTRs from there; `way`: how packets come in.
    pub(super) fn of(
        config: &Config,
        (now, aftrs): (&Surroundings, &BTreeMap<String, AftrSource>),
        way: &str,
    ) -> Self {
        let mut serves = BTreeMap::new();
        let mut add = |name: &str, parts: Vec<String>| {
            let parts: Vec<String> = parts.into_iter().chain([way.to_owned()]).collect();
            serves.insert(name.to_owned(), parts.join(" · "));
        };
        config.six_to_four.iter().for_each(|it| add(&it.name, six_to_four(it, now)));
        config.six_rd.iter().for_each(|it| add(&it.name, six_rd(it, now)));
        config.configured_tunnels.iter().for_each(|it| add(&it.name, configured(it, now)));
        config.isatap.iter().for_each(|it| add(&it.name, isatap(it, now)));
        // Its packets come by a route.
        serves.extend(config.b4s().map(|it| (it.name.clone(), b4(it, now, aftrs.get(&it.name)))));
        Self {
            serves,
            awaited: awaited(config, now),
            waiting_b4s: waiting_b4s(config, now, aftrs),
            aftrs: config.b4s().filter_map(|it| Some((it.name.clone(), it.aftr_now(now)?))).collect(),
            udp_missing: udp_missing(config, now),
            six_rd: config.six_rd.iter().map(|it| six_rd_row(it, now)).collect(),
            ..Self::default()
        }
    }
}

/// Relays and clients of Teredo with a configured address that this host does not have. Those that follow an interface wait for its
/// address.
fn udp_missing(config: &Config, now: &Surroundings) -> Vec<(String, Ipv4Addr)> {
    let relays = config.others.teredo_relay.iter().map(|it| (&it.name, &it.local));
    let clients = config.others.teredo_client.iter().map(|it| (&it.name, &it.local));
    let all = relays.chain(clients).filter(|(_, local)| local.followed_interface().is_none());
    let missing = all.filter_map(|(name, local)| Some((name.clone(), local.now(now)?)));
    missing.filter(|(_, address)| now.holder(*address).is_none()).collect()
}

/// The condition that a B4 waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingEnd {
    /// An IPv6 prefix on this interface.
    Local(String),
    /// The addresses of this name.
    Name(String),
    /// A lease with a name, in this file.
    Lease(String),
}

fn waiting_b4s(
    config: &Config,
    now: &Surroundings,
    aftrs: &BTreeMap<String, AftrSource>,
) -> Vec<(String, MissingEnd)> {
    let followed = |it: &B4| aftrs.get(&it.name)?.followed.clone();
    let missing = |it: &B4| match (it.local.now(now), it.aftr_now(now), followed(it)) {
        (None, _, _) => Some(MissingEnd::Local(it.local.followed_interface()?.to_owned())),
        (Some(_), Some(_), _) => None,
        (Some(_), None, Some(name)) => Some(MissingEnd::Name(name)),
        (Some(_), None, None) => match (&it.aftr, &it.aftr_lease_file) {
            (Some(AftrAt::Name(name)), _) => Some(MissingEnd::Name(name.clone())),
            (Some(AftrAt::Address(_)) | None, Some(file)) => {
                Some(MissingEnd::Lease(file.display().to_string()))
            }
            (Some(AftrAt::Address(_)) | None, None) => None,
        },
    };
    config.b4s().filter_map(|it| Some((it.name.clone(), missing(it)?))).collect()
}

fn awaited(config: &Config, now: &Surroundings) -> Vec<(String, String)> {
    let six_to_four = config.six_to_four.iter().map(|it| (&it.name, &it.local));
    let six_rd = config.six_rd.iter().map(|it| (&it.name, &it.local));
    let configured = config.configured_tunnels.iter().map(|it| (&it.name, &it.local));
    let isatap = config.isatap.iter().map(|it| (&it.name, &it.local));
    let relays = config.others.teredo_relay.iter().map(|it| (&it.name, &it.local));
    let clients = config.others.teredo_client.iter().map(|it| (&it.name, &it.local));
    let relays = relays.chain(clients);
    let all = six_to_four.chain(six_rd).chain(configured).chain(isatap).chain(relays);
    let without = all.filter(|(_, local)| local.now(now).is_none());
    let tunnels = without
        .map(|(name, local)| (name.clone(), local.followed_interface().unwrap_or(ANY_INTERFACE).to_owned()));
    let pools = config.pools.iter().filter(|pool| pool.shared).flat_map(|pool| awaited_of_pool(pool, now));
    tunnels.chain(pools).collect()
}

/// The addresses of a shared pool that this host does not have: not yet, or not any more.
fn awaited_of_pool(pool: &Pool, now: &Surroundings) -> Vec<(String, String)> {
    let is_missing = |own: &&Prefix4| now.holder(own.address()).is_none();
    let mut missing = pool.addresses.iter().filter(is_missing);
    match &pool.interface {
        Some(interface) if pool.addresses.is_empty() || missing.next().is_some() => {
            vec![(format!("pool {}", pool.name), interface.clone())]
        }
        Some(_) => Vec::new(),
        None => missing
            .map(|own| (format!("pool {}, {}", pool.name, own.address()), ANY_INTERFACE.to_owned()))
            .collect(),
    }
}

fn own(local: &LocalAddress, now: &Surroundings) -> String {
    match (local.now(now), local.followed_interface()) {
        (Some(address), None) if now.holder(address).is_none() => {
            format!("{address} (not an address of this host)")
        }
        (Some(address), None) => address.to_string(),
        (Some(address), Some(interface)) => format!("{address} of {interface}"),
        (None, interface) => format!("waiting for an address on {}", interface.unwrap_or(ANY_INTERFACE)),
    }
}

fn six_to_four(it: &SixToFour, now: &Surroundings) -> Vec<String> {
    let site = it.now(now).and_then(|address| it.site(address));
    let this_end = match (it.local.now(now), it.now(now)) {
        (Some(private), None) => format!("waiting for a public address; {private} is private"),
        (_, _) => own(&it.local, now),
    };
    let mut parts = vec![format!("{} {this_end}", it.role.as_str())];
    parts.extend(site.map(|site| site.to_string()));
    match (site, it.relay) {
        (Some(_), Some(relay)) => parts.push(format!("everything else via {relay}")),
        (Some(_), None) => parts.push("no relay: only 6to4".into()),
        (None, _) => {}
    }
    parts
}

fn six_rd(it: &SixRd, now: &Surroundings) -> Vec<String> {
    let role = match it.role {
        SixRdRole::CustomerEdge => "customer edge",
        SixRdRole::BorderRelay => "border relay",
    };
    let mut parts = vec![format!("{role} {}", own(&it.local, now)), format!("domain {}", it.prefix)];
    if it.role == SixRdRole::CustomerEdge {
        parts.extend(it.local.now(now).and_then(|address| it.delegated(address)).map(|own| own.to_string()));
        parts.extend(it.border_relays.first().map(|relay| format!("everything else via {relay}")));
    }
    parts
}

fn configured(it: &ConfiguredTunnel, now: &Surroundings) -> Vec<String> {
    let remote = match (&it.remote, it.remote_now(now)) {
        (Remote::Address(address), _) => address.to_string(),
        (Remote::Name(name), Some(address)) => format!("{address} ({name})"),
        (Remote::Name(name), None) => format!("{name} (not resolved yet)"),
    };
    let prefixes: Vec<String> = it.prefixes.iter().map(ToString::to_string).collect();
    vec![format!("{} ⇄ {remote}", own(&it.local, now)), prefixes.join(", ")]
}

/// `source`: where its AFTR is from; `None`: it is not asked for yet.
fn b4(it: &B4, now: &Surroundings, source: Option<&AftrSource>) -> String {
    let local = match (it.local.now(now), it.local.followed_interface()) {
        (Some(local), None) => local.to_string(),
        (Some(local), Some(interface)) => format!("{local} by {interface}"),
        (None, interface) => {
            format!("waiting for an IPv6 prefix on {}", interface.unwrap_or(ANY_INTERFACE))
        }
    };
    let written = match &it.aftr {
        Some(AftrAt::Name(name)) => Some(name),
        Some(AftrAt::Address(_)) | None => None,
    };
    // A lease, or a command, may have named another one than the configuration.
    let (found_by, followed) =
        source.map_or((None, written), |it| (it.found_by.as_ref(), it.followed.as_ref()));
    let aftr = match (it.aftr_now(now), found_by, followed) {
        (Some(address), Some(name), _) => format!("{address} ({name})"),
        (Some(address), None, _) => address.to_string(),
        (None, _, Some(name)) => format!("{name} (not resolved yet)"),
        (None, _, None) => "no AFTR known yet".to_owned(),
    };
    format!("b4 {local} ⇄ AFTR {aftr} · {} on the device", it.ipv4_address)
}

fn isatap(it: &Isatap, now: &Surroundings) -> Vec<String> {
    let mut parts = vec![format!("{} {}", it.role.as_str(), own(&it.local, now))];
    parts.extend(it.prefixes(now).iter().map(ToString::to_string));
    parts.extend(match (it.role, it.router(now)) {
        (IsatapRole::Host, None) => Some("no router yet".to_owned()),
        (IsatapRole::Host, Some(router)) => Some(format!("everything else via {router}")),
        (IsatapRole::Router, _) => None,
    });
    parts
}

fn six_rd_row(it: &SixRd, now: &Surroundings) -> SixRdRow {
    let address = it.local.now(now);
    let domain = address.and_then(|address| it.domain(address));
    SixRdRow {
        name: it.name.clone(),
        role: it.role.as_str().into(),
        prefix: it.prefix.to_string(),
        ipv4_mask_length: it.ipv4_mask_length,
        ipv4_common: domain.map(|domain| domain.shared().to_string()),
        address: address.map(|address| address.to_string()),
        delegated: address.and_then(|address| it.delegated(address)).map(|prefix| prefix.to_string()),
        border_relays: it.border_relays.iter().map(Ipv4Addr::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;

    #[test]
    fn a_relay_whose_address_is_gone_is_without_a_socket_and_says_so() {
        let text = "[teredo_relay]\naddress = \"192.0.2.1\"\nipv6_address = \"2001:db8::1\"\n";
        let config = crate::sample::config(text);
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let own = HostAddress { interface: "eth0".into(), address: address.into(), length: 24 };
        let missing = |own: &[HostAddress]| {
            TunnelView::of(&config, (&Surroundings::of(own), &BTreeMap::new()), "").udp_missing
        };
        assert_eq!(missing(&[own]), []);
        assert_eq!(missing(&[]), [("teredo_relay".to_owned(), address)]);
    }

    /// A command, or a lease, may name another AFTR than the configuration.
    #[test]
    fn a_b4_has_the_name_that_its_aftr_was_found_by_and_says_which_one_it_waits_for() {
        let b4 = |aftr: &str| {
            let text = format!("[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:99::b4\"\n{aftr}");
            crate::sample::config(&text)
        };
        let named = b4("aftr = \"written.example\"\n");
        let source = |found_by: Option<&str>, followed: Option<&str>| {
            let of = |name: Option<&str>| name.map(str::to_owned);
            AftrSource { found_by: of(found_by), followed: of(followed) }
        };
        let seen = |config: &Config, aftr: Option<&str>, source: Option<AftrSource>| {
            let mut now = Surroundings::default();
            now.aftrs.extend(aftr.map(|it| ("ds_lite".to_owned(), it.parse().unwrap())));
            let sources = source.map(|it| ("ds_lite".to_owned(), it)).into_iter().collect();
            let view = TunnelView::of(config, (&now, &sources), "");
            (view.serves["ds_lite"].clone(), view.waiting_b4s)
        };
        let serves = |aftr: &str| format!("b4 2001:db8:99::b4 ⇄ AFTR {aftr} · 192.0.0.2 on the device");
        let waits = |name: &str| vec![("ds_lite".to_owned(), MissingEnd::Name(name.into()))];
        assert_eq!(
            seen(&named, None, None),
            (serves("written.example (not resolved yet)"), waits("written.example"))
        );
        let told = || Some(source(None, Some("told.example")));
        assert_eq!(
            seen(&named, None, told()),
            (serves("told.example (not resolved yet)"), waits("told.example"))
        );
        let one = Some("2001:db8:a::1");
        for (source, expected) in [
            (source(Some("told.example"), Some("told.example")), "2001:db8:a::1 (told.example)"),
            (source(Some("written.example"), Some("told.example")), "2001:db8:a::1 (written.example)"),
            (source(None, None), "2001:db8:a::1"),
        ] {
            assert_eq!(seen(&named, one, Some(source)), (serves(expected), Vec::new()));
        }
        // The lease has a name; the address of the configuration is not in use while it is resolved for the first time.
        let leased = b4("aftr_lease_file = \"/run/sixway-aftr\"\n");
        assert_eq!(seen(&leased, None, told()).1, waits("told.example"));
        let lease = vec![("ds_lite".to_owned(), MissingEnd::Lease("/run/sixway-aftr".into()))];
        assert_eq!(seen(&leased, None, None), (serves("no AFTR known yet"), lease));
    }
}
