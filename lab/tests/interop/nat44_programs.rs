//! NAT44 under programs that judge it or depend on it: STUN's discovery of a NAT's behaviour (RFC 5780), OpenVPN, and a thousand subscribers whose
//! flows the event log names.

use crate::Interop;
use crate::nat44::{SERVER, SIXWAY, network};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::sixway::sixway;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "nat44_behaves_as_stun_discovers_it",
        &["sixway", "turnserver", "turnutils_natdiscovery"],
        discovered,
    ),
    Interop::new("nat44_passes_openvpn_over_udp_and_tcp", &["sixway", "openvpn", "ping"], openvpn),
    Interop::new("nat44_has_a_thousand_subscribers_whom_the_log_names", &["sixway"], thousand_subscribers),
];

const PATIENCE: Duration = Duration::from_secs(20);
const SUBSCRIBERS: u32 = 1_000;

fn configuration(filtering: &str, log: &str) -> String {
    format!("{SIXWAY}filtering = \"{filtering}\"\n\n{log}")
}

/// The mapping and the filtering that a STUN client finds, for each filtering.
fn discovered() -> Result<()> {
    for (filtering, found) in [
        ("endpoint-independent", "NAT with Endpoint Independent Filtering!"),
        ("address-dependent", "NAT with Address Dependent Filtering!"),
        ("address-and-port-dependent", "NAT with Address and Port Dependent Filtering!"),
    ] {
        let network = network()?;
        network.address("server", "up0", "203.0.113.3/24")?;
        run_sixway(&network, &configuration(filtering, ""))?;
        let mut server = command("turnserver")?;
        server.args(["-n", "-L", SERVER, "-L", "203.0.113.3", "-p", "3478", "--alt-listening-port", "3479"]);
        server.args([
            "--no-auth",
            "--no-tls",
            "--no-dtls",
            "--no-cli",
            "--log-file",
            "stdout",
            "--simple-log",
        ]);
        server.arg("--userdb").arg(network.folder().join("turn.db"));
        server.arg("--pidfile").arg(network.folder().join("turn.pid"));
        network.start("server", server)?;
        let mut said = String::new();
        // The server opens its sockets one by one.
        interrupt::wait_until(PATIENCE, "an answer of the STUN server", || {
            let mut client = command("turnutils_natdiscovery")?;
            client.args(["-m", "-f", SERVER]);
            let finished = network.host("client")?.run(client, Duration::from_secs(30))?;
            said = format!("{}{}", finished.stdout, finished.stderr);
            Ok(said.contains("Mapping!") && said.contains("Filtering!"))
        })
        .map_err(|error| Failure::Unexpected(format!("{error}: {said}")))?;
        assert!(said.contains("NAT with Endpoint Independent Mapping!"), "{filtering}: {said}");
        assert!(said.contains(found), "{filtering}: {said}");
    }
    Ok(())
}

fn openvpn() -> Result<()> {
    let network = network()?;
    run_sixway(&network, &configuration("address-and-port-dependent", ""))?;
    for (number, (server, client)) in
        [("udp4", "udp4"), ("tcp4-server", "tcp4-client")].into_iter().enumerate()
    {
        // A pre-shared key each: the test is about packets, not about certificates.
        let key = network.folder().join(format!("key{number}"));
        let mut make = command("openvpn")?;
        make.args(["--genkey", "secret"]).arg(&key);
        network.host("server")?.run(make, PATIENCE)?.succeeded()?;
        let (device, far) = (format!("vpn{number}"), format!("10.99.{number}.1"));
        let near = format!("10.99.{number}.2");
        for (host, protocol, own, other, remote) in
            [("server", server, &far, &near, None), ("client", client, &near, &far, Some(SERVER))]
        {
            let mut openvpn = command("openvpn")?;
            openvpn.args(["--dev", &device, "--dev-type", "tun", "--proto", protocol]);
            openvpn.args(["--port", "1194", "--ifconfig", own, other, "--cipher", "AES-256-CBC"]);
            openvpn.args(["--keepalive", "1", "60"]);
            openvpn.arg("--secret").arg(&key);
            if let Some(remote) = remote {
                openvpn.args(["--remote", remote, "--connect-retry", "1", "--nobind"]);
            }
            network.start(host, openvpn)?;
        }
        let arrives = || {
            let trips = ping(network.host("client")?, &far, 3, 1_000, Duration::from_millis(5));
            Ok(trips.is_ok_and(|trips| trips.answered == 3))
        };
        interrupt::wait_until(PATIENCE, &format!("pings through OpenVPN over {client}"), arrives)?;
    }
    Ok(())
}

/// A thousand addresses on one host, two flows each. The server notes the outside endpoints; of every twentieth, the log says whose it was.
fn thousand_subscribers() -> Result<()> {
    let network = network()?;
    let log = network.folder().join("events.jsonl");
    let section = format!("[log]\n[log.file]\npath = {log:?}\n");
    run_sixway(&network, &configuration("endpoint-independent", &section))?;
    let subscriber = |number: u32| Ipv4Addr::from_bits(u32::from_be_bytes([192, 168, 16, 0]) + number);
    // One route makes all of them addresses of the client.
    network.host("client")?.ip("route add local 192.168.16.0/20 dev lo")?;
    network.route("gateway", "192.168.16.0/20 via 192.168.1.2")?;
    let server = network
        .host("server")?
        .enter(|| UdpSocket::bind(format!("{SERVER}:9")))?
        .asking(|| "opening the server's socket".to_owned())?;
    let said = |what: &'static str| move || what.to_owned();
    server.set_read_timeout(Some(Duration::from_secs(5))).asking(said("setting a timeout"))?;
    let mut seen: BTreeMap<SocketAddr, (Ipv4Addr, u16)> = BTreeMap::new();
    for number in 0..SUBSCRIBERS {
        for port in [5_000, 5_001] {
            let address = subscriber(number);
            network
                .host("client")?
                .enter(|| {
                    let socket = UdpSocket::bind((address, port))?;
                    socket.send_to(&number.to_be_bytes(), (SERVER, 9))
                })?
                .asking(said("sending a datagram"))?;
            let mut octets = [0; 4];
            let (_, from) = server.recv_from(&mut octets).asking(said("receiving a datagram"))?;
            assert_eq!(u32::from_be_bytes(octets), number, "whose datagram it is");
            assert_eq!(seen.insert(from, (address, port)), None, "{from} belongs to two flows");
        }
    }
    let count = || std::fs::read_to_string(&log).unwrap_or_default().matches("binding_created").count();
    interrupt::wait_until(PATIENCE, "events of all bindings", || Ok(count() == seen.len()))?;
    // A question is for a whole second, and the last binding was made in this one.
    let (made, mut at) = (now(), now());
    interrupt::wait_until(PATIENCE, "the next second", || {
        at = now();
        Ok(at != made)
    })?;
    for (outside, (address, port)) in seen.iter().step_by(20) {
        let said = who(&log, &outside.to_string(), &at)?;
        assert!(said.contains(&format!("\"{address}:{port}\"")), "{outside} was {address}:{port}: {said}");
    }
    Ok(())
}

/// This second, as a question has it.
fn now() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    date.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default()
}

fn who(log: &Path, outside: &str, at: &str) -> Result<String> {
    let mut who = Command::new(sixway()?);
    who.args(["nat", "who", outside, "--protocol", "udp", "--at", at, "--json", "--log"]).arg(log);
    let output = who.output().asking(|| "running sixway nat who".to_owned())?;
    Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}
