//! The single device setup of RFC 8219 §4.1: the tester's two ends, and the device between them.

use crate::analyse::{Drawing, Node, Part, Wire};
use crate::device::{Forward, Nat44, Nat64, Place, Running, Task, TaskKind};
use crate::experiment::contract::Line;
use crate::failure::Result;
use crate::measure::Cores;
use crate::topology::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Drawn for the report.
pub const DRAWING: &str = "\
tester 2001:2::2, 198.18.0.2 ── device ── 198.19.0.2, 2001:2:0:8000::2 tester";

/// The same with boxes and links.
pub const DRAWN: Drawing = Drawing {
    nodes: &[
        Node { name: "tester", lines: &["2001:2::2", "198.18.0.2"], column: 0, row: 0, part: Part::End },
        Node { name: "device", lines: &[], column: 1, row: 0, part: Part::Device },
        Node {
            name: "tester",
            lines: &["198.19.0.2", "2001:2:0:8000::2"],
            column: 2,
            row: 0,
            part: Part::End,
        },
    ],
    links: &[
        Wire { ends: (0, 1), label: "IPv6", is_tunnel: false },
        Wire { ends: (1, 2), label: "IPv4", is_tunnel: false },
    ],
};

pub(super) const PREFIX: &str = "2001:2:0:6464::/96";
pub(super) const POOL: &str = "198.19.1.1/32";
/// Addresses of sources behind the near end, for frames: the last 16 bits of one of IPv6 are the program's.
const SOURCES4: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 0);
const SOURCES6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 1, 0);
pub(super) const FAR4: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 2);
/// The far end's IPv6 address.
pub const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 2);
pub(super) const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x6464, 0, 0, 0xc613, 2);

/// The network with a device at work. Fields that borrow nothing of the device can be given to threads.
pub struct Scene {
    // Dropped first: a device's end needs its network.
    pub running: Box<dyn Running>,
    pub ends: Tester,
}

/// The tester's two ends.
pub struct Tester {
    pub network: Arc<Network>,
    pub cores: Cores,
    /// The far end as the near end writes it.
    pub target: IpAddr,
    /// Any address of the far end's family, and of the near end's.
    pub any: [IpAddr; 2],
}

impl Tester {
    /// The first source of frames at the near end: those of others follow it.
    pub fn sources(&self) -> IpAddr {
        if self.target.is_ipv6() { SOURCES6.into() } else { SOURCES4.into() }
    }

    /// The far end as it writes itself.
    pub fn far(&self) -> IpAddr {
        let [listens, _] = self.any;
        if listens.is_ipv6() { FAR6.into() } else { FAR4.into() }
    }
}

impl Scene {
    /// Builds the network, and starts the device as the first task that it can do.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        Self::with_pool(line, POOL)
    }

    /// The same with another pool of addresses that a translator shares out.
    pub fn with_pool(line: &Line<'_>, pool: &str) -> Result<Self> {
        Self::with_start(line, pool, |place, task| line.device.start(place, task))
    }

    /// The same with another way to start the device.
    pub fn with_start(
        line: &Line<'_>,
        pool: &str,
        start: impl FnOnce(&Place, &Task) -> Result<Box<dyn Running>>,
    ) -> Result<Self> {
        let network = Arc::new(network(line.cores)?);
        let place = Place {
            network: Arc::clone(&network),
            host: "device",
            inside: vec!["in0"],
            outside: vec!["out0"],
            core: line.cores.device,
        };
        let (four, six) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        let tasks = line.device.tasks();
        let (task, target, any) = if tasks.contains(&TaskKind::Nat64) {
            let pool = if line.device.has_pool() { vec![pool.to_owned()] } else { Vec::new() };
            (
                Task::Nat64(Nat64 { prefix: PREFIX.to_owned(), pool, sessions: None }),
                TRANSLATED.into(),
                [four, six],
            )
        } else if tasks.contains(&TaskKind::Nat44) {
            let task = Nat44 { inside: vec!["198.18.0.0/16".to_owned()], pool: Vec::new(), tunnel_end: None };
            (Task::Nat44(task), FAR4.into(), [four, four])
        } else {
            (Task::Forward(Forward), FAR6.into(), [six, six])
        };
        let running = start(&place, &task)?;
        Ok(Self { running, ends: Tester { network, cores: line.cores, target, any } })
    }
}

pub(super) fn network(cores: Cores) -> Result<Network> {
    let network = Network::new(&["near", "device", "far"])?;
    network.link(("near", "up0"), ("device", "in0"))?;
    network.link(("device", "out0"), ("far", "up0"))?;
    for (host, link, address) in [
        ("near", "up0", "198.18.0.2/24"),
        ("near", "up0", "2001:2::2/64"),
        ("device", "in0", "198.18.0.1/24"),
        ("device", "in0", "2001:2::1/64"),
        ("device", "out0", "198.19.0.1/24"),
        ("device", "out0", "2001:2:0:8000::1/64"),
        ("far", "up0", "198.19.0.2/24"),
        ("far", "up0", "2001:2:0:8000::2/64"),
    ] {
        network.address(host, link, address)?;
    }
    for (host, route) in [
        ("near", "0.0.0.0/0 via 198.18.0.1"),
        ("near", "::/0 via 2001:2::1"),
        ("device", "198.18.64.0/18 via 198.18.0.2"),
        ("device", "2001:2:0:1::/64 via 2001:2::2"),
        ("far", "0.0.0.0/0 via 198.19.0.1"),
        ("far", "::/0 via 2001:2:0:8000::1"),
    ] {
        network.route(host, route)?;
    }
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        for link in ["in0", "out0"] {
            network.receive_on("device", link, device)?;
        }
        for host in ["near", "far"] {
            network.receive_on(host, "up0", tester)?;
        }
    }
    Ok(network)
}
