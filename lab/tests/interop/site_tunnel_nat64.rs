//! `sixway up` for hosts without IPv4, whose IPv6 comes by 6rd or by 6to4: the NAT64 and the DNS64 are within the tunnel's prefix.
//!
//! ```text
//! host, IPv6-only ─── in0 gateway out0 ─── up0 server: border relay or 6to4 relay, DNS, and pages by IPv4
//! ```

use crate::Interop;
use crate::site_nat64::up_resolving;
use crate::site_network::{at, is_kept_out, passes, socket};
use crate::site_six_rd::{home4, reaches, relay};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::name_service::{Resolving, addresses, serve};
use sixway_lab::probe::{fetch_from, serve_page};
use sixway_lab::process::{Process, RunsCommands as _};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

const PROGRAMS: &[&str] = &["sixway", "nft", "nsd", "taskset", "unshare", "getent", "curl", "nginx", "ping"];

pub const TESTS: &[Interop] = &[
    Interop::new("site_up_by_6rd_serves_hosts_without_ipv4", PROGRAMS, six_rd),
    Interop::new("site_up_by_6to4_serves_hosts_without_ipv4", PROGRAMS, six_to_four),
];

/// The server, which is a relay of tunnels as well, and an uncontacted host next to it. These addresses are global, unlike those for documentation.
const SERVER: &str = "5.6.7.2";
const STRANGER: &str = "5.6.7.3";
/// The server as IPv6-only hosts see it.
const SERVER64: &str = "64:ff9b::506:702";

/// The home without native IPv6, at global addresses, whose host has no IPv4.
fn home_without_ipv4() -> Result<Network> {
    let network = home4()?;
    for (host, address) in [("gateway", "5.6.7.1/24"), ("server", "5.6.7.2/24"), ("server", "5.6.7.3/24")] {
        network.address(host, if host == "gateway" { "out0" } else { "up0" }, address)?;
    }
    for (host, words) in [
        ("gateway", "address del 203.0.113.1/24 dev out0"),
        ("gateway", "-4 route replace default via 5.6.7.2"),
        ("host", "-4 address flush dev up0"),
    ] {
        network.host(host)?.ip(words)?;
    }
    serve(&network, "shop A 5.6.7.2\n")?;
    serve_page(&network, "server", SERVER, "from the server")?;
    Ok(network)
}

fn to(text: &str) -> Result<SocketAddr> {
    text.parse().map_err(|_| Failure::Unexpected(text.into()))
}

/// The host finds a name by the DNS64 at this address, and gets the page of its IPv4 server.
fn reads_the_page(network: &Network, dns64: &str) -> Result<()> {
    let host = Resolving::by(network, "host", dns64)?;
    interrupt::wait_until(Duration::from_secs(20), "an address from the DNS64", || {
        Ok(addresses(&host, "shop.example").is_ok_and(|found| found == [SERVER64]))
    })?;
    for _ in 0..3 {
        assert_eq!(fetch_from(&host, network, "http://shop.example/")?.body, "from the server");
    }
    Ok(())
}

/// With the host's address: replies arrive, at its port of the public address, and nothing else does. An uncontacted host in the IPv6
/// Internet may write the NAT64's prefix into the source of a packet, which the tunnel then brings here.
fn strangers_stay_out(network: &Network, host6: &str, public: &str) -> Result<()> {
    network.address("host", "up0", &format!("{host6}/64"))?;
    let host = socket(network, "host", host6, 4_000)?;
    let server = socket(network, "server", SERVER, 5_000)?;
    let stranger = socket(network, "server", STRANGER, 5_000)?;
    let seen = passes(&host, to(&format!("[{SERVER64}]:5000"))?, &server)?;
    assert!(seen.ip().to_string() == public && seen.port() >= 61_000, "{seen}");
    passes(&server, seen, &host)?;
    is_kept_out(&stranger, seen, &host)?;
    network.address("server", "lo", "64:ff9b::506:703/128")?;
    let forged = socket(network, "server", "64:ff9b::506:703", 5_000)?;
    is_kept_out(&forged, at(&host)?, &host)
}

/// Neither the doctor nor the start finds fault with it.
fn is_fine(network: &Network, id: u32) -> Result<()> {
    let resolving = Resolving::with(network, "gateway", "nameserver 203.0.113.2\n")?;
    let mut doctor = Command::new(sixway()?);
    doctor.args(["doctor", "-c", &format!("/run/sixway/{}.toml", network.gateway_name("gateway"))]);
    let said = resolving.run(doctor, Duration::from_secs(60))?;
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(said.status.success() && !all.contains("FAULT") && !all.contains("warning"), "{all}");
    assert!(all.contains("upstream 203.0.113.2:53 answers"), "{all}");
    let log = network.with_process(id, |process| process.stdout() + &process.stderr())?;
    assert!(!log.contains("warning") && !log.contains("WARN"), "{log}");
    Ok(())
}

fn six_rd() -> Result<()> {
    let network = home_without_ipv4()?;
    let section = "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:db9::/32\"\naddress = \"5.6.7.2\"\n";
    relay(&network, section)?;
    let id = up_resolving(&network, &["--wan", "out0", "--nat64", "--6rd", "2001:db9::/32,0,5.6.7.2"])?;
    reaches(&network, "2001:db9:506:701:")?;
    reads_the_page(&network, "2001:db9:506:701::1")?;
    strangers_stay_out(&network, "2001:db9:506:701::77", "5.6.7.1")?;
    is_fine(&network, id)
}

/// The prefix, the NAT64 and the DNS64 follow the public address.
fn six_to_four() -> Result<()> {
    let network = home_without_ipv4()?;
    relay(&network, "[six_to_four]\nrole = \"relay\"\naddress = \"5.6.7.2\"\n")?;
    let id = up_resolving(&network, &["--wan", "out0", "--6to4", SERVER])?;
    reaches(&network, "2002:506:701:")?;
    reads_the_page(&network, "2002:506:701::1")?;
    strangers_stay_out(&network, "2002:506:701::77", "5.6.7.1")?;
    is_fine(&network, id)?;
    let gateway = network.host("gateway")?;
    gateway.ip("address del 5.6.7.1/24 dev out0")?;
    gateway.ip("address add 5.6.7.9/24 dev out0")?;
    gateway.ip("-4 route replace default via 5.6.7.2")?;
    network.host("host")?.ip("-6 address del 2002:506:701::77/64 dev up0")?;
    reaches(&network, "2002:506:709:")?;
    reads_the_page(&network, "2002:506:709::1")?;
    network.with_process(id, Process::must_run)?
}
