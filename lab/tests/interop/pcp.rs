//! A PCP server with real packets, and NAT-PMP with a client that is not ours (libnatpmp's natpmpc).

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, serve_page};
use sixway_lab::topology::Network;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "natpmpc_makes_and_deletes_a_mapping_by_which_a_server_inside_is_reached",
        &["sixway", "natpmpc", "nginx", "curl"],
        natpmpc,
    ),
    Interop::new(
        "natpmpc_gets_the_port_that_it_suggests_whatever_worker_has_it",
        &["sixway", "natpmpc", "nginx", "curl"],
        suggested,
    ),
    Interop::new(
        "a_mapping_by_pcp_survives_a_restart_of_the_gateway_and_of_its_host_with_its_epoch",
        &["sixway", "nginx", "curl"],
        restart,
    ),
    Interop::new(
        "requests_by_pcp_from_outside_or_from_no_inside_host_are_not_answered_and_change_nothing",
        &["sixway"],
        strangers,
    ),
    Interop::new("a_host_of_a_nat64_makes_a_mapping_by_pcp_over_ipv6", &["sixway", "nginx", "curl"], nat64),
];

pub const SIXWAY: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.1"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"

[pcp]
interfaces = ["in0", "in1"]
"#;

pub const NAT64: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
ipv6_address = "2001:db8:1::64"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.1"]

[nat64]
prefix = "2001:db8:64::/96"
pool = "public"

[pcp]
interfaces = ["in0"]
"#;

/// What natpmpc says.
fn ask(network: &Network, host: &str, gateway: &str, words: &[&str]) -> Result<String> {
    let mut natpmpc = command("natpmpc")?;
    natpmpc.args(["-g", gateway]).args(words);
    Ok(network.host(host)?.run(natpmpc, Duration::from_secs(30))?.stdout)
}

/// The public port that natpmpc was given.
pub fn mapped(said: &str) -> Result<u16> {
    let missing = || Failure::Unexpected(format!("natpmpc got no mapping:\n{said}"));
    let (_, rest) = said.split_once("Mapped public port ").ok_or_else(missing)?;
    rest.split(' ').next().and_then(|word| word.parse().ok()).ok_or_else(missing)
}

/// Two workers have the port blocks in turn, and hosts belong to either.
fn suggested() -> Result<()> {
    let network = crate::nat44::network()?;
    run_sixway(&network, SIXWAY)?;
    for (host, gateway, first) in [("client", "192.168.1.1", 8_080_u16), ("neighbour", "192.168.2.1", 20_000)]
    {
        for number in 0..4 {
            let (inside, port) = (80 + number, first + 64 * number);
            let said =
                ask(&network, host, gateway, &["-a", &port.to_string(), &inside.to_string(), "tcp", "300"])?;
            assert_eq!(mapped(&said)?, port, "{host}");
        }
        // Packets find the worker that has the block by now.
        let address = gateway.replace(".1.1", ".1.2").replace(".2.1", ".2.2");
        serve_page(&network, host, &address, host)?;
        assert_eq!(fetch(&network, "server", &format!("http://192.0.2.1:{first}/"))?.body, host);
    }
    Ok(())
}

fn natpmpc() -> Result<()> {
    let network = crate::nat44::network()?;
    run_sixway(&network, SIXWAY)?;
    serve_page(&network, "client", "192.168.1.2", "from the client")?;
    let said = ask(&network, "client", "192.168.1.1", &["-a", "8080", "80", "tcp", "300"])?;
    assert!(said.contains("Public IP address : 192.0.2.1"), "{said}");
    let port = mapped(&said)?;
    let page = format!("http://192.0.2.1:{port}/");
    assert_eq!(fetch(&network, "server", &page)?.body, "from the client");
    // A host of the other LAN has a mapping of its own, and does not get this one.
    let other = ask(&network, "neighbour", "192.168.2.1", &["-a", &port.to_string(), "80", "tcp", "300"])?;
    assert_ne!(mapped(&other)?, port);
    // The companion is the client's alone (RFC 6886 §3.3).
    let suggested = port.to_string();
    let words = |inside| ["-a", &suggested, inside, "udp", "300"];
    assert_ne!(mapped(&ask(&network, "neighbour", "192.168.2.1", &words("53"))?)?, port);
    assert_eq!(mapped(&ask(&network, "client", "192.168.1.1", &words("53"))?)?, port);
    for inside in ["client", "neighbour"] {
        let gateway = if inside == "client" { "192.168.1.1" } else { "192.168.2.1" };
        ask(&network, inside, gateway, &["-a", "0", "53", "udp", "0"])?;
    }
    let bindings = network.host("gateway")?.run(show(&network, &["bindings"])?, Duration::from_secs(5))?;
    let rows = bindings.succeeded()?.stdout;
    assert_eq!(rows.matches("explicit").count(), 2, "{rows}");
    // What is shown is a second old at most.
    interrupt::wait_until(Duration::from_secs(5), "the mapping of natpmpc in `show pcp`", || {
        let shown = says(&network, "pcp")?;
        Ok(shown.contains("nat-pmp") && shown.contains("192.168.1.2:80"))
    })?;
    ask(&network, "client", "192.168.1.1", &["-a", "0", "80", "tcp", "0"])?;
    // Connections that are open go on; after them the mapping is over.
    let again = ask(&network, "client", "192.168.1.1", &["-a", "0", "81", "udp", "300"])?;
    assert!(again.contains("Mapped public port"), "{again}");
    Ok(())
}

