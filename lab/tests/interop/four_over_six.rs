//! 4over6 with peers that are not ours: Kea leases the addresses (RFC 7341), and a Linux kernel is a host (RFC 7040).
//!
//! ```text
//! host (Sixway or a guest) ─── middle ─── gateway (Sixway, concentrator) ─── server
//! 2001:db8:99:b::1             IPv6 only  2001:db8:c::1, 198.51.100.16/28    203.0.113.2
//!                                └─── kea 2001:db8:77::547
//! ```

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong, wrong_checksums};
use crate::datagrams::pattern;
use crate::tunnels::capture::Capture;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on, show_on};
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, fetch_from, ping};
use sixway_lab::topology::Network;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("kea_leases_a_host_of_ours_an_address_of_our_concentrator", KEA, kea),
    Interop::new("a_lease_in_use_outlives_the_cleanup_of_keas_lease_file", CLEANED, kea_cleans_its_file),
    Interop::new("a_query_for_a_name_from_outside_leases_its_host_an_address", NAMED, looked_up),
    Interop::new("a_linux_kernel_is_a_host_of_our_concentrator", GUEST, kernel_as_host),
    Interop::new("a_linux_kernel_as_host_learns_of_a_narrow_path", GUEST, kernel_in_a_narrow_network),
];

const KEA: &[&str] = &["sixway", "kea-dhcp4", "kea-dhcp6", "busybox", "ping", "curl"];

const CLEANED: &[&str] = &["sixway", "kea-dhcp4", "kea-dhcp6", "kea-lfc", "ping"];

const NAMED: &[&str] = &["sixway", "dig", "busybox", "ping", "curl"];

const GUEST: &[&str] = &["sixway", "linux.uml", "busybox", "ping", "curl", "tcpdump"];

const SERVER: &str = "203.0.113.2";

/// The network above, with all addresses and routes. Only the gateway and the server have IPv4.
fn network() -> Result<Network> {
    let network = Network::new(&["host", "middle", "kea", "gateway", "server"])?;
    network.link(("host", "out0"), ("middle", "down0"))?;
    network.link(("kea", "up0"), ("middle", "down1"))?;
    network.link(("middle", "up0"), ("gateway", "out0"))?;
    network.link(("gateway", "in0"), ("server", "down0"))?;
    for (host, device, address) in [
        ("host", "out0", "2001:db8:99:1::1/64"),
        ("middle", "down0", "2001:db8:99:1::2/64"),
        ("kea", "up0", "2001:db8:77::547/64"),
        // Kea's server identifier is the IPv4 address of the interface, though no IPv4 packet passes there.
        ("kea", "up0", "192.0.2.77/32"),
        ("middle", "down1", "2001:db8:77::1/64"),
        ("middle", "up0", "2001:db8:8::1/64"),
        ("gateway", "out0", "2001:db8:8::8/64"),
        ("gateway", "in0", "203.0.113.1/24"),
        ("server", "down0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("host", "default via 2001:db8:99:1::2")?;
    network.route("kea", "default via 2001:db8:77::1")?;
    network.route("gateway", "default via 2001:db8:8::1")?;
    network.route("middle", "2001:db8:99:b::/64 via 2001:db8:99:1::1")?;
    network.route("middle", "2001:db8:c::1 via 2001:db8:8::8")?;
    network.route("server", "198.51.100.16/28 via 203.0.113.1")?;
    network.forwards("middle")?;
    Ok(network)
}

fn concentrator(network: &Network, more: &str) -> String {
    let file = network.folder().join("hub.leases");
    format!(
        "[gateway]
workers = 2
ipv4_address = \"192.0.2.254\"

[four_over_six]
role = \"concentrator\"
addresses = [\"2001:db8:c::1\"]
pool = [\"198.51.100.16/28\"]
clients = [\"2001:db8:99::/48\"]
client_prefix = 48
lease_file = {file:?}
{more}"
    )
}

fn page() -> String {
    pattern(1_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect()
}

/// The page, at port 8080 of all addresses of a host of this machine.
fn serve(network: &Network, hosts: &[&str]) -> Result<PathBuf> {
    let folder = network.folder().join("www");
    std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
    std::fs::write(folder.join("index.html"), page()).asking(|| "writing the page".to_owned())?;
    for host in hosts {
        let mut httpd = command("busybox")?;
        httpd.args(["httpd", "-f", "-p", "8080", "-h"]).arg(&folder);
        network.start(host, httpd)?;
    }
    Ok(folder)
}

fn is_the_page(body: &str, at: &str) -> Result<()> {
    match body == page() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("another page arrived at {at}"))),
    }
}

/// Both servers of Kea on the host "kea". All their files are in the network's folder. The DHCPv6 server hands messages of DHCPv4 to the other by UDP.
fn start_kea(network: &Network, cleanup: u32) -> Result<PathBuf> {
    let folder = network.folder().join("kea");
    std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
    let leases = folder.join("leases4.csv");
    let four = format!(
        r#"{{ "Dhcp4": {{
  "interfaces-config": {{ "interfaces": [ "up0" ], "dhcp-socket-type": "udp" }},
  "lease-database": {{ "type": "memfile", "persist": true, "name": {leases:?}, "lfc-interval": {cleanup} }},
  "dhcp4o6-port": 6767,
  "valid-lifetime": 24, "renew-timer": 6, "rebind-timer": 18,
  "subnet4": [ {{ "id": 1, "subnet": "198.51.100.16/28", "4o6-subnet": "2001:db8:99::/48",
    "pools": [ {{ "pool": "198.51.100.21 - 198.51.100.25" }} ] }} ]
}} }}
"#
    );
    let six = format!(
        r#"{{ "Dhcp6": {{
  "interfaces-config": {{ "interfaces": [ "up0/2001:db8:77::547" ] }},
  "lease-database": {{ "type": "memfile", "persist": false }},
  "data-directory": {folder:?},
  "dhcp4o6-port": 6767,
  "subnet6": [ {{ "id": 1, "subnet": "2001:db8:99::/48" }} ]
}} }}
"#
    );
    for (program, name, text) in [("kea-dhcp4", "kea4.json", four), ("kea-dhcp6", "kea6.json", six)] {
        let file = network.file(name, &text)?;
        let mut server = command(program)?;
        server.arg("-c").arg(file);
        for variable in ["KEA_PIDFILE_DIR", "KEA_LOCKFILE_DIR", "KEA_DHCP_DATA_DIR"] {
            server.env(variable, &folder);
        }
        let id = network.start("kea", server)?;
        interrupt::wait_until(Duration::from_secs(20), "Kea's start", || {
            network.with_process(id, |process| {
                process.must_run()?;
                Ok([process.stdout(), process.stderr()].join("").contains("_STARTED"))
            })?
        })?;
    }
    Ok(leases)
}

