//! `sixway up` for hosts without IPv4: NAT64 and DNS64 behind the public address that IPv4 hosts and the box itself use.

use crate::Interop;
use crate::advertisements::{last_advertisement, options};
use crate::site_ipv6::lease;
use crate::site_network::{
    HOST4, PUBLIC4, SERVER4, STRANGER4, at, home_of, is_kept_out, passes, site, socket, state, up, up_by,
};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::load::icmpv6_socket;
use sixway_lab::name_service::{Resolving, addresses, serve};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, fetch_from, serve_page};
use sixway_lab::process::Process;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "site_up_serves_hosts_without_ipv4_behind_the_same_address",
        &["sixway", "nft", "nsd", "taskset", "unshare", "getent", "curl", "nginx"],
        ipv6_only,
    ),
    Interop::new(
        "site_up_announces_its_dns64_only_if_asked_for",
        &["sixway", "nft", "unshare", "rdisc6"],
        announced,
    ),
    Interop::new(
        "site_up_asks_hosts_that_can_to_do_without_ipv4",
        &["sixway", "nft", "unshare", "dnsmasq", "busybox", "rdisc6"],
        mostly,
    ),
    Interop::new(
        "site_up_gives_mappings_to_hosts_that_ask_for_them",
        &["sixway", "nft", "natpmpc"],
        mappings,
    ),
];

/// A server of the IPv4 Internet: the well-known prefix embeds no other addresses (RFC 6052 §3.1).
const FAR4: &str = "1.2.3.4";
const FAR6: &str = "64:ff9b::102:304";
/// The IPv6-only host, and the box as it sees it.
const SIX: &str = "2001:db8:2::2";
const RESOLVER: &str = "2001:db8:2::1";

