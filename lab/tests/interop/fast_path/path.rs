//! The way behind the gateway changes under 1,000 flows: a link that goes and comes, a neighbour with another card, another route, a
//! smaller MTU.

use super::load::{Gateway, PER_SECOND, all_is_well, pause};
use crate::Interop;
use crate::tunnels::capture::Capture;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::{Hook, wait_until_moved};
use sixway_lab::forwarder::NAT64;
use sixway_lab::interrupt;
use sixway_lab::probe::numbered::StreamReport;
use sixway_lab::process::Process;
use sixway_lab::topology::{Network, client_gateway_server};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("flows_go_on_after_a_link_was_down_tc", &["sixway"], || link_down(Hook::Tc)),
    Interop::new("flows_go_on_after_a_link_was_down_xdp", &["sixway"], || link_down(Hook::Xdp)),
    Interop::new("flows_find_a_neighbour_with_another_card_tc", &["sixway"], || other_card(Hook::Tc)),
    Interop::new("flows_find_a_neighbour_with_another_card_xdp", &["sixway"], || other_card(Hook::Xdp)),
    Interop::new("flows_take_another_route_within_100_ms_tc", &["sixway"], || other_route(Hook::Tc)),
    Interop::new("flows_take_another_route_within_100_ms_xdp", &["sixway"], || other_route(Hook::Xdp)),
    Interop::new("flows_are_told_of_a_smaller_mtu_tc", &["sixway", "tcpdump"], || smaller_mtu(Hook::Tc)),
    Interop::new("flows_are_told_of_a_smaller_mtu_xdp", &["sixway", "tcpdump"], || smaller_mtu(Hook::Xdp)),
];

/// What was sent from `from` on arrived; what was sent before `to` did so too.
fn lost_only_between(account: &StreamReport, to: Duration, from: Duration) -> Result<()> {
    let end = Duration::MAX;
    let lost = |from, to| account.up.lost_between(from, to) + account.down.lost_between(from, to);
    match (lost(Duration::ZERO, to), lost(from, end), account.reordered()) {
        (0, 0, [0, 0]) => Ok(()),
        (before, after, reordered) => Err(Failure::Unexpected(format!(
            "{before} packets were lost before {to:?}, {after} after {from:?}, {reordered:?} came out of order; the outage: {:?}; the first that were lost: {:?}",
            account.up.outage(),
            account.up.missing().iter().chain(&account.down.missing()).map(|packet| packet.sent).min(),
        ))),
    }
}

/// The kernel may have to ask for its neighbour twice, one second apart.
const LINK_IS_BACK: Duration = Duration::from_millis(1_500);

/// 300 ms without the link to the server. The programs stay as they are: others would know of the link a second or two later.
fn link_down(hook: Hook) -> Result<()> {
    let gateway = Gateway::start(hook)?;
    let exchanged = || {
        let log = |process: &mut Process| process.stdout() + &process.stderr();
        Ok::<_, Failure>(
            gateway.network.with_process(gateway.process, log)?.matches("fast path attached:").count(),
        )
    };
    let stream = gateway.load()?;
    let down = stream.now();
    gateway.ip("link set out0 down")?;
    pause(300)?;
    gateway.ip("link set out0 up")?;
    let up = stream.now();
    pause(LINK_IS_BACK.as_millis() as u64 + 500)?;
    let before = gateway.said();
    let by_engine = gateway.engine_sends(|| pause(200))?;
    let said = gateway.said();
    lost_only_between(&stream.end()?, down, up + LINK_IS_BACK)?;
    assert!(by_engine < 20, "{by_engine} packets take the long way: {before} {said}");
    assert_eq!(exchanged()?, 0, "programs were exchanged");
    Ok(())
}

/// The server's device gets another address without announcing it. The gateway asks its neighbours every two seconds, the kernel asks the old
/// address three times, once a second, and then everybody.
const NEIGHBOUR_IS_FOUND: Duration = Duration::from_secs(8);

