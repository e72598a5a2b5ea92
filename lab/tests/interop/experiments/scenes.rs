//! For each task a network in which a device does it, with Sixway at the other ends of its tunnels.
//!
//! ```text
//! client ─── in0 gateway (the device) out0 ─── server ─── beyond
//! ```

use sixway_lab::device::{
    Aftr, B4, Clat, Concentrator, Configured, Dns64, Forward, Host6to4, IpInIp, IsatapHost, IsatapRouter,
    LeasingHost, Nat44, Nat46, Nat64, Place, Relay6to4, Router6to4, Siit, SiteGateway, Task, TaskKind,
    TeredoClient, TeredoRelay, TeredoServer,
};
use sixway_lab::failure::Result;
use sixway_lab::teredo;
use sixway_lab::topology::Network;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A network with a task for a device in it.
pub struct Scene {
    pub network: Arc<Network>,
    pub place: Place,
    pub task: Task,
    /// What others do: their hosts and links to the rest.
    pub others: Vec<(Place, Task)>,
    /// Who reaches whom, once all are at work.
    pub pings: Vec<(&'static str, &'static str)>,
}

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const INSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);

/// Addresses of IPv4 and IPv6 on the two links.
const IN4: [(&str, &str, &str); 2] = [("client", "up0", "192.0.2.8/24"), ("gateway", "in0", "192.0.2.1/24")];
const IN6: [(&str, &str, &str); 2] =
    [("client", "up0", "2001:db8:1::2/64"), ("gateway", "in0", "2001:db8:1::1/64")];
const OUT4: [(&str, &str, &str); 2] =
    [("gateway", "out0", "203.0.113.1/24"), ("server", "up0", "203.0.113.2/24")];
const OUT6: [(&str, &str, &str); 2] =
    [("gateway", "out0", "2001:db8:2::1/64"), ("server", "up0", "2001:db8:2::2/64")];
const BY4: (&str, &str) = ("client", "default via 192.0.2.1");
const BY6: (&str, &str) = ("client", "default via 2001:db8:1::1");
const BACK4: (&str, &str) = ("server", "default via 203.0.113.1");
const BACK6: (&str, &str) = ("server", "default via 2001:db8:2::1");

