//! The network: a heavy and a light subscriber, each with a link of its own, the device, and a server.

use super::way::{DEVICE4, NOBODY4, NOBODY6, SERVER4, SERVER6, Way};
use crate::analyse::{Drawing, Node, Part, Wire};
use crate::device::{Place, Running};
use crate::experiment::contract::Line;
use crate::experiment::six_to_four_host;
use crate::failure::{Failure, Result};
use crate::load::link_address;
use crate::measure::Cores;
use crate::topology::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Drawn for the report.
pub const DRAWING: &str = "\
heavy 198.18.1.2, 2001:2:0:1::2 ─┐
                                 ├─ device ─ 198.19.0.2, 2001:2:0:8000::2 server
light 198.18.2.2, 2001:2:0:2::2 ─┘";

/// The same with boxes and links.
pub const DRAWN: Drawing = Drawing {
    nodes: &[
        Node { name: "heavy", lines: &["198.18.1.2", "2001:2:0:1::2"], column: 0, row: 0, part: Part::End },
        Node { name: "light", lines: &["198.18.2.2", "2001:2:0:2::2"], column: 0, row: 1, part: Part::End },
        Node { name: "device", lines: &[], column: 1, row: 0, part: Part::Device },
        Node {
            name: "server",
            lines: &["198.19.0.2", "2001:2:0:8000::2"],
            column: 2,
            row: 0,
            part: Part::End,
        },
    ],
    links: &[
        Wire { ends: (0, 2), label: "0.1 to 10 × capacity", is_tunnel: false },
        Wire { ends: (1, 2), label: "a little", is_tunnel: false },
        Wire { ends: (2, 3), label: "", is_tunnel: false },
    ],
};

const OUTSIDE: &str = "out0";

/// The network with a device at work.
pub struct Scene {
    // Dropped first: a device's end needs its network.
    pub running: Box<dyn Running>,
    /// The other end of a tunnel, at the server.
    _far: Option<Box<dyn Running>>,
    pub network: Arc<Network>,
    pub cores: Cores,
    /// The server as subscribers write it.
    pub target: IpAddr,
    /// The address at which the server listens: any of its family.
    pub listens: IpAddr,
    /// Any address of the subscribers' family.
    pub any: IpAddr,
    /// Source and destination of frames.
    pub frames: [IpAddr; 2],
}

impl Scene {
    /// Builds the network of a series and starts the device, and what the server needs for the other end of a tunnel.
    pub fn build(series: &str, line: &Line<'_>) -> Result<Self> {
        let way = Way::of(series, line.device).ok_or_else(|| {
            Failure::Unexpected(format!("{} has no part in {series}", line.device.card().name))
        })?;
        let network = Arc::new(network(way.site(), line.cores)?);
        let place = |host, inside: &[&'static str], outside, core| Place {
            network: Arc::clone(&network),
            host,
            inside: inside.to_vec(),
            outside: vec![outside],
            core,
        };
        let running = line
            .device
            .start(&place("device", &["in0", "in1"], OUTSIDE, line.cores.device), &way.task(line.device))?;
        let far = way
            .at_server()
            .map(|task| six_to_four_host::start(&place("server", &[], "up0", line.cores.tester), task))
            .transpose()?;
        let (four, six) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        let any_of = |is_six| if is_six { six } else { four };
        Ok(Self {
            running,
            _far: far,
            cores: line.cores,
            target: way.target(),
            listens: any_of(way.arrives_as_six()),
            any: any_of(way.target().is_ipv6()),
            frames: way.frames(),
            network: Arc::clone(&network),
        })
    }

    /// Lets frames arrive at the server, which drops them immediately. Else it would answer each with an ICMP error.
    pub fn expect_frames(&self) -> Result<()> {
        let (device, server) = (self.network.host("device")?, self.network.host("server")?);
        let [a, b, c, d, e, f] = link_address(server, "up0")?;
        let link = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        for nobody in [IpAddr::from(NOBODY4), NOBODY6.into()] {
            device.ip(&format!("neigh replace {nobody} lladdr {link} dev {OUTSIDE} nud permanent"))?;
            server.ip(&format!("route add blackhole {nobody}"))?;
        }
        Ok(())
    }

    /// Packets that the device has sent to the server: also those that the server had no time to take.
    pub fn forwarded(&self) -> Result<u64> {
        let host = self.network.host("device")?;
        let text = host.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?.unwrap_or_default();
        Ok(sent(&text, OUTSIDE).unwrap_or(0))
    }
}

/// The packets that a link has sent: the tenth number after its name.
fn sent(text: &str, link: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(link)?.strip_prefix(':'))?;
    line.split_whitespace().nth(9)?.parse().ok()
}

/// The network with subscribers in subnets 1 and 2 of a site.
fn network(site: &str, cores: Cores) -> Result<Network> {
    let network = Network::new(&["heavy", "light", "device", "server"])?;
    for (number, host) in ["heavy", "light"].into_iter().enumerate() {
        let link = format!("in{number}");
        let subnet = number + 1;
        network.link((host, "up0"), ("device", &link))?;
        network.address(host, "up0", &format!("198.18.{subnet}.2/24"))?;
        network.address(host, "up0", &format!("{site}:{subnet}::2/64"))?;
        network.address("device", &link, &format!("198.18.{subnet}.1/24"))?;
        network.address("device", &link, &format!("{site}:{subnet}::1/64"))?;
        network.route(host, &format!("0.0.0.0/0 via 198.18.{subnet}.1"))?;
        network.route(host, &format!("::/0 via {site}:{subnet}::1"))?;
        if let Cores { device: Some(device), tester: Some(tester) } = cores {
            network.receive_on("device", &link, device)?;
            network.receive_on(host, "up0", tester)?;
        }
    }
    network.link(("device", OUTSIDE), ("server", "up0"))?;
    network.address("device", OUTSIDE, &format!("{DEVICE4}/24"))?;
    network.address("device", OUTSIDE, "2001:2:0:8000::1/64")?;
    network.address("server", "up0", &format!("{SERVER4}/24"))?;
    network.address("server", "up0", &format!("{SERVER6}/64"))?;
    network.route("device", "198.18.64.0/18 via 198.18.1.2")?;
    network.route("server", &format!("0.0.0.0/0 via {DEVICE4}"))?;
    // The end of a tunnel has its own default route.
    network.route("server", "2001:2::/48 via 2001:2:0:8000::1")?;
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        network.receive_on("device", OUTSIDE, device)?;
        network.receive_on("server", "up0", tester)?;
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_that_a_link_has_sent_are_read() {
        let text = "Inter-|   Receive\n  lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n out0: 1 2 0 0 0 0 0 0 9 77 0 0 0 0 0 0\n";
        assert_eq!((sent(text, "out0"), sent(text, "out1")), (Some(77), None));
    }
}
