//! Teredo clients, ours and miredo's, behind NATs of several kinds, ours among them.

use crate::Interop;
use crate::counters::dropped;
use crate::teredo_client::{answers, client_says, has_address, qualified, two_qualified, two_qualified_with};
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on, show_on};
use sixway_lab::interrupt;
use sixway_lab::teredo::{
    CLIENT, HOST, RELAY, SERVER, SYMMETRIC_PORT, address_of, closes, hides_by, is_our_nat44, network,
    network_of_two, preserves_ports, run_miredo_client, run_miredo_relay,
};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("our_teredo_client_finds_our_nat44_to_be_a_cone_nat", OURS, || {
        behind_our_nat44("endpoint-independent", "NAT: cone")
    }),
    Interop::new("our_teredo_client_finds_our_nat44_to_be_restricted_by_address", OURS, || {
        behind_our_nat44("address-dependent", RESTRICTED)
    }),
    Interop::new("our_teredo_client_finds_our_nat44_to_be_restricted_by_port", OURS, || {
        behind_our_nat44("address-and-port-dependent", RESTRICTED)
    }),
    Interop::new(
        "our_teredo_client_with_ours_behind_a_symmetric_nat_and_a_host_reach_each_other",
        OURS,
        || with_ours(Nat::Symmetric),
    ),
    Interop::new("our_teredo_client_with_ours_behind_a_closed_nat_and_a_host_reach_each_other", OURS, || {
        with_ours(Nat::Closed)
    }),
    Interop::new("our_teredo_client_without_a_nat_and_a_host_reach_each_other", OURS, without_nat),
    Interop::new("two_of_our_teredo_clients_behind_two_of_our_nat44_reach_each_other", OURS, two_nat44),
    Interop::new(
        "two_of_our_teredo_clients_behind_nats_that_preserve_ports_and_are_symmetric_reach_each_other_by_predicted_ports",
        OURS,
        || by_predicted_ports(true, 8),
    ),
    Interop::new(
        "our_teredo_client_behind_a_nat_that_preserves_ports_and_is_symmetric_reaches_one_behind_masquerade_by_a_predicted_port",
        OURS,
        || by_predicted_ports(false, 8),
    ),
    Interop::new("without_predicted_ports_clients_behind_such_nats_do_not_reach_each_other", OURS, || {
        by_predicted_ports(true, 0)
    }),
    Interop::new(
        "our_teredo_client_with_miredo_behind_masquerade_and_a_host_reach_each_other",
        MIREDO,
        || with_miredo(Nat::Masquerade),
    ),
    Interop::new("our_teredo_client_with_miredo_behind_a_symmetric_nat_reaches_a_host", MIREDO, || {
        with_miredo(Nat::Symmetric)
    }),
    Interop::new(
        "our_teredo_client_with_miredo_behind_a_closed_nat_and_a_host_reach_each_other",
        MIREDO,
        || with_miredo(Nat::Closed),
    ),
    Interop::new(
        "our_teredo_client_with_miredo_behind_our_nat44_and_a_host_reach_each_other",
        MIREDO,
        || with_miredo(Nat::Nat44),
    ),
    Interop::new("a_miredo_client_with_ours_behind_masquerade_and_a_host_reach_each_other", MIREDO, || {
        of_miredo(Nat::Masquerade)
    }),
    Interop::new(
        "a_miredo_client_with_ours_behind_a_symmetric_nat_is_not_reached_and_the_relay_says_why",
        MIREDO,
        || of_miredo(Nat::Symmetric),
    ),
    Interop::new("a_miredo_client_with_ours_behind_a_closed_nat_and_a_host_reach_each_other", MIREDO, || {
        of_miredo(Nat::Closed)
    }),
    Interop::new("a_miredo_client_with_ours_behind_our_nat44_and_a_host_reach_each_other", MIREDO, || {
        of_miredo(Nat::Nat44)
    }),
];

const OURS: &[&str] = &["sixway", "nft", "ping"];
const MIREDO: &[&str] = &["sixway", "miredo", "miredo-server", "nft", "ping"];
const RESTRICTED: &str = "NAT: restricted or port-restricted cone";

/// The address of the host of the NAT, and that of its pool.
const NAT: [&str; 2] = ["198.51.100.18", "198.51.100.20"];

/// A NAT in front of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nat {
    /// nftables: what comes unsolicited goes to the host of the NAT.
    Masquerade,
    /// Each destination sees another port.
    Symmetric,
    /// What comes unsolicited is dropped in input.
    Closed,
    /// A NAT44 of ours, which admits answers alone.
    Nat44,
}

fn behind(nat: Nat) -> Result<Network> {
    let network = network()?;
    match nat {
        Nat::Masquerade => {}
        Nat::Symmetric => hides_by(&network, "masquerade random,fully-random")?,
        Nat::Closed => closes(&network, "nat")?,
        Nat::Nat44 => is_our_nat44(&network, "nat", NAT, "address-and-port-dependent")?,
    }
    Ok(network)
}

/// Waits for a first answer, which proves the way; then all pings come back.
fn reaches(network: &Network, from: &str, to: &str) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(20), &format!("an answer of {to} to {from}"), || {
        answers(network, from, to)
    })?;
    pings_come_back(network.host(from)?, to, 1_232)
}