/// The hosts with these addresses and routes.
fn network(addresses: &[&[(&str, &str, &str)]], routes: &[(&str, &str)]) -> Result<Arc<Network>> {
    let network = Network::new(&["client", "gateway", "server", "beyond"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.link(("server", "out0"), ("beyond", "up0"))?;
    for (host, device, address) in addresses.concat() {
        network.address(host, device, address)?;
    }
    for (host, route) in routes {
        network.route(host, route)?;
    }
    Ok(Arc::new(network))
}

fn place(network: &Arc<Network>, host: &'static str) -> Place {
    let (inside, outside) = match host {
        "gateway" => (vec!["in0"], vec!["out0"]),
        _ => (Vec::new(), vec!["up0"]),
    };
    Place { network: Arc::clone(network), host, inside, outside, core: None }
}

fn scene(
    network: Arc<Network>,
    task: Task,
    others: &[(&'static str, Task)],
    pings: &[(&'static str, &'static str)],
) -> Scene {
    let others = others.iter().map(|(host, task)| (place(&network, host), task.clone())).collect();
    Scene { place: place(&network, "gateway"), network, task, others, pings: pings.to_vec() }
}

/// The network of a task.
pub fn scene_of(task: TaskKind) -> Result<Scene> {
    match task {
        TaskKind::Forward => forward(),
        TaskKind::Nat64 => nat64(),
        TaskKind::Siit => siit(),
        TaskKind::Clat => clat(),
        TaskKind::Nat44 => nat44(),
        TaskKind::Nat46 => nat46(),
        TaskKind::Dns64 => dns64(),
        TaskKind::Relay6to4 => relay(),
        TaskKind::Router6to4 => router(),
        TaskKind::Host6to4 => host(),
        TaskKind::Configured => configured(),
        TaskKind::IpInIp => ip_in_ip(),
        TaskKind::IsatapRouter => isatap_router(),
        TaskKind::IsatapHost => isatap_host(),
        TaskKind::SiteGateway => site_gateway(),
        TaskKind::Aftr => ds_lite(true),
        TaskKind::B4 => ds_lite(false),
        TaskKind::Concentrator => four_over_six(true),
        TaskKind::LeasingHost => four_over_six(false),
        TaskKind::TeredoRelay => of_teredo("gateway"),
        TaskKind::TeredoServer => of_teredo("server"),
        TaskKind::TeredoClient => of_teredo("client"),
    }
}

fn forward() -> Result<Scene> {
    let network = network(&[&IN4, &IN6, &OUT4, &OUT6], &[BY4, BY6, BACK4, BACK6])?;
    let pings = [("client", "203.0.113.2"), ("client", "2001:db8:2::2")];
    Ok(scene(network, Task::Forward(Forward), &[], &pings))
}

fn nat64() -> Result<Scene> {
    let network = network(&[&IN6, &OUT4], &[BY6, BACK4])?;
    let task = Nat64 {
        prefix: "2001:db8:64::/96".to_owned(),
        pool: vec!["198.51.100.0/28".to_owned()],
        sessions: None,
    };
    Ok(scene(network, Task::Nat64(task), &[], &[("client", "2001:db8:64::203.0.113.2")]))
}

fn siit() -> Result<Scene> {
    let network = network(&[&IN6, &OUT4], &[BY6, BACK4])?;
    let hosts = vec![(Ipv4Addr::new(198, 51, 100, 2), Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2))];
    let task = Siit { prefix: "2001:db8:64::/96".to_owned(), hosts, dynamic_pool: None };
    Ok(scene(network, Task::Siit(task), &[], &[("client", "2001:db8:64::203.0.113.2")]))
}

/// The server is the NAT64.
fn clat() -> Result<Scene> {
    let beyond = [("server", "out0", "198.18.0.1/24"), ("beyond", "up0", "198.18.0.2/24")];
    let routes = [
        BY4,
        ("gateway", "default via 2001:db8:2::2"),
        ("server", "2001:db8:3::/64 via 2001:db8:2::1"),
        ("beyond", "default via 198.18.0.1"),
    ];
    let network = network(&[&IN4, &OUT6, &beyond], &routes)?;
    let prefix = "2001:db8:64::/96".to_owned();
    let hosts = vec![(CLIENT, Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 8))];
    let plat = Nat64 { prefix: prefix.clone(), pool: vec!["198.51.100.0/28".to_owned()], sessions: None };
    let far = ("server", Task::Nat64(plat));
    Ok(scene(network, Task::Clat(Clat { prefix, hosts }), &[far], &[("client", "198.18.0.2")]))
}

fn nat44() -> Result<Scene> {
    let network = network(&[&IN4, &OUT4], &[BY4])?;
    let task = Nat44 { inside: vec!["192.0.2.0/24".to_owned()], pool: Vec::new(), tunnel_end: None };
    Ok(scene(network, Task::Nat44(task), &[], &[("client", "203.0.113.2")]))
}

fn nat46() -> Result<Scene> {
    let network = network(&[&IN4, &OUT6], &[BY4, BACK6])?;
    let task = Nat46 {
        clients: "192.0.2.0/24".to_owned(),
        pool: "192.168.46.0/24".to_owned(),
        prefix: "2001:db8:46::/96".to_owned(),
        servers: vec![(Ipv4Addr::new(192, 168, 46, 80), Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2))],
    };
    Ok(scene(network, Task::Nat46(task), &[], &[("client", "192.168.46.80")]))
}

/// It is asked rather than pinged.
fn dns64() -> Result<Scene> {
    let network = network(&[&IN6, &OUT4], &[BY6, BACK4])?;
    let task = Dns64 {
        listen: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
        authority: SERVER,
        prefix: "64:ff9b::/96".to_owned(),
    };
    Ok(scene(network, Task::Dns64(task), &[], &[]))
}

fn relay() -> Result<Scene> {
    let network = network(&[&IN4, &OUT6], &[BACK6])?;
    let host = Task::Host6to4(Host6to4 { address: CLIENT, relay: INSIDE });
    let task = Task::Relay6to4(Relay6to4 { address: INSIDE });
    Ok(scene(network, task, &[("client", host)], &[("client", "2001:db8:2::2")]))
}

/// The server is a 6to4 host.
const FAR_HOST: &str = "2002:cb00:7102::1";

fn far_host() -> (&'static str, Task) {
    ("server", Task::Host6to4(Host6to4 { address: SERVER, relay: OUTSIDE }))
}

fn router() -> Result<Scene> {
    let site = [("client", "up0", "2002:cb00:7101:1::2/64"), ("gateway", "in0", "2002:cb00:7101:1::1/64")];
    let network = network(&[&site, &OUT4], &[("client", "default via 2002:cb00:7101:1::1")])?;
    let task = Task::Router6to4(Router6to4 { address: OUTSIDE, relay: SERVER, nat: None });
    Ok(scene(network, task, &[far_host()], &[("client", FAR_HOST)]))
}

fn host() -> Result<Scene> {
    let network = network(&[&OUT4], &[])?;
    let task = Task::Host6to4(Host6to4 { address: OUTSIDE, relay: SERVER });
    Ok(scene(network, task, &[far_host()], &[("server", "2002:cb00:7101::1")]))
}

fn configured() -> Result<Scene> {
    let network = network(&[&IN6, &OUT4, &[("server", "lo", "2001:db8:8::1/128")]], &[BY6])?;
    let end = |local, remote, prefix: &str| {
        Task::Configured(Configured { local, remote, prefixes: vec![prefix.to_owned()] })
    };
    let task = end(OUTSIDE, SERVER, "2001:db8:8::/48");
    let far = ("server", end(SERVER, OUTSIDE, "2001:db8:1::/64"));
    Ok(scene(network, task, &[far], &[("client", "2001:db8:8::1")]))
}

fn ip_in_ip() -> Result<Scene> {
    let routes = [BY4, ("gateway", "2001:db8:b::/64 via 2001:db8:2::2"), BACK6];
    let network = network(&[&IN4, &OUT6, &[("server", "lo", "10.8.0.1/32")]], &routes)?;
    let [near, far] = [0xa, 0xb].map(|site| Ipv6Addr::new(0x2001, 0xdb8, site, 0, 0, 0, 0, 1));
    let end = |local, remote, prefix: &str| {
        Task::IpInIp(IpInIp { local, remote, prefixes: vec![prefix.to_owned()] })
    };
    let other = ("server", end(far, near, "192.0.2.0/24"));
    Ok(scene(network, end(near, far, "10.8.0.0/16"), &[other], &[("client", "10.8.0.1")]))
}

const ISATAP: &str = "2001:db8:5::/64";

fn isatap_router() -> Result<Scene> {
    let network = network(&[&IN4, &OUT6], &[BACK6])?;
    let task =
        Task::IsatapRouter(IsatapRouter { address: INSIDE, prefix: ISATAP.to_owned(), lifetime: None });
    let host = ("client", Task::IsatapHost(IsatapHost { address: CLIENT, router: INSIDE, is_eager: false }));
    Ok(scene(network, task, &[host], &[("client", "2001:db8:2::2")]))
}

/// By RFC 5214 §6.1 an identifier tells whether the IPv4 address is unique. Linux takes those of 192.0.2.0/24 alone for documentation's.
fn isatap_host() -> Result<Scene> {
    let network = network(&[&[("gateway", "out0", "192.0.2.1/24"), ("server", "up0", "192.0.2.8/24")]], &[])?;
    let task = Task::IsatapHost(IsatapHost { address: INSIDE, router: CLIENT, is_eager: false });
    let router = (
        "server",
        Task::IsatapRouter(IsatapRouter { address: CLIENT, prefix: ISATAP.to_owned(), lifetime: None }),
    );
    Ok(scene(network, task, &[router], &[("server", "2001:db8:5::5efe:c000:201")]))
}

/// The client takes its address from advertisements.
fn site_gateway() -> Result<Scene> {
    let lan = [("gateway", "in0", "2002:cb00:7101:1::1/64")];
    let network = network(&[&IN4, &lan, &OUT4], &[BY4])?;
    network.host("client")?.sysctl("ipv6/conf/up0/accept_ra", "1")?;
    let inside = vec!["192.0.2.0/24".to_owned()];
    let task = Task::SiteGateway(SiteGateway { address: OUTSIDE, relay: SERVER, inside, nat: None });
    Ok(scene(network, task, &[far_host()], &[("client", "203.0.113.2"), ("client", FAR_HOST)]))
}

/// The device is the AFTR and the client a B4, or the device a B4 and the server the AFTR.
fn ds_lite(is_aftr: bool) -> Result<Scene> {
    let address = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1);
    let aftr = |clients: &str| {
        let pool = vec!["198.51.100.0/28".to_owned()];
        Task::Aftr(Aftr { address, clients: clients.to_owned(), pool })
    };
    let b4 = Task::B4(B4 { aftr: address });
    if is_aftr {
        let network = network(&[&IN6, &OUT4], &[BY6, BACK4])?;
        return Ok(scene(network, aftr("2001:db8:1::/48"), &[("client", b4)], &[("client", "203.0.113.2")]));
    }
    let lan = [("client", "up0", "192.168.1.2/24"), ("gateway", "in0", "192.168.1.1/24")];
    let beyond = [("server", "out0", "198.18.0.1/24"), ("beyond", "up0", "198.18.0.2/24")];
    let routes = [
        ("client", "default via 192.168.1.1"),
        ("gateway", "default via 2001:db8:2::2"),
        ("beyond", "default via 198.18.0.1"),
    ];
    let network = network(&[&lan, &OUT6, &beyond], &routes)?;
    Ok(scene(network, b4, &[("server", aftr("2001:db8:2::/48"))], &[("client", "198.18.0.2")]))
}

