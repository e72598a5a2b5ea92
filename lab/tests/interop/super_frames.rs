//! GSO packets of the kernel's own making, large segments with DF clear among them: all of it arrives, and no checksum is wrong.

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong};
use crate::datagrams::{pattern, socket};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::{Forwarder, Running};
use sixway_lab::load::{Pmtu, path_mtu_discovery, segment_size};
use sixway_lab::namespace::command;
use sixway_lab::probe::{Direction, serve_bulk};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("udp_super_frames_arrive_whole_through_nat64", &["sixway", "ethtool"], || {
        datagrams_arrive(Forwarder::Nat64)
    }),
    Interop::new("udp_super_frames_arrive_whole_through_siit", &["sixway", "ethtool"], || {
        datagrams_arrive(Forwarder::Siit)
    }),
    Interop::new("tcp_without_df_arrives_through_nat64", &["sixway", "ethtool", "iperf3"], || {
        tcp_without_df_arrives(Forwarder::Nat64)
    }),
    Interop::new("tcp_without_df_arrives_through_siit", &["sixway", "ethtool", "iperf3"], || {
        tcp_without_df_arrives(Forwarder::Siit)
    }),
];

/// A network whose gateway finishes checksums before packets leave and whose hosts check them: between two ends of a veth
/// both are left out otherwise.
fn start(forwarder: Forwarder) -> Result<Running> {
    let running = forwarder.start()?;
    for (host, device, what) in [
        ("gateway", "in0", "tx"),
        ("gateway", "out0", "tx"),
        ("client", "up0", "rx"),
        ("server", "up0", "rx"),
    ] {
        let mut ethtool = command("ethtool")?;
        ethtool.args(["-K", device, what, "off"]);
        running.network.host(host)?.run(ethtool, Duration::from_secs(5))?.succeeded()?;
    }
    Ok(running)
}

/// Sends `octets` by one call, as datagrams of `size` octets; each of them is received as it is. Where they came from.
fn arrive(from: &UdpSocket, to: &str, at: &UdpSocket, octets: &[u8], size: u16) -> Result<SocketAddr> {
    segment_size(from, size)?;
    from.send_to(octets, to).asking(|| format!("sending {} octets to {to}", octets.len()))?;
    let mut received = vec![0; 65_535];
    let mut source = None;
    for (number, expected) in octets.chunks(size.into()).enumerate() {
        let (length, seen) =
            at.recv_from(&mut received).asking(|| format!("datagram {number} of {size} octets to {to}"))?;
        if received[..length] != *expected {
            return Err(Failure::Unexpected(format!("datagram {number} to {to} is another one")));
        }
        source = Some(seen);
    }
    source.ok_or_else(|| Failure::Unexpected("nothing was sent".to_owned()))
}

fn datagrams_arrive(forwarder: Forwarder) -> Result<()> {
    let running = start(forwarder)?;
    let network = &running.network;
    let client = socket(network.host("client")?, "[::]:4000")?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    for pmtu in [Pmtu::Set, Pmtu::Clear] {
        path_mtu_discovery(&server, pmtu)?;
        for (length, size) in
            [(20_000, 1_000), (12_345, 1_232), (30_001, 1_400), (30_000, 1_452), (700, 700), (99, 1)]
        {
            let octets = pattern(length);
            let seen = arrive(&client, &format!("[{}]:53", running.target), &server, &octets, size)?;
            arrive(&server, &seen.to_string(), &client, &octets, size)?;
        }
    }
    assert!(
        counter(&running.network, "segments.made")? > 0,
        "GSO packets with DF clear are cut where their segments are too large"
    );
    no_checksum_is_wrong(&running.network)
}

/// The server's TCP clears DF, so segments over 1,280 octets become fragments.
fn tcp_without_df_arrives(forwarder: Forwarder) -> Result<()> {
    let running = start(forwarder)?;
    let network = &running.network;
    network.host("server")?.sysctl("ipv4/ip_no_pmtu_disc", "1")?;
    let server = serve_bulk(network, "server")?;
    for direction in [Direction::Up, Direction::Down] {
        let bulk = server.transfer("client", running.target, direction, Duration::from_secs(1))?;
        assert!(bulk.octets > 1_000_000, "{direction:?}: {} octets", bulk.octets);
    }
    assert!(counter(&running.network, "segments.made")? > 100);
    assert!(counter(&running.network, "fragments.made")? > 100);
    no_checksum_is_wrong(&running.network)
}
