//! One public IPv4 address, the gateway's own: a NAT44 and a NAT64 have ports of it, and the host's services have the rest.

use crate::Interop;
use crate::datagrams::{arrives, pattern, socket};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{ask, run_sixway, show};
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "one_address_serves_a_nat44_a_nat64_and_the_hosts_own_services",
        &["sixway", "ping", "nginx", "curl"],
        serves_all,
    ),
    Interop::new(
        "one_address_turns_around_between_ipv4_and_ipv6_hosts",
        &["sixway", "nginx", "curl"],
        turns_around,
    ),
    Interop::new("one_address_passes_fragments_and_errors_of_both", &["sixway"], fragments_and_errors),
    Interop::new(
        "one_address_has_no_state_for_forged_sources_of_inside_hosts",
        &["sixway", "nginx", "curl"],
        forged_sources,
    ),
];

/// `home.toml`, without its DNS64 and router advertisements, and with a server of each kind.
pub const SIXWAY: &str = r#"[gateway]
ipv4_address = "192.0.0.2"
ipv6_address = "2001:db8:1::fe"
workers = 2

[[pool]]
name = "four"
interface = "out0"
shared = true
ports = "61000-62999"

[[pool]]
name = "six"
interface = "out0"
shared = true
ports = "63000-65535"

[nat44]
inside = ["192.168.0.0/16"]
pool = "four"
static = [{ protocol = "tcp", inside = "192.168.1.2:80", outside = "203.0.113.1:61080" }]

[nat64]
prefix = "64:ff9b::/96"
inside = ["2001:db8:1::/64"]
translate_non_global = true
pool = "six"
static = [{ protocol = "tcp", inside = "[2001:db8:1::2]:80", outside = "203.0.113.1:63080" }]
"#;

const ADDRESS: &str = "203.0.113.1";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";

