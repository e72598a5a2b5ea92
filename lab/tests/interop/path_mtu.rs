//! Path MTU discovery and hop limits through the gateway, as the hosts' own stacks and tools see them.

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::{Forwarder, Running};
use sixway_lab::namespace::command;
use sixway_lab::probe::{Direction, serve_bulk};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("tcp_passes_a_narrow_ipv4_link_behind_nat64", &["sixway", "iperf3"], || {
        narrow_link(Forwarder::Nat64)
    }),
    Interop::new("tcp_passes_a_narrow_ipv4_link_behind_siit", &["sixway", "iperf3"], || {
        narrow_link(Forwarder::Siit)
    }),
    Interop::new("tcp_passes_a_narrow_ipv6_link_before_nat64", &["sixway", "iperf3"], narrow_ipv6_link),
    Interop::new(
        "tracepath_finds_the_path_mtu_and_the_gateway",
        &["sixway", "tracepath"],
        tracepath_finds_the_gateway,
    ),
];

/// The link behind the gateway carries 1,280 octets of IPv4: its router's "fragmentation needed" reaches the client as "packet too big",
/// 20 octets larger.
fn narrow_link(forwarder: Forwarder) -> Result<()> {
    let running = forwarder.start()?;
    running.network.host("gateway")?.ip("link set out0 mtu 1280")?;
    running.network.host("server")?.ip("link set up0 mtu 1280")?;
    transfers_both_ways(&running)
}

fn narrow_ipv6_link() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    running.network.host("gateway")?.ip("link set in0 mtu 1280")?;
    running.network.host("client")?.ip("link set up0 mtu 1280")?;
    transfers_both_ways(&running)
}

fn transfers_both_ways(running: &Running) -> Result<()> {
    let server = serve_bulk(&running.network, "server")?;
    for direction in [Direction::Up, Direction::Down] {
        let bulk = server.transfer("client", running.target, direction, Duration::from_secs(1))?;
        assert!(bulk.octets > 1_000_000, "{direction:?}: {} octets", bulk.octets);
    }
    Ok(())
}

fn tracepath_finds_the_gateway() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    running.network.host("gateway")?.ip("link set out0 mtu 1380")?;
    running.network.host("server")?.ip("link set up0 mtu 1380")?;
    let mut tracepath = command("tracepath")?;
    tracepath.args(["-6", "-n", "-m", "8", running.target]);
    let said = running.network.host("client")?.run(tracepath, Duration::from_secs(30))?.succeeded()?.stdout;
    let expect = |what: &str| match said.contains(what) {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("tracepath did not show {what}:\n{said}"))),
    };
    expect("2001:db8::fe")?;
    expect("pmtu 1400")?;
    expect("reached")
}
