//! A NAT that forgets after a few seconds: how our client finds out, and stays reachable.

use crate::Interop;
use crate::teredo_client::{client_says, has_address};
use crate::teredo_peer::{Peer, SERVER as ASKED, bubble};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::run_sixway_on;
use sixway_lab::interrupt;
use sixway_lab::teredo::{CLIENT, SERVER, closes, network};
use sixway_lab::topology::Network;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] =
    &[Interop::new("our_teredo_client_learns_how_long_its_nat_keeps_a_mapping", PROGRAMS, learns)];

const PROGRAMS: &[&str] = &["sixway", "nft"];

/// Seconds after which the NAT forgets a mapping: the client tries 10 s, which fails, and 7.5 s, which does not.
const KEPT: &str = "9";

fn learns() -> Result<()> {
    let network = network()?;
    closes(&network, "nat")?;
    for timeout in ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"] {
        network.host("nat")?.sysctl(&format!("netfilter/{timeout}"), KEPT)?;
    }
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}learn_interval = true\n"))?;
    let address = has_address(&network, "client", |_| true)?;
    let address: Ipv6Addr = address.parse().map_err(|_| Failure::Unexpected(address.clone()))?;
    let start = Instant::now();
    let mut said = String::new();
    let waited = interrupt::wait_until(Duration::from_secs(50), "another interval", || {
        is_reachable(&network, address).map_err(|error| Failure::Unexpected(format!("{error}: {said}")))?;
        interrupt::pause(Duration::from_millis(700))?;
        said = client_says(&network)?;
        Ok(said.contains("refreshed each 7 s"))
    });
    waited.map_err(|error| Failure::Unexpected(format!("{error}: {said}")))?;
    assert!(start.elapsed() > Duration::from_secs(9), "learnt what it did not wait for");
    // With what it has learnt it stays so.
    let learnt = Instant::now();
    while learnt.elapsed() < Duration::from_secs(9) {
        is_reachable(&network, address)?;
        interrupt::pause(Duration::from_millis(700))?;
    }
    assert!(client_says(&network)?.contains(&address.to_string()));
    Ok(())
}

/// A relay that no client knows sends one bubble through the server, and is answered.
fn is_reachable(network: &Network, client: Ipv6Addr) -> Result<()> {
    let relay = Peer::on(network, "gateway", "198.51.100.34:0")?;
    let own = Ipv6Addr::new(0x2001, 0xdb8, 0x1, 0, 0, 0, 0, 0x77);
    relay.send(ASKED, &[&bubble(own, client)])?;
    let heard =
        relay.must_hear("the bubble of our client", |heard| heard.is_bubble() && heard.source() == client)?;
    assert_eq!(heard.from.ip().to_string(), "198.51.100.18");
    Ok(())
}
