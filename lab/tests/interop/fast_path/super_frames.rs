//! GSO packets at tc ingress: they leave whole, with segments that the next link carries, and with right checksums when they are cut.

use super::conversation::Conversation;
use super::load::{NAT44, Translator, endpoint};
use crate::Interop;
use crate::counters::no_checksum_is_wrong;
use crate::datagrams::{pattern, socket};
use crate::tunnels::capture::Capture;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::fast_path::{Hook, carried, offloads, sent_by_engine, shown};
use sixway_lab::forwarder::{NAT64, SIIT};
use sixway_lab::gateway::run_sixway_on;
use sixway_lab::interrupt;
use sixway_lab::load::{Pmtu, path_mtu_discovery, segment_size};
use sixway_lab::probe::ping;
use sixway_lab::topology::{Network, client_gateway_server};
use std::net::UdpSocket;
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "ethtool", "tcpdump", "ping"];

pub const TESTS: &[Interop] = &[
    Interop::new("super_frames_stay_whole_and_right_at_tc_nat64", NEEDS, nat64),
    Interop::new("super_frames_stay_whole_and_right_at_tc_nat44", NEEDS, nat44),
    Interop::new("super_frames_stay_whole_and_right_at_tc_siit", NEEDS, siit),
    Interop::new("super_frames_stay_whole_and_right_at_tc_by_a_device_above_another", NEEDS, above_another),
    Interop::new("super_frames_stay_whole_and_right_at_tc_6to4", NEEDS, six_to_four),
    Interop::new("super_frames_stay_whole_and_right_at_tc_configured_tunnel", NEEDS, configured),
    Interop::new("super_frames_out_of_a_tunnel_do_not_come_to_what_cuts_them_itself", NEEDS, cut_by_a_card),
];

/// Client and server, and what is between them.
struct Ends {
    network: Network,
    /// The server as the client writes it.
    target: &'static str,
    /// Where the server listens.
    listens: &'static str,
    /// The client's socket for datagrams.
    client: &'static str,
    /// Hosts with a gateway.
    gateways: &'static [&'static str],
    /// Octets of payload that a datagram carries to the other end, at most.
    segment: u16,
}

fn nat64() -> Result<()> {
    let network = client_gateway_server()?;
    run_sixway_on(&network, "gateway", &format!("{NAT64}{}", Hook::Tc.section()))?;
    let (target, listens) = ("64:ff9b::203.0.113.2", "203.0.113.2");
    let gateways: &[_] = &["gateway"];
    Ends { network, target, listens, client: "[::]:4000", gateways, segment: 1_452 }.everything()
}

/// What leaves is given to a device of its own above the wire's, which has the kernel's route, as a VLAN's would have.
fn above_another() -> Result<()> {
    let network = client_gateway_server()?;
    let gateway = network.host("gateway")?;
    gateway.ip("address del 203.0.113.1/24 dev out0")?;
    gateway.ip("link add link out0 name above0 type macvlan mode bridge")?;
    gateway.ip("link set above0 up")?;
    network.address("gateway", "above0", "203.0.113.1/24")?;
    run_sixway_on(&network, "gateway", &format!("{NAT64}{}", Hook::Tc.section()))?;
    let (target, listens) = ("64:ff9b::203.0.113.2", "203.0.113.2");
    let gateways: &[_] = &["gateway"];
    Ends { network, target, listens, client: "[::]:4000", gateways, segment: 1_452 }.everything()
}

fn nat44() -> Result<()> {
    let network = Translator::Nat44.network()?;
    run_sixway_on(&network, "gateway", &format!("{NAT44}{}", Hook::Tc.section()))?;
    let (target, listens) = ("203.0.113.2", "203.0.113.2");
    let gateways: &[_] = &["gateway"];
    Ends { network, target, listens, client: "0.0.0.0:4000", gateways, segment: 1_472 }.everything()
}

fn siit() -> Result<()> {
    let network = client_gateway_server()?;
    run_sixway_on(&network, "gateway", &format!("{SIIT}{}", Hook::Tc.section()))?;
    let (target, listens) = ("2001:db8:64::203.0.113.2", "203.0.113.2");
    let gateways: &[_] = &["gateway"];
    Ends { network, target, listens, client: "[::]:4000", gateways, segment: 1_452 }.everything()
}

const SIX_TO_FOUR: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "ROLE"
address = "ADDRESS"
mtu = 1480

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const CONFIGURED: &str = r#"[tun]
name = "sixway0"

