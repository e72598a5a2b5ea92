//! The system's DHCPv6 client and our host, which both use UDP port 546 of one link-local address (RFC 7341 §9).
//!
//! ```text
//! host (Sixway, dhclient) ─── kea (kea-dhcp6, kea-dhcp4)
//! 2001:db8:99:1::1            2001:db8:99:1::547
//! ```

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway_on, show_on};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::topology::Network;
use std::path::Path;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "an_empty_option_88_is_asked_by_multicast_and_dhclient_at_the_same_port_keeps_its_answers",
    NEEDS,
    with_dhclient,
)];

const NEEDS: &[&str] = &["sixway", "kea-dhcp4", "kea-dhcp6", "dhclient", "ip"];

const PATIENCE: Duration = Duration::from_secs(30);

fn network() -> Result<Network> {
    let network = Network::new(&["host", "kea"])?;
    network.link(("host", "out0"), ("kea", "up0"))?;
    network.address("host", "out0", "2001:db8:99:1::1/64")?;
    network.address("kea", "up0", "2001:db8:99:1::547/64")?;
    // Kea's server identifier.
    network.address("kea", "up0", "192.0.2.77/32")?;
    network.route("host", "default via 2001:db8:99:1::547")?;
    Ok(network)
}

/// Waits until link-local addresses may be used.
fn settle(network: &Network) -> Result<()> {
    for (host, device) in [("host", "out0"), ("kea", "up0")] {
        interrupt::wait_until(PATIENCE, "duplicate address detection", || {
            let mut ip = command("ip")?;
            ip.args(["-6", "address", "show", "dev", device]);
            let said = network.host(host)?.run(ip, Duration::from_secs(5))?.succeeded()?.stdout;
            Ok(said.contains("fe80::") && !said.contains("tentative"))
        })?;
    }
    Ok(())
}

/// Starts a server of Kea on the link, and returns its process's number in the network.
fn kea(network: &Network, program: &'static str, text: &str) -> Result<u32> {
    let file = network.file(&format!("{program}.json"), text)?;
    let mut server = command(program)?;
    server.arg("-c").arg(file);
    for variable in ["KEA_PIDFILE_DIR", "KEA_LOCKFILE_DIR", "KEA_DHCP_DATA_DIR"] {
        server.env(variable, network.folder());
    }
    let id = network.start("kea", server)?;
    interrupt::wait_until(PATIENCE, "Kea's start", || {
        network.with_process(id, |process| {
            process.must_run()?;
            Ok([process.stdout(), process.stderr()].join("").contains("_STARTED"))
        })?
    })?;
    Ok(id)
}

/// DHCPv4 by the link, with leases that are renewed each second; DHCPv6 with an empty option 88, and leases that are renewed each two seconds.
fn start_kea(network: &Network, folder: &Path) -> Result<u32> {
    let four = r#"{ "Dhcp4": {
  "interfaces-config": { "interfaces": [ "up0" ], "dhcp-socket-type": "udp" },
  "lease-database": { "type": "memfile", "persist": false },
  "dhcp4o6-port": 6767,
  "valid-lifetime": 40, "renew-timer": 1, "rebind-timer": 2,
  "subnet4": [ { "id": 1, "subnet": "198.51.100.16/28", "4o6-interface": "up0",
    "pools": [ { "pool": "198.51.100.21 - 198.51.100.25" } ] } ]
} }"#;
    let six = format!(
        r#"{{ "Dhcp6": {{
  "interfaces-config": {{ "interfaces": [ "up0" ] }},
  "lease-database": {{ "type": "memfile", "persist": false }},
  "data-directory": {folder:?},
  "dhcp4o6-port": 6767,
  "valid-lifetime": 60, "preferred-lifetime": 50, "renew-timer": 2, "rebind-timer": 40,
  "subnet6": [ {{ "id": 1, "subnet": "2001:db8:99:1::/64", "interface": "up0",
    "pools": [ {{ "pool": "2001:db8:99:1::100 - 2001:db8:99:1::1ff" }} ],
    "option-data": [ {{ "code": 88, "csv-format": false, "data": "", "always-send": true }} ] }} ]
}} }}"#
    );
    let id = kea(network, "kea-dhcp4", four)?;
    kea(network, "kea-dhcp6", &six)?;
    Ok(id)
}

fn lease(network: &Network) -> Result<String> {
    let found = network.host("host")?.run(show_on(network, "host", &["leases"])?, Duration::from_secs(5))?;
    Ok(found.succeeded()?.stdout)
}

fn with_dhclient() -> Result<()> {
    let network = network()?;
    settle(&network)?;
    let folder = network.folder().to_path_buf();
    let four = start_kea(&network, &folder)?;
    let leases = folder.join("dhclient.leases");
    let settings = network.file("dhclient.conf", "also request dhcp6.dhcp4-o-dhcp6-server;\n")?;
    let mut dhclient = command("dhclient")?;
    dhclient.args(["-6", "-d", "-v", "-sf", "/bin/true", "-cf"]).arg(settings);
    dhclient.arg("-lf").arg(&leases).arg("-pf").arg(folder.join("dhclient.pid")).arg("out0");
    let client = network.start("host", dhclient)?;
    let replies = || {
        network.with_process(client, |process| {
            process.must_run()?;
            Ok([process.stdout(), process.stderr()].join("").matches("RCV: Reply").count())
        })?
    };
    interrupt::wait_until(PATIENCE, "dhclient's lease with option 88", || {
        let text = std::fs::read_to_string(&leases).unwrap_or_default();
        Ok(replies()? > 0 && text.contains("dhcp4-o-dhcp6-server"))
    })?;
    let host = format!(
        "[gateway]
workers = 1

[four_over_six]
role = \"host\"
local = \"2001:db8:99:b::1\"
concentrator = \"2001:db8:c::1\"
server_lease_file = {leases:?}
idle = \"never\"
lease_file = {:?}
",
        folder.join("host.leases")
    );
    run_sixway_on(&network, "host", &host)?;
    interrupt::wait_until(PATIENCE, "a lease by multicast", || Ok(lease(&network)?.contains("held")))?;
    assert!(lease(&network)?.contains("198.51.100.2"), "{}", lease(&network)?);
    // Our host asks again and again and gets no answer: its socket is open all the time.
    network.with_process(four, |process| process.kill())?;
    let before = replies()?;
    interrupt::wait_until(PATIENCE, "dhclient's renewals", || Ok(replies()? >= before + 4))?;
    match lease(&network)?.contains("held") {
        true => Ok(()),
        false => Err(Failure::Unexpected("the lease ended too early for this test".to_owned())),
    }
}
