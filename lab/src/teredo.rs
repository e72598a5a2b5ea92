//! Teredo with miredo: a client behind a NAT, a server, a relay in the middle, and a native host.
//!
//! ```text
//! client ─── nat ─── middle ─── gateway (relay) ─── host
//! 192.168.1.2    198.51.100.18  │   198.51.100.34  2001:db8:1::1   2001:db8:1::2
//!                             server 198.51.100.1 and .2, 2001:db8:5::1
//! ```

use crate::failure::{Failure, Result};
use crate::gateway::run_sixway_on;
use crate::interrupt;
use crate::namespace::command;
use crate::topology::Network;
use std::time::Duration;

/// The native host.
pub const HOST: &str = "2001:db8:1::2";

/// A relay of ours on the host "gateway".
pub const RELAY: &str = "[gateway]
workers = 1
ipv6_address = \"2001:db8:1::1\"

[teredo_relay]
interface = \"out0\"
ipv6_address = \"2001:db8:1::1\"
";

/// A server of ours on the host "server".
pub const SERVER: &str = "[gateway]
workers = 1

[teredo_server]
address = \"198.51.100.1\"
secondary = \"198.51.100.2\"
";

/// A client of ours on the host "client".
pub const CLIENT: &str = "[gateway]
workers = 1

