//! The host's own firewall in front of what the engine carries: connections begin, go on by the fast path and come to their end, though
//! connection tracking sees but a part of them.

use super::conversation::{Conversation, End, nothing_hangs};
use super::load::{Gateway, pause};
use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::Hook;
use sixway_lab::forwarder::NAT64;
use sixway_lab::namespace::command;
use sixway_lab::topology::{Network, client_gateway_server};
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "nft"];

pub const TESTS: &[Interop] = &[
    Interop::new("connections_live_and_end_beside_a_firewall_that_drops_invalid_tc", NEEDS, || {
        beside(Hook::Tc, DROPS_INVALID)
    }),
    Interop::new("connections_live_and_end_beside_a_firewall_that_drops_invalid_xdp", NEEDS, || {
        beside(Hook::Xdp, DROPS_INVALID)
    }),
    Interop::new("connections_live_and_end_beside_a_firewall_that_drops_all_else_tc", NEEDS, || {
        beside(Hook::Tc, DROPS_ALL_ELSE)
    }),
    Interop::new("connections_live_and_end_beside_a_firewall_that_drops_all_else_xdp", NEEDS, || {
        beside(Hook::Xdp, DROPS_ALL_ELSE)
    }),
    Interop::new("a_firewall_that_would_drop_what_is_not_tracked_is_named_at_the_start", NEEDS, is_named),
];

/// Tracked by priority, so that what is untracked does not become invalid.
const DROPS_INVALID: &str = "table inet firewall {
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state invalid counter drop
  }
}
";

/// With the rule that the operations page tells.
const DROPS_ALL_ELSE: &str = "table inet firewall {
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state invalid counter drop
    ct state established,related accept
    iifname \"sixway0\" accept
    oifname \"sixway0\" accept
  }
}
";

fn with_firewall(rules: &str) -> Result<Network> {
    let network = client_gateway_server()?;
    let file = network.file("firewall.nft", rules)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(file);
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    Ok(network)
}

fn beside(hook: Hook, rules: &str) -> Result<()> {
    let gateway = Gateway::start_in(with_firewall(rules)?, hook, NAT64)?;
    let (client, server) = (gateway.network.host("client")?, gateway.network.host("server")?);
    for (port, first) in (80..).zip([End::Client, End::Server, End::Client, End::Server]) {
        let told = |failure| Failure::Unexpected(format!("{first:?} ends first: {failure}"));
        let conversation =
            Conversation::open(client, "64:ff9b::203.0.113.2", server, "203.0.113.2", port).map_err(told)?;
        conversation.chat(20).map_err(told)?;
        let by_engine = gateway.engine_sends(|| conversation.chat(50).map_err(told))?;
        assert!(by_engine < 50, "{by_engine} packets of 100 and their acknowledgements took the long way");
        conversation.exchange(300_000).map_err(told)?;
        conversation.end(first).map_err(told)?;
    }
    pause(300)?;
    nothing_hangs(client)?;
    nothing_hangs(server)?;
    let mut nft = command("nft")?;
    nft.args(["list", "table", "inet", "firewall"]);
    let said = gateway.network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?.stdout;
    assert!(said.contains("counter packets 0 "), "packets were invalid: {said}");
    Ok(())
}

fn is_named() -> Result<()> {
    let rules: Vec<_> = DROPS_ALL_ELSE.lines().filter(|line| !line.contains("sixway0")).collect();
    let gateway = Gateway::start_in(with_firewall(&rules.join("\n"))?, Hook::Tc, NAT64)?;
    // The rules are tried out after the start.
    for _ in 0..100 {
        let said =
            gateway.network.with_process(gateway.process, |process| process.stderr() + &process.stdout())?;
        let warning = said.lines().find(|line| line.contains("firewall"));
        if warning.is_some_and(|line| line.contains("sixway0") && line.contains("nft insert rule")) {
            return Ok(());
        }
        pause(100)?;
    }
    Err(Failure::Unexpected("no warning of the firewall's rules".into()))
}
