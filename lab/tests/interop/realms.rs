//! Realms: two LANs whose hosts have the same addresses, behind one gateway.

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{ask, run_sixway, show, take_over};
use sixway_lab::interrupt;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::topology::Network;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "realms_have_hosts_of_the_same_address_with_one_worker",
        &["sixway", "ping", "nginx", "curl"],
        || same_address(1),
    ),
    Interop::new(
        "realms_have_hosts_of_the_same_address_with_two_workers",
        &["sixway", "ping", "nginx", "curl"],
        || same_address(2),
    ),
    Interop::new("realms_go_on_with_their_sessions_after_a_reload_and_a_takeover", &["sixway"], goes_on),
    Interop::new("realms_leak_no_inside_address_after_a_crash", &["sixway", "ping"], crash),
];

const SERVER: &str = "203.0.113.2";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

fn configuration(workers: u8, realms: [(&str, &str, u32, &str); 2]) -> String {
    let mut text = format!("[gateway]\nipv4_address = \"192.0.2.14\"\nworkers = {workers}\n");
    for (name, interface, table, address) in realms {
        text += &format!(
            "[[pool]]\nname = \"{name}\"\naddresses = [\"{address}\"]\n\
             [[realm]]\nname = \"{name}\"\ninside = [\"10.0.0.0/8\"]\ninterfaces = [\"{interface}\"]\n\
             table = {table}\ndevice = \"nat-{name}\"\npool = \"{name}\"\n\
             static = [{{ protocol = \"tcp\", inside = \"10.0.0.2:80\", outside = \"{address}:80\" }}]\n"
        );
    }
    text
}

const RED: (&str, &str, u32, &str) = ("red", "in0", 101, "192.0.2.1");
const BLUE: (&str, &str, u32, &str) = ("blue", "in1", 102, "192.0.2.2");

/// A host of each LAN, the gateway, whose reverse path filters are strict, and a server without a route to the LANs.
fn network() -> Result<Network> {
    let network = Network::new(&["red", "blue", "gateway", "server"])?;
    network.link(("red", "up0"), ("gateway", "in0"))?;
    network.link(("blue", "up0"), ("gateway", "in1"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("red", "up0", "10.0.0.2/24"),
        ("gateway", "in0", "10.0.0.1/24"),
        ("blue", "up0", "10.0.0.2/24"),
        ("gateway", "in1", "10.0.0.1/24"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    for host in ["red", "blue"] {
        network.route(host, "default via 10.0.0.1")?;
    }
    network.route("gateway", "default via 203.0.113.2")?;
    network.route("gateway", "10.0.0.0/24 dev in0 table 101")?;
    network.route("gateway", "10.0.0.0/24 dev in1 table 102")?;
    network.route("server", "192.0.2.0/28 via 203.0.113.1")?;
    network.forwards("gateway")?;
    for interface in ["all", "in0", "in1", "out0"] {
        network.host("gateway")?.sysctl(&format!("ipv4/conf/{interface}/rp_filter"), "1")?;
    }
    Ok(network)
}

/// A socket of a host.
fn socket(network: &Network, host: &str, address: &str) -> Result<UdpSocket> {
    let socket = network.host(host)?.enter(|| UdpSocket::bind(address))?;
    let socket = socket.map_err(|error| Failure::Io(format!("socket of {host}"), error))?;
    let set = socket.set_read_timeout(Some(PATIENCE));
    set.map_err(|error| Failure::Io("timeout".into(), error))?;
    Ok(socket)
}

fn send(socket: &UdpSocket, what: &str, to: SocketAddr) -> Result<()> {
    let sent = socket.send_to(what.as_bytes(), to);
    sent.map(|_| ()).map_err(|error| Failure::Io(format!("send to {to}"), error))
}

/// What comes next, and from where.
fn received(socket: &UdpSocket) -> Result<(String, SocketAddr)> {
    let mut octets = [0; 64];
    let received = socket.recv_from(&mut octets);
    let (length, from) = received.map_err(|error| Failure::Io("receive".into(), error))?;
    Ok((String::from_utf8_lossy(&octets[..length]).into_owned(), from))
}

/// Where the server answers.
const SERVICE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2)), 7_000);

