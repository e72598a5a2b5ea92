//! The network: a switch of hosts, the relay, a switch of responders.

use super::load::{HOSTS, RELAY, host_address};
use crate::analyse::{Drawing, Node, Part, Wire};
use crate::failure::Result;
use crate::measure::Cores;
use crate::packet::six_to_four;
use crate::topology::Network;

/// Drawn for the report.
pub const DRAWING: &str = "\
host1 80.64.79.1 ┐                                                   ┌ responder1 2a02:a50::2   …:a00::/105
  …              ├ switch ─ 80.64.79.254  relay  2a02:a50::1 ─ switch ┤
host10           ┘          2002:5040:4ffe::1                         └ responder2 2a02:a50::3   …:a80::/105";

/// The same with boxes and links.
pub const DRAWN: Drawing = Drawing {
    nodes: &[
        Node {
            name: "host1 … host10",
            lines: &["80.64.79.1 … .10", "2002:5040:4f01::1 …"],
            column: 0,
            row: 0,
            part: Part::Ends,
        },
        Node { name: "switch", lines: &[], column: 1, row: 0, part: Part::Between },
        Node {
            name: "relay",
            lines: &["80.64.79.254", "2002:5040:4ffe::1", "2a02:a50::1"],
            column: 2,
            row: 0,
            part: Part::Device,
        },
        Node { name: "switch", lines: &[], column: 3, row: 0, part: Part::Between },
        Node {
            name: "responder1",
            lines: &["2a02:a50::2", "all of …:a00:0/105"],
            column: 4,
            row: 0,
            part: Part::End,
        },
        Node {
            name: "responder2",
            lines: &["2a02:a50::3", "all of …:a80:0/105"],
            column: 4,
            row: 1,
            part: Part::End,
        },
    ],
    links: &[
        Wire { ends: (0, 1), label: "", is_tunnel: true },
        Wire { ends: (1, 2), label: "IPv6 in IPv4", is_tunnel: true },
        Wire { ends: (2, 3), label: "IPv6", is_tunnel: false },
        Wire { ends: (3, 4), label: "", is_tunnel: false },
        Wire { ends: (3, 5), label: "", is_tunnel: false },
    ],
};

/// The relay's link to the hosts.
pub const INSIDE: &str = "out0";
/// The relay's link to the responders.
pub const OUTSIDE: &str = "in0";

/// Builds it. Hosts have IPv4 addresses; if it is `native`, they have their 6to4 addresses as IPv6 addresses, too, and the relay is their
/// router. With one responder it has both halves.
pub fn network(native: bool, responders: usize, cores: Cores) -> Result<Network> {
    let others = ["switch", "relay", "responder1", "responder2"];
    let network = Network::new(&[&HOSTS[..], &others[..]].concat())?;
    let switch = network.host("switch")?;
    switch.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    for bridge in ["four", "six"] {
        switch.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
        switch.ip(&format!("link set {bridge} up"))?;
    }
    let join = |host: &str, device: &str, bridge: &str| {
        let port = format!("{host}-{device}");
        network.link((host, device), ("switch", &port))?;
        switch.ip(&format!("link set {port} master {bridge}"))
    };
    join("relay", INSIDE, "four")?;
    join("relay", OUTSIDE, "six")?;
    network.address("relay", INSIDE, &format!("{RELAY}/24"))?;
    network.address("relay", OUTSIDE, "2a02:a50::1/64")?;
    for (number, host) in HOSTS.iter().enumerate() {
        join(host, "up0", "four")?;
        network.address(host, "up0", &format!("{}/24", host_address(number + 1)))?;
    }
    let of_responders = [("responder1", "2a02:a50::2"), ("responder2", "2a02:a50::3")];
    for (responder, address) in of_responders {
        join(responder, "up0", "six")?;
        network.address(responder, "up0", &format!("{address}/64"))?;
        network.route(responder, "default via 2a02:a50::1")?;
    }
    let halves = ["2001:738:2c01:8001:ffff:0:a00:0/105", "2001:738:2c01:8001:ffff:0:a80:0/105"];
    for (number, half) in halves.into_iter().enumerate() {
        let (responder, address) = of_responders[number.min(responders.saturating_sub(1))];
        network.route(responder, &format!("local {half} dev lo"))?;
        network.route("relay", &format!("{half} via {address}"))?;
    }
    if native {
        network.address("relay", INSIDE, &format!("{}/16", six_to_four(RELAY, 1)))?;
        for (number, host) in HOSTS.iter().enumerate() {
            network.address(host, "up0", &format!("{}/16", six_to_four(host_address(number + 1), 1)))?;
            network.route(host, &format!("default via {}", six_to_four(RELAY, 1)))?;
        }
    }
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        for link in [INSIDE, OUTSIDE] {
            network.receive_on("relay", link, device)?;
            network.receive_on("switch", &format!("relay-{link}"), tester)?;
        }
    }
    Ok(network)
}