fn other_card(hook: Hook) -> Result<()> {
    let gateway = Gateway::start(hook)?;
    let server = gateway.network.host("server")?;
    let stream = gateway.load()?;
    let changed = stream.now();
    server.ip("link set up0 address 02:00:5e:10:00:99")?;
    // Only the gateway's own questions can find it: the server has nothing to ask.
    interrupt::wait_until(NEIGHBOUR_IS_FOUND, "the neighbour's being found", || {
        let known = gateway.network.host("gateway")?.ip("neighbour show 203.0.113.2")?;
        Ok(known.contains("02:00:5e:10:00:99"))
    })?;
    let found = stream.now();
    pause(1_000)?;
    let account = stream.end()?;
    println!("a silent change of the neighbour: {:?}", account.up.outage());
    // The kernel knows it from then on; a new generation is at most 20 ms away.
    lost_only_between(&account, changed, found + Duration::from_millis(500))
}

/// A second link to the server.
fn two_links() -> Result<Network> {
    let network = client_gateway_server()?;
    network.link(("gateway", "out1"), ("server", "up1"))?;
    network.address("gateway", "out1", "198.51.100.1/24")?;
    network.address("server", "up1", "198.51.100.2/24")?;
    Ok(network)
}

fn other_route(hook: Hook) -> Result<()> {
    let gateway = Gateway::start_in(two_links()?, hook, NAT64)?;
    let server = gateway.network.host("server")?;
    // The neighbour there is known, as it is where packets pass already.
    sixway_lab::probe::ping(gateway.network.host("gateway")?, "198.51.100.2", 1, 56, Duration::ZERO)?;
    let stream = gateway.load()?;
    let (from, to) = ("203.0.113.2/32 via 198.51.100.2", Duration::from_millis(100));
    gateway.ip(&format!("route add {from}"))?;
    let changed = Instant::now();
    pause(100)?;
    let (old, new) = (server.received_packets("up0")?, server.received_packets("up1")?);
    let late = changed.elapsed();
    pause(300)?;
    let (old_after, new_after) = (server.received_packets("up0")?, server.received_packets("up1")?);
    all_is_well(&stream.end()?, PER_SECOND as usize / 2)?;
    assert!(late < to + Duration::from_millis(50), "the machine was too busy to measure: {late:?}");
    assert!(new > 0 && new_after - new > u64::from(PER_SECOND) / 5, "packets by the new route");
    assert!(old_after - old < 20, "{} packets by the old route after {late:?}", old_after - old);
    Ok(())
}

/// 1,428 octets of IPv4 do not pass the link any more: the client is notified, and cuts.
fn smaller_mtu(hook: Hook) -> Result<()> {
    let gateway = Gateway::start(hook)?;
    let network = &gateway.network;
    let client = network.host("client")?;
    let stream = gateway.stream("2001:db8:1::2", 53, 100, 1_000, 1_400)?;
    wait_until_moved(network)?;
    assert_eq!(client.counter6("Icmp6InPktTooBigs")?, 0);
    let changing = stream.now();
    gateway.ip("link set out0 mtu 1300")?;
    let changed = stream.now();
    let capture = Capture::start(network, "server", "up0", "ip and greater 1315")?;
    interrupt::wait_until(Duration::from_secs(3), "the client's being told", || {
        Ok(client.counter6("Icmp6InPktTooBigs")? > 0)
    })?;
    pause(1_000)?;
    let large = capture.end()?;
    let account = stream.end()?;
    let large =
        large.lines().filter(|line| line.contains("192.0.2.") && line.contains(" > 203.0.113.2")).count();
    assert_eq!(large, 0, "packets over 1,300 octets");
    assert!(account.up.lost() < 500 && account.up.lost() > 0, "{} packets were lost", account.up.lost());
    // The server's answers are within what its own link carries; they pass the other way.
    lost_only_between(&account, changing, changed + Duration::from_millis(500))
}
