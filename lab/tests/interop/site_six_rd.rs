//! `sixway up` behind a provider without native IPv6: by 6rd, as written and as DHCP leases it, and by 6to4. Hosts of the LAN have router
//! advertisements and nothing else.
//!
//! ```text
//! host ─── in0 gateway out0 ─── up0 server: border relay or 6to4 relay, DHCP server, and a native host
//! ```

use crate::Interop;
use crate::site_doctor::finds_nothing;
use crate::site_network::{home, up, up_by};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::run_sixway_on;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::process::Process;
use sixway_lab::programs;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "site_up_by_6rd_gives_hosts_with_only_advertisements_ipv6",
        &["sixway", "nft", "ping"],
        six_rd,
    ),
    Interop::new(
        "site_up_by_6to4_gives_hosts_with_only_advertisements_ipv6",
        &["sixway", "nft", "ping"],
        six_to_four,
    ),
    Interop::new(
        "site_up_follows_the_6rd_domain_in_the_leases_of_dhclient",
        &["sixway", "nft", "ping", "dnsmasq", "dhclient", "unshare"],
        dhclient,
    ),
    Interop::new(
        "site_up_takes_a_6rd_domain_from_the_lease_of_dhcpcd",
        &["sixway", "nft", "ping", "dnsmasq", "dhcpcd", "unshare"],
        dhcpcd,
    ),
];

/// A native host.
const NATIVE: &str = "2001:db8:aa::1";
const PATIENCE: Duration = Duration::from_secs(40);

/// The home without native IPv6; its host has only what is advertised.
pub fn home4() -> Result<Network> {
    let network = home()?;
    for (host, words) in [
        ("gateway", "-6 route del default"),
        ("gateway", "-6 address flush dev in0 scope global"),
        ("gateway", "-6 address flush dev out0 scope global"),
        ("host", "-6 route del default"),
        ("host", "-6 address flush dev up0 scope global"),
    ] {
        network.host(host)?.ip(words)?;
    }
    network.address("server", "lo", &format!("{NATIVE}/128"))?;
    for setting in ["accept_ra", "autoconf"] {
        network.host("host")?.sysctl(&format!("ipv6/conf/up0/{setting}"), "1")?;
    }
    Ok(network)
}

pub fn relay(network: &Network, section: &str) -> Result<u32> {
    run_sixway_on(network, "server", &format!("[gateway]\nipv6_address = \"2001:db8:bb::fe\"\n{section}"))
}

/// Waits until the host has formed an address with this beginning, and reaches the native host from it.
pub fn reaches(network: &Network, begin: &str) -> Result<()> {
    let host = network.host("host")?;
    interrupt::wait_until(PATIENCE, &format!("the host's address in {begin}"), || {
        let said = host.ip("-6 address show dev up0 scope global")?;
        let mut lines = said.lines().filter(|line| line.contains("inet6"));
        Ok(lines
            .any(|line| line.contains(begin) && !line.contains("tentative") && !line.contains("deprecated")))
    })?;
    // The first packets may come before the next reload's end.
    interrupt::wait_until(PATIENCE, "an answer of the native host", || {
        Ok(ping(host, NATIVE, 1, 56, Duration::from_millis(20))?.answered == 1)
    })?;
    // Fragments of the tunnel, as well.
    for size in [56, 1_200] {
        let pings = ping(host, NATIVE, 3, size, Duration::from_millis(50))?;
        assert_eq!(pings.answered, 3, "{size} octets from {begin}");
    }
    Ok(())
}

/// The packet filter's trial has packets of the tunnel, both outer and inner ones.
fn is_fine_by_the_doctor(network: &Network, id: u32) -> Result<()> {
    let said = finds_nothing(network, id)?;
    for path in ["packets of protocol 41 from sixway0 to out0", "IPv6 packets from in0 to sixway0"] {
        assert!(said.contains(path), "{path}: {said}");
    }
    Ok(())
}

