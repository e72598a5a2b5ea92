//! NAT44 with real hosts: a LAN with private addresses, and a network beyond that has no route to them.

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::namespace::command;
use sixway_lab::probe::{Direction, fetch, ping, serve_bulk, serve_page};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "nat44_translates_for_a_lan_on_a_host_with_strict_reverse_path_filters",
        &["sixway", "ping", "nginx", "curl"],
        translates,
    ),
    Interop::new(
        "nat44_lets_hosts_of_the_lan_reach_one_another_by_outside_addresses",
        &["sixway", "nginx", "curl"],
        turns_around,
    ),
    Interop::new("nat44_passes_bulk_tcp_over_a_narrow_link", &["sixway", "iperf3"], narrow_link),
    Interop::new("nat44_is_seen_by_tracepath", &["sixway", "tracepath"], tracepath),
    Interop::new("nat44_shares_the_only_address_of_its_host", &["sixway", "ping", "nginx", "curl"], shared),
    Interop::new(
        "nat44_passes_a_stateful_firewall_although_its_packets_are_not_tracked",
        &["sixway", "ping", "nginx", "curl", "nft"],
        firewall,
    ),
    Interop::new("nat44_leaks_no_inside_address_after_a_crash", &["sixway", "ping", "nft"], crash),
    Interop::new("nat44_survives_its_device_going_down_and_up", &["sixway", "ping"], down_and_up),
];

pub const SIXWAY: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.0/29"]

[nat44]
inside = ["192.168.0.0/16"]
except = ["10.20.0.0/16"]
pool = "public"
static = [{ protocol = "tcp", inside = "192.168.2.2:80", outside = "192.0.2.1:80" }]
"#;

/// The gateway's own address is all that there is.
pub const SHARED: &str = r#"[gateway]
ipv4_address = "203.0.113.1"

[[pool]]
name = "own"
addresses = ["203.0.113.1"]
ports = "61000-65535"
shared = true

[nat44]
inside = ["192.168.0.0/16"]
pool = "own"
static = [{ protocol = "tcp", inside = "192.168.2.2:80", outside = "203.0.113.1:61080" }]
"#;

pub const SERVER: &str = "203.0.113.2";

/// Two hosts of the LAN, the gateway, and a server that has no route to the LAN.
pub fn network() -> Result<Network> {
    let network = Network::new(&["client", "neighbour", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("neighbour", "up0"), ("gateway", "in1"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("client", "up0", "192.168.1.2/24"),
        ("gateway", "in0", "192.168.1.1/24"),
        ("neighbour", "up0", "192.168.2.2/24"),
        ("gateway", "in1", "192.168.2.1/24"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 192.168.1.1")?;
    network.route("neighbour", "default via 192.168.2.1")?;
    network.route("gateway", "default via 203.0.113.2")?;
    network.route("server", "192.0.2.0/28 via 203.0.113.1")?;
    network.forwards("gateway")?;
    for interface in ["all", "in0", "in1", "out0"] {
        network.host("gateway")?.sysctl(&format!("ipv4/conf/{interface}/rp_filter"), "1")?;
    }
    Ok(network)
}

fn pings(network: &Network, from: &str, to: &str) -> Result<()> {
    for octets in [0, 56, 1_472, 3_000] {
        let trips = ping(network.host(from)?, to, 3, octets, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 3, "pings with {octets} octets from {from} to {to}");
    }
    Ok(())
}

fn translates() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    pings(&network, "client", SERVER)?;
    serve_page(&network, "server", SERVER, "from the server")?;
    serve_page(&network, "neighbour", "192.168.2.2", "from the neighbour")?;
    assert_eq!(fetch(&network, "client", &format!("http://{SERVER}/"))?.body, "from the server");
    // From outside by a static binding; between the LAN's own networks nothing is translated.
    assert_eq!(fetch(&network, "server", "http://192.0.2.1/")?.body, "from the neighbour");
    assert_eq!(fetch(&network, "client", "http://192.168.2.2/")?.body, "from the neighbour");
    pings(&network, "client", "192.168.2.2")
}

fn turns_around() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    serve_page(&network, "neighbour", "192.168.2.2", "from the neighbour")?;
    for host in ["client", "neighbour"] {
        assert_eq!(fetch(&network, host, "http://192.0.2.1/")?.body, "from the neighbour", "by {host}");
    }
    Ok(())
}

/// The host's own kernel finds that a packet does not fit: its "fragmentation needed" is about a packet of the pool.
fn narrow_link() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    network.host("gateway")?.ip("link set out0 mtu 1380")?;
    network.host("server")?.ip("link set up0 mtu 1380")?;
    let server = serve_bulk(&network, "server")?;
    for direction in [Direction::Up, Direction::Down] {
        let bulk = server.transfer("client", SERVER, direction, Duration::from_secs(1))?;
        assert!(bulk.octets > 1_000_000, "{direction:?}: {} octets", bulk.octets);
    }
    Ok(())
}

fn tracepath() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    network.host("gateway")?.ip("link set out0 mtu 1380")?;
    network.host("server")?.ip("link set up0 mtu 1380")?;
    let mut tracepath = command("tracepath")?;
    tracepath.args(["-4", "-n", "-m", "8", SERVER]);
    let said = network.host("client")?.run(tracepath, Duration::from_secs(30))?.succeeded()?.stdout;
    for what in ["192.0.2.14", "pmtu 1380", "reached"] {
        if !said.contains(what) {
            return Err(Failure::Unexpected(format!("tracepath did not show {what}:\n{said}")));
        }
    }
    Ok(())
}

