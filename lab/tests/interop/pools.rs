//! Pools on a real host: where their addresses lead when the gateway is not there, and how they are changed while it runs.

use crate::Interop;
use crate::nat44::{SERVER, SIXWAY, network};
use sixway_lab::failure::Result;
use sixway_lab::gateway::run_sixway;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "pools_lead_nowhere_after_a_crash_and_everything_is_as_before_after_an_end",
    &["sixway", "ping", "nft"],
    leads_nowhere,
)];

/// Counts what the gateway's host sends back to its router.
const WATCH: &str = "table ip watch {
  counter pool { }
  counter other { }
  chain out {
    type filter hook postrouting priority 0
    oifname out0 ip daddr { 192.0.2.0/29, 192.0.2.14 } counter name pool
    oifname out0 ip daddr 192.0.2.9 counter name other
  }
}
";

fn counted(network: &Network, counter: &str) -> Result<bool> {
    let mut list = command("nft")?;
    list.args(["list", "counter", "ip", "watch", counter]);
    let seen = network.host("gateway")?.run(list, Duration::from_secs(5))?.succeeded()?.stdout;
    Ok(!seen.contains("packets 0 "))
}

/// The routes and rules of the gateway's host.
fn routing(network: &Network) -> Result<Vec<String>> {
    let gateway = network.host("gateway")?;
    ["-4 route show table all", "-6 route show table all", "-4 rule show"]
        .into_iter()
        .map(|words| gateway.ip(words))
        .collect()
}

/// The router has a route to the pool, and the gateway's host a default route to the router: without the gateway, packets would circle.
fn leads_nowhere() -> Result<()> {
    let network = network()?;
    let pings = |network: &Network| {
        let trips = ping(network.host("client")?, SERVER, 3, 56, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 3);
        Ok::<_, sixway_lab::failure::Failure>(())
    };
    let before = routing(&network)?;
    let rules = network.file("watch.nft", WATCH)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    let gateway = run_sixway(&network, SIXWAY)?;
    let routes = routing(&network)?.swap_remove(0);
    for prefix in ["192.0.2.0/29", "192.0.2.14"] {
        assert!(routes.contains(&format!("blackhole {prefix} ")), "{routes}");
    }
    pings(&network)?;
    network.with_process(gateway, |process| process.kill())?;
    let links = network.host("gateway")?.ip("link show")?;
    assert!(!links.contains("sixway0"), "{links}");
    for address in ["192.0.2.3", "192.0.2.14", "192.0.2.9"] {
        assert_eq!(ping(network.host("server")?, address, 2, 56, Duration::from_millis(5))?.answered, 0);
    }
    assert!(counted(&network, "other")?, "packets to other addresses do circle here");
    assert!(!counted(&network, "pool")?, "packets to the pool were sent back");
    let next = run_sixway(&network, SIXWAY)?;
    pings(&network)?;
    network.with_process(next, |process| process.stop())?;
    assert_eq!(routing(&network)?, before);
    Ok(())
}