fn same_address(workers: u8) -> Result<()> {
    let network = network()?;
    run_sixway(&network, &configuration(workers, [RED, BLUE]))?;
    let server = socket(&network, "server", "203.0.113.2:7000")?;
    let mut endpoints = Vec::new();
    for port in 4_000..4_016 {
        let local = format!("10.0.0.2:{port}");
        for (name, outside) in [("red", RED.3), ("blue", BLUE.3)] {
            let host = &socket(&network, name, &local)?;
            send(host, name, SERVICE)?;
            let (what, from) = received(&server)?;
            assert_eq!((&*what, from.ip().to_string()), (name, outside.to_owned()));
            send(&server, name, from)?;
            assert_eq!(received(host)?.0, name);
            endpoints.push(from);
        }
    }
    endpoints.sort();
    endpoints.dedup();
    assert_eq!(endpoints.len(), 32);
    for host in ["red", "blue"] {
        // In fragments, to the gateway itself, and with a server.
        for (to, octets) in [(SERVER, 56), (SERVER, 3_000), ("192.0.2.14", 56)] {
            let trips = ping(network.host(host)?, to, 3, octets, Duration::from_millis(5))?;
            assert_eq!(trips.answered, 3, "pings with {octets} octets from {host} to {to}");
        }
    }
    serve_page(&network, "server", SERVER, "from the server")?;
    for (host, page) in [("red", "from red"), ("blue", "from blue")] {
        serve_page(&network, host, "10.0.0.2", page)?;
        assert_eq!(fetch(&network, host, &format!("http://{SERVER}/"))?.body, "from the server");
    }
    // By static bindings, from outside and from the other realm; a host of the realm itself by a hairpin.
    for (from, outside, page) in [
        ("server", RED.3, "from red"),
        ("server", BLUE.3, "from blue"),
        ("red", BLUE.3, "from blue"),
        ("blue", RED.3, "from red"),
        ("red", RED.3, "from red"),
    ] {
        assert_eq!(fetch(&network, from, &format!("http://{outside}/"))?.body, page, "{from} to {outside}");
    }
    let sessions = network.host("gateway")?.run(show(&network, &["sessions"])?, PATIENCE)?.stdout;
    assert!(sessions.contains("red") && sessions.contains("blue"), "{sessions}");
    // Whose session of the two is to end has to be said.
    let end = |more: &[&str]| -> Result<_> {
        let words = ["session", "end", "udp", "10.0.0.2:4000", "203.0.113.2:7000"];
        network.host("gateway")?.run(ask(&network, &[&words, more].concat())?, PATIENCE)
    };
    let refused = end(&[])?;
    assert!(refused.stderr.contains("red, blue have such inside hosts"), "{}", refused.stderr);
    end(&["--mechanism", "blue"])?.succeeded()?;
    let left = show(&network, &["sessions", "--inside", "10.0.0.2:4000"])?;
    let left = network.host("gateway")?.run(left, PATIENCE)?.stdout;
    assert!(left.contains(RED.3) && !left.contains(BLUE.3), "{left}");
    Ok(())
}

/// The numbers of realms change when the configuration names them in another order.
fn goes_on() -> Result<()> {
    let network = network()?;
    let first = run_sixway(&network, &configuration(2, [RED, BLUE]))?;
    let server = socket(&network, "server", "203.0.113.2:7000")?;
    let hosts = [
        ("red", socket(&network, "red", "10.0.0.2:4001")?),
        ("blue", socket(&network, "blue", "10.0.0.2:4001")?),
    ];
    let mut endpoints = Vec::new();
    for (name, host) in &hosts {
        send(host, name, SERVICE)?;
        endpoints.push(received(&server)?.1);
    }
    let both_receive = |what: &str| -> Result<()> {
        for ((name, host), endpoint) in hosts.iter().zip(&endpoints) {
            send(&server, &format!("{what} {name}"), *endpoint)?;
            assert_eq!(received(host)?.0, format!("{what} {name}"));
            // From inside with the same outside endpoint.
            send(host, name, SERVICE)?;
            assert_eq!(received(&server)?, ((*name).to_owned(), *endpoint), "{what}");
        }
        Ok(())
    };
    both_receive("at first")?;
    let reload = ask(&network, &["reload"])?;
    network.host("gateway")?.run(reload, Duration::from_secs(30))?.succeeded()?;
    both_receive("after a reload")?;
    take_over(&network, &configuration(2, [BLUE, RED]))?;
    both_receive("after a takeover")?;
    // Blue has the table that was red's.
    let gateway = network.host("gateway")?;
    gateway.ip("route add 10.0.0.0/24 dev in0 table 103")?;
    gateway.ip("route replace 10.0.0.0/24 dev in1 table 101")?;
    let (red, blue) = ((RED.0, RED.1, 103, RED.3), (BLUE.0, BLUE.1, 101, BLUE.3));
    let second = take_over(&network, &configuration(1, [red, blue]))?;
    both_receive("with one worker and other tables")?;
    let defaults =
        ["101", "102", "103"].map(|table| gateway.ip(&format!("route show default table {table}")));
    let [blues, none, reds] = defaults.map(Result::unwrap_or_default);
    assert!(blues.contains("nat-blue") && !blues.contains("nat-red"), "{blues}");
    assert!(reds.contains("nat-red") && !none.contains("nat-"), "{reds} {none}");
    let _ended = network.with_process(first, |process| process.stdout().len())?;
    network.with_process(second, |process| process.signal(nix::sys::signal::Signal::SIGTERM))?;
    interrupt::wait_until(Duration::from_secs(10), "the end of the gateway", || {
        let (links, rules) = (gateway.ip("link show")?, gateway.ip("rule show")?);
        let routes = gateway.ip("route show table 101")?;
        Ok(!links.contains("nat-") && !rules.contains("6290") && !routes.contains("default"))
    })
}

fn crash() -> Result<()> {
    let network = network()?;
    let gateway = run_sixway(&network, &configuration(1, [RED, BLUE]))?;
    network.with_process(gateway, |process| process.signal(nix::sys::signal::Signal::SIGKILL))?;
    let host = network.host("gateway")?;
    interrupt::wait_until(Duration::from_secs(10), "the devices to vanish", || {
        Ok(!host.ip("link show")?.contains("nat-"))
    })?;
    let before = network.host("server")?.received_packets("up0")?;
    for name in ["red", "blue"] {
        let trips = ping(network.host(name)?, SERVER, 3, 56, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 0);
    }
    let after = network.host("server")?.received_packets("up0")?;
    assert!(after - before < 3, "{} packets reached the server", after - before);
    run_sixway(&network, &configuration(1, [BLUE, RED]))?;
    for name in ["red", "blue"] {
        let trips = ping(network.host(name)?, SERVER, 3, 56, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 3);
    }
    Ok(())
}
