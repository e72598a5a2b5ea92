//! Hosts with addresses from the site's DHCP server, and their mappings by NAT-PMP.

use crate::Interop;
use crate::site_network::{PUBLIC4, STRANGER4, at, home, is_kept_out, passes, socket, up};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::programs;
use sixway_lab::topology::Network;
use std::net::SocketAddr;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "a_mapping_outlives_a_released_lease_and_ends_with_its_sessions_when_another_host_has_the_address",
    &["sixway", "nft", "dnsmasq", "busybox", "natpmpc"],
    ends,
)];

/// A client of the site's host takes a lease, of this address if the server gives it; the client's process, and the address. It releases the
/// lease when it is ended.
pub fn lease(network: &Network, wanted: Option<&str>) -> Result<(u32, String)> {
    let told = network.folder().join("leased");
    let _ = std::fs::remove_file(&told);
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
    client.args(wanted.iter().flat_map(|address| ["-r", address]));
    let id = network.start("host", client)?;
    interrupt::wait_until(Duration::from_secs(30), "a lease", || Ok(told.exists()))?;
    let address = std::fs::read_to_string(&told).asking(|| "the lease".to_owned())?.trim().to_owned();
    Ok((id, address))
}

/// RFC 6887 §15. The host keeps the address, so that what comes in shows that the mapping is still there.
fn ends() -> Result<()> {
    let network = home()?;
    let inside = network.host("host")?;
    inside.ip("-4 address flush dev up0")?;
    up(&network, &["--dhcp"])?;
    let (client, address) = lease(&network, None)?;
    ends_with_another_hosts_lease(&network, client, &address)
}

/// The host with this lease of that client has a mapping until another host has the lease, although the client releases it.
pub fn ends_with_another_hosts_lease(network: &Network, client: u32, address: &str) -> Result<()> {
    let inside = network.host("host")?;
    network.address("host", "up0", &format!("{address}/24"))?;
    network.route("host", "default via 192.168.1.1")?;
    let host = socket(network, "host", address, 4_000)?;
    let stranger = socket(network, "server", STRANGER4, 5_000)?;
    let mut natpmpc = command("natpmpc")?;
    // At the address at which clients find any server (RFC 7723).
    natpmpc.args(["-g", "192.0.0.9", "-a", "25000", "4000", "udp", "3000"]);
    let said = inside.run(natpmpc, Duration::from_secs(30))?.stdout;
    let port = crate::pcp::mapped(&said)?;
    let mapped: SocketAddr =
        format!("{PUBLIC4}:{port}").parse().map_err(|_| Failure::Unexpected("an address".into()))?;
    passes(&stranger, mapped, &host)?;
    // A session from inside, which would keep the binding for minutes.
    assert_eq!(passes(&host, at(&stranger)?, &stranger)?, mapped);
    // The lease is looked at each second.
    std::thread::sleep(Duration::from_secs(3));
    // Any host of the LAN could forge this.
    network.with_process(client, Process::stop)?;
    std::thread::sleep(Duration::from_secs(5));
    passes(&stranger, mapped, &host)?;

    // The next host that has the address gets nothing of it.
    inside.ip("-4 address flush dev up0")?;
    inside.ip("link set dev up0 address 02:00:00:00:00:77")?;
    let (_, again) = lease(network, Some(address))?;
    assert_eq!(again, address, "the server gives what is free");
    network.address("host", "up0", &format!("{address}/24"))?;
    network.route("host", "default via 192.168.1.1")?;
    interrupt::wait_until(Duration::from_secs(10), "the end of the mapping", || {
        Ok(is_kept_out(&stranger, mapped, &host).is_ok())
    })?;
    is_kept_out(&stranger, mapped, &host)?;
    // The host itself is reached as before: its own packets make a binding of its own.
    passes(&host, at(&stranger)?, &stranger).map(drop)
}
