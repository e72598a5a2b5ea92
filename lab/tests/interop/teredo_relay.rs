//! Teredo's relay with a client and a server that are not ours (miredo), through a NAT.

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong};
use crate::datagrams::pattern;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::interrupt;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::teredo::{HOST, RELAY, network, qualified};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_miredo_client_behind_a_nat_reaches_hosts_through_our_relay", PROGRAMS, miredo_client),
    Interop::new("hosts_reach_a_silent_miredo_client_through_our_relay", PROGRAMS, from_outside),
];

const PROGRAMS: &[&str] = &["sixway", "miredo", "miredo-server", "nft", "ping", "nginx", "curl"];

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
