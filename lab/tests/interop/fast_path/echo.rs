//! Echo sessions of stateful translators move to the fast path, as ping makes them.

use super::next_to_nat44::carried;
use crate::Interop;
use crate::{nat44, nat64};
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
];

const PINGS: u32 = 400;

/// All come back, and nearly all by the fast path: requests and answers.
fn are_carried(network: &Network, to: &str, mechanism: &str) -> Result<()> {
    let before = carried(network, mechanism)?;
    assert_eq!(ping(network.host("client")?, to, PINGS, 56, Duration::from_millis(5))?.answered, PINGS);
    let by_fast_path = carried(network, mechanism)? - before;
    assert!(by_fast_path >= u64::from(PINGS), "{by_fast_path} of {} packets: {}", 2 * PINGS, shown(network)?);
    Ok(())
}

fn through_nat44(hook: Hook) -> Result<()> {
    let network = nat44::network()?;
    run_on_fast_path(&network, hook, nat44::SIXWAY)?;
    are_carried(&network, nat44::SERVER, "nat44")
}

fn through_nat64(hook: Hook) -> Result<()> {
    let network = client_gateway_server()?;
    run_on_fast_path(&network, hook, NAT64)?;
    are_carried(&network, nat64::SERVER, "nat64")
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
