//! A host with IPsec policies must ask them about each packet: nothing is forwarded by the fast path while there are any.

use crate::{IPSEC, Interop};
use sixway_lab::failure::Result;
use sixway_lab::fast_path::{Hook, carried, shown};
use sixway_lab::forwarder::SIIT;
use sixway_lab::gateway::run_on_fast_path;
use sixway_lab::interrupt;
use sixway_lab::probe::ping;
use sixway_lab::topology::{Network, client_gateway_server};
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "ping", IPSEC];

pub const TESTS: &[Interop] = &[
    Interop::new("ipsec_policies_keep_the_fast_path_away_tc", NEEDS, || policies(Hook::Tc)),
    Interop::new("ipsec_policies_keep_the_fast_path_away_xdp", NEEDS, || policies(Hook::Xdp)),
];

/// Pings that the fast path carries of this number.
fn carried_of_pings(network: &Network, pings: u32) -> Result<u64> {
    let before = carried(network)?;
    let trips =
        ping(network.host("client")?, "2001:db8:64::203.0.113.2", pings, 56, Duration::from_millis(20))?;
    assert_eq!(trips.answered, pings, "{}", shown(network)?);
    Ok(carried(network)? - before)
}

fn rests(network: &Network, resting: bool) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(5), "the fast path's hearing of it", || {
        let shown = shown(network)?;
        let places = shown["summary"]["attached"].as_str().unwrap_or_default();
        Ok(places.contains("IPsec") == resting && places.contains("in0"))
    })
}

fn policies(hook: Hook) -> Result<()> {
    let network = client_gateway_server()?;
    run_on_fast_path(&network, hook, SIIT)?;
    carried_of_pings(&network, 5)?;
    interrupt::pause(Duration::from_millis(1_200))?;
    assert!(carried_of_pings(&network, 20)? >= 30, "{}", shown(&network)?);
    let gateway = network.host("gateway")?;
    gateway.ip("xfrm policy add src 198.51.100.0/24 dst 203.0.113.0/24 dir fwd")?;
    rests(&network, true)?;
    assert_eq!(carried_of_pings(&network, 20)?, 0, "{}", shown(&network)?);
    gateway.ip("xfrm policy flush")?;
    rests(&network, false)?;
    assert!(carried_of_pings(&network, 20)? >= 30, "{}", shown(&network)?);
    Ok(())
}
