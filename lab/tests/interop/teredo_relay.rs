//! Teredo's relay with a client and a server that are not ours (miredo), through a NAT.

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong};
use crate::datagrams::pattern;
use crate::teredo_client::has_address;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on, show};
use sixway_lab::interrupt;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::teredo::{HOST, OPEN_CLIENT, RELAY, SERVER, network, qualified};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_miredo_client_behind_a_nat_reaches_hosts_through_our_relay", PROGRAMS, miredo_client),
    Interop::new("hosts_reach_a_silent_miredo_client_through_our_relay", PROGRAMS, from_outside),
    Interop::new("our_relays_own_host_and_our_client_reach_each_other", OURS, own_host_and_ours),
    Interop::new("our_relays_own_host_and_a_miredo_client_reach_each_other", PROGRAMS, own_host_and_miredo),
];

const PROGRAMS: &[&str] = &["sixway", "miredo", "miredo-server", "nft", "ping", "nginx", "curl"];

const OURS: &[&str] = &["sixway", "nft", "ping", "nginx", "curl"];

/// An address of the relay's host itself, on its uplink.
const OWN: &str = "2001:db8:6::34";

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
    // A GSO packet of many segments is one frame.
    assert!(counter(&network, "teredo.encap")? > 40);
    assert!(counter(&network, "teredo.decap")? > 100);
    assert!(counter(&network, "link.sent_gso")? > 20, "datagrams leave together");
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

/// RFC 4380 §5.4: a relay for its own host. The host's packets go into the device by their route, and no other host has any part in it.
fn own_host_and_ours() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", OPEN_CLIENT)?;
    let address = has_address(&network, "client", |_| true)?;
    own_host(&network, &address, ["client", "gateway"])
}

/// The host begins: the relay's bubble goes to the client by miredo's server.
fn own_host_and_miredo() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    let address = qualified(&network)?;
    own_host(&network, &address, ["gateway", "client"])
}

fn own_host(network: &Network, address: &str, [first, second]: [&'static str; 2]) -> Result<()> {
    let to = |host: &str| if host == "client" { OWN } else { address };
    interrupt::wait_until(Duration::from_secs(20), "a first answer", || {
        Ok(ping(network.host(first)?, to(first), 1, 56, Duration::from_secs(1))?.answered == 1)
    })?;
    for host in [first, second] {
        for octets in [56, 1_232] {
            pings_come_back(network.host(host)?, to(host), octets)?;
        }
    }
    serve_page(network, "gateway", &format!("[{OWN}]"), &page())?;
    is_the_page(&fetch(network, "client", &format!("http://[{OWN}]/"))?.body, "the client")?;
    serve_page(network, "client", &format!("[{address}]"), &page())?;
    is_the_page(&fetch(network, "gateway", &format!("http://[{address}]/"))?.body, "the relay's host")?;
    assert!(counter(network, "teredo.encap")? > 40 && counter(network, "teredo.decap")? > 40);
    no_checksum_is_wrong(network)
}
