//! Sixway's configuration for a task. Tunnels over IPv4 have the MTU that Linux and routers give them, 1,480 octets.

use crate::device::place::Place;
use crate::device::task::{
    Aftr, B4, Clat, Concentrator, Configured, Dns64, Host6to4, IpInIp, IsatapHost, IsatapRouter, LeasingHost,
    Nat44, Nat46, Nat64, Relay6to4, Router6to4, Siit, SiteGateway, Task, TaskKind, TeredoClient, TeredoRelay,
    TeredoServer,
};
use crate::failure::{Failure, Result};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Tasks that [`configuration`] has an answer for: all but plain forwarding, which is the kernel's.
pub const TASKS: &[TaskKind] = &[
    TaskKind::Nat64,
    TaskKind::Siit,
    TaskKind::Clat,
    TaskKind::Nat44,
    TaskKind::Nat46,
    TaskKind::Dns64,
    TaskKind::Relay6to4,
    TaskKind::Router6to4,
    TaskKind::Host6to4,
    TaskKind::Configured,
    TaskKind::IpInIp,
    TaskKind::IsatapRouter,
    TaskKind::IsatapHost,
    TaskKind::SiteGateway,
    TaskKind::Aftr,
    TaskKind::B4,
    TaskKind::Concentrator,
    TaskKind::LeasingHost,
    TaskKind::TeredoRelay,
    TaskKind::TeredoServer,
    TaskKind::TeredoClient,
];

/// Tasks whose packets the fast path carries.
pub const FAST: &[TaskKind] = &[
    TaskKind::Nat64,
    TaskKind::Siit,
    TaskKind::Nat44,
    TaskKind::Relay6to4,
    TaskKind::Router6to4,
    TaskKind::Host6to4,
    TaskKind::Configured,
    TaskKind::IsatapRouter,
    TaskKind::SiteGateway,
];

/// Its own addresses are in no network of an experiment.
const GATEWAY: &str = "[tun]
name = \"sixway0\"

[gateway]
workers = 1
";
const OWN: &str = "ipv4_address = \"203.0.113.254\"\nipv6_address = \"2001:db8:ffff::fe\"\n";

/// The configuration for a task on one worker.
///
/// # Errors
/// Sixway does not play it: the kernel forwards.
pub fn configuration(place: &Place, task: &Task) -> Result<String> {
    let (sections, addresses) = match task {
        Task::Forward(_) => {
            return Err(Failure::Unexpected("sixway cannot be a plain forwarder".to_owned()));
        }
        Task::Nat64(task) => (nat64(place, task), OWN),
        Task::Siit(task) => (siit(place, task), OWN),
        Task::Clat(task) => return Ok(clat(task)),
        Task::Nat44(task) => (nat44(place, task), OWN),
        Task::Nat46(task) => (nat46(task), OWN),
        Task::Dns64(task) => (dns64(task), OWN),
        Task::Relay6to4(task) => (relay(*task), OWN),
        Task::Router6to4(task) => (router(*task), OWN),
        Task::Host6to4(task) => (host(*task), OWN),
        Task::Configured(task) => (configured(task), OWN),
        Task::IpInIp(task) => (ip_in_ip(task), OWN),
        Task::IsatapRouter(task) => (isatap_router(task), OWN),
        Task::IsatapHost(task) => (isatap_host(*task), OWN),
        Task::SiteGateway(task) => (site_gateway(place, task), OWN),
        Task::Aftr(task) => (aftr(task), OWN),
        Task::B4(task) => (b4(place, *task), ""),
        Task::Concentrator(task) => (concentrator(place, task), OWN),
        Task::LeasingHost(task) => (leasing_host(place, task), ""),
        Task::TeredoRelay(task) => {
            return Ok(format!("{GATEWAY}ipv6_address = \"{}\"\n{}", task.address6, teredo_relay(*task)));
        }
        Task::TeredoServer(task) => (teredo_server(*task), ""),
        Task::TeredoClient(task) => (teredo_client(place, *task), ""),
    };
    Ok(format!("{GATEWAY}{addresses}{sections}"))
}

