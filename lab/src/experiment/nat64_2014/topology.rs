//! The network: a switch of clients, the translator, and a responder that answers for 10.0.0.0/8.

use crate::analyse::{Drawing, Node, Part, Wire};
use crate::device::{Forward, Nat64, Place, Running, Task, TaskKind};
use crate::experiment::contract::Line;
use crate::failure::Result;
use crate::measure::Cores;
use crate::topology::Network;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Drawn for the report.
pub const DRAWING: &str = "\
client1 fdb9:a0ab:af17:ffff::101 ┐          fdb9:a0ab:af17:ffff::1   192.168.100.233
  …                              ├ switch ─────────────── translator ─────────────── responder 192.168.100.111, 10.0.0.0/8
client8 fdb9:a0ab:af17:ffff::108 ┘";

/// The same with boxes and links.
pub const DRAWN: Drawing = Drawing {
    nodes: &[
        Node {
            name: "client1 … client8",
            lines: &["fdb9:a0ab:af17:ffff::101 …"],
            column: 0,
            row: 0,
            part: Part::Ends,
        },
        Node { name: "switch", lines: &[], column: 1, row: 0, part: Part::Between },
        Node {
            name: "translator",
            lines: &["fdb9:a0ab:af17:ffff::1", "192.168.100.233"],
            column: 2,
            row: 0,
            part: Part::Device,
        },
        Node {
            name: "responder",
            lines: &["192.168.100.111", "all of 10.0.0.0/8"],
            column: 3,
            row: 0,
            part: Part::End,
        },
    ],
    links: &[
        Wire { ends: (0, 1), label: "", is_tunnel: false },
        Wire { ends: (1, 2), label: "IPv6", is_tunnel: false },
        Wire { ends: (2, 3), label: "IPv4", is_tunnel: false },
    ],
};

/// The clients' roles in the network.
pub const CLIENTS: [&str; 8] =
    ["client1", "client2", "client3", "client4", "client5", "client6", "client7", "client8"];
/// The paper's translation prefix but for its bits 64 to 71, which were not zero (RFC 6052 §2.2). It lies in the network of the clients, which have a route to it.
pub const PREFIX: &str = "fdb9:a0ab:af17:ffff:ff:ffff::/96";
/// Nine addresses: 580,608 identifiers, for 524,288 that eight clients use within the time for which a session is kept.
pub const POOL: [&str; 2] = ["192.168.101.0/29", "192.168.101.8/32"];
const INSIDE: &str = "in0";
const OUTSIDE: &str = "out0";
/// Addresses that a client visits at scale 1.
pub const ADDRESSES: usize = 256 * 256;

/// 10.client.b.c in the translation prefix.
pub fn target(client: usize, number: usize) -> IpAddr {
    let (b, c) = (number / 256 % 256, number % 256);
    let pair = |high: usize, low: usize| (high << 8 | low) as u16;
    IpAddr::V6(Ipv6Addr::new(0xfdb9, 0xa0ab, 0xaf17, 0xffff, 0xff, 0xffff, pair(10, client), pair(b, c)))
}

/// The responder's own address as clients write it.
pub fn responder(native: bool) -> IpAddr {
    let own = Ipv6Addr::new(0xfdb9, 0xa0ab, 0xaf17, 0xfffe, 0, 0, 0, 0x111);
    let translated = Ipv6Addr::new(0xfdb9, 0xa0ab, 0xaf17, 0xffff, 0xff, 0xffff, 0xc0a8, 0x646f);
    IpAddr::V6(if native { own } else { translated })
}

/// How many addresses a client visits at this scale.
pub fn addresses(scale: f64) -> usize {
    ((ADDRESSES as f64 * scale).round() as usize).clamp(8, ADDRESSES)
}

/// The network with a device at work.
pub struct Translator {
    // Dropped first: a device's end needs its network.
    pub running: Box<dyn Running>,
    pub network: Arc<Network>,
    pub cores: Cores,
    pub scale: f64,
}

impl Translator {
    /// Builds the network, and starts the device as the first task that it can do, with room for this number of sessions, if they are limited.
    pub fn build(line: &Line<'_>, sessions: Option<u64>) -> Result<Self> {
        let native = !line.device.tasks().contains(&TaskKind::Nat64);
        let network = Arc::new(network(native, line.cores)?);
        let place = Place {
            network: Arc::clone(&network),
            host: "translator",
            inside: vec![INSIDE],
            outside: vec![OUTSIDE],
            core: line.cores.device,
        };
        let task = match native {
            true => Task::Forward(Forward),
            false => Task::Nat64(Nat64 { prefix: PREFIX.to_owned(), pool: pool(line), sessions }),
        };
        let running = line.device.start(&place, &task)?;
        Ok(Self { running, network, cores: line.cores, scale: line.asked.scale })
    }
}

