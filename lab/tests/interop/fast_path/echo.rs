//! Echo sessions of stateful translators move to the fast path, as ping makes them.

use super::next_to_nat44::carried;
use crate::Interop;
use crate::datagrams::{arrives, socket};
use crate::{nat44, nat64, one_address};
use sixway_lab::failure::Result;
use sixway_lab::fast_path::{Hook, shown};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_on_fast_path;
use sixway_lab::probe::ping;
use sixway_lab::topology::{Network, client_gateway_server};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("pings_through_nat44_are_carried_tc", &["sixway", "ping"], || through_nat44(Hook::Tc)),
    Interop::new("pings_through_nat44_are_carried_xdp", &["sixway", "ping"], || through_nat44(Hook::Xdp)),
    Interop::new("pings_through_nat64_are_carried_tc", &["sixway", "ping"], || through_nat64(Hook::Tc)),
    Interop::new("pings_through_nat64_are_carried_xdp", &["sixway", "ping"], || through_nat64(Hook::Xdp)),
    Interop::new("pings_of_a_host_and_of_its_nat44_share_an_address_tc", &["sixway", "ping"], || {
        on_a_shared_address(Hook::Tc)
    }),
    Interop::new("pings_of_a_host_and_of_its_nat44_share_an_address_xdp", &["sixway", "ping"], || {
        on_a_shared_address(Hook::Xdp)
    }),
    Interop::new(
        "pings_and_datagrams_of_both_translators_of_an_address_are_carried_tc",
        &["sixway", "ping"],
        || through_both(Hook::Tc),
    ),
    Interop::new(
        "pings_and_datagrams_of_both_translators_of_an_address_are_carried_xdp",
        &["sixway", "ping"],
        || through_both(Hook::Xdp),
    ),
];

const PINGS: u32 = 400;
/// The server, as hosts behind the NAT64 of `one_address` see it.
const SERVER6: &str = "64:ff9b::203.0.113.2";

/// All come back, and nearly all by the fast path: requests and answers.
fn are_carried(network: &Network, (from, to): (&str, &str), mechanism: &str) -> Result<()> {
    let before = carried(network, mechanism)?;
    assert_eq!(ping(network.host(from)?, to, PINGS, 56, Duration::from_millis(5))?.answered, PINGS);
    let by_fast_path = carried(network, mechanism)? - before;
    assert!(by_fast_path >= u64::from(PINGS), "{by_fast_path} of {} packets: {}", 2 * PINGS, shown(network)?);
    Ok(())
}

fn through_nat44(hook: Hook) -> Result<()> {
    let network = nat44::network()?;
    run_on_fast_path(&network, hook, nat44::SIXWAY)?;
    are_carried(&network, ("client", nat44::SERVER), "nat44")
}

fn through_nat64(hook: Hook) -> Result<()> {
    let network = client_gateway_server()?;
    run_on_fast_path(&network, hook, NAT64)?;
    are_carried(&network, ("client", nat64::SERVER), "nat64")
}

/// A NAT44 and a NAT64 have ports of the gateway's own address. Echo replies to it are left to the engine: they may be the host's.
fn through_both(hook: Hook) -> Result<()> {
    let network = one_address::network()?;
    run_on_fast_path(&network, hook, one_address::SIXWAY)?;
    let server = socket(network.host("server")?, "203.0.113.2:53")?;
    for (host, own, to, beyond, mechanism) in [
        ("four", "192.168.1.2:4000", nat44::SERVER, "203.0.113.2:53", "nat44"),
        ("six", "[2001:db8:1::2]:4000", SERVER6, "[64:ff9b::203.0.113.2]:53", "nat64"),
    ] {
        let before = carried(&network, mechanism)?;
        let trips = ping(network.host(host)?, to, PINGS, 56, Duration::from_millis(5))?;
        assert_eq!(trips.answered, PINGS, "from {host}");
        let requests = carried(&network, mechanism)? - before;
        assert!(requests >= u64::from(PINGS) * 9 / 10, "{requests} requests: {}", shown(&network)?);
        // Datagrams and their answers.
        let client = socket(network.host(host)?, own)?;
        let before = carried(&network, mechanism)?;
        for _ in 0..PINGS {
            let outside = arrives(&client, beyond, &server, b"question")?;
            arrives(&server, &outside.to_string(), &client, b"answer")?;
        }
        let both_ways = carried(&network, mechanism)? - before;
        assert!(both_ways >= u64::from(PINGS) * 18 / 10, "{both_ways} datagrams: {}", shown(&network)?);
    }
    Ok(())
}

/// Answers come to the address of both: the kernel gets its own, and the engine those of the hosts inside.
fn on_a_shared_address(hook: Hook) -> Result<()> {
    let network = nat44::network()?;
    run_on_fast_path(&network, hook, nat44::SHARED)?;
    let pings = |host: &'static str| {
        let host = network.host(host)?;
        Ok(ping(host, nat44::SERVER, PINGS, 56, Duration::from_millis(5))?.answered)
    };
    let (inside, own) = std::thread::scope(|scope| {
        let inside = scope.spawn(|| pings("client"));
        let own = pings("gateway");
        (inside.join().unwrap_or(Ok(0)), own)
    });
    assert_eq!((inside?, own?), (PINGS, PINGS));
    Ok(())
}