/// What `sixway show` says.
fn says(network: &Network, what: &str) -> Result<String> {
    let shown = network.host("gateway")?.run(show(network, &[what])?, Duration::from_secs(5))?;
    Ok(shown.succeeded()?.stdout)
}

/// How long an answer may take that must not come.
pub const SHORT: Duration = Duration::from_millis(300);

/// Datagrams for which the gateway had no socket.
fn without_socket(network: &Network) -> Result<u64> {
    let said = network.host("gateway")?.enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))?;
    let said = said.unwrap_or_default();
    let mut lines = said.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, figures) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split(' ').zip(figures.split(' '));
    let figure = pairs.find_map(|(name, figure)| (name == "NoPorts").then(|| figure.parse().ok())?);
    figure.ok_or_else(|| Failure::Unexpected("the kernel does not count NoPorts".into()))
}

fn strangers() -> Result<()> {
    let network = crate::nat44::network()?;
    run_sixway(&network, SIXWAY)?;
    let (gateway, server) = (network.host("gateway")?, network.host("server")?);
    // The strictest check of sources would hide what the server itself does.
    for interface in ["all", "default", "in0", "in1", "out0"] {
        gateway.sysctl(&format!("ipv4/conf/{interface}/rp_filter"), "0")?;
    }
    // The server has the address of an inside host, too, as whoever forges it.
    network.address("server", "up0", "192.168.1.7/32")?;
    network.route("server", "192.168.1.0/24 via 203.0.113.1")?;
    network.route("server", "192.168.2.0/24 via 203.0.113.1")?;
    let requests =
        [("203.0.113.2", "203.0.113.1"), ("203.0.113.2", "192.168.1.1"), ("192.168.1.7", "203.0.113.1")];
    let requests =
        requests.into_iter().chain([("192.168.1.7", "192.168.1.1"), ("192.168.1.7", "192.168.2.1")]);
    for (source, asked) in requests {
        for request in [map(source, 0), vec![0, 0], vec![2, 0, 0, 0], vec![2; 24]] {
            let before = without_socket(&network)?;
            let answer = server.enter(|| exchange_from(source, asked, &request, SHORT))?;
            assert_eq!(answer, None, "{source} is answered by {asked}");
            // The request did come: the kernel found no socket for it.
            assert!(without_socket(&network)? > before, "the request of {source} to {asked} was lost");
        }
    }
    // On the inside link, but not a host that the NAT serves.
    network.address("client", "up0", "172.16.0.2/24")?;
    network.address("gateway", "in0", "172.16.0.1/24")?;
    let client = network.host("client")?;
    for request in [map("172.16.0.2", 0), vec![0, 0], map("192.168.1.2", 0), vec![2; 24]] {
        let answer = client.enter(|| exchange_from("172.16.0.2", "172.16.0.1", &request, SHORT))?;
        assert_eq!(answer, None, "a host that is not inside is answered");
    }
    interrupt::wait_until(Duration::from_secs(5), "requests of no inside host in `show pcp`", || {
        Ok(says(&network, "pcp")?.contains("not_inside"))
    })?;
    let (shown, bindings) = (says(&network, "pcp")?, says(&network, "bindings")?);
    assert!(shown.contains("0 mappings") && !bindings.contains("explicit"), "{shown}{bindings}");
    // The same request from an inside host is answered.
    let answer = client.enter(|| exchange("192.168.1.1", &map("192.168.1.2", 0)))?;
    assert_eq!(read(answer)?.0, 0);
    Ok(())
}

/// The answer to a datagram, if there is one within a second.
pub fn exchange(gateway: &str, request: &[u8]) -> Option<Vec<u8>> {
    let any = if gateway.contains(':') { "::" } else { "0.0.0.0" };
    exchange_from(any, gateway, request, Duration::from_secs(1))
}

