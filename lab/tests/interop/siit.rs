//! Stateless translation with real hosts.

use crate::Interop;
use crate::datagrams::{arrives, pattern, socket};
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::forwarder::{Forwarder, SIIT};
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::load::{Pmtu, path_mtu_discovery, without_checksum};
use sixway_lab::namespace::command;
use sixway_lab::probe::{Direction, fetch, ping, serve_bulk, serve_page};
use sixway_lab::topology::{Network, client_gateway_server};
use std::net::UdpSocket;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "siit_pings_of_every_size_come_back_both_ways",
        &["sixway", "ping"],
        pings_come_back_both_ways,
    ),
    Interop::new("siit_pages_open_both_ways", &["sixway", "nginx", "curl"], pages_open_both_ways),
    Interop::new("siit_datagrams_keep_their_ports", &["sixway"], datagrams_keep_their_ports),
    Interop::new("siit_missing_udp_checksums_are_computed_or_dropped", &["sixway"], missing_udp_checksums),
    Interop::new(
        "siit_and_tayga_understand_each_other",
        &["sixway", "tayga", "ping", "iperf3"],
        beside_tayga,
    ),
    Interop::new(
        "siit_dynamic_pool_gives_each_host_an_address",
        &["sixway", "ping"],
        dynamic_pool_gives_addresses,
    ),
];

const SERVER: &str = "2001:db8:64::203.0.113.2";
const CLIENT: &str = "192.0.2.2";