[teredo_client]
interface = \"up0\"
servers = [{ address = \"198.51.100.1\", secondary = \"198.51.100.2\" }]
interval = \"5 s\"
";

/// The same without its packet filter, as miredo's client, with the default interval.
pub const OPEN_CLIENT: &str = "[gateway]
workers = 1

[teredo_client]
interface = \"up0\"
servers = [{ address = \"198.51.100.1\", secondary = \"198.51.100.2\" }]
firewall = false
";

const MASQUERADE: &str = "table ip hide {
    chain leaving {
        type nat hook postrouting priority srcnat
        oifname \"out0\" masquerade
    }
}
";

/// Unsolicited packets are dropped, as home routers do. Else Linux tracks it as a flow to the NAT itself, and maps the client's
/// next packet to that peer to another port.
const CLOSED: &str = "table ip closed {
    chain arriving {
        type filter hook input priority filter
        iifname \"out0\" ct state new drop
    }
}
";

/// The network above, with all addresses and routes.
///
/// # Errors
/// A command failed.
pub fn network() -> Result<Network> {
    built(&[])
}

/// The same with another client, "neighbour", behind a NAT of its own, "its_nat", at 198.51.100.50.
///
/// # Errors
/// A command failed.
pub fn network_of_two() -> Result<Network> {
    let network = built(&["neighbour", "its_nat"])?;
    network.link(("neighbour", "up0"), ("its_nat", "in0"))?;
    network.link(("its_nat", "out0"), ("middle", "down3"))?;
    for (host, device, address) in [
        ("neighbour", "up0", "192.168.1.2/24"),
        ("its_nat", "in0", "192.168.1.1/24"),
        ("its_nat", "out0", "198.51.100.50/28"),
        ("middle", "down3", "198.51.100.62/28"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("neighbour", "default via 192.168.1.1")?;
    network.route("its_nat", "default via 198.51.100.62")?;
    network.forwards("its_nat")?;
    hides(&network, "its_nat", MASQUERADE)?;
    for nat in ["nat", "its_nat"] {
        hides(&network, nat, CLOSED)?;
    }
    Ok(network)
}

/// The same with another server, "spare", at 198.51.100.65 and .66.
///
/// # Errors
/// A command failed.
pub fn network_with_spare() -> Result<Network> {
    let network = built(&["spare"])?;
    network.link(("spare", "up0"), ("middle", "down4"))?;
    for (host, device, address) in [
        ("spare", "up0", "198.51.100.65/28"),
        ("spare", "up0", "198.51.100.66/28"),
        ("middle", "down4", "198.51.100.78/28"),
        ("spare", "up0", "2001:db8:7::1/64"),
        ("middle", "down4", "2001:db8:7::78/64"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("spare", "default via 198.51.100.78")?;
    network.route("spare", "default via 2001:db8:7::78")?;
    Ok(network)
}

/// The same with another client, "neighbour", at 192.168.1.3 on the link of the first one, behind the same NAT. The NAT sends nothing back to the side
/// that it came from.
///
/// # Errors
/// A command failed.
pub fn network_of_a_link() -> Result<Network> {
    let network = built(&["neighbour"])?;
    network.link(("neighbour", "up0"), ("nat", "in1"))?;
    for change in [
        "link add lan0 type bridge",
        "address delete 192.168.1.1/24 dev in0",
        "link set in0 master lan0",
        "link set in1 master lan0",
        "link set lan0 up",
    ] {
        network.host("nat")?.ip(change)?;
    }
    network.address("nat", "lan0", "192.168.1.1/24")?;
    network.address("neighbour", "up0", "192.168.1.3/24")?;
    network.route("neighbour", "default via 192.168.1.1")?;
    hides(&network, "nat", CLOSED)?;
    Ok(network)
}

/// From now on the NAT on a host drops unsolicited packets.
///
/// # Errors
/// nft refused.
pub fn closes(network: &Network, host: &str) -> Result<()> {
    hides(network, host, CLOSED)
}

/// The port of a client whose NAT is symmetric for it, as [`preserves_ports`] makes it.
pub const SYMMETRIC_PORT: u16 = 3_600;

/// From now on the NAT on a host is symmetric and preserves ports, as clients see it: each destination sees another port of [`SYMMETRIC_PORT`], the first
/// address of the server sees its number, and the first destination of any other port sees that one's.
///
/// # Errors
/// nft refused.
pub fn preserves_ports(network: &Network, host: &str) -> Result<()> {
    let others = format!("oifname \"out0\" udp sport {SYMMETRIC_PORT} ip daddr != 198.51.100.1");
    let scattered =
        format!("{others} masquerade to :20000-40000 fully-random\n        oifname \"out0\" masquerade");
    let rules = MASQUERADE.replace("oifname \"out0\" masquerade", &scattered);
    hides(network, host, &format!("flush table ip hide\n{rules}"))
}

/// From now on the NAT on a host is a NAT44 of ours with this filtering, and this address in place of that of the host.
///
/// # Errors
/// It does not start.
pub fn is_our_nat44(network: &Network, host: &str, [own, outside]: [&str; 2], filtering: &str) -> Result<()> {
    hides(network, host, "delete table ip hide\n")?;
    network.route("middle", &format!("{outside}/32 via {own}"))?;
    let configuration = format!(
        "[gateway]\nipv4_address = \"{own}\"\nworkers = 1\n\n[[pool]]\nname = \"public\"\naddresses = [\"{outside}\"]\n\n\
         [nat44]\ninside = [\"192.168.1.0/24\"]\npool = \"public\"\nfiltering = \"{filtering}\"\n"
    );
    run_sixway_on(network, host, &configuration).map(drop)
}

fn hides(network: &Network, host: &str, rules: &str) -> Result<()> {
    let rules = network.file(&format!("hide-{host}.nft"), rules)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host(host)?.run(nft, Duration::from_secs(5))?.succeeded()?;
    Ok(())
}

fn built(more: &[&'static str]) -> Result<Network> {
    let network = Network::new(&[&["client", "nat", "middle", "server", "gateway", "host"], more].concat())?;
    network.link(("client", "up0"), ("nat", "in0"))?;
    network.link(("nat", "out0"), ("middle", "down0"))?;
    network.link(("server", "up0"), ("middle", "down1"))?;
    network.link(("gateway", "out0"), ("middle", "down2"))?;
    network.link(("gateway", "in0"), ("host", "up0"))?;
    for (host, device, address) in [
        ("client", "up0", "192.168.1.2/24"),
        ("nat", "in0", "192.168.1.1/24"),
        ("nat", "out0", "198.51.100.18/28"),
        ("middle", "down0", "198.51.100.30/28"),
        ("server", "up0", "198.51.100.1/28"),
        ("server", "up0", "198.51.100.2/28"),
        ("middle", "down1", "198.51.100.14/28"),
        ("gateway", "out0", "198.51.100.34/28"),
        ("middle", "down2", "198.51.100.46/28"),
        ("server", "up0", "2001:db8:5::1/64"),
        ("middle", "down1", "2001:db8:5::14/64"),
        ("gateway", "out0", "2001:db8:6::34/64"),
        ("middle", "down2", "2001:db8:6::46/64"),
        ("gateway", "in0", "2001:db8:1::1/64"),
        ("host", "up0", "2001:db8:1::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("client", "default via 192.168.1.1"),
        ("nat", "default via 198.51.100.30"),
        ("server", "default via 198.51.100.14"),
        ("server", "default via 2001:db8:5::14"),
        ("gateway", "default via 198.51.100.46"),
        ("gateway", "default via 2001:db8:6::46"),
        ("middle", "2001:db8:1::/64 via 2001:db8:6::34"),
        ("host", "default via 2001:db8:1::1"),
    ] {
        network.route(host, route)?;
    }
    for host in ["nat", "middle", "gateway"] {
        network.forwards(host)?;
    }
    hides(&network, "nat", MASQUERADE)?;
    Ok(network)
}

/// Starts a program of miredo with a configuration file.
///
/// # Errors
/// It does not start.
pub fn run_miredo(network: &Network, host: &str, program: &'static str, configuration: &str) -> Result<u32> {
    let file = network.file(&format!("{host}.miredo"), configuration)?;
    let mut miredo = command(program)?;
    miredo.arg("-f").arg("-c").arg(file).arg("-p").arg(network.folder().join(format!("{host}.pid")));
    network.start(host, miredo)
}

/// Starts miredo's server.
///
/// # Errors
/// It does not start.
pub fn run_miredo_server(network: &Network) -> Result<u32> {
    run_miredo(network, "server", "miredo-server", "ServerBindAddress 198.51.100.1\n")
}

/// Starts miredo's client on the host "client".
///
/// # Errors
/// It does not start.
pub fn run_miredo_client(network: &Network) -> Result<u32> {
    run_miredo(network, "client", "miredo", "InterfaceName teredo\nServerAddress 198.51.100.1\n")
}

/// The NAT's rules from now on.
///
/// # Errors
/// nft refused.
pub fn hides_by(network: &Network, masquerade: &str) -> Result<()> {
    hides(network, "nat", &format!("flush table ip hide\n{}", MASQUERADE.replace("masquerade", masquerade)))
}

/// The Teredo address of a host, if it has one.
///
/// # Errors
/// `ip` failed.
pub fn address_of(network: &Network, host: &str) -> Result<Option<String>> {
    let said = network.host(host)?.ip("-6 -o address show scope global").unwrap_or_default();
    let address = said.split_whitespace().find(|word| word.starts_with("2001:0:"));
    let address = address.or_else(|| {
        said.split_whitespace().find(|word| word.starts_with("2001:") && !word.starts_with("2001:db8:"))
    });
    Ok(address.and_then(|word| Some(word.split_once('/')?.0.to_owned())))
}

/// Starts miredo's server and client; the Teredo address of the client, once it is qualified.
///
/// # Errors
/// It is not qualified in time.
pub fn qualified(network: &Network) -> Result<String> {
    run_miredo_server(network)?;
    run_miredo_client(network)?;
    let address = || {
        let said = network.host("client")?.ip("-6 -o address show scope global").unwrap_or_default();
        let address = said.split_whitespace().find(|word| word.starts_with("2001:0:"));
        let address = address.or_else(|| {
            said.split_whitespace().find(|word| word.starts_with("2001:") && said.contains("teredo"))
        });
        Ok(address.and_then(|word| Some(word.split_once('/')?.0.to_owned())))
    };
    interrupt::wait_until(
        Duration::from_secs(30),
        "a Teredo address of miredo",
        || Ok(address()?.is_some()),
    )?;
    address()?.ok_or_else(|| Failure::Unexpected("the address is gone".into()))
}

/// Starts miredo's relay on the host "gateway".
///
/// # Errors
/// It does not run.
pub fn run_miredo_relay(network: &Network) -> Result<u32> {
    let relay = run_miredo(
        network,
        "gateway",
        "miredo",
        "RelayType relay\nInterfaceName teredo\nBindAddress 198.51.100.34\nBindPort 3545\n",
    )?;
    wait_for_relay(network, "gateway")?;
    Ok(relay)
}

/// Waits until miredo's relay on a host has its route.
///
/// # Errors
/// It has none in time.
pub fn wait_for_relay(network: &Network, host: &str) -> Result<()> {
    let there = || Ok(network.host(host)?.ip("-6 route show 2001::/32").is_ok_and(|said| !said.is_empty()));
    interrupt::wait_until(Duration::from_secs(10), "a route of miredo's relay", there)
}
