//! The network.

use super::form::{BETWEEN, FAR, Form, LAN, NAT, OWN};
use crate::analyse::{Drawing, Node, Part, Wire};
use crate::failure::Result;
use crate::measure::Cores;
use crate::packet::six_to_four;
use crate::topology::{Network, Shape};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Drawn for the report.
pub const DRAWING: &str = "\
            co-located:                  gateway ───────────────────── far ──────────── server
client ─────────────────────────── 192.168.1.1 192.0.2.1      192.0.2.2 10.2.0.1     10.2.0.2
            decoupled:
client ───────── inner ───────────────── gateway ───────────────── far ──────────── server
192.168.1.2   192.168.1.1 192.168.2.1   192.168.2.2 192.0.2.1, .9
client ═════════════════ the bare wire: 10.9.0.1, 10.9.0.2 ════════════════════════ server";

/// The same with boxes and links.
pub const DRAWN: Drawing = Drawing {
    nodes: &[
        Node { name: "client", lines: &["192.168.1.2", "2002:…:1::2"], column: 0, row: 0, part: Part::End },
        Node { name: "inner", lines: &["6to4, if decoupled"], column: 1, row: 0, part: Part::Device },
        Node {
            name: "gateway",
            lines: &["192.0.2.1", "NAT 192.0.2.9", "6to4, if co-located"],
            column: 2,
            row: 0,
            part: Part::Device,
        },
        Node { name: "far", lines: &["192.0.2.2", "6to4"], column: 3, row: 0, part: Part::Between },
        Node {
            name: "server",
            lines: &["10.2.0.2", "2002:c000:202:1::2"],
            column: 4,
            row: 0,
            part: Part::End,
        },
    ],
    links: &[
        Wire { ends: (0, 1), label: "", is_tunnel: false },
        Wire { ends: (1, 2), label: "", is_tunnel: true },
        Wire { ends: (2, 3), label: "100 Mbit/s", is_tunnel: true },
        Wire { ends: (3, 4), label: "", is_tunnel: false },
    ],
};

/// A link's two ends: a host and its device each.
pub type Link = ((&'static str, &'static str), (&'static str, &'static str));

/// The bare wire between client and server.
const BARE: Link = (("client", "wire0"), ("server", "wire0"));

/// A client's way to the server: both addresses, and the links that packets leave and arrive by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The client.
    pub client: IpAddr,
    /// The server, as both know it.
    pub server: IpAddr,
    /// The link at either end.
    pub link: &'static str,
}

/// By the bare wire.
pub fn bare(is_six: bool) -> Path {
    let (client, server) = match is_six {
        true => (IpAddr::V6(bare_six(1)), IpAddr::V6(bare_six(2))),
        false => (IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2))),
    };
    Path { client, server, link: BARE.0.1 }
}

/// By the gateway; IPv6 natively if there is no tunnel.
pub fn through(form: Form, is_six: bool, has_tunnel: bool) -> Path {
    let (client, server) = match (is_six, has_tunnel) {
        (true, true) => (IpAddr::V6(host(form.seen(), 2)), IpAddr::V6(host(FAR, 2))),
        (true, false) => (IpAddr::V6(native(0xa, 2)), IpAddr::V6(native(0xc, 2))),
        (false, _) => (IpAddr::V4(Ipv4Addr::new(192, 168, 1, 2)), IpAddr::V4(Ipv4Addr::new(10, 2, 0, 2))),
    };
    Path { client, server, link: "up0" }
}

/// All links, the bare wire included.
pub fn links(form: Form) -> Vec<Link> {
    let mut all = vec![BARE, (("gateway", "out0"), ("far", "in0")), (("far", "out0"), ("server", "up0"))];
    match form.has_two() {
        true => {
            all.push((("client", "up0"), ("inner", "in0")));
            all.push((("inner", "out0"), ("gateway", "in0")));
        }
        false => all.push((("client", "up0"), ("gateway", "in0"))),
    }
    all
}

