//! Hosts with addresses from the site's DHCP server, and their mappings by NAT-PMP.

use crate::Interop;
use crate::site_network::{PUBLIC4, STRANGER4, home, is_kept_out, passes, socket, up};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::programs;
use sixway_lab::topology::Network;
use std::net::SocketAddr;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "a_mapping_ends_with_the_lease_of_the_host_that_asked_for_it",
    &["sixway", "nft", "dnsmasq", "busybox", "natpmpc"],
    ends,
)];

/// The site's host takes a lease until its client is ended, which releases it; the client's process, and the address.
pub fn lease(network: &Network) -> Result<(u32, String)> {
    let told = network.folder().join("leased");
    let script = network.file(
        "lease.sh",
        &format!(
            "#!/bin/sh\n[ $1 = bound ] && echo $ip > {0}.new && mv {0}.new {0}\nexit 0\n",
            told.display()
        ),
    )?;
    programs::make_executable(&script)?;
    let mut client = command("busybox")?;
    client.args(["udhcpc", "-f", "-R", "-t", "10", "-T", "1", "-i", "up0", "-s"]).arg(script);
    let id = network.start("host", client)?;
    interrupt::wait_until(Duration::from_secs(20), "a lease", || Ok(told.exists()))?;
    let address = std::fs::read_to_string(&told).asking(|| "the lease".to_owned())?.trim().to_owned();
    Ok((id, address))
}

/// RFC 6887 §15. The host keeps the address, so that what comes in shows that the mapping is still there.
fn ends() -> Result<()> {
    let network = home()?;
    network.host("host")?.ip("-4 address flush dev up0")?;
    up(&network, &["--dhcp"])?;
    let (client, address) = lease(&network)?;
    ends_with_its_lease(&network, client, &address)
}

/// The host with this lease of that client has a mapping until it releases the lease.
pub fn ends_with_its_lease(network: &Network, client: u32, address: &str) -> Result<()> {
    network.address("host", "up0", &format!("{address}/24"))?;
    network.route("host", "default via 192.168.1.1")?;
    let host = socket(network, "host", address, 4_000)?;
    let stranger = socket(network, "server", STRANGER4, 5_000)?;
    let mut natpmpc = command("natpmpc")?;
    natpmpc.args(["-g", "192.168.1.1", "-a", "25000", "4000", "udp", "3000"]);
    let said = network.host("host")?.run(natpmpc, Duration::from_secs(30))?.stdout;
    let port = crate::pcp::mapped(&said)?;
    let mapped: SocketAddr =
        format!("{PUBLIC4}:{port}").parse().map_err(|_| Failure::Unexpected("an address".into()))?;
    passes(&stranger, mapped, &host)?;
    // The lease is looked at several times.
    std::thread::sleep(Duration::from_secs(3));
    passes(&stranger, mapped, &host)?;
    network.with_process(client, Process::stop)?;
    interrupt::wait_until(Duration::from_secs(10), "the end of the mapping", || {
        Ok(is_kept_out(&stranger, mapped, &host).is_ok())
    })
}