/// The pool "main": these addresses, or this host's own.
fn pool(place: &Place, addresses: &[String]) -> String {
    let own = || {
        format!(
            "interface = \"{}\"\nshared = true\nports = \"5000-65535\"\n",
            place.outside.first().copied().unwrap_or_default()
        )
    };
    let of = match addresses.is_empty() {
        true => own(),
        false => format!("addresses = {addresses:?}\nports = \"1024-65535\"\n"),
    };
    format!("\n[[pool]]\nname = \"main\"\n{of}")
}

/// Room for as many sessions and bindings as a pool has ports, if that is more than the usual number. Each host is a
/// subscriber of its own: the share of a single /64 would be smaller. To make them takes minutes, in which none may expire.
fn sessions(pool: &[String]) -> String {
    let addresses = |prefix: &String| {
        let length: u32 = prefix.split_once('/').map_or(Some(32), |(_, length)| length.parse().ok())?;
        1_u64.checked_shl(32_u32.checked_sub(length)?)
    };
    let ports = pool.iter().filter_map(addresses).sum::<u64>() * 64_512;
    let most = ports.min(1 << 24);
    match most > 1 << 20 {
        true => {
            format!(
                "max_sessions = {most}\nmax_bindings = {most}\nsubscriber_prefix_length = 128\n\
                 timeouts = {{ udp_default = \"1 h\" }}\n"
            )
        }
        false => String::new(),
    }
}

/// Room for the sessions of a NAT64: as many as its pool has ports, or the limit that is requested.
fn limits(task: &Nat64) -> String {
    match task.sessions {
        None => sessions(&task.pool),
        Some(most) => {
            format!("max_sessions = {most}\nmax_bindings = {most}\nsubscriber_prefix_length = 128\n")
        }
    }
}

fn nat64(place: &Place, task: &Nat64) -> String {
    let (pool, sessions) = (pool(place, &task.pool), limits(task));
    // Networks of experiments are not global.
    let non_global = if task.prefix == "64:ff9b::/96" { "translate_non_global = true\n" } else { "" };
    format!("{pool}\n[nat64]\nprefix = \"{}\"\npool = \"main\"\n{non_global}{sessions}", task.prefix)
}

fn siit(place: &Place, task: &Siit) -> String {
    let row = |(four, six): &(Ipv4Addr, Ipv6Addr)| format!("{{ ipv4 = \"{four}\", ipv6 = \"{six}\" }}");
    let rows = task.hosts.iter().map(row).collect::<Vec<_>>().join(", ");
    let state = place.network.folder().join(format!("{}.dynamic", place.host));
    let pool = task.dynamic_pool.as_ref();
    let pool = pool.map(|pool| format!("dynamic_pool = \"{pool}\"\ndynamic_state = {state:?}\n"));
    let pool = pool.unwrap_or_default();
    format!("\n[siit]\nprefix = \"{}\"\neam = [{rows}]\n{pool}", task.prefix)
}

/// The edge relay of RFC 7756, with mappings of the hosts inside. All of IPv4 is behind the NAT64, which has the prefix.
fn clat(task: &Clat) -> String {
    let row = |(four, six): &(Ipv4Addr, Ipv6Addr)| format!("{{ ipv4 = \"{four}\", ipv6 = \"{six}\" }}");
    let rows = task.hosts.iter().map(row).collect::<Vec<_>>().join(", ");
    let gateway = GATEWAY.replacen("\n\n", "\nroutes = [\"auto\", \"0.0.0.0/1\", \"128.0.0.0/1\"]\n\n", 1);
    let prefix = &task.prefix;
    format!("{gateway}{OWN}\n[siit]\nprefix = \"{prefix}\"\neam = [{rows}]\neam_routes = \"ipv6\"\n")
}

fn nat44(place: &Place, task: &Nat44) -> String {
    let pool = pool(place, &task.pool);
    format!("{pool}\n[nat44]\ninside = {:?}\npool = \"main\"\n", task.inside)
}