/// A host with IPv4 only and one with IPv6 only, the gateway, and a server that has no route to either.
pub fn network() -> Result<Network> {
    let network = Network::new(&["four", "six", "gateway", "server"])?;
    network.link(("four", "up0"), ("gateway", "in0"))?;
    network.link(("six", "up0"), ("gateway", "in1"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("four", "up0", "192.168.1.2/24"),
        ("gateway", "in0", "192.168.1.1/24"),
        ("six", "up0", "2001:db8:1::2/64"),
        ("gateway", "in1", "2001:db8:1::1/64"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("four", "default via 192.168.1.1")?;
    network.route("six", "default via 2001:db8:1::1")?;
    network.route("gateway", "default via 203.0.113.2")?;
    network.forwards("gateway")?;
    Ok(network)
}

fn serves_all() -> Result<()> {
    let network = network()?;
    serve_page(&network, "server", SERVER, "from the server")?;
    serve_page(&network, "gateway", ADDRESS, "from the gateway")?;
    run_sixway(&network, SIXWAY)?;
    assert_eq!(fetch(&network, "four", &format!("http://{SERVER}/"))?.body, "from the server");
    assert_eq!(fetch(&network, "six", &format!("http://[{SERVER6}]/"))?.body, "from the server");
    for (host, to) in [("four", SERVER), ("six", SERVER6), ("gateway", SERVER), ("server", ADDRESS)] {
        for octets in [56, 3_000] {
            let trips = ping(network.host(host)?, to, 3, octets, Duration::from_millis(5))?;
            assert_eq!(trips.answered, 3, "pings with {octets} octets from {host} to {to}");
        }
    }
    // The host's own service at the same address, from outside and from inside, and its own connections.
    for host in ["server", "four"] {
        assert_eq!(
            fetch(&network, host, &format!("http://{ADDRESS}/"))?.body,
            "from the gateway",
            "by {host}"
        );
    }
    assert_eq!(fetch(&network, "gateway", &format!("http://{SERVER}/"))?.body, "from the server");
    // From outside by static bindings, each at its translator's port.
    serve_page(&network, "four", "192.168.1.2", "from the IPv4 host")?;
    serve_page(&network, "six", "[2001:db8:1::2]", "from the IPv6 host")?;
    assert_eq!(fetch(&network, "server", &format!("http://{ADDRESS}:61080/"))?.body, "from the IPv4 host");
    assert_eq!(fetch(&network, "server", &format!("http://{ADDRESS}:63080/"))?.body, "from the IPv6 host");
    said(&network, &["pools"], &["four", "six"])?;
    let host = network.host("gateway")?;
    let bindings = host.run(show(&network, &["bindings"])?, Duration::from_secs(5))?.succeeded()?.stdout;
    for (inside, ports) in [("192.168.1.2", 61_000..63_000), ("2001:db8:1::2", 63_000..65_536)] {
        let lines: Vec<&str> = bindings.lines().filter(|line| line.contains(inside)).collect();
        assert!(!lines.is_empty(), "{bindings}");
        for line in lines {
            let port = line.split(&format!("{ADDRESS}:")).nth(1).and_then(|rest| rest.split(' ').next());
            let port: u32 = port.and_then(|port| port.parse().ok()).unwrap_or_default();
            assert!(ports.contains(&port), "{line}");
        }
    }
    Ok(())
}

/// Whether what `sixway show` says has all of these words.
fn said(network: &Network, words: &[&str], expected: &[&str]) -> Result<()> {
    let host = network.host("gateway")?;
    let said = host.run(show(network, words)?, Duration::from_secs(5))?.succeeded()?.stdout;
    match expected.iter().find(|word| !said.contains(**word)) {
        Some(word) => Err(Failure::Unexpected(format!("no {word} in:\n{said}"))),
        None => Ok(()),
    }
}

fn turns_around() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    serve_page(&network, "four", "192.168.1.2", "from the IPv4 host")?;
    serve_page(&network, "six", "[2001:db8:1::2]", "from the IPv6 host")?;
    for (host, url, page) in [
        ("four", "http://203.0.113.1:63080/", "from the IPv6 host"),
        ("six", "http://[64:ff9b::203.0.113.1]:61080/", "from the IPv4 host"),
        ("four", "http://203.0.113.1:61080/", "from the IPv4 host"),
        ("six", "http://[64:ff9b::203.0.113.1]:63080/", "from the IPv6 host"),
    ] {
        assert_eq!(fetch(&network, host, url)?.body, page, "{url} by {host}");
    }
    Ok(())
}

/// From outside, with the source of an inside host: no reverse path filter sees what is steered.
fn forged_sources() -> Result<()> {
    let network = network()?;
    network.address("server", "up0", "192.168.1.77/32")?;
    run_sixway(&network, SIXWAY)?;
    let forger = socket(network.host("server")?, "192.168.1.77:4000")?;
    for port in (61_000..61_300).chain(63_000..63_300) {
        let sent = forger.send_to(b"forged", (ADDRESS, port));
        sent.map_err(|error| Failure::Unexpected(error.to_string()))?;
    }
    // The same host by its own address, and an inside host by that of the others.
    let (server, four) = (
        socket(network.host("server")?, "203.0.113.2:53")?,
        socket(network.host("four")?, "192.168.1.2:4000")?,
    );
    let outside = arrives(&four, "203.0.113.2:53", &server, b"question")?;
    arrives(&server, &outside.to_string(), &four, b"answer")?;
    serve_page(&network, "six", "[2001:db8:1::2]", "from the IPv6 host")?;
    assert_eq!(fetch(&network, "four", &format!("http://{ADDRESS}:63080/"))?.body, "from the IPv6 host");
    for what in ["bindings", "sessions"] {
        let host = network.host("gateway")?;
        let said = host.run(show(&network, &[what])?, Duration::from_secs(5))?.succeeded()?.stdout;
        assert!(said.contains("192.168.1.2") && !said.contains("192.168.1.77"), "{said}");
    }
    Ok(())
}

fn fragments_and_errors() -> Result<()> {
    let network = network()?;
    run_sixway(&network, SIXWAY)?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    let four = socket(network.host("four")?, "192.168.1.2:4000")?;
    let six = socket(network.host("six")?, "[2001:db8:1::2]:4000")?;
    let beyond6 = format!("[{SERVER6}]:53");
    for length in [10, 1_400, 4_000] {
        for (client, beyond, ports) in
            [(&four, "203.0.113.2:53", 61_000..63_000), (&six, &*beyond6, 63_000..65_536)]
        {
            let outside = arrives(client, beyond, &server, &pattern(length))?;
            assert_eq!(outside.ip().to_string(), ADDRESS);
            assert!(ports.contains(&u32::from(outside.port())), "{outside}");
            arrives(&server, &outside.to_string(), client, &pattern(length))?;
        }
    }
    // A binding at run time goes to the translator that has the port.
    let door = socket(network.host("six")?, "[2001:db8:1::2]:4001")?;
    let bind = ["binding", "add", "udp", "[2001:db8:1::2]:4001", "203.0.113.1:64080"];
    network.host("gateway")?.run(ask(&network, &bind)?, Duration::from_secs(5))?.succeeded()?;
    arrives(&server, "203.0.113.1:64080", &door, b"hello")?;
    // Nobody listens there: the server's port unreachable comes to whoever asked.
    for (client, beyond) in [(&four, "203.0.113.2:9"), (&six, "[64:ff9b::203.0.113.2]:9")] {
        client.connect(beyond).map_err(|error| Failure::Unexpected(error.to_string()))?;
        client.send(b"hello").map_err(|error| Failure::Unexpected(error.to_string()))?;
        let refused = client.recv(&mut [0; 16]).map_err(|error| error.kind());
        assert_eq!(refused, Err(std::io::ErrorKind::ConnectionRefused), "{beyond}");
    }
    Ok(())
}