/// The device is the concentrator and the client leases, or the other way round.
fn four_over_six(is_concentrator: bool) -> Result<Scene> {
    let address = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 1);
    let concentrator = |clients: &str| {
        let pool = vec!["198.51.100.16/29".to_owned()];
        Task::Concentrator(Concentrator { address, clients: clients.to_owned(), pool, lease: None })
    };
    let host = |site, last| {
        let local = Ipv6Addr::new(0x2001, 0xdb8, site, 0xb, 0, 0, 0, 1);
        let server = Ipv6Addr::new(0x2001, 0xdb8, site, 0, 0, 0, 0, last);
        Task::LeasingHost(LeasingHost { local, concentrator: address, server, destinations: Vec::new() })
    };
    if is_concentrator {
        let routes = [BY6, ("gateway", "2001:db8:1:b::1 via 2001:db8:1::2"), BACK4];
        let network = network(&[&IN6, &OUT4], &routes)?;
        let task = concentrator("2001:db8:1::/48");
        return Ok(scene(network, task, &[("client", host(1, 1))], &[("client", "203.0.113.2")]));
    }
    let beyond = [("server", "out0", "198.18.0.1/24"), ("beyond", "up0", "198.18.0.2/24")];
    let routes = [
        ("server", "2001:db8:2:b::1 via 2001:db8:2::1"),
        ("gateway", "default via 2001:db8:2::2"),
        ("beyond", "default via 198.18.0.1"),
    ];
    let network = network(&[&OUT6, &beyond], &routes)?;
    let task = concentrator("2001:db8:2::/48");
    Ok(scene(network, host(2, 2), &[("server", task)], &[("gateway", "198.18.0.2")]))
}

/// The network of [`teredo`]; the device is on this host, and Sixway on the others.
fn of_teredo(host: &'static str) -> Result<Scene> {
    let network = Arc::new(teredo::network()?);
    let server = Ipv4Addr::new(198, 51, 100, 1);
    let relay = TeredoRelay {
        address: Ipv4Addr::new(198, 51, 100, 34),
        address6: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
    };
    let all = [
        ("gateway", Task::TeredoRelay(relay)),
        ("server", Task::TeredoServer(TeredoServer { address: server })),
        ("client", Task::TeredoClient(TeredoClient { server, interval: None })),
    ];
    let placed = |host: &'static str| match host {
        "gateway" => Place { inside: vec!["in0"], ..place(&network, host) },
        _ => place(&network, host),
    };
    let task = all.iter().find(|(name, _)| *name == host).map(|(_, task)| task.clone());
    let others = all.iter().filter(|(name, _)| *name != host);
    Ok(Scene {
        place: placed(host),
        task: task.unwrap_or(Task::Forward(Forward)),
        others: others.map(|(name, task)| (placed(name), task.clone())).collect(),
        pings: vec![("client", teredo::HOST)],
        network: Arc::clone(&network),
    })
}