fn nat46(task: &Nat46) -> String {
    let row = |(four, six): &(Ipv4Addr, Ipv6Addr)| format!("{{ address = \"{four}\", server = \"{six}\" }}");
    let rows = task.servers.iter().map(row).collect::<Vec<_>>().join(", ");
    let Nat46 { clients, pool, prefix, .. } = task;
    format!(
        "\n[nat46]\nclients = [\"{clients}\"]\npool = \"{pool}\"\nprefix = \"{prefix}\"\nstatic = [{rows}]\n"
    )
}

fn dns64(task: &Dns64) -> String {
    let Dns64 { listen, authority, prefix } = task;
    format!(
        "\n[dns64]\nlisten = [\"[{listen}]:53\"]\nprefix = \"{prefix}\"\ntranslated_elsewhere = true\nspecial_names = \"upstream\"\nupstream = [{{ address = \"{authority}\" }}]\n"
    )
}

fn relay(task: Relay6to4) -> String {
    format!("\n[six_to_four]\nrole = \"relay\"\naddress = \"{}\"\nmtu = 1480\n", task.address)
}

fn router(task: Router6to4) -> String {
    let nat = task.nat.map_or_else(String::new, |nat| format!("nat_address = \"{nat}\"\n"));
    let Router6to4 { address, relay, .. } = task;
    format!(
        "\n[six_to_four]\nrole = \"router\"\naddress = \"{address}\"\nrelay = \"{relay}\"\nmtu = 1480\n{nat}"
    )
}

fn host(task: Host6to4) -> String {
    let Host6to4 { address, relay } = task;
    format!("\n[six_to_four]\nrole = \"host\"\naddress = \"{address}\"\nrelay = \"{relay}\"\nmtu = 1480\n")
}

fn configured(task: &Configured) -> String {
    let Configured { local, remote, prefixes } = task;
    format!("\n[[tunnel]]\nlocal = \"{local}\"\nremote = \"{remote}\"\nprefixes = {prefixes:?}\nmtu = 1480\n")
}

/// Without the option of RFC 2473 §4.1.1, as RFC 6333 and most peers do.
fn ip_in_ip(task: &IpInIp) -> String {
    let IpInIp { local, remote, prefixes } = task;
    format!(
        "\n[[ip_in_ip]]\nlocal = \"{local}\"\nremote = \"{remote}\"\nprefixes = {prefixes:?}\nencapsulation_limit = \"none\"\n"
    )
}

fn isatap_router(task: &IsatapRouter) -> String {
    let IsatapRouter { address, prefix, lifetime } = task;
    let lifetime = lifetime.map(|it| {
        let seconds = it.as_secs();
        format!("max_interval = \"{} s\"\nrouter_lifetime = \"{seconds} s\"\n", seconds / 2)
    });
    format!(
        "\n[isatap]\nrole = \"router\"\naddress = \"{address}\"\nprefix = \"{prefix}\"\nmtu = 1480\n\n\
         [router_advertisement]\nover = \"isatap\"\n{}",
        lifetime.unwrap_or_default()
    )
}

fn isatap_host(task: IsatapHost) -> String {
    let IsatapHost { address, router, is_eager } = task;
    let least = if is_eager { "min_solicit_interval = \"4 s\"\n" } else { "" };
    format!(
        "\n[isatap]\nrole = \"host\"\naddress = \"{address}\"\npotential_routers = [\"{router}\"]\nmtu = 1480\n{least}"
    )
}

fn site_gateway(place: &Place, task: &SiteGateway) -> String {
    let pool = task.nat.iter().map(ToString::to_string).collect();
    let mut nat = nat44(place, &Nat44 { inside: task.inside.clone(), pool, tunnel_end: None });
    if let Some(outside) = task.nat {
        nat += &format!(
            "translate_own_tunnels = true\nstatic = [{{ protocol = \"ipv6\", inside = \"{}\", outside = \"{outside}\" }}]\n",
            task.address
        );
    }
    let router = router(Router6to4 { address: task.address, relay: task.relay, nat: task.nat });
    let lan = place.inside.first().copied().unwrap_or_default();
    format!(
        "{nat}{router}\n[router_advertisement]\ninterface = \"{lan}\"\nmax_interval = \"4 s\"\n\
         prefixes = [{{ from = \"six_to_four\", subnet = 1 }}]\n"
    )
}