/// The same from this address, within this time.
pub fn exchange_from(source: &str, gateway: &str, request: &[u8], within: Duration) -> Option<Vec<u8>> {
    let (source, gateway): (IpAddr, IpAddr) = (source.parse().ok()?, gateway.parse().ok()?);
    let socket = UdpSocket::bind((source, 0)).ok()?;
    socket.set_read_timeout(Some(within)).ok()?;
    socket.send_to(request, (gateway, 5351)).ok()?;
    let mut octets = [0; 1_200];
    let (length, from) = socket.recv_from(&mut octets).ok()?;
    assert_eq!((from.ip(), from.port()), (gateway, 5351));
    Some(octets[..length].to_vec())
}

/// A MAP request of five minutes for TCP port 80.
pub fn map(client: &str, suggested: u16) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut request = vec![2, 1, 0, 0];
    request.extend(300_u32.to_be_bytes());
    request.extend(client.parse().map(octets).unwrap_or_default());
    request.extend([7; 12]);
    request.extend([6, 0, 0, 0, 0, 80]);
    request.extend(suggested.to_be_bytes());
    request.extend(octets(Ipv4Addr::UNSPECIFIED.into()));
    request
}

/// Result code, Epoch Time and external port of an answer.
pub fn read(answer: Option<Vec<u8>>) -> Result<(u8, u32, u16)> {
    let answer = answer.filter(|answer| answer.len() >= 60);
    let answer = answer.ok_or_else(|| Failure::Unexpected("no answer by PCP".into()))?;
    let epoch = u32::from_be_bytes([answer[8], answer[9], answer[10], answer[11]]);
    Ok((answer[3], epoch, u16::from_be_bytes([answer[42], answer[43]])))
}

fn restart() -> Result<()> {
    let network = crate::nat44::network()?;
    let gateway = run_sixway(&network, SIXWAY)?;
    serve_page(&network, "client", "192.168.1.2", "from the client")?;
    let request = map("192.168.1.2", 0);
    let client = network.host("client")?;
    let (result, _, port) = read(client.enter(|| exchange("192.168.1.1", &request))?)?;
    assert_eq!(result, 0);
    // The file is written within a second.
    std::thread::sleep(Duration::from_millis(2_500));
    let (_, before, _) = read(client.enter(|| exchange("192.168.1.1", &request))?)?;
    network.with_process(gateway, |process| process.kill())?;
    let again = run_sixway(&network, SIXWAY)?;
    // Nobody asked again, and the server inside is reached.
    let page = format!("http://192.0.2.1:{port}/");
    assert_eq!(fetch(&network, "server", &page)?.body, "from the client");
    // The host was off: what is in /run has gone.
    network.with_process(again, |process| process.kill())?;
    let own = format!("{}.", network.gateway_name("gateway"));
    for entry in std::fs::read_dir("/run/sixway").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // The kernel goes on here: what the gateway changed must be undone.
        if name.starts_with(&own) && !name.ends_with(".state") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    run_sixway(&network, SIXWAY)?;
    let (result, after, same) = read(client.enter(|| exchange("192.168.1.1", &request))?)?;
    assert_eq!((result, same), (0, port));
    assert!(after >= before && after < before + 60, "the Epoch Time was {before} and is {after}");
    // Another nonce does not take it.
    let mut forged = request.clone();
    forged[24] = 99;
    assert_eq!(read(client.enter(|| exchange("192.168.1.1", &forged))?)?.0, 2);
    // The client's address in the request must be the packet's source.
    let mismatch = map("192.168.1.3", 0);
    assert_eq!(read(client.enter(|| exchange("192.168.1.1", &mismatch))?)?.0, 12);
    Ok(())
}

fn nat64() -> Result<()> {
    let network = crate::nat44::network()?;
    for (host, device, address) in
        [("client", "up0", "2001:db8:1:1::2/64"), ("gateway", "in0", "2001:db8:1:1::1/64")]
    {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 2001:db8:1:1::1")?;
    run_sixway(&network, NAT64)?;
    serve_page(&network, "client", "[2001:db8:1:1::2]", "from the client")?;
    let request = map("2001:db8:1:1::2", 0);
    let client = network.host("client")?;
    let (result, _, port) = read(client.enter(|| exchange("2001:db8:1:1::1", &request))?)?;
    assert_eq!(result, 0);
    let page = format!("http://192.0.2.1:{port}/");
    assert_eq!(fetch(&network, "server", &page)?.body, "from the client");
    Ok(())
}