fn shared() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SHARED)?;
    pings(&network, "client", SERVER)?;
    serve_page(&network, "server", SERVER, "from the server")?;
    serve_page(&network, "neighbour", "192.168.2.2", "from the neighbour")?;
    assert_eq!(fetch(&network, "client", &format!("http://{SERVER}/"))?.body, "from the server");
    assert_eq!(fetch(&network, "server", "http://203.0.113.1:61080/")?.body, "from the neighbour");
    // Hosts of the LAN reach each other by that address, and the host's own services at its other ports.
    serve_page(&network, "gateway", "203.0.113.1", "from the gateway")?;
    for host in ["client", "neighbour", "server"] {
        assert_eq!(
            fetch(&network, host, "http://203.0.113.1:61080/")?.body,
            "from the neighbour",
            "by {host}"
        );
        assert_eq!(fetch(&network, host, "http://203.0.113.1/")?.body, "from the gateway", "by {host}");
    }
    // The host's own connections go on as before.
    assert_eq!(fetch(&network, "gateway", &format!("http://{SERVER}/"))?.body, "from the server");
    pings(&network, "gateway", SERVER)
}

fn down_and_up() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    pings(&network, "client", SERVER)?;
    network.host("gateway")?.ip("link set sixway0 down")?;
    network.host("gateway")?.ip("link set sixway0 up")?;
    for _ in 0..50 {
        if ping(network.host("client")?, SERVER, 1, 56, Duration::from_millis(5))?.answered == 1 {
            return pings(&network, "client", SERVER);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(Failure::Unexpected("no answer: the rules or their route were not restored".into()))
}

/// After `kill -9` the device is gone and the rules are not: nothing of the LAN leaves untranslated, until a start.
fn crash() -> Result<()> {
    let network = network()?;
    let gateway = run_sixway(&network, SIXWAY)?;
    pings(&network, "client", SERVER)?;
    let rules = network.file("watch.nft", WATCH)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("server")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    network.with_process(gateway, |process| process.kill())?;
    let trips = ping(network.host("client")?, SERVER, 3, 56, Duration::from_millis(5))?;
    assert_eq!(trips.answered, 0);
    let mut list = command("nft")?;
    list.args(["list", "counter", "ip", "watch", "private"]);
    let seen = network.host("server")?.run(list, Duration::from_secs(5))?.succeeded()?.stdout;
    assert!(seen.contains("packets 0 "), "{seen}");
    run_sixway(&network, SIXWAY)?;
    pings(&network, "client", SERVER)
}

/// Counts packets with private sources.
const WATCH: &str = "table ip watch {
  counter private { }
  chain in {
    type filter hook prerouting priority 0
    ip saddr 192.168.0.0/16 counter name private
  }
}
";

/// Next to a shared pool, what enters and leaves the device is not tracked: in neither direction.
fn firewall() -> Result<()> {
    let network = network()?;
    let rules = network.file("firewall.nft", FIREWALL)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    run_sixway(&network, SHARED)?;
    pings(&network, "client", SERVER)?;
    serve_page(&network, "server", SERVER, "from the server")?;
    assert_eq!(fetch(&network, "client", &format!("http://{SERVER}/"))?.body, "from the server");
    // The host's own services, and what is not translated, are tracked as before.
    serve_page(&network, "neighbour", "192.168.2.2", "from the neighbour")?;
    assert_eq!(fetch(&network, "client", "http://192.168.2.2/")?.body, "from the neighbour");
    serve_page(&network, "gateway", "192.168.1.1", "from the gateway")?;
    assert_eq!(fetch(&network, "client", "http://192.168.1.1/")?.body, "from the gateway");
    Ok(())
}

const FIREWALL: &str = "table inet filter {
  chain input {
    type filter hook input priority 0; policy drop
    ct state invalid drop
    ct state established,related accept
    iifname lo accept
    iifname { in0, in1 } accept
    ip protocol icmp accept
  }
  chain forward {
    type filter hook forward priority 0; policy drop
    ct state invalid drop
    ct state established,related accept
    iifname { in0, in1 } accept
    iifname sixway0 oifname { in0, in1, out0 } accept
  }
}
";