/// Masquerade has one address, as in the paper: its identifiers are distinct for each destination only.
pub fn pool(line: &Line<'_>) -> Vec<String> {
    match line.device.has_pool() {
        true => POOL.map(str::to_owned).to_vec(),
        false => Vec::new(),
    }
}

fn network(native: bool, cores: Cores) -> Result<Network> {
    let network = Network::new(&[&CLIENTS[..], &["switch", "translator", "responder"]].concat())?;
    let switch = network.host("switch")?;
    switch.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    switch.ip("link add inside type bridge mcast_snooping 0")?;
    switch.ip("link set inside up")?;
    let join = |host: &str, device: &str| {
        network.link((host, device), ("switch", host))?;
        switch.ip(&format!("link set {host} master inside"))
    };
    join("translator", INSIDE)?;
    network.address("translator", INSIDE, "fdb9:a0ab:af17:ffff::1/64")?;
    for (number, client) in CLIENTS.iter().enumerate() {
        join(client, "up0")?;
        network.address(client, "up0", &format!("fdb9:a0ab:af17:ffff::{}/64", 101 + number))?;
        network.route(client, &format!("{PREFIX} via fdb9:a0ab:af17:ffff::1"))?;
    }
    outside(&network, native)?;
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        network.receive_on("translator", INSIDE, device)?;
        network.receive_on("translator", OUTSIDE, device)?;
        network.receive_on("switch", "translator", tester)?;
        network.receive_on("responder", "up0", tester)?;
    }
    Ok(network)
}

/// The translator's link to the responder, which answers for all addresses.
fn outside(network: &Network, native: bool) -> Result<()> {
    network.link(("translator", OUTSIDE), ("responder", "up0"))?;
    match native {
        false => {
            network.address("translator", OUTSIDE, "192.168.100.233/24")?;
            network.address("responder", "up0", "192.168.100.111/24")?;
            network.route("responder", "default via 192.168.100.233")?;
            network.route("responder", "local 10.0.0.0/8 dev lo")?;
            network.route("translator", "10.0.0.0/8 via 192.168.100.111")?;
        }
        true => {
            network.address("translator", OUTSIDE, "fdb9:a0ab:af17:fffe::1/64")?;
            network.address("responder", "up0", "fdb9:a0ab:af17:fffe::111/64")?;
            network.route("responder", "default via fdb9:a0ab:af17:fffe::1")?;
            network.route("responder", &format!("local {PREFIX} dev lo"))?;
            network.route("translator", &format!("{PREFIX} via fdb9:a0ab:af17:fffe::111"))?;
        }
    }
    Ok(())
}

/// One client on a link of its own, with a prefix behind it, the translator and the responder.
pub fn direct(native: bool) -> Result<Network> {
    let network = Network::new(&["client1", "translator", "responder"])?;
    network.link(("client1", "up0"), ("translator", INSIDE))?;
    network.address("client1", "up0", "fdb9:a0ab:af17:ffff::101/64")?;
    network.address("translator", INSIDE, "fdb9:a0ab:af17:ffff::1/64")?;
    network.route("translator", "fdb9:a0ab:af17:fffd::/64 via fdb9:a0ab:af17:ffff::101")?;
    outside(&network, native)?;
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_visits_10_client_b_c() {
        assert_eq!(target(3, 0), "fdb9:a0ab:af17:ffff:ff:ffff:10.3.0.0".parse::<IpAddr>().unwrap());
        assert_eq!(target(8, 65_535), "fdb9:a0ab:af17:ffff:ff:ffff:10.8.255.255".parse::<IpAddr>().unwrap());
        assert_eq!(
            responder(false),
            "fdb9:a0ab:af17:ffff:ff:ffff:192.168.100.111".parse::<IpAddr>().unwrap()
        );
        assert_eq!((addresses(1.0), addresses(0.001), addresses(0.0)), (65_536, 66, 8));
    }

    /// Each visit has an identifier of its own, and a session is kept for a minute.
    #[test]
    fn nine_addresses_have_room_for_eight_clients() {
        let length = |prefix: &str| prefix.split('/').nth(1).unwrap().parse::<u32>().unwrap();
        let addresses: u32 = POOL.iter().map(|prefix| 1 << (32 - length(prefix))).sum();
        let identifiers = addresses as usize * (65_536 - 1_024);
        assert_eq!(addresses, 9);
        assert!(identifiers >= CLIENTS.len() * ADDRESSES);
        assert!(identifiers - 64_512 < CLIENTS.len() * ADDRESSES, "eight would not do");
    }
}