fn pings_come_back_both_ways() -> Result<()> {
    let running = Forwarder::Siit.start()?;
    let pings = |(from, to): (&str, &str), octets, answered| {
        let trips = ping(running.network.host(from)?, to, 3, octets, Duration::from_millis(5))?;
        assert_eq!(trips.answered, answered, "pings with {octets} octets from the {from}");
        Ok(())
    };
    let ways = [("client", SERVER), ("server", CLIENT)];
    for way in ways {
        for octets in [0, 1, 56, 1_232, 1_233, 1_424, 1_425, 1_452] {
            pings(way, octets, 3)?;
        }
    }
    // Fragmented ICMP cannot be translated without state: its checksum covers what other fragments hold (RFC 7915 §1.2). All are waited for together.
    std::thread::scope(|scope| {
        let each = ways.into_iter().flat_map(|way| [1_453, 1_472, 3_000].map(|octets| (way, octets)));
        let waiting: Vec<_> = each.map(|(way, octets)| scope.spawn(move || pings(way, octets, 0))).collect();
        waiting
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn pages_open_both_ways() -> Result<()> {
    let running = Forwarder::Siit.start()?;
    serve_page(&running.network, "server", "203.0.113.2", "from the server")?;
    serve_page(&running.network, "client", "[2001:db8:1::2]", "from the client")?;
    assert_eq!(fetch(&running.network, "client", &format!("http://[{SERVER}]/"))?.body, "from the server");
    assert_eq!(fetch(&running.network, "server", &format!("http://{CLIENT}/"))?.body, "from the client");
    Ok(())
}

/// UDP fragments pass both ways: their checksums need no look at the payload.
fn datagrams_keep_their_ports() -> Result<()> {
    let running = Forwarder::Siit.start()?;
    let client = socket(running.network.host("client")?, "[::]:4000")?;
    let server = socket(running.network.host("server")?, "203.0.113.2:53")?;
    path_mtu_discovery(&server, Pmtu::Clear)?;
    for length in [0, 1, 512, 1_400, 1_453, 4_000, 20_000] {
        let octets = pattern(length);
        let seen = arrives(&client, &format!("[{SERVER}]:53"), &server, &octets)?;
        assert_eq!(seen.to_string(), "192.0.2.2:4000");
        let back = arrives(&server, "192.0.2.2:4000", &client, &octets)?;
        assert_eq!(back.to_string(), "[2001:db8:64::cb00:7102]:53");
    }
    Ok(())
}

fn missing_udp_checksums() -> Result<()> {
    let (_computes, passes) = without_checksums("compute")?;
    let (_drops, stops) = without_checksums("drop")?;
    let to = "192.0.2.2:4000";
    arrives(&passes.server, to, &passes.client, &pattern(100))?;
    stops.server.send_to(&pattern(100), to).asking(|| "sending".to_owned())?;
    // Fragments without a checksum cannot be mended without state (RFC 7915 §4.5).
    for ends in [&passes, &stops] {
        ends.server.send_to(&pattern(4_000), to).asking(|| "sending".to_owned())?;
    }
    // Both are waited for together, the sockets' two seconds.
    let came = |ends: &Ends| ends.client.recv(&mut [0; 65_535]).ok();
    assert_eq!(came(&stops), None, "udp_zero_checksum = drop");
    passes.client.set_nonblocking(true).asking(|| "O_NONBLOCK".to_owned())?;
    assert_eq!(came(&passes), None, "fragments");
    Ok(())
}

/// Sockets of client and server; what the server's sends has no checksum.
struct Ends {
    client: UdpSocket,
    server: UdpSocket,
}

/// A network whose gateway has this policy.
fn without_checksums(policy: &str) -> Result<(Network, Ends)> {
    let network = client_gateway_server()?;
    let key = format!("[siit]\nudp_zero_checksum = \"{policy}\"\n");
    run_sixway(&network, &SIIT.replace("[siit]\n", &key))?;
    let client = socket(network.host("client")?, "[::]:4000")?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    without_checksum(&server)?;
    path_mtu_discovery(&server, Pmtu::Clear)?;
    Ok((network, Ends { client, server }))
}

/// IPv4 client, our translator, an IPv6 network, TAYGA, IPv4 server: what we send is understood by another implementation, and the reverse.
fn beside_tayga() -> Result<()> {
    let network = Network::new(&["client", "gateway", "tayga", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("tayga", "in0"))?;
    network.link(("tayga", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "198.51.100.2/24")?;
    network.address("gateway", "in0", "198.51.100.1/24")?;
    network.address("gateway", "out0", "2001:db8:9::1/64")?;
    network.address("tayga", "in0", "2001:db8:9::2/64")?;
    network.address("tayga", "out0", "203.0.113.1/24")?;
    network.address("server", "up0", "203.0.113.2/24")?;
    network.route("client", "default via 198.51.100.1")?;
    network.route("server", "default via 203.0.113.1")?;
    network.route("gateway", "2001:db8:64::/96 via 2001:db8:9::2")?;
    network.route("tayga", "2001:db8:46::/96 via 2001:db8:9::1")?;
    network.forwards("gateway")?;
    network.forwards("tayga")?;
    run_sixway(&network, BESIDE_TAYGA)?;
    start_tayga(&network)?;
    // TAYGA cuts larger ones to 1,280 octets, and fragmented ICMP is not translated (RFC 7915 §1.2).
    for octets in [56, 1_200] {
        let trips = ping(network.host("client")?, "203.0.113.2", 5, octets, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 5, "pings with {octets} octets");
    }
    let bulk_server = serve_bulk(&network, "server")?;
    for direction in [Direction::Up, Direction::Down] {
        let bulk = bulk_server.transfer("client", "203.0.113.2", direction, Duration::from_secs(1))?;
        assert!(bulk.octets > 1_000_000, "{direction:?}: {} octets", bulk.octets);
    }
    let client = socket(network.host("client")?, "0.0.0.0:4000")?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    let seen = arrives(&client, "203.0.113.2:53", &server, &pattern(1_000))?;
    arrives(&server, &seen.to_string(), &client, &pattern(1_000))?;
    Ok(())
}

/// Our side: the client is 2001:db8:46::198.51.100.2 in the IPv6 network, and the world is TAYGA's 2001:db8:64::/96.
const BESIDE_TAYGA: &str = r#"[tun]
name = "sixway0"
routes = ["2001:db8:46::/96", "203.0.113.0/24"]

[siit]
eam = [
  { ipv4 = "198.51.100.2/32", ipv6 = "2001:db8:46::198.51.100.2/128" },
  { ipv4 = "203.0.113.0/24", ipv6 = "2001:db8:64::203.0.113.0/120" },
]

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

fn start_tayga(network: &Network) -> Result<()> {
    let host = network.host("tayga")?;
    let configuration = format!(
        "tun-device nat64\nipv4-addr 192.168.255.1\nipv6-addr 2001:db8::fd\nprefix 2001:db8:64::/96\n\
         dynamic-pool 192.168.255.0/24\ndata-dir {}\n",
        network.folder().display()
    );
    let file = network.file("tayga.conf", &configuration)?;
    let mut make = command("tayga")?;
    make.arg("--mktun").arg("-c").arg(&file);
    host.run(make, Duration::from_secs(5))?.succeeded()?;
    host.ip("link set nat64 up")?;
    host.ip("route add 192.168.255.0/24 dev nat64")?;
    host.ip("-6 route add 2001:db8:64::/96 dev nat64")?;
    network.route("server", "192.168.255.0/24 via 203.0.113.1")?;
    let mut tayga = command("tayga")?;
    tayga.arg("--nodetach").arg("-c").arg(&file);
    network.start("tayga", tayga)?;
    interrupt::wait_until(Duration::from_secs(5), "tayga's first answer", || {
        Ok(ping(network.host("client")?, "203.0.113.2", 1, 56, Duration::ZERO)?.answered == 1)
    })
}

fn dynamic_pool_gives_addresses() -> Result<()> {
    let network = client_gateway_server()?;
    let state = network.folder().join("dynamic.state");
    let keys = format!("[siit]\ndynamic_pool = \"192.0.2.128/25\"\ndynamic_state = {state:?}\n");
    let eam = SIIT.lines().find(|line| line.starts_with("eam")).expect("SIIT has EAMs");
    let configuration = SIIT.replace("[siit]\n", &keys).replace(eam, "");
    let process = run_sixway(&network, &configuration)?;
    let client = network.host("client")?;
    let bound = socket(client, "[::]:4000")?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    let seen = arrives(&bound, &format!("[{SERVER}]:53"), &server, b"who am I?")?;
    assert!(seen.to_string().starts_with("192.0.2."), "{seen}");
    arrives(&server, &seen.to_string(), &bound, b"you are that")?;
    // The address is the host's also after a restart.
    network.with_process(process, |process| process.stop())?;
    run_sixway(&network, &configuration)?;
    assert_eq!(arrives(&bound, &format!("[{SERVER}]:53"), &server, b"and now?")?, seen);
    Ok(())
}