fn six_rd() -> Result<()> {
    let network = home4()?;
    relay(
        &network,
        "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:db9::/32\"\naddress = \"203.0.113.2\"\n",
    )?;
    let id = up(&network, &["--6rd", "2001:db9::/32,0,203.0.113.2", "--nat64=no"])?;
    reaches(&network, "2001:db9:cb00:7101:")?;
    is_fine_by_the_doctor(&network, id)?;
    // Its own prefix at the LAN is not taken for a native one, each time that the site looks at the host.
    std::thread::sleep(Duration::from_secs(7));
    let starts = network.with_process(id, |process| process.stdout().matches("ready in").count())?;
    assert_eq!(starts, 1, "reloads without a change");
    Ok(())
}

fn six_to_four() -> Result<()> {
    let network = home4()?;
    relay(&network, "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.2\"\n")?;
    let id = up(&network, &["--6to4", "203.0.113.2", "--wan", "out0", "--nat64=no"])?;
    reaches(&network, "2002:cb00:7101:")?;
    is_fine_by_the_doctor(&network, id)?;
    // The prefix follows the public address.
    let gateway = network.host("gateway")?;
    gateway.ip("address del 203.0.113.1/24 dev out0")?;
    gateway.ip("address add 203.0.113.9/24 dev out0")?;
    gateway.ip("-4 route replace default via 203.0.113.2")?;
    reaches(&network, "2002:cb00:7109:")?;
    network.with_process(id, Process::must_run)?
}

/// The provider's DHCP server, which leases 203.0.113.77 for two minutes, to be renewed after three seconds; with this domain of 6rd: a
/// prefix of 48 bits, and 24 bits that all customers' addresses have in common.
fn provider(network: &Network, prefix: [u8; 6]) -> Result<u32> {
    let prefix: String = prefix.iter().map(|octet| format!("{octet:02x}:")).collect();
    let option = format!("18:30:{prefix}00:00:00:00:00:00:00:00:00:00:cb:00:71:02");
    let text = format!(
        "port=0\nuser=root\ninterface=up0\nbind-dynamic\ndhcp-authoritative\nlog-facility=-\npid-file=\n\
         dhcp-range=203.0.113.77,203.0.113.77,2m\ndhcp-option=3,203.0.113.2\ndhcp-option=58,3\n\
         dhcp-leasefile={}\ndhcp-option=212,{option}\n",
        network.folder().join("provider.leases").display()
    );
    let mut server = command("dnsmasq")?;
    server
        .arg("--keep-in-foreground")
        .arg(format!("--conf-file={}", network.file("provider.dnsmasq", &text)?.display()));
    network.start("server", server)
}

fn border_relay(network: &Network, prefix: &str) -> Result<u32> {
    let section = format!(
        "[six_rd]\nrole = \"border_relay\"\nprefix = \"{prefix}\"\nipv4_mask_length = 24\naddress = \"203.0.113.2\"\n"
    );
    relay(network, &section)
}

/// A script before a command that sees a folder of this network in place of one of the machine, where a DHCP client keeps its leases.
fn with_leases_in(network: &Network, place: &str) -> Result<PathBuf> {
    let folder = network.folder().join(place.trim_start_matches('/').replace('/', "-"));
    std::fs::create_dir_all(&folder).map_err(|error| Failure::Io(folder.display().to_string(), error))?;
    let unshare = programs::require("unshare")?;
    let script = network.file(
        "leases-here",
        &format!(
            "#!/bin/sh\nexec {} --mount --propagation private sh -c 'mkdir -p {place} && mount --bind {} {place} && exec \"$@\"' here \"$@\"\n",
            unshare.display(),
            folder.display()
        ),
    )?;
    programs::make_executable(&script)?;
    Ok(script)
}

/// What the client's script does with a lease.
const APPLY: &str = r#"#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
case $reason in
  BOUND|RENEW|REBIND|REBOOT)
    ip -4 address replace $new_ip_address/24 dev $interface
    ip -4 route replace default via $new_routers dev $interface ;;
  EXPIRE|FAIL|RELEASE|STOP|NAK)
    ip -4 address del $old_ip_address/24 dev $interface ;;
esac
exit 0
"#;

