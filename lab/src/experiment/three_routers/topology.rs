//! The network.

use super::way::POOL;
use crate::analyse::{Drawing, Node, Part, Wire};
use crate::failure::Result;
use crate::measure::Cores;
use crate::topology::Network;

/// Drawn for the report.
pub const DRAWING: &str = "\
client ────────────── a ─────────────────── b ─────────────────── c ────────────── server
10.1.0.2      10.1.0.1 192.0.2.1   192.0.2.2 198.51.100.2   198.51.100.1 10.2.0.1  10.2.0.2
2001:db8:a::/64        2001:db8:ab::/64      2001:db8:bc::/64             2001:db8:c::/64";

/// The same with boxes and links.
pub const DRAWN: Drawing = Drawing {
    nodes: &[
        Node { name: "client", lines: &["10.1.0.2", "2001:db8:a::2"], column: 0, row: 0, part: Part::End },
        Node { name: "router a", lines: &["192.0.2.1"], column: 1, row: 0, part: Part::Device },
        Node {
            name: "router b",
            lines: &["192.0.2.2", "198.51.100.2"],
            column: 2,
            row: 0,
            part: Part::Between,
        },
        Node { name: "router c", lines: &["198.51.100.1"], column: 3, row: 0, part: Part::Device },
        Node { name: "server", lines: &["10.2.0.2", "2001:db8:c::2"], column: 4, row: 0, part: Part::End },
    ],
    links: &[
        Wire { ends: (0, 1), label: "", is_tunnel: false },
        Wire { ends: (1, 2), label: "", is_tunnel: true },
        Wire { ends: (2, 3), label: "", is_tunnel: true },
        Wire { ends: (3, 4), label: "", is_tunnel: false },
    ],
};

/// Native addresses, those of the sites behind a 6to4 tunnel (2002:…) and a configured one (…:1a::, …:1c::), and a network that IPv4 hosts reach over
/// IPv6 alone (10.3.0.0).
const ADDRESSES: [(&str, &str, &str); 20] = [
    ("client", "up0", "10.1.0.2/24"),
    ("a", "in0", "10.1.0.1/24"),
    ("a", "out0", "192.0.2.1/24"),
    ("c", "out0", "198.51.100.1/24"),
    ("c", "in0", "10.2.0.1/24"),
    ("server", "up0", "10.2.0.2/24"),
    ("c", "in0", "10.3.0.1/24"),
    ("server", "up0", "10.3.0.2/24"),
    ("client", "up0", "2001:db8:a::2/64"),
    ("a", "in0", "2001:db8:a::1/64"),
    ("a", "out0", "2001:db8:ab::1/64"),
    ("c", "out0", "2001:db8:bc::1/64"),
    ("c", "in0", "2001:db8:c::1/64"),
    ("server", "up0", "2001:db8:c::2/64"),
    ("client", "up0", "2001:db8:1a::2/64"),
    ("a", "in0", "2001:db8:1a::1/64"),
    ("c", "in0", "2001:db8:1c::1/64"),
    ("server", "up0", "2001:db8:1c::2/64"),
    ("a", "in0", "2002:c000:201:1::1/64"),
    ("c", "in0", "2002:c633:6401:1::1/64"),
];

/// Each prefix has its own: what only a mechanism carries has no native way.
const ROUTES: [(&str, &str); 16] = [
    ("client", "default via 10.1.0.1"),
    ("client", "2001:db8:c::/64 via 2001:db8:a::1"),
    ("client", "2001:db8:ab::/64 via 2001:db8:a::1"),
    ("client", "2002::/16 via 2002:c000:201:1::1"),
    ("client", "2001:db8:64::/96 via 2001:db8:a::1"),
    ("server", "default via 10.2.0.1"),
    ("server", "default via 2001:db8:c::1"),
    ("server", "2002::/16 via 2002:c633:6401:1::1"),
    ("a", "10.2.0.0/24 via 192.0.2.2"),
    ("a", "198.51.100.0/24 via 192.0.2.2"),
    ("a", "2001:db8:c::/64 via 2001:db8:ab::2"),
    ("a", "2001:db8:af::/64 via 2001:db8:ab::2"),
    ("a", "2001:db8:bc::/64 via 2001:db8:ab::2"),
    ("c", "default via 198.51.100.2"),
    ("c", "2001:db8:a::/64 via 2001:db8:bc::2"),
    ("c", "2001:db8:46::/96 via 2001:db8:bc::2"),
];

/// Routers between a and c, as many as there may be; the first one is the b of the drawing.
const MIDDLE: [&str; 8] = ["b", "b2", "b3", "b4", "b5", "b6", "b7", "b8"];

