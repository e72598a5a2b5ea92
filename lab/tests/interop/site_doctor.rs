//! What `sixway doctor` and the gateway itself say of a fresh box that `sixway up` made a gateway: nothing is wrong.

use crate::Interop;
use crate::day_line::pppoe;
use crate::day_network::{self, FIRST};
use crate::site_nat64::up_resolving;
use crate::site_network::{HOST6, at, home, passes, socket, up};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::name_service::{Resolving, serve};
use sixway_lab::process::{Process, RunsCommands as _};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "site_up_with_native_ipv6_nat64_and_dns64_is_fine_by_the_doctor",
        &["sixway", "nft", "nsd", "taskset", "unshare", "dnsmasq"],
        global,
    ),
    Interop::new(
        "site_up_behind_another_nat_is_fine_by_the_doctor_and_leads_to_its_private_network",
        &["sixway", "nft", "nsd", "taskset", "unshare"],
        behind_a_nat,
    ),
    Interop::new(
        "doctor_names_the_program_that_has_the_port_of_the_dhcp_server",
        &["sixway", "nft", "dnsmasq"],
        port_is_taken,
    ),
    Interop::new(
        "doctor_finds_no_fault_of_site_up_over_pppoe",
        &["sixway", "nft", "nsd", "taskset", "unshare", "python3"],
        over_pppoe,
    ),
];

/// The home with another address outside. Its own are for documentation, and not global (RFC 6890).
pub fn home_at(network: &str) -> Result<Network> {
    let home = home()?;
    let gateway = home.host("gateway")?;
    gateway.ip("address del 203.0.113.1/24 dev out0")?;
    home.address("gateway", "out0", &format!("{network}.1/24"))?;
    home.address("server", "up0", &format!("{network}.2/24"))?;
    gateway.ip(&format!("-4 route replace default via {network}.2"))?;
    Ok(home)
}

/// What the doctor says of the box, and whether nothing is a fault, and nothing is warned of.
pub fn doctor(network: &Network) -> Result<(String, bool)> {
    let resolving = Resolving::with(network, "gateway", "nameserver 203.0.113.2\n")?;
    let mut doctor = Command::new(sixway()?);
    doctor.args(["doctor", "-c", &format!("/run/sixway/{}.toml", network.gateway_name("gateway"))]);
    let said = resolving.run(doctor, Duration::from_secs(60))?;
    let all = format!("{}{}", said.stdout, said.stderr);
    let is_fine = said.status.success() && !all.contains("FAULT") && !all.contains("warning");
    Ok((all, is_fine))
}

/// Neither the doctor nor the start finds anything; what the doctor says.
pub fn finds_nothing(network: &Network, id: u32) -> Result<String> {
    let (all, is_fine) = doctor(network)?;
    assert!(is_fine, "{all}");
    let log = network.with_process(id, |process| process.stdout() + &process.stderr())?;
    assert!(!log.contains("warning") && !log.contains("WARN"), "{log}");
    Ok(all)
}

/// The same of a site with NAT64 and DNS64.
fn is_fine(network: &Network, id: u32) -> Result<()> {
    let all = finds_nothing(network, id)?;
    for part in ["[nat64]", "[dns64]"] {
        let file = format!("/run/sixway/{}.toml", network.gateway_name("gateway"));
        let text = std::fs::read_to_string(&file).map_err(|error| Failure::Io(file, error))?;
        assert!(text.contains(part), "{text}");
    }
    assert!(all.contains("upstream 203.0.113.2:53 answers"), "{all}");
    for check in ["routes", "forwarding", "mtu", "ports", "listen", "packet filter"] {
        assert!(all.contains(&format!("  {check}: ")), "{check}: {all}");
    }
    Ok(())
}

fn global() -> Result<()> {
    let network = home_at("5.6.7")?;
    serve(&network, "shop A 5.6.7.2\n")?;
    for options in [&[][..], &["--dhcp", "--ipv6-mostly"], &["--fast-path"]] {
        let id = up_resolving(&network, options)?;
        is_fine(&network, id)?;
        network.with_process(id, Process::stop)?;
    }
    Ok(())
}

/// RFC 8215: IPv6-only hosts reach servers in the provider's private network, which the well-known prefix must not represent.
fn behind_a_nat() -> Result<()> {
    let network = home_at("100.64.7")?;
    serve(&network, "shop A 100.64.7.2\n")?;
    let id = up_resolving(&network, &[])?;
    is_fine(&network, id)?;
    let (host, server) =
        (socket(&network, "host", HOST6, 4_000)?, socket(&network, "server", "100.64.7.2", 5_000)?);
    let to = "[64:ff9b:1::100.64.7.2]:5000".parse().map_err(|_| Failure::Unexpected("an address".into()))?;
    let seen = passes(&host, to, &server)?;
    assert_eq!(seen.ip().to_string(), "100.64.7.1");
    assert_eq!(at(&host)?.port(), 4_000);
    passes(&server, seen, &host).map(drop)
}

/// A program of this host has the port: dnsmasq ends, and the doctor says whose fault it is.
fn port_is_taken() -> Result<()> {
    let network = home_at("5.6.7")?;
    let other = network.host("gateway")?.enter(|| UdpSocket::bind("0.0.0.0:67"))?;
    let other = other.asking(|| "binding port 67".to_owned())?;
    up(&network, &["--dhcp", "--nat64=no"])?;
    let mut said = String::new();
    let named = format!("(process {}) has UDP port 67: dnsmasq does not run", std::process::id());
    interrupt::wait_until(Duration::from_secs(20), "a fault", || {
        said = doctor(&network)?.0;
        Ok(said.contains(&named))
    })?;
    drop(other);
    interrupt::wait_until(Duration::from_secs(20), "dnsmasq", || {
        said = doctor(&network)?.0;
        Ok(said.contains("leases addresses to hosts"))
    })
}

/// With native IPv6 by the same line.
fn over_pppoe() -> Result<()> {
    let network = day_network::home()?;
    FIRST.plug_in(&network)?;
    network.address("gateway", "in0", "2001:db8:1::1/64")?;
    pppoe(&network, "server", &["server", "up0", "ppp0", "5.6.7.2", "5.6.7.10"])?;
    pppoe(&network, "gateway", &["client", "out0", "ppp0"])?;
    interrupt::wait_until(Duration::from_secs(20), "a session of PPPoE", || {
        Ok(FIRST.public(&network)? == "5.6.7.10")
    })?;
    serve(&network, "shop A 5.6.7.2\n")?;
    let id = up_resolving(&network, &["--wan", "ppp0"])?;
    let said = finds_nothing(&network, id)?;
    assert!(said.contains("default route leads to ppp0"), "{said}");
    Ok(())
}
