//! Teredo's relay with a client and a server that are not ours (miredo), through a NAT.
//!
//! ```text
//! client ─── nat ─── middle ─── gateway (Sixway, relay) ─── host
//! 192.168.1.2    198.51.100.18  │   198.51.100.34  2001:db8:1::1   2001:db8:1::2
//!                             server 198.51.100.1 and .2, 2001:db8:5::1
//! ```

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong};
use crate::datagrams::pattern;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_miredo_client_behind_a_nat_reaches_hosts_through_our_relay", PROGRAMS, miredo_client),
    Interop::new("hosts_reach_a_silent_miredo_client_through_our_relay", PROGRAMS, from_outside),
];

const PROGRAMS: &[&str] = &["sixway", "miredo", "miredo-server", "nft", "ping", "nginx", "curl"];

const HOST: &str = "2001:db8:1::2";

const RELAY: &str = "[gateway]
workers = 2
ipv6_address = \"2001:db8:1::1\"

[teredo_relay]
interface = \"out0\"
ipv6_address = \"2001:db8:1::1\"
";

const MASQUERADE: &str = "table ip hide {
    chain leaving {
        type nat hook postrouting priority srcnat
        oifname \"out0\" masquerade
    }
}
";

/// The network above, with all addresses and routes.
fn network() -> Result<Network> {
    let network = Network::new(&["client", "nat", "middle", "server", "gateway", "host"])?;
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
    let rules = network.file("hide.nft", MASQUERADE)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("nat")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    Ok(network)
}

/// Starts a program of miredo with a configuration file.
fn start(network: &Network, host: &str, program: &'static str, configuration: &str) -> Result<u32> {
    let file = network.file(&format!("{host}.miredo"), configuration)?;
    let mut miredo = command(program)?;
    miredo.arg("-f").arg("-c").arg(file).arg("-p").arg(network.folder().join(format!("{host}.pid")));
    network.start(host, miredo)
}

/// The Teredo address of the client, once it is qualified.
fn qualified(network: &Network) -> Result<String> {
    start(network, "server", "miredo-server", "ServerBindAddress 198.51.100.1\n")?;
    start(network, "client", "miredo", "InterfaceName teredo\nServerAddress 198.51.100.1\n")?;
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

fn page() -> String {
    pattern(3_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect()
}

fn is_the_page(body: &str, at: &str) -> Result<()> {
    match body == page() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("another page arrived at {at}"))),
    }
}

/// The client begins: its first packet makes it test the relay through its server.
fn miredo_client() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    let address = qualified(&network)?;
    interrupt::wait_until(Duration::from_secs(20), "a first answer", || {
        Ok(ping(network.host("client")?, HOST, 1, 56, Duration::from_secs(1))?.answered == 1)
    })?;
    for octets in [56, 1_232] {
        pings_come_back(network.host("client")?, HOST, octets)?;
        pings_come_back(network.host("host")?, &address, octets)?;
    }
    serve_page(&network, "host", &format!("[{HOST}]"), &page())?;
    is_the_page(&fetch(&network, "client", &format!("http://[{HOST}]/"))?.body, "the client")?;
    assert!(counter(&network, "teredo.encap")? > 1_000);
    assert!(counter(&network, "teredo.decap")? > 100);
    no_checksum_is_wrong(&network)
}

/// A host begins: the relay asks the client, through its server, for a bubble.
fn from_outside() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    let address = qualified(&network)?;
    interrupt::wait_until(Duration::from_secs(20), "a first answer", || {
        Ok(ping(network.host("host")?, &address, 1, 56, Duration::from_secs(1))?.answered == 1)
    })?;
    pings_come_back(network.host("host")?, &address, 1_232)?;
    let said = network.host("gateway")?.run(show(&network, &["teredo"])?, Duration::from_secs(5))?;
    let said = said.succeeded()?.stdout;
    assert!(said.contains(&address) && said.contains("established"), "{said}");
    serve_page(&network, "client", &format!("[{address}]"), &page())?;
    is_the_page(&fetch(&network, "host", &format!("http://[{address}]/"))?.body, "the host")?;
    no_checksum_is_wrong(&network)
}