fn behind_our_nat44(filtering: &str, found: &str) -> Result<()> {
    let network = network()?;
    is_our_nat44(&network, "nat", NAT, filtering)?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}firewall = false\n"))?;
    let address = has_address(&network, "client", |_| true)?;
    let mut said = String::new();
    let waited = interrupt::wait_until(Duration::from_secs(10), found, || {
        interrupt::pause(Duration::from_millis(100))?;
        said = client_says(&network)?;
        Ok(said.contains(found))
    });
    waited.map_err(|error| Failure::Unexpected(format!("{error}: {said}")))?;
    assert!(said.contains(&format!("mapped to {}:", NAT[1])), "{said}");
    // The host begins.
    reaches(&network, "host", &address)?;
    reaches(&network, "client", HOST)
}

/// No program of anybody else.
fn with_ours(nat: Nat) -> Result<()> {
    let network = behind(nat)?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}firewall = false\n"))?;
    let address = has_address(&network, "client", |_| true)?;
    assert_eq!(client_says(&network)?.contains("NAT: symmetric"), nat == Nat::Symmetric);
    reaches(&network, "host", &address)?;
    reaches(&network, "client", HOST)
}

/// The client is the host of the NAT, which has a public address.
fn without_nat() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    let configuration = CLIENT.replace("\"up0\"", "\"out0\"");
    run_sixway_on(&network, "nat", &format!("{configuration}firewall = false\n"))?;
    let mut address = None;
    interrupt::wait_until(Duration::from_secs(30), "a Teredo address", || {
        address = address_of(&network, "nat")?;
        Ok(address.is_some())
    })?;
    let address = address.unwrap_or_default();
    reaches(&network, "host", &address)?;
    reaches(&network, "nat", HOST)
}

fn two_nat44() -> Result<()> {
    let network = network_of_two()?;
    let filtering = "address-and-port-dependent";
    is_our_nat44(&network, "nat", NAT, filtering)?;
    is_our_nat44(&network, "its_nat", ["198.51.100.50", "198.51.100.52"], filtering)?;
    run_sixway_on(&network, "server", SERVER)?;
    let [address, neighbour] = two_qualified(&network)?;
    reaches(&network, "client", &neighbour)?;
    reaches(&network, "neighbour", &address)?;
    let said = client_says(&network)?;
    assert!(said.contains("198.51.100.52:") && said.contains("established"), "{said}");
    Ok(())
}

/// The neighbour's NAT is of the same kind, or it is nftables' masquerade, which admits those that were sent to.
fn by_predicted_ports(both: bool, ports: u16) -> Result<()> {
    let network = network_of_two()?;
    preserves_ports(&network, "nat")?;
    if both {
        preserves_ports(&network, "its_nat")?;
    }
    run_sixway_on(&network, "server", SERVER)?;
    let options = format!("port = {SYMMETRIC_PORT}\nprediction_ports = {ports}\n");
    let [_, neighbour] = two_qualified_with(&network, &options)?;
    let says = |what: &str| {
        let mut said = String::new();
        let waited = interrupt::wait_until(Duration::from_secs(20), what, || {
            said = client_says(&network)?;
            Ok(said.contains(what))
        });
        waited.map_err(|error| Failure::Unexpected(format!("{error}: {said}"))).map(|()| said)
    };
    let said = says("NAT: symmetric · ports: preserved")?;
    if ports == 0 {
        assert!(!said.contains("predicted ports"), "{said}");
        assert!(!answers(&network, "client", &neighbour)?);
        return says("no answer to 4 bubbles").map(drop);
    }
    says("predicted ports: 8 spare ports, 0 in use: the NAT maps each to its own number")?;
    reaches(&network, "client", &neighbour)?;
    says("packets pass both ways, from the spare port")?;
    let address = address_of(&network, "client")?.unwrap_or_default();
    reaches(&network, "neighbour", &address)?;
    says("8 spare ports, 1 in use").map(drop)
}

/// Our client with a server and a relay of miredo.
fn with_miredo(nat: Nat) -> Result<()> {
    let network = behind(nat)?;
    run_miredo_relay(&network)?;
    let address = qualified(&network, &format!("{CLIENT}firewall = false\n"))?;
    // A relay of RFC 4380 knows no nonces: it finds no client behind a symmetric NAT, but is found by one.
    if nat != Nat::Symmetric {
        reaches(&network, "host", &address)?;
    }
    reaches(&network, "client", HOST)
}

/// A client of miredo with our server and relay.
fn of_miredo(nat: Nat) -> Result<()> {
    let network = behind(nat)?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_miredo_client(&network)?;
    interrupt::wait_until(Duration::from_secs(40), "an address of miredo", || {
        Ok(address_of(&network, "client")?.is_some())
    })?;
    let address = address_of(&network, "client")?;
    let address = address.ok_or_else(|| Failure::Unexpected("the address is gone".into()))?;
    if nat == Nat::Symmetric {
        return is_not_reached(&network, &address);
    }
    reaches(&network, "host", &address)?;
    reaches(&network, "client", HOST)
}

/// miredo asks one address of its server, and does not see of which kind its NAT is. Its bubbles come from another port than its address says, without the
/// nonce that RFC 6081 asks for: nothing proves whose they are.
fn is_not_reached(network: &Network, address: &str) -> Result<()> {
    let mut said = String::new();
    let waited = interrupt::wait_until(Duration::from_secs(30), "a relay that gives up", || {
        assert!(!answers(network, "host", address)?, "{address} answered");
        let words = show_on(network, "gateway", &["teredo"])?;
        said = network.host("gateway")?.run(words, Duration::from_secs(5))?.succeeded()?.stdout;
        Ok(said.contains("its NAT has another mapping for each peer"))
    });
    waited.map_err(|error| Failure::Unexpected(format!("{error}: {said}")))?;
    assert!(dropped(network, "SpoofedEmbeddedSource")? > 0);
    Ok(())
}
