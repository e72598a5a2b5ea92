//! Stateful NAT64 with real hosts.

use crate::Interop;
use crate::datagrams::{arrives, pattern, socket};
use sixway_lab::failure::Result;
use sixway_lab::forwarder::{Forwarder, NAT64};
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::load::{Pmtu, path_mtu_discovery, without_checksum};
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::topology::{client_gateway_server, two_clients};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("nat64_pings_of_every_size_come_back", &["sixway", "ping"], pings_of_every_size_come_back)
        .busy(),
    Interop::new("nat64_datagrams_arrive_whole_both_ways", &["sixway"], datagrams_arrive_whole_both_ways),
    Interop::new("nat64_tells_the_server_what_is_too_big", &["sixway"], too_big_datagram_is_answered),
    Interop::new(
        "nat64_keeps_one_outside_endpoint_towards_all",
        &["sixway"],
        keeps_one_outside_endpoint_towards_all,
    ),
    Interop::new("nat64_computes_missing_udp_checksums", &["sixway"], computes_missing_udp_checksums),
    Interop::new(
        "nat64_static_binding_serves_the_outside",
        &["sixway", "nginx", "curl"],
        static_binding_serves_outside,
    ),
    Interop::new(
        "nat64_hairpins_between_two_inside_hosts",
        &["sixway", "nginx", "curl"],
        hairpins_between_inside_hosts,
    ),
    Interop::new("nat64_filters_by_address_when_told_to", &["sixway"], filters_by_address_when_told_to),
];

pub const SERVER: &str = "64:ff9b::203.0.113.2";

/// The demo's configuration with more keys in its section `[nat64]`.
fn with_keys(keys: &str) -> String {
    NAT64.replace("pool = \"main\"\n", &format!("pool = \"main\"\n{keys}\n"))
}

/// Sizes around each bound: fragments on neither, one or both sides.
fn pings_of_every_size_come_back() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    let client = running.network.host("client")?;
    for octets in [0, 1, 56, 1_232, 1_233, 1_424, 1_425, 1_452, 1_453, 1_472, 3_000, 9_001] {
        let trips = ping(client, SERVER, 3, octets, Duration::from_millis(5))?;
        let drops = show(&running.network, &["drops"])?;
        let drops = running.network.host("gateway")?.run(drops, Duration::from_secs(5))?.stdout;
        assert_eq!(trips.answered, 3, "pings with {octets} octets; dropped: {drops}");
    }
    Ok(())
}

fn datagrams_arrive_whole_both_ways() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    let client = socket(running.network.host("client")?, "[::]:4000")?;
    let server = socket(running.network.host("server")?, "203.0.113.2:53")?;
    path_mtu_discovery(&server, Pmtu::Clear)?;
    for length in [0, 1, 512, 1_400, 1_453, 4_000, 20_000] {
        let octets = pattern(length);
        let outside = arrives(&client, &format!("[{SERVER}]:53"), &server, &octets)?;
        assert!(outside.ip().to_string().starts_with("192.0.2."), "{outside} is no address of the pool");
        let back = arrives(&server, &outside.to_string(), &client, &octets)?;
        assert_eq!(back.to_string(), "[64:ff9b::cb00:7102]:53");
    }
    Ok(())
}

/// 1,481 octets of IPv4 with DF become 1,501 of IPv6: the server is notified, and its kernel cuts the next one.
fn too_big_datagram_is_answered() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    let client = socket(running.network.host("client")?, "[::]:4000")?;
    let server = socket(running.network.host("server")?, "203.0.113.2:53")?;
    let outside = arrives(&client, &format!("[{SERVER}]:53"), &server, b"ask")?.to_string();
    assert!(arrives(&server, &outside, &client, &pattern(1_453)).is_err());
    arrives(&server, &outside, &client, &pattern(1_453))?;
    Ok(())
}

fn keeps_one_outside_endpoint_towards_all() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    let server = running.network.host("server")?;
    server.ip("address add 203.0.113.3/24 dev up0")?;
    let client = socket(running.network.host("client")?, "[::]:4000")?;
    let one = socket(server, "203.0.113.2:53")?;
    let other = socket(server, "203.0.113.3:5353")?;
    let seen = arrives(&client, &format!("[{SERVER}]:53"), &one, b"a")?;
    assert_eq!(arrives(&client, "[64:ff9b::203.0.113.3]:5353", &other, b"b")?, seen);
    let stranger = socket(server, "203.0.113.3:9999")?;
    arrives(&stranger, &seen.to_string(), &client, b"filtering is endpoint-independent")?;
    Ok(())
}

fn filters_by_address_when_told_to() -> Result<()> {
    let network = client_gateway_server()?;
    run_sixway(&network, &with_keys("filtering = \"address-dependent\""))?;
    let server = network.host("server")?;
    server.ip("address add 203.0.113.3/24 dev up0")?;
    let client = socket(network.host("client")?, "[::]:4000")?;
    let known = socket(server, "203.0.113.2:53")?;
    let seen = arrives(&client, &format!("[{SERVER}]:53"), &known, b"a")?;
    let stranger = socket(server, "203.0.113.3:53")?;
    assert!(arrives(&stranger, &seen.to_string(), &client, b"who are you").is_err());
    let other_port = socket(server, "203.0.113.2:54")?;
    arrives(&other_port, &seen.to_string(), &client, b"the same address, another port")?;
    Ok(())
}

fn computes_missing_udp_checksums() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    let client = socket(running.network.host("client")?, "[::]:4000")?;
    let server = socket(running.network.host("server")?, "203.0.113.2:53")?;
    let outside = arrives(&client, &format!("[{SERVER}]:53"), &server, b"ask")?;
    without_checksum(&server)?;
    path_mtu_discovery(&server, Pmtu::Clear)?;
    for length in [1, 100, 1_400, 4_000] {
        arrives(&server, &outside.to_string(), &client, &pattern(length))?;
    }
    Ok(())
}

const STATIC: &str =
    r#"static = [{ protocol = "tcp", inside = "[2001:db8:1::2]:80", outside = "192.0.2.1:80" }]"#;

fn static_binding_serves_outside() -> Result<()> {
    let network = client_gateway_server()?;
    run_sixway(&network, &with_keys(STATIC))?;
    serve_page(&network, "client", "[2001:db8:1::2]", "from inside")?;
    assert_eq!(fetch(&network, "server", "http://192.0.2.1/")?.body, "from inside");
    Ok(())
}

fn hairpins_between_inside_hosts() -> Result<()> {
    let network = two_clients()?;
    run_sixway(&network, &with_keys(STATIC))?;
    serve_page(&network, "client", "[2001:db8:1::2]", "from a neighbour")?;
    assert_eq!(fetch(&network, "neighbour", "http://[64:ff9b::192.0.2.1]/")?.body, "from a neighbour");
    let one = socket(network.host("client")?, "[::]:4000")?;
    let other = socket(network.host("neighbour")?, "[::]:5000")?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    let outside = arrives(&one, &format!("[{SERVER}]:53"), &server, b"where am I?")?;
    let seen = arrives(
        &other,
        &format!("[64:ff9b::{}]:{}", outside.ip(), outside.port()),
        &one,
        b"hello neighbour",
    )?;
    assert!(
        seen.to_string().starts_with("[64:ff9b::c000:2"),
        "{seen}: the outside source address is kept (RFC 6146 §3.8)"
    );
    arrives(&one, &seen.to_string(), &other, b"hello yourself")?;
    Ok(())
}