/// What differs from the network that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terrain {
    /// Routers between a and c, 1 to 8.
    pub hops: usize,
    /// The MTU of the link in front of c.
    pub mtu: u32,
}

impl Terrain {
    /// As it is drawn.
    pub const DRAWN: Self = Self { hops: 1, mtu: 1_500 };
}

/// Builds it. What routers a and c receive is taken by the device's core, all else by the tester's.
pub fn network(terrain: Terrain, cores: Cores) -> Result<Network> {
    let middle = &MIDDLE[..terrain.hops.clamp(1, MIDDLE.len())];
    let network = Network::new(&[&["client", "a"][..], middle, &["c", "server"]].concat())?;
    let row: Vec<&str> = [&["a"][..], middle, &["c"]].concat();
    let mut links = vec![(("client", "up0"), ("a", "in0")), (("c", "in0"), ("server", "up0"))];
    // Each router's link to the next one is out0; c is turned round.
    links.extend(row.windows(2).map(|pair| {
        let far = if pair[1] == "c" { "out0" } else { "in0" };
        ((pair[0], "out0"), (pair[1], far))
    }));
    for (one, other) in &links {
        network.link(*one, *other)?;
    }
    for (host, device, address) in ADDRESSES {
        network.address(host, device, address)?;
    }
    network.address("client", "up0", "2002:c000:201:1::2/64")?;
    network.address("server", "up0", "2002:c633:6401:1::2/64")?;
    in_between(&network, middle)?;
    for (host, route) in ROUTES {
        network.route(host, route)?;
    }
    // The router of DS-Lite is in the same network as b.
    network.route("c", "2001:db8:ab::/64 via 2001:db8:bc::2")?;
    for router in &row {
        network.forwards(router)?;
    }
    if terrain.mtu != Terrain::DRAWN.mtu {
        let last = middle.last().copied().unwrap_or("b");
        for host in [last, "c"] {
            network.host(host)?.ip(&format!("link set out0 mtu {}", terrain.mtu))?;
        }
    }
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        for (one, other) in links {
            for (host, link) in [one, other] {
                network.receive_on(host, link, if matches!(host, "a" | "c") { device } else { tester })?;
            }
        }
    }
    Ok(network)
}

/// Addresses and routes of the routers between a and c.
fn in_between(network: &Network, middle: &[&str]) -> Result<()> {
    for (at, host) in middle.iter().enumerate() {
        let (is_first, is_last) = (at == 0, at + 1 == middle.len());
        // Networks between them: 10.100.N.0 and 2001:db8:b0:N::.
        let near = if is_first { "192.0.2.2/24".to_owned() } else { format!("10.100.{at}.2/24") };
        let near6 = if is_first { "2001:db8:ab::2/64".to_owned() } else { format!("2001:db8:b0:{at}::2/64") };
        let next = at + 1;
        let far = if is_last { "198.51.100.2/24".to_owned() } else { format!("10.100.{next}.1/24") };
        let far6 = if is_last { "2001:db8:bc::2/64".to_owned() } else { format!("2001:db8:b0:{next}::1/64") };
        for (link, address) in [("in0", near), ("in0", near6), ("out0", far), ("out0", far6)] {
            network.address(host, link, &address)?;
        }
        let [back, back6] = match is_first {
            true => ["192.0.2.1".to_owned(), "2001:db8:ab::1".to_owned()],
            false => [format!("10.100.{at}.1"), format!("2001:db8:b0:{at}::1")],
        };
        let [on, on6] = match is_last {
            true => ["198.51.100.1".to_owned(), "2001:db8:bc::1".to_owned()],
            false => [format!("10.100.{next}.2"), format!("2001:db8:b0:{next}::2")],
        };
        let mut routes = vec![
            format!("10.1.0.0/24 via {back}"),
            format!("2001:db8:a::/64 via {back6}"),
            format!("2001:db8:46::/96 via {back6}"),
            format!("{POOL} via {back}"),
            format!("10.2.0.0/24 via {on}"),
            format!("2001:db8:c::/64 via {on6}"),
            format!("2001:db8:af::/64 via {on6}"),
        ];
        if !is_first {
            routes.extend([format!("192.0.2.0/24 via {back}"), format!("2001:db8:ab::/64 via {back6}")]);
        }
        if !is_last {
            routes.extend([format!("198.51.100.0/24 via {on}"), format!("2001:db8:bc::/64 via {on6}")]);
        }
        routes.iter().try_for_each(|route| network.route(host, route))?;
    }
    Ok(())
}
