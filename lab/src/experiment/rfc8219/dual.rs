//! The dual device setup of RFC 8219 §4.2 for encapsulation: a B4 and an AFTR of DS-Lite between the tester's ends, which are IPv4 hosts.
//! The near one has a private address, as hosts behind a B4 have.

use super::topology::{FAR4, POOL, Scene, Tester};
use crate::device::{Aftr, B4, CpuReading, MemoryReading, Place, Running, Task};
use crate::experiment::contract::Line;
use crate::experiment::several::Several;
use crate::failure::Result;
use crate::measure::{ClockOffset, Cores};
use crate::topology::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0xa, 0, 0, 0, 1);

/// The largest frame that leaves the first device whole: 20 octets less with IPv4, and 40 more of the tunnel's header.
pub const LARGEST: f64 = 1_498.0;

/// Two devices of one kind. CPU time and memory are those of both.
struct Both([Box<dyn Running>; 2]);

impl Running for Both {
    fn restart(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(|device| device.restart())
    }

    fn cpu(&self) -> Result<CpuReading> {
        Several(&self.0).cpu()
    }

    fn memory(&self) -> Result<MemoryReading> {
        Ok(self.0[0].memory()?.plus(self.0[1].memory()?))
    }

    fn clock(&self) -> Result<Option<ClockOffset>> {
        Several(&self.0).clock()
    }

    fn commands(&self) -> Vec<String> {
        self.0.iter().flat_map(|device| device.commands()).collect()
    }
}

/// Builds the network, and starts both devices.
pub fn scene(line: &Line<'_>) -> Result<Scene> {
    let network = Arc::new(network(line.cores)?);
    let aftr = Aftr { address: AFTR, clients: "2001:2:0:300::/56".to_owned(), pool: vec![POOL.to_owned()] };
    both(line, network, Task::B4(B4 { aftr: AFTR }), Task::Aftr(aftr))
}

/// Starts both devices, the second one first.
pub fn both(line: &Line<'_>, network: Arc<Network>, first: Task, second: Task) -> Result<Scene> {
    let start = |host, task: &Task| {
        let network = Arc::clone(&network);
        let (inside, outside) = (vec!["in0"], vec!["out0"]);
        line.device.start(&Place { network, host, inside, outside, core: line.cores.device }, task)
    };
    let second = start("second", &second)?;
    let first = start("device", &first)?;
    let four = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let ends = Tester { cores: line.cores, target: FAR4.into(), any: [four, four], network };
    Ok(Scene { running: Box::new(Both([first, second])), ends })
}

/// Two hosts of IPv4, and two devices with IPv6 between them.
pub fn network(cores: Cores) -> Result<Network> {
    let network = Network::new(&["near", "device", "second", "far"])?;
    let links = [(("near", "up0"), ("device", "in0")), (("device", "out0"), ("second", "in0"))];
    for (one, other) in links.into_iter().chain([(("second", "out0"), ("far", "up0"))]) {
        network.link(one, other)?;
    }
    for (host, link, address) in [
        ("near", "up0", "192.168.18.2/24"),
        ("device", "in0", "192.168.18.1/24"),
        ("device", "out0", "2001:2:0:300::1/64"),
        ("second", "in0", "2001:2:0:300::2/64"),
        ("second", "out0", "198.19.0.1/24"),
        ("far", "up0", "198.19.0.2/24"),
    ] {
        network.address(host, link, address)?;
    }
    for (host, route) in [
        ("near", "0.0.0.0/0 via 192.168.18.1"),
        ("device", "::/0 via 2001:2:0:300::2"),
        ("far", "0.0.0.0/0 via 198.19.0.1"),
    ] {
        network.route(host, route)?;
    }
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        for host in ["device", "second"] {
            network.receive_on(host, "in0", device)?;
            network.receive_on(host, "out0", device)?;
        }
        for host in ["near", "far"] {
            network.receive_on(host, "up0", tester)?;
        }
    }
    Ok(network)
}