[[tunnel]]
local = "LOCAL"
remote = "REMOTE"
prefixes = ["PREFIX"]
mtu = 1480

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

pub const SERVER: &str = "2001:db8:2::2";

/// client ── near (Sixway) ── IPv4 ── gateway (Sixway) ── server; the client is in this subnet.
pub fn two_gateways(site: &str) -> Result<Network> {
    let network = Network::new(&["client", "near", "gateway", "server"])?;
    network.link(("client", "up0"), ("near", "in0"))?;
    network.link(("near", "out0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", &format!("{site}::2/64"))?;
    network.address("near", "in0", &format!("{site}::1/64"))?;
    network.address("near", "out0", "192.0.2.8/24")?;
    network.address("gateway", "in0", "192.0.2.1/24")?;
    network.address("gateway", "out0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("client", &format!("default via {site}::1"))?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("near")?;
    network.forwards("gateway")?;
    Ok(network)
}

/// A configuration of 6to4 with this role at an address.
pub fn six_to_four_of(role: &str, address: &str) -> String {
    SIX_TO_FOUR.replace("ROLE", role).replace("ADDRESS", address)
}

fn six_to_four() -> Result<()> {
    let network = two_gateways("2002:c000:208:1")?;
    let section = Hook::Tc.section();
    let near = six_to_four_of("router", "192.0.2.8");
    let near = near.replace("mtu =", "relay = \"192.0.2.1\"\nmtu =");
    let relay = six_to_four_of("relay", "192.0.2.1");
    run_sixway_on(&network, "near", &format!("{near}{section}"))?;
    run_sixway_on(&network, "gateway", &format!("{relay}{section}"))?;
    between_two_gateways(network)
}

fn configured() -> Result<()> {
    let network = two_gateways("2001:db8:8:1")?;
    ends_of_a_tunnel(&network)?;
    between_two_gateways(network)
}

/// A card that cuts what is in a tunnel would look for an outer header that is gone: as far as its features say, this device is one.
fn cut_by_a_card() -> Result<()> {
    let network = two_gateways("2001:db8:8:1")?;
    let gateway = network.host("gateway")?;
    gateway.ip("address del 2001:db8:2::1/64 dev out0")?;
    gateway.ip("link add link out0 name above0 type macvlan mode bridge")?;
    gateway.ip("link set above0 up")?;
    network.address("gateway", "above0", "2001:db8:2::1/64")?;
    ends_of_a_tunnel(&network)?;
    answers_through_tunnel(&network)?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let conversation = Conversation::open(client, SERVER, server, SERVER, 9_000)?;
    conversation.chat(10)?;
    interrupt::pause(Duration::from_millis(1_200))?;
    conversation.chat(2)?;
    let (engine, fast) = (sent_by_engine(&network)?, carried(&network)?);
    conversation.exchange(4_000_000)?;
    // Acknowledgements, and what goes in, are forwarded all the same.
    let (engine, fast) = (sent_by_engine(&network)? - engine, carried(&network)? - fast);
    assert!(engine > 50 && fast > 50, "engine {engine}, fast path {fast}: {}", shown(&network)?);
    no_checksum_is_wrong(&network)
}

fn ends_of_a_tunnel(network: &Network) -> Result<()> {
    for (host, local, remote, prefix) in [
        ("near", "192.0.2.8", "192.0.2.1", "2001:db8:2::/48"),
        ("gateway", "192.0.2.1", "192.0.2.8", "2001:db8:8::/48"),
    ] {
        let words = CONFIGURED.replace("LOCAL", local).replace("REMOTE", remote).replace("PREFIX", prefix);
        run_sixway_on(network, host, &format!("{words}{}", Hook::Tc.section()))?;
    }
    Ok(())
}

fn answers_through_tunnel(network: &Network) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(5), "an answer through the tunnel", || {
        Ok(ping(network.host("client")?, SERVER, 1, 56, Duration::ZERO)?.answered == 1)
    })?;
    // Both hosts learn the tunnel's MTU, as they would in the course of a transfer.
    ping(network.host("client")?, SERVER, 1, 1_440, Duration::ZERO).map(drop)
}

fn between_two_gateways(network: Network) -> Result<()> {
    answers_through_tunnel(&network)?;
    let (target, listens, gateways): (_, _, &[_]) = (SERVER, SERVER, &["near", "gateway"]);
    Ends { network, target, listens, client: "[::]:4000", gateways, segment: 1_432 }.everything()
}

impl Ends {
    fn everything(&self) -> Result<()> {
        self.stay_whole()?;
        self.are_cut_right()
    }