/// Builds it for the boxes of a site. Boxes receive on the device's core, all else on the tester's. `is_plain` adds the way back to hosts of the site
/// without translation.
pub fn network(form: Form, is_plain: bool, cores: Cores) -> Result<Network> {
    let network = Network::new(&["client", "inner", "gateway", "far", "server"])?;
    for (one, other) in links(form) {
        network.link(one, other)?;
    }
    addresses(&network, form)?;
    routes(&network, form)?;
    if is_plain {
        network.route("far", &format!("192.168.0.0/16 via {OWN}"))?;
    }
    for router in ["inner", "gateway", "far"] {
        network.forwards(router)?;
    }
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        for (one, other) in links(form) {
            for (host, link) in [one, other] {
                let is_ours = matches!(host, "inner" | "gateway");
                network.receive_on(host, link, if is_ours { device } else { tester })?;
            }
        }
    }
    // Frames of several segments are on no wire.
    for (one, other) in links(form) {
        network.shape_link(one, other, Shape::FAST_ETHERNET)?;
    }
    Ok(network)
}

fn addresses(network: &Network, form: Form) -> Result<()> {
    let near = if form.has_two() { "inner" } else { "gateway" };
    let of = |address: &dyn std::fmt::Display, length: u8| format!("{address}/{length}");
    for (host_name, link, address) in [
        ("client", "wire0", "10.9.0.1/24".to_owned()),
        ("client", "wire0", of(&bare_six(1), 64)),
        ("server", "wire0", "10.9.0.2/24".to_owned()),
        ("server", "wire0", of(&bare_six(2), 64)),
        ("client", "up0", "192.168.1.2/24".to_owned()),
        ("client", "up0", of(&host(form.seen(), 2), 64)),
        ("client", "up0", of(&native(0xa, 2), 64)),
        (near, "in0", of(&LAN, 24)),
        (near, "in0", of(&host(form.seen(), 1), 64)),
        (near, "in0", of(&native(0xa, 1), 64)),
        ("gateway", "out0", of(&OWN, 24)),
        ("gateway", "out0", of(&native(0xf, 1), 64)),
        ("far", "in0", of(&FAR, 24)),
        ("far", "in0", of(&native(0xf, 2), 64)),
        ("far", "out0", "10.2.0.1/24".to_owned()),
        ("far", "out0", of(&host(FAR, 1), 64)),
        ("far", "out0", of(&native(0xc, 1), 64)),
        ("server", "up0", "10.2.0.2/24".to_owned()),
        ("server", "up0", of(&host(FAR, 2), 64)),
        ("server", "up0", of(&native(0xc, 2), 64)),
    ] {
        network.address(host_name, link, &address)?;
    }
    if form.has_two() {
        for (host_name, link, address) in [
            ("inner", "out0", of(&BETWEEN, 24)),
            ("inner", "out0", of(&native(0xb, 1), 64)),
            ("gateway", "in0", "192.168.2.2/24".to_owned()),
            ("gateway", "in0", of(&native(0xb, 2), 64)),
        ] {
            network.address(host_name, link, &address)?;
        }
    }
    Ok(())
}

fn routes(network: &Network, form: Form) -> Result<()> {
    for (host_name, route) in [
        ("client", format!("default via {LAN}")),
        ("client", format!("2002::/16 via {}", host(form.seen(), 1))),
        ("client", format!("{}/64 via {}", native(0xc, 0), native(0xa, 1))),
        ("gateway", format!("10.2.0.0/24 via {FAR}")),
        ("gateway", format!("{}/64 via {}", native(0xc, 0), native(0xf, 2))),
        ("far", format!("{NAT} via {OWN}")),
        ("far", format!("{}/64 via {}", native(0xa, 0), native(0xf, 1))),
        ("server", "default via 10.2.0.1".to_owned()),
        ("server", format!("2002::/16 via {}", host(FAR, 1))),
        ("server", format!("{}/64 via {}", native(0xa, 0), native(0xc, 1))),
    ] {
        network.route(host_name, &route)?;
    }
    if form.has_two() {
        for (host_name, route) in [
            ("inner", "default via 192.168.2.2".to_owned()),
            ("inner", format!("{}/64 via {}", native(0xc, 0), native(0xb, 2))),
            ("gateway", format!("192.168.1.0/24 via {BETWEEN}")),
            ("gateway", format!("{}/64 via {}", native(0xa, 0), native(0xb, 1))),
        ] {
            network.route(host_name, &route)?;
        }
    }
    Ok(())
}

/// A host of subnet 1 of a 6to4 site.
fn host(site: Ipv4Addr, number: u16) -> Ipv6Addr {
    let [a, b, c, ..] = six_to_four(site, 1).segments();
    Ipv6Addr::new(a, b, c, 1, 0, 0, 0, number)
}

const fn native(network: u16, number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, number)
}

const fn bare_six(number: u16) -> Ipv6Addr {
    native(0xd, number)
}