fn aftr(task: &Aftr) -> String {
    let Aftr { address, clients, pool } = task;
    format!(
        "\n[[pool]]\nname = \"main\"\naddresses = {pool:?}\n\n\
         [ds_lite]\nrole = \"aftr\"\naddresses = [\"{address}\"]\nclients = [\"{clients}\"]\npool = \"main\"\n"
    )
}

fn b4(place: &Place, task: B4) -> String {
    let link = place.outside.first().copied().unwrap_or_default();
    format!("\n[ds_lite]\nrole = \"b4\"\ninterface = \"{link}\"\naftr = \"{}\"\n", task.aftr)
}

/// Leases do not outlive the network.
fn leases(place: &Place) -> String {
    let file = place.network.folder().join(format!("{}.leases", place.host));
    format!("lease_file = {file:?}\n")
}

fn concentrator(place: &Place, task: &Concentrator) -> String {
    let Concentrator { address, clients, pool, lease } = task;
    let time = lease.map(|it| format!("lease_time = \"{} s\"\n", it.as_secs())).unwrap_or_default();
    format!(
        "\n[four_over_six]\nrole = \"concentrator\"\naddresses = [\"{address}\"]\npool = {pool:?}\n\
         clients = [\"{clients}\"]\n{time}{}",
        leases(place)
    )
}

fn leasing_host(place: &Place, task: &LeasingHost) -> String {
    let LeasingHost { local, concentrator, server, destinations } = task;
    let only = match destinations.is_empty() {
        true => String::new(),
        false => format!("destinations = {destinations:?}\n"),
    };
    format!(
        "\n[four_over_six]\nrole = \"host\"\nlocal = \"{local}\"\nconcentrator = \"{concentrator}\"\n\
         servers = [\"{server}\"]\n{only}{}",
        leases(place)
    )
}

fn teredo_relay(task: TeredoRelay) -> String {
    format!("\n[teredo_relay]\naddress = \"{}\"\nipv6_address = \"{}\"\n", task.address, task.address6)
}

fn teredo_server(task: TeredoServer) -> String {
    let second = Ipv4Addr::from_bits(task.address.to_bits().wrapping_add(1));
    format!("\n[teredo_server]\naddress = \"{}\"\nsecondary = \"{second}\"\n", task.address)
}

/// It accepts unsolicited packets, as miredo's client does.
fn teredo_client(place: &Place, task: TeredoClient) -> String {
    let second = Ipv4Addr::from_bits(task.server.to_bits().wrapping_add(1));
    let link = place.outside.first().copied().unwrap_or_default();
    let interval = task.interval.map(|it| format!("interval = \"{} s\"\n", it.as_secs()));
    format!(
        "\n[teredo_client]\ninterface = \"{link}\"\nservers = [{{ address = \"{}\", secondary = \"{second}\" }}]\n\
         firewall = false\n{}",
        task.server,
        interval.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::{Nat64, limits, sessions};

    #[test]
    fn a_large_pool_has_room_for_the_sessions_of_its_ports() {
        let of = |pool: &str| sessions(&[pool.to_owned()]);
        assert_eq!((of("198.19.1.1/32"), of("198.19.1.1")), (String::new(), String::new()));
        let room = |most: u32| {
            format!(
                "max_sessions = {most}\nmax_bindings = {most}\nsubscriber_prefix_length = 128\n\
                 timeouts = {{ udp_default = \"1 h\" }}\n"
            )
        };
        assert_eq!(of("198.19.1.0/27"), room(2_064_384));
        assert_eq!(of("198.18.0.0/15"), room(1 << 24));
        assert_eq!(sessions(&[]), "");
        let limited =
            Nat64 { prefix: String::new(), pool: vec!["198.19.1.0/27".to_owned()], sessions: Some(40_000) };
        assert!(limits(&limited).starts_with("max_sessions = 40000\nmax_bindings = 40000\n"));
        assert!(limits(&Nat64 { sessions: None, ..limited }).contains("= 2064384\n"));
    }
}