fn leases_of(network: &Network, host: &str) -> Result<String> {
    let found = network.host(host)?.run(show_on(network, host, &["leases"])?, Duration::from_secs(5))?;
    Ok(found.succeeded()?.stdout)
}

/// Lines of Kea's lease file about an address.
fn rows(file: &Path, address: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let start = format!("{address},");
    text.lines().filter(|line| line.starts_with(&start)).map(str::to_owned).collect()
}

/// A concentrator that follows Kea's file, and a host that asks Kea.
fn start_both(network: &Network, file: &Path) -> Result<()> {
    run_sixway(network, &concentrator(network, &format!("kea_leases = {file:?}\nlisten = []\n")))?;
    let own = network.folder().join("host.leases");
    let host = format!(
        "[gateway]
workers = 1

[four_over_six]
role = \"host\"
local = \"2001:db8:99:b::1\"
concentrator = \"2001:db8:c::1\"
servers = [\"2001:db8:77::547\"]
idle = \"15 s\"
lease_file = {own:?}
"
    );
    run_sixway_on(network, "host", &host).map(drop)
}

/// Kea moves its file away and starts kea-lfc, which writes what is still valid into another one. The host sends all the time; its lease is renewed too.
fn kea_cleans_its_file() -> Result<()> {
    let network = network()?;
    let file = start_kea(&network, 3)?;
    start_both(&network, &file)?;
    let leased = "198.51.100.21";
    interrupt::wait_until(Duration::from_secs(20), "a lease of Kea", || {
        Ok(leases_of(&network, "host")?.contains("held") && leases_of(&network, "gateway")?.contains(leased))
    })?;
    let cleaned = file.with_file_name("leases4.csv.2");
    let (mut written, mut seen) = (0, None);
    interrupt::wait_until(Duration::from_secs(60), "three cleanups by kea-lfc with a renewed lease", || {
        // None is lost, either way.
        for (from, to) in [("host", SERVER), ("server", leased)] {
            let answers = ping(network.host(from)?, to, 5, 56, Duration::from_millis(20))?;
            assert_eq!(answers.answered, 5, "from {from}, {written} cleanups done");
        }
        assert!(leases_of(&network, "gateway")?.contains(leased), "{written} cleanups done");
        let inode = std::fs::metadata(&cleaned).ok().map(|file| file.ino());
        if inode != seen && inode.is_some() {
            (written, seen) = (written + 1, inode);
        }
        Ok(written >= 3 && rows(&cleaned, leased).len() == 1)
    })?;
    // What was renewed before the cleanup is one row.
    assert!(rows(&cleaned, leased).iter().all(|row| row.contains("20:01:0d:b8:00:99:00:0b:")));
    no_checksum_is_wrong(&network)
}

/// A lease is taken, used in both directions, renewed and released. The concentrator follows Kea's file.
fn kea() -> Result<()> {
    let network = network()?;
    let file = start_kea(&network, 0)?;
    start_both(&network, &file)?;
    serve(&network, &["host", "server"])?;
    let leased = "198.51.100.21";
    let patience = Duration::from_secs(20);
    interrupt::wait_until(patience, "a lease of Kea", || {
        Ok(leases_of(&network, "host")?.contains("held") && leases_of(&network, "gateway")?.contains(leased))
    })?;
    assert!(leases_of(&network, "host")?.contains(leased), "{}", leases_of(&network, "host")?);
    for octets in [56, 1_401, 4_000] {
        pings_come_back(network.host("host")?, SERVER, octets)?;
        pings_come_back(network.host("server")?, leased, octets)?;
    }
    is_the_page(&fetch(&network, "host", &format!("http://{SERVER}:8080/"))?.body, "the host")?;
    is_the_page(&fetch(&network, "server", &format!("http://{leased}:8080/"))?.body, "the server")?;
    // T1 is 6 s: another row, while the host sends.
    interrupt::wait_until(patience, "a renewed lease", || {
        pings_come_back(network.host("host")?, SERVER, 56)?;
        Ok(rows(&file, leased).len() > 1)
    })?;
    let renewed = rows(&file, leased);
    assert!(renewed.iter().all(|row| row.contains("20:01:0d:b8:00:99:00:0b:")), "{renewed:?}");
    // Silence: released, and the concentrator has no binding.
    interrupt::wait_until(Duration::from_secs(40), "the release", || {
        Ok(leases_of(&network, "host")?.contains("remembered")
            && !leases_of(&network, "gateway")?.contains(leased))
    })?;
    // INIT-REBOOT: Kea does not know of the lease any more, and is silent or refuses. The host has an address at the end.
    interrupt::wait_until(Duration::from_secs(40), "a lease again", || {
        let mut ping = command("ping")?;
        ping.args(["-n", "-c", "1", "-W", "1", SERVER]);
        Ok(network.host("host")?.run(ping, Duration::from_secs(5))?.status.success())
    })?;
    no_checksum_is_wrong(&network)
}

const NAMES: &str = "
[[four_over_six.names]]
name = \"host.example\"
host = \"2001:db8:99:b::1\"

[[four_over_six.names]]
name = \"away.example\"
host = \"2001:db8:99:c::1\"

[[four_over_six.names]]
name = \"absent.example\"
host = \"2001:db8:99:d::1\"

[[four_over_six.names]]
name = \"third.example\"
host = \"2001:db8:99:e::1\"

[dns64]
listen = [\"203.0.113.1\"]
allow = [\"203.0.113.0/24\"]

[[dns64.upstream]]
address = \"203.0.113.2\"
";

/// What dig says of a name, with its status.
fn dig(network: &Network, name: &str) -> Result<String> {
    let mut dig = command("dig")?;
    dig.args(["@203.0.113.1", "+tries=1", "+time=9", "+noall", "+comments", "+answer", name, "A"]);
    Ok(network.host("server")?.run(dig, Duration::from_secs(12))?.succeeded()?.stdout)
}

/// The address of a name, if there is one.
fn address_of(said: &str) -> Option<&str> {
    said.lines().find(|line| line.contains("\tA\t"))?.split('\t').next_back()
}

/// The host has released its lease. Somebody outside looks up its name, gets an address, and connects to it. Whoever looks up others in a loop takes
/// nothing from it.
fn looked_up() -> Result<()> {
    let network = network()?;
    run_sixway(&network, &concentrator(&network, NAMES))?;
    let own = network.folder().join("host.leases");
    let host = format!(
        "[gateway]
workers = 1

[four_over_six]
role = \"host\"
local = \"2001:db8:99:b::1\"
concentrator = \"2001:db8:c::1\"
servers = [\"2001:db8:8::8\"]
idle = \"10 s\"
lease_file = {own:?}
"
    );
    run_sixway_on(&network, "host", &host)?;
    serve(&network, &["host"])?;
    let patience = Duration::from_secs(20);
    let is = |state: &'static str| Ok(leases_of(&network, "host")?.contains(state));
    interrupt::wait_until(patience, "the first lease", || is("held"))?;
    interrupt::wait_until(patience, "its release", || is("remembered"))?;
    let said = dig(&network, "HOST.example")?;
    let leased = address_of(&said).map(str::to_owned);
    let leased = leased.ok_or_else(|| Failure::Unexpected(format!("no address: {said}")))?;
    assert!(leases_of(&network, "gateway")?.contains(&leased), "{said}");
    let url = format!("http://{leased}:8080/");
    is_the_page(&fetch(&network, "server", &url)?.body, "the server")?;
    assert!(is("held")? && leases_of(&network, "host")?.contains(&leased), "{said}");
    // Two of 16 addresses wait for hosts, and one of them is for who asks by TCP.
    for (name, is_by_tcp) in [("away.example", false), ("absent.example", true)] {
        let said = dig(&network, name)?;
        assert!(address_of(&said).is_some() && said.contains("retrying in TCP") == is_by_tcp, "{said}");
    }
    for _ in 0..20 {
        let said = dig(&network, "third.example")?;
        assert!(said.contains("SERVFAIL") && address_of(&said).is_none(), "{said}");
    }
    let shown = leases_of(&network, "gateway")?;
    assert_eq!(shown.matches("leased").count(), 3, "{shown}");
    // The upstream does not exist.
    assert!(address_of(&dig(&network, "www.host.example")?).is_none());
    assert_eq!(leases_of(&network, "gateway")?.matches("leased").count(), 3);
    no_checksum_is_wrong(&network)
}

const STATIC: &str = "listen = []
clamp_mss = false
encapsulation_limit = \"none\"

[[four_over_six.static]]
host = \"2001:db8:99:b::9\"
ipv4 = \"198.51.100.20\"
";

/// A guest with the commands of the mechanism's page.
fn guest(network: &Network) -> Result<KernelPeer<'_>> {
    let features = Features { modules: vec!["ip6_tunnel"], ..Features::default() };
    let host = KernelPeer::start_with(network, "host", &["out0"], &features)?;
    host.sh("set -e
        ip -6 address add 2001:db8:99:1::1/64 dev eth0 nodad
        ip -6 address add 2001:db8:99:b::9/128 dev lo nodad
        ip -6 route add default via 2001:db8:99:1::2
        ip -6 tunnel add t4 mode ip4ip6 local 2001:db8:99:b::9 remote 2001:db8:c::1 encaplimit none hoplimit 64
        ip address add 198.51.100.20/32 dev t4
        ip link set t4 up
        ip route add default dev t4 src 198.51.100.20")?;
    Ok(host)
}

/// The guest and the server ping each other and fetch the page from each other.
fn try_all(network: &Network, host: &KernelPeer<'_>) -> Result<()> {
    for octets in [56, 1_401, 4_000] {
        pings_come_back(host, SERVER, octets)?;
        pings_come_back(network.host("server")?, "198.51.100.20", octets)?;
    }
    is_the_page(&fetch_from(host, network, &format!("http://{SERVER}:8080/"))?.body, "the host")?;
    is_the_page(&fetch(network, "server", "http://198.51.100.20:8080/")?.body, "the server")
}

fn kernel_as_host() -> Result<()> {
    let network = network()?;
    let host = guest(&network)?;
    run_sixway(&network, &concentrator(&network, STATIC))?;
    let folder = serve(&network, &["server"])?;
    host.sh(&format!("busybox httpd -p 8080 -h {}", folder.display()))?;
    try_all(&network, &host)?;
    // An address that is not the guest's.
    host.sh("ip address add 198.51.100.22/32 dev t4")?;
    host.sh("busybox ping -c 1 -W 1 -I 198.51.100.22 203.0.113.2 || true")?;
    assert!(crate::counters::dropped(&network, "SourceNotLeased")? > 0);
    assert!(counter(&network, "four_over_six.encap")? > 100);
    assert!(counter(&network, "four_over_six.decap")? > 100);
    no_checksum_is_wrong(&network)?;
    assert_eq!(wrong_checksums(&host)?, 0);
    Ok(())
}

/// The host's link carries 1,400 octets. Who sends from IPv4 learns of it from the concentrator, and the guest from the tunnel's device.
fn kernel_in_a_narrow_network() -> Result<()> {
    let network = network()?;
    let host = guest(&network)?;
    network.host("middle")?.ip("link set down0 mtu 1400")?;
    host.sh("ip link set eth0 mtu 1400")?;
    run_sixway(&network, &concentrator(&network, STATIC))?;
    let folder = serve(&network, &["server"])?;
    host.sh(&format!("busybox httpd -p 8080 -h {}", folder.display()))?;
    let capture = Capture::start(&network, "server", "down0", "icmp")?;
    let mut ping = command("ping")?;
    ping.args(["-n", "-M", "do", "-c", "3", "-W", "1", "-s", "1400", "198.51.100.20"]);
    network.host("server")?.run(ping, Duration::from_secs(10))?;
    let said = capture.end()?;
    assert!(said.contains("need to frag (mtu 1360)"), "{said:.3000}");
    try_all(&network, &host)
}
