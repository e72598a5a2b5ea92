//! Connectivity between all nodes, as in the paper: each sends an echo request to each other one, in each of the three environments.

use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::AtWork;
use crate::failure::Result;
use crate::namespace::command;
use crate::results::Unit;
use std::time::Duration;

/// A node, and its address in an environment.
type Node = (&'static str, &'static str);

/// All IPv4, all IPv6, and the sites behind the tunnel, whose ends are routers a and c.
const ENVIRONMENTS: [(&str, &[Node]); 3] = [
    (
        "ipv4",
        &[
            ("client", "10.1.0.2"),
            ("a", "192.0.2.1"),
            ("b", "198.51.100.2"),
            ("c", "198.51.100.1"),
            ("server", "10.2.0.2"),
        ],
    ),
    (
        "ipv6",
        &[
            ("client", "2001:db8:a::2"),
            ("a", "2001:db8:a::1"),
            ("b", "2001:db8:ab::2"),
            ("c", "2001:db8:c::1"),
            ("server", "2001:db8:c::2"),
        ],
    ),
    (
        "tunnel",
        &[
            ("client", "2002:c000:201:1::2"),
            ("a", "2002:c000:201:1::1"),
            ("c", "2002:c633:6401:1::1"),
            ("server", "2002:c633:6401:1::2"),
        ],
    ),
];

/// Pairs of nodes, each in both directions, and those of which one reaches the other. The kernel of a router in a guest is not that of its
/// namespace: then only the hosts send and are reached.
pub fn connectivity(at_work: &AtWork, routers_are_here: bool, sheet: &mut Sheet) -> Result<()> {
    for (environment, nodes) in ENVIRONMENTS {
        let takes_part = |node: &&Node| routers_are_here || matches!(node.0, "client" | "server");
        let nodes: Vec<_> = nodes.iter().filter(takes_part).collect();
        let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
        let (mut tried, mut reached) = (0, 0);
        for (from, to) in pairs.filter(|(from, to)| from.0 != to.0) {
            tried += 1;
            reached += u32::from(reaches(at_work, from, to.1)?);
        }
        sheet.value(&format!("pairs-{environment}"), tried.into(), Unit::Count);
        sheet.value(&format!("reached-{environment}"), reached.into(), Unit::Count);
    }
    Ok(())
}

/// Whether an echo request of a node, from its address in this environment, is answered within two seconds: it may wait for neighbour discovery.
fn reaches(at_work: &AtWork, (from, source): &Node, to: &str) -> Result<bool> {
    let mut ping = command("ping")?;
    ping.args(["-n", "-q", "-c", "1", "-W", "2", "-I", source, to]);
    Ok(at_work.network().host(from)?.run(ping, Duration::from_secs(10))?.status.success())
}
