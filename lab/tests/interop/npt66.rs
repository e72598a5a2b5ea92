//! Prefix translation (RFC 6296) with real hosts; a network beyond has its prefix translated by nftables (§2.2: between peer networks).

use crate::Interop;
use sixway_lab::failure::Result;
use sixway_lab::gateway::run_sixway;
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "npt66_and_nftables_translate_prefixes_between_two_sites",
        &["sixway", "nft", "ping", "nginx", "curl"],
        between_two_sites,
    ),
    Interop::new(
        "npt66_turns_packets_of_the_site_around",
        &["sixway", "ping", "nginx", "curl"],
        turns_around,
    ),
    Interop::new(
        "npt66_leaves_the_sites_own_destinations_alone",
        &["sixway", "ping"],
        leaves_exceptions_alone,
    ),
];

const SIXWAY: &str = r#"[gateway]
ipv6_address = "2001:db8:1::fe"

[npt66]
inside = "fd01:203:405::/48"
outside = "2001:db8:1::/48"
except = ["fd0e::/16"]
"#;

/// Prefixes are replaced, subnets and interface identifiers stay: the checksums follow.
const NFTABLES: &str = "table ip6 prefixes {
  chain in {
    type nat hook prerouting priority dstnat
    dnat ip6 prefix to ip6 daddr map { 2001:db8:6666::/48 : fd01:4444:5555::/48 }
  }
  chain out {
    type nat hook postrouting priority srcnat
    snat ip6 prefix to ip6 saddr map { fd01:4444:5555::/48 : 2001:db8:6666::/48 }
  }
}
";

/// How the client is seen outside (RFC 6296 §3.6: subnet 1 becomes d550), and its neighbour of subnet 2.
const CLIENT: &str = "2001:db8:1:d550::2";
const NEIGHBOUR: &str = "2001:db8:1:d551::2";
/// How the server is seen outside of its site.
const SERVER: &str = "2001:db8:6666:1::2";

/// The site with two hosts, the gateway, the other site's router, and its server.
fn sites() -> Result<Network> {
    let network = Network::new(&["client", "neighbour", "gateway", "router", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("neighbour", "up0"), ("gateway", "in1"))?;
    network.link(("gateway", "out0"), ("router", "left"))?;
    network.link(("router", "right"), ("server", "up0"))?;
    for (host, device, address) in [
        ("client", "up0", "fd01:203:405:1::2/64"),
        ("gateway", "in0", "fd01:203:405:1::1/64"),
        ("neighbour", "up0", "fd01:203:405:2::2/64"),
        ("gateway", "in1", "fd01:203:405:2::1/64"),
        ("gateway", "out0", "2001:db8:2::1/64"),
        ("router", "left", "2001:db8:2::2/64"),
        ("router", "left", "fd0e::1/128"),
        ("router", "right", "fd01:4444:5555:1::1/64"),
        ("server", "up0", "fd01:4444:5555:1::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via fd01:203:405:1::1")?;
    network.route("neighbour", "default via fd01:203:405:2::1")?;
    network.route("gateway", "default via 2001:db8:2::2")?;
    network.route("router", "default via 2001:db8:2::1")?;
    network.route("server", "default via fd01:4444:5555:1::1")?;
    network.forwards("gateway")?;
    network.forwards("router")?;
    Ok(network)
}

fn pings(network: &Network, from: &str, to: &str) -> Result<()> {
    for octets in [0, 56, 1_452, 3_000] {
        let trips = ping(network.host(from)?, to, 3, octets, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 3, "pings with {octets} octets from {from} to {to}");
    }
    Ok(())
}

fn between_two_sites() -> Result<()> {
    let network = sites()?;
    let rules = network.file("prefixes.nft", NFTABLES)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("router")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    run_sixway(&network, SIXWAY)?;
    pings(&network, "client", SERVER)?;
    pings(&network, "server", CLIENT)?;
    serve_page(&network, "server", "[fd01:4444:5555:1::2]", "from the server")?;
    serve_page(&network, "client", "[fd01:203:405:1::2]", "from the client")?;
    assert_eq!(fetch(&network, "client", &format!("http://[{SERVER}]/"))?.body, "from the server");
    assert_eq!(fetch(&network, "server", &format!("http://[{CLIENT}]/"))?.body, "from the client");
    Ok(())
}

fn turns_around() -> Result<()> {
    let network = sites()?;
    run_sixway(&network, SIXWAY)?;
    pings(&network, "client", NEIGHBOUR)?;
    serve_page(&network, "neighbour", "[fd01:203:405:2::2]", "from the neighbour")?;
    assert_eq!(fetch(&network, "client", &format!("http://[{NEIGHBOUR}]/"))?.body, "from the neighbour");
    Ok(())
}

/// Inside and to an excepted prefix nothing is translated: the router, which has no way back to inside addresses, gets one.
fn leaves_exceptions_alone() -> Result<()> {
    let network = sites()?;
    run_sixway(&network, SIXWAY)?;
    network.route("router", "fd01:203:405::/48 via 2001:db8:2::1")?;
    pings(&network, "client", "fd01:203:405:2::2")?;
    pings(&network, "client", "fd0e::1")?;
    let passed = network.host("gateway")?.received_packets("sixway0")?;
    assert_eq!(passed, 0, "nothing went through the device");
    let rules = network.host("gateway")?.ip("-6 rule show")?;
    assert!(rules.contains("6297:") && rules.contains("to fd0e::/16"), "{rules}");
    Ok(())
}