/// A box whose address outside comes by DHCP alone.
fn without_address(network: &Network) -> Result<()> {
    network.host("gateway")?.ip("-4 address flush dev out0").map(drop)
}

fn has_address(network: &Network) -> Result<bool> {
    Ok(network.host("gateway")?.ip("-4 address show dev out0")?.contains("203.0.113.77/24"))
}

/// Another domain comes with a renewal; when the lease is given back, hosts hear that IPv6 is gone.
fn dhclient() -> Result<()> {
    let network = home4()?;
    without_address(&network)?;
    let server = provider(&network, [0x20, 0x01, 0x0d, 0xb9, 0, 0])?;
    let relay = border_relay(&network, "2001:db9::/48")?;
    let here = with_leases_in(&network, "/var/lib/dhcp")?;
    let apply = network.file("apply.sh", APPLY)?;
    programs::make_executable(&apply)?;
    let settings = network.file("dhclient.conf", "also request option-6rd;\n")?;
    let client = |mode: &[&str]| -> Result<Command> {
        let mut client = Command::new(&here);
        client.arg(programs::require("dhclient")?).args(["-4", "-v"]).args(mode);
        client.arg("-sf").arg(&apply).arg("-cf").arg(&settings);
        client.args(["-lf", "/var/lib/dhcp/dhclient.out0.leases"]);
        client.arg("-pf").arg(network.folder().join("dhclient.pid")).arg("out0");
        Ok(client)
    };
    network.start("gateway", client(&["-d"])?)?;
    interrupt::wait_until(PATIENCE, "the lease", || has_address(&network))?;
    let mut begin = Command::new(&here);
    begin.arg(sixway()?);
    let id = up_by(&network, begin, &["--wan", "out0"])?;
    reaches(&network, "2001:db9:0:4d00:")?;
    for process in [server, relay] {
        network.with_process(process, Process::stop)?;
    }
    provider(&network, [0x20, 0x01, 0x0d, 0xba, 0, 0])?;
    border_relay(&network, "2001:dba::/48")?;
    reaches(&network, "2001:dba:0:4d00:")?;
    let host = network.host("host")?;
    let addresses = || host.ip("-6 address show dev up0 scope global");
    let is_deprecated = |said: &str, prefix: &str| {
        let mut lines = said.lines().filter(|line| line.contains(prefix));
        lines.next().is_none_or(|line| line.contains("deprecated"))
    };
    assert!(is_deprecated(&addresses()?, "2001:db9:"), "{}", addresses()?);
    network.host("gateway")?.run(client(&["-r"])?, Duration::from_secs(20))?.succeeded()?;
    interrupt::wait_until(PATIENCE, "the end of the lease", || Ok(!has_address(&network)?))?;
    interrupt::wait_until(PATIENCE, "the end of IPv6 on the LAN", || {
        Ok(host.ip("-6 route show default")?.is_empty() && is_deprecated(&addresses()?, "2001:dba:"))
    })?;
    let log = network.with_process(id, |process| process.stdout() + &process.stderr())?;
    assert!(log.contains("the uplink is lost: out0 has no IPv4 address"), "{log}");
    Ok(())
}

fn dhcpcd() -> Result<()> {
    let network = home4()?;
    without_address(&network)?;
    provider(&network, [0x20, 0x01, 0x0d, 0xb9, 0, 0])?;
    border_relay(&network, "2001:db9::/48")?;
    let here = with_leases_in(&network, "/var/lib/dhcpcd")?;
    let settings = network
        .file("dhcpcd.conf", "ipv4only\noption routers\noption sixrd\nnohook resolv.conf, hostname\n")?;
    let mut client = Command::new(&here);
    client.arg(programs::require("dhcpcd")?).args([
        "--nobackground",
        "--script",
        "/bin/true",
        "--noarp",
        "--config",
    ]);
    client.arg(settings).arg("out0");
    network.start("gateway", client)?;
    interrupt::wait_until(PATIENCE, "the lease", || has_address(&network))?;
    let mut begin = Command::new(&here);
    begin.arg(sixway()?);
    up_by(&network, begin, &["--wan", "out0"])?;
    reaches(&network, "2001:db9:0:4d00:")
}