    /// The devices take GSO packets: what leaves is as large as what came.
    fn stay_whole(&self) -> Result<()> {
        let whole = Capture::start(&self.network, "server", "up0", "greater 8000")?;
        let back = Capture::start(&self.network, "client", "up0", "greater 8000")?;
        self.passes(9_000)?;
        for (capture, to) in [(whole, "server"), (back, "client")] {
            let seen = capture.end()?;
            let seen = |protocol: &str| seen.lines().filter(|line| line.contains(protocol)).count();
            assert!(seen("Flags [") > 20, "{} GSO packets of TCP arrived at the {to}", seen("Flags ["));
            assert!(seen("UDP") >= 4, "{} GSO packets of UDP arrived at the {to}", seen("UDP"));
        }
        Ok(())
    }

    /// The gateways' devices do not: the kernel cuts, and the hosts check every segment.
    fn are_cut_right(&self) -> Result<()> {
        for host in self.gateways {
            for device in ["in0", "out0"] {
                offloads(
                    self.network.host(host)?,
                    device,
                    &["tx", "off", "tso", "off", "tx-udp-segmentation", "off"],
                )?;
            }
        }
        for host in ["client", "server"] {
            offloads(self.network.host(host)?, "up0", &["rx", "off"])?;
        }
        let filter = "inbound and greater 1515";
        let large = [("client", "up0"), ("server", "up0")]
            .map(|(host, device)| Capture::start(&self.network, host, device, filter));
        self.passes(9_100)?;
        for capture in large {
            let seen = capture?.end()?;
            assert!(seen.trim().is_empty(), "larger than the link's MTU: {seen}");
        }
        no_checksum_is_wrong(&self.network)
    }

    /// TCP and UDP both ways; but for their beginnings the engine has nothing to do with them.
    fn passes(&self, port: u16) -> Result<()> {
        let (client, server) = (self.network.host("client")?, self.network.host("server")?);
        let conversation = Conversation::open(client, self.target, server, self.listens, port)?;
        // What found no neighbour at first is queried again a little later.
        conversation.chat(10)?;
        interrupt::pause(Duration::from_millis(1_200))?;
        conversation.chat(2)?;
        let before = sent_by_engine(&self.network)?;
        for _ in 0..4 {
            conversation.exchange(4_000_000)?;
        }
        let by_engine = sent_by_engine(&self.network)? - before;
        let said = shown(&self.network)?;
        assert!(by_engine < 200, "{by_engine} packets of 32 MB took the long way: {said}");
        self.datagrams_pass(port)
    }

    fn datagrams_pass(&self, port: u16) -> Result<()> {
        let client =
            socket(self.network.host("client")?, self.client.replace("4000", &port.to_string()).as_str())?;
        let listens = endpoint(self.listens, port)?.to_string();
        let server = socket(self.network.host("server")?, &listens)?;
        // Or the kernel clears DF, because the GSO packet is larger than the link's MTU.
        path_mtu_discovery(&server, Pmtu::Set)?;
        let target = endpoint(self.target, port)?;
        if target.is_ipv4() {
            path_mtu_discovery(&client, Pmtu::Set)?;
        }
        let target = target.to_string();
        for turn in 0..6 {
            let before = sent_by_engine(&self.network)?;
            for size in [1_000, self.segment, 1_232] {
                let octets = pattern(30_000);
                let seen = arrives(&client, &target, &server, &octets, size)?;
                arrives(&server, &seen, &client, &octets, size)?;
            }
            let by_engine = sent_by_engine(&self.network)? - before;
            let said = shown(&self.network)?;
            assert!(turn < 3 || by_engine == 0, "{by_engine} packets took the long way: {said}");
        }
        Ok(())
    }
}

/// Sends octets as one GSO packet; each of its datagrams is received as it is. Where they came from.
fn arrives(from: &UdpSocket, to: &str, at: &UdpSocket, octets: &[u8], size: u16) -> Result<String> {
    segment_size(from, size)?;
    from.send_to(octets, to).asking(|| format!("sending {} octets to {to}", octets.len()))?;
    let mut received = vec![0; 65_535];
    let mut source = String::new();
    for expected in octets.chunks(size.into()) {
        let (length, seen) =
            at.recv_from(&mut received).asking(|| format!("datagrams of {size} octets to {to}"))?;
        if received[..length] != *expected {
            return Err(Failure::Unexpected(format!("a datagram to {to} is another one")));
        }
        source = seen.to_string();
    }
    Ok(source)
}
