//! What `sixway doctor` and the gateway itself say of a fresh box that `sixway up` made a gateway: nothing is wrong.

use crate::Interop;
use crate::site_nat64::up_resolving;
use crate::site_network::{HOST6, at, home, passes, socket};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::name_service::{Resolving, serve};
use sixway_lab::process::{Process, RunsCommands as _};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
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
];

/// The home with another address outside. Its own are for documentation, and not global (RFC 6890).
fn home_at(network: &str) -> Result<Network> {
    let home = home()?;
    let gateway = home.host("gateway")?;
    gateway.ip("address del 203.0.113.1/24 dev out0")?;
    home.address("gateway", "out0", &format!("{network}.1/24"))?;
    home.address("server", "up0", &format!("{network}.2/24"))?;
    gateway.ip(&format!("-4 route replace default via {network}.2"))?;
    Ok(home)
}

/// Nothing is a fault, and nothing is warned of: neither by the doctor, nor at the start.
fn is_fine(network: &Network, id: u32) -> Result<()> {
    let resolving = Resolving::with(network, "gateway", "nameserver 203.0.113.2\n")?;
    let mut doctor = Command::new(sixway()?);
    doctor.args(["doctor", "-c", &format!("/run/sixway/{}.toml", network.gateway_name("gateway"))]);
    let said = resolving.run(doctor, Duration::from_secs(60))?;
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(said.status.success() && !all.contains("FAULT") && !all.contains("warning"), "{all}");
    for part in ["[nat64]", "[dns64]"] {
        let file = format!("/run/sixway/{}.toml", network.gateway_name("gateway"));
        let text = std::fs::read_to_string(&file).map_err(|error| Failure::Io(file, error))?;
        assert!(text.contains(part), "{text}");
    }
    assert!(all.contains("upstream 203.0.113.2:53 answers"), "{all}");
    let log = network.with_process(id, |process| process.stdout() + &process.stderr())?;
    assert!(!log.contains("warning") && !log.contains("WARN"), "{log}");
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