/// The home with a second network, which has an IPv6-only host, and a server of the IPv4 Internet.
fn network() -> Result<Network> {
    let network = home_of(&["host", "six", "gateway", "server"])?;
    network.link(("six", "up0"), ("gateway", "in1"))?;
    for (host, device, address) in [
        ("gateway", "in1", "192.168.2.1/24"),
        ("gateway", "in1", "2001:db8:2::1/64"),
        ("six", "up0", "2001:db8:2::2/64"),
        ("server", "lo", "1.2.3.4/32"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("six", "default via 2001:db8:2::1")?;
    network.route("server", "2001:db8:2::/64 via 2001:db8:f::1")?;
    Ok(network)
}

/// `sixway up`, whose DNS server is the provider's.
pub fn up_resolving(network: &Network, options: &[&str]) -> Result<u32> {
    let resolving = Resolving::with(network, "gateway", &format!("nameserver {SERVER4}\n"))?;
    let mut up = Command::new(resolving.script());
    up.arg(sixway()?);
    up_by(network, up, options)
}

fn unexpected(error: impl std::fmt::Display) -> Failure {
    Failure::Unexpected(error.to_string())
}

/// Both kinds of hosts and the box's own service have one address at the same time; nobody else gets in, not even after `kill -9`.
fn ipv6_only() -> Result<()> {
    let network = network()?;
    serve(&network, "shop A 1.2.3.4\n")?;
    serve_page(&network, "server", FAR4, "from the server")?;
    serve_page(&network, "gateway", PUBLIC4, "from the box")?;
    let before = state(&network)?;
    let id = up_resolving(&network, &["--lan", "in1", "--nat64"])?;
    let six = Resolving::by(&network, "six", RESOLVER)?;
    assert_eq!(addresses(&six, "shop.example")?, [FAR6]);
    for _ in 0..3 {
        assert_eq!(fetch_from(&six, &network, "http://shop.example/")?.body, "from the server");
        assert_eq!(fetch(&network, "host", &format!("http://{FAR4}/"))?.body, "from the server");
        assert_eq!(fetch(&network, "server", &format!("http://{PUBLIC4}/"))?.body, "from the box");
    }
    let (host4, host6) = (socket(&network, "host", HOST4, 4_000)?, socket(&network, "six", SIX, 4_000)?);
    let server = socket(&network, "server", FAR4, 5_000)?;
    let stranger = socket(&network, "server", STRANGER4, 5_000)?;
    let seen4 = passes(&host4, at(&server)?, &server)?;
    let seen6 = passes(&host6, format!("[{FAR6}]:5000").parse().map_err(unexpected)?, &server)?;
    assert_eq!((seen4.ip().to_string(), seen6.ip().to_string()), (PUBLIC4.into(), PUBLIC4.into()));
    assert!((20_000..32_768).contains(&seen4.port()) && seen6.port() >= 61_000, "{seen4} {seen6}");
    passes(&server, seen4, &host4)?;
    passes(&server, seen6, &host6)?;
    for seen in [seen4, seen6] {
        is_kept_out(&stranger, seen, &host4)?;
        is_kept_out(&stranger, seen, &host6)?;
    }
    is_kept_out(&server, SocketAddr::new(seen6.ip(), 65_000), &host6)?;
    // Nor by native IPv6.
    let native = socket(&network, "server", "2001:db8:f::3", 5_000)?;
    is_kept_out(&native, at(&host6)?, &host6)?;
    network.with_process(id, Process::kill)?;
    is_kept_out(&native, at(&host6)?, &host6)?;
    is_kept_out(&stranger, seen6, &host6)?;
    is_kept_out(&server, seen6, &host6)?;
    let said = site(&network, &["down"])?.succeeded()?.stdout;
    assert!(said.contains("was removed"), "{said}");
    assert_eq!(state(&network)?, before);
    Ok(())
}

/// What an advertisement on the IPv6-only host's link says: its DNS servers, and whether it has the prefix (RFC 8781 §4: type 38).
fn advertised(network: &Network) -> Result<(Vec<String>, bool)> {
    let socket = network.host("six")?.enter(icmpv6_socket)??;
    let mut said = String::new();
    interrupt::wait_until(Duration::from_secs(15), "a router advertisement", || {
        let mut rdisc6 = command("rdisc6")?;
        rdisc6.args(["-1", "-w", "1000", "up0"]);
        said = network.host("six")?.run(rdisc6, Duration::from_secs(10))?.stdout;
        Ok(said.contains("Router lifetime"))
    })?;
    let servers = said.lines().filter(|line| line.contains("Recursive DNS server"));
    let servers = servers.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    let options = options(&last_advertisement(&socket)?[16..])?;
    Ok((servers, options.iter().any(|option| option.first() == Some(&38))))
}

/// Hosts that keep IPv4 would prefer translated addresses: by itself, the site tells hosts the prefix alone.
fn announced() -> Result<()> {
    let network = network()?;
    for (choice, servers, has_prefix) in
        [(&[][..], &[][..], true), (&["--nat64"], &[RESOLVER], true), (&["--nat64=no"], &[], false)]
    {
        let id = up_resolving(&network, &[&["--lan", "in1"][..], choice].concat())?;
        let (told, prefix) = advertised(&network)?;
        assert_eq!(
            (told.as_slice(), prefix),
            (servers.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>().as_slice(), has_prefix),
            "{choice:?}"
        );
        network.with_process(id, Process::stop)?;
    }
    Ok(())
}

/// RFC 8925 §3.1: a client that asks for option 108 gets it, with V6ONLY_WAIT of 1,800 s; without the option of the site, it does not.
fn mostly() -> Result<()> {
    let network = network()?;
    network.host("host")?.ip("-4 address flush dev up0")?;
    for (choice, is_told, has_dns64) in [
        (&["--dhcp"][..], false, false),
        (&["--dhcp", "--ipv6-mostly"], true, true),
        (&["--dhcp", "--ipv6-mostly", "--nat64=pref64"], true, false),
    ] {
        let id = up_resolving(&network, &[&["--lan", "in1"][..], choice].concat())?;
        let told = lease(&network)?;
        assert_eq!(told.lines().any(|line| line == "opt108=00000708"), is_told, "{told}");
        let (servers, prefix) = advertised(&network)?;
        assert_eq!((servers.contains(&RESOLVER.to_owned()), prefix), (has_dns64, true), "{servers:?}");
        network.with_process(id, Process::stop)?;
    }
    Ok(())
}

/// By NAT-PMP, with a client that is not ours: who was not contacted gets in by the mapping, and only by it.
fn mappings() -> Result<()> {
    let network = network()?;
    let ask = |words: &[&str]| -> Result<String> {
        let mut natpmpc = command("natpmpc")?;
        natpmpc.args(["-g", "192.168.1.1"]).args(words);
        Ok(network.host("host")?.run(natpmpc, Duration::from_secs(30))?.stdout)
    };
    let host = socket(&network, "host", HOST4, 4_000)?;
    let stranger = socket(&network, "server", STRANGER4, 5_000)?;
    let id = up(&network, &[])?;
    let said = ask(&["-a", "25000", "4000", "udp", "300"])?;
    let port = crate::pcp::mapped(&said)?;
    assert!((20_000..=32_767).contains(&port), "{said}");
    let public = |port| SocketAddr::new(seen(), port);
    passes(&stranger, public(port), &host)?;
    is_kept_out(&stranger, public(port ^ 1), &host)?;
    // Not for the box's own ports, and not from outside.
    let said = ask(&["-a", "80", "4000", "tcp", "300"])?;
    assert!(!said.contains("Mapped public port 80 "), "{said}");
    let mut outside = command("natpmpc")?;
    outside.args(["-g", PUBLIC4, "-a", "25001", "4000", "udp", "300"]);
    let outside = network.host("server")?.run(outside, Duration::from_secs(30))?;
    assert!(!outside.stdout.contains("Mapped"), "{}", outside.stdout);
    network.with_process(id, Process::stop)?;
    up(&network, &["--no-pcp"])?;
    is_kept_out(&stranger, public(port), &host)
}

fn seen() -> std::net::IpAddr {
    std::net::Ipv4Addr::new(203, 0, 113, 1).into()
}
