//! Realms in VRFs: the gateway runs in a Linux guest, whose kernel has them. Two LANs have the same addresses.
//!
//! ```text
//! red  10.0.0.2 ── eth0 ┐ VRF red  ─ nat-red  ┐
//!                       │                     ├ sixway ─ sixway0 ─ eth2 ── server 203.0.113.2
//! blue 10.0.0.2 ── eth1 ┘ VRF blue ─ nat-blue ┘
//! ```

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "ping", "nginx", "curl"];

pub const TESTS: &[Interop] = &[
    Interop::new("realms_in_vrfs_have_hosts_of_the_same_address", NEEDS, same_address),
    Interop::new("a_realm_waits_for_its_vrf_and_leaks_nothing_after_a_crash", NEEDS, waits_and_crashes),
    Interop::new("a_realm_goes_from_a_table_into_a_vrf_and_back", NEEDS, reloads),
    Interop::new("a_kernel_without_vrfs_is_named_with_the_other_way", &["sixway"], no_vrfs),
];

const SERVER: &str = "203.0.113.2";
const RED: (&str, &str) = ("red", "192.0.2.1");
const BLUE: (&str, &str) = ("blue", "192.0.2.2");

/// Where a realm's inside hosts are: the lines of its section.
fn in_vrf(name: &str) -> String {
    format!("vrf = \"{name}\"")
}

fn configuration(realms: [((&str, &str), String); 2]) -> String {
    let mut text =
        "[gateway]\nname = \"guest\"\nipv4_address = \"192.0.2.14\"\nadmin_socket = \"/run/sixway.sock\"\n"
            .to_owned();
    for ((name, address), place) in realms {
        text += &format!(
            "[[pool]]\nname = \"{name}\"\naddresses = [\"{address}\"]\n\
             [[realm]]\nname = \"{name}\"\ninside = [\"10.0.0.0/8\"]\n{place}\n\
             device = \"nat-{name}\"\npool = \"{name}\"\n\
             static = [{{ protocol = \"tcp\", inside = \"10.0.0.2:80\", outside = \"{address}:80\" }}]\n"
        );
    }
    text
}

fn network() -> Result<Network> {
    let network = Network::new(&["red", "blue", "gateway", "server"])?;
    network.link(("red", "up0"), ("gateway", "in0"))?;
    network.link(("blue", "up0"), ("gateway", "in1"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for host in ["red", "blue"] {
        network.address(host, "up0", "10.0.0.2/24")?;
        network.route(host, "default via 10.0.0.1")?;
    }
    network.address("server", "up0", "203.0.113.2/24")?;
    network.route("server", "192.0.2.0/28 via 203.0.113.1")?;
    Ok(network)
}

/// The guest, with these VRFs; strict reverse path filters, so that no packet passes by accident.
fn guest<'n>(network: &'n Network, vrfs: &[&str]) -> Result<KernelPeer<'n>> {
    let features = Features { modules: vec!["tun", "vrf"], memory: 256, ..Features::default() };
    let guest = KernelPeer::start_with(network, "gateway", &["in0", "in1", "out0"], &features)?;
    guest.sh("set -e
         for name in all default eth0 eth1 eth2; do echo 1 >/proc/sys/net/ipv4/conf/$name/rp_filter; done
         ip address add 203.0.113.1/24 dev eth2
         ip route add default via 203.0.113.2")?;
    for vrf in ["red", "blue"] {
        match vrfs.contains(&vrf) {
            true => make_vrf(&guest, vrf)?,
            false => drop(guest.sh(&format!("ip address add 10.0.0.1/24 dev {}", lan(vrf)))?),
        }
    }
    Ok(guest)
}

fn lan(vrf: &str) -> &str {
    if vrf == "red" { "eth0" } else { "eth1" }
}

fn make_vrf(guest: &KernelPeer<'_>, vrf: &str) -> Result<()> {
    let (device, table) = (lan(vrf), if vrf == "red" { 101 } else { 102 });
    let made = guest.sh(&format!(
        "set -e
         ip link add {vrf} up type vrf table {table}
         ip link set {device} master {vrf}
         ip address flush dev {device}
         ip address add 10.0.0.1/24 dev {device}"
    ));
    made.map(drop)
}

/// Starts Sixway in the guest, or lets another one take over.
fn start(network: &Network, guest: &KernelPeer<'_>, words: &str, configuration: &str) -> Result<()> {
    let file = network.file("sixway-guest.toml", configuration)?;
    let (said, program) = (network.folder().join("said"), sixway()?);
    let (file, said, program) = (file.display(), said.display(), program.display());
    guest.sh(&format!(
        "mkdir -p /run/sixway; rm -f {said}
         {program} run {words} -c {file} >{said} 2>&1 &
         echo $! >/run/process
         for i in $(seq 300); do grep -q ready {said} && exit 0; kill -0 $(cat /run/process) || break; sleep 0.1; done
         cat {said} >&2; exit 1"
    ))?;
    Ok(())
}

fn ask(guest: &KernelPeer<'_>, words: &str) -> Result<String> {
    guest.sh(&format!("{} {words} --socket /run/sixway.sock 2>&1", sixway()?.display()))
}

fn answered(network: &Network, host: &str) -> Result<u32> {
    Ok(ping(network.host(host)?, SERVER, 3, 56, Duration::from_millis(50))?.answered)
}

fn both_are_translated(network: &Network, when: &str) -> Result<()> {
    for host in ["red", "blue"] {
        interrupt::wait_until(Duration::from_secs(20), &format!("an answer to {host} {when}"), || {
            Ok(answered(network, host)? == 3)
        })?;
    }
    Ok(())
}

fn same_address() -> Result<()> {
    let network = network()?;
    let guest = guest(&network, &["red", "blue"])?;
    start(&network, &guest, "", &configuration([(RED, in_vrf("red")), (BLUE, in_vrf("blue"))]))?;
    both_are_translated(&network, "at first")?;
    // To the gateway itself, and in fragments.
    for (to, octets) in [("192.0.2.14", 56), (SERVER, 3_000)] {
        for host in ["red", "blue"] {
            let trips = ping(network.host(host)?, to, 3, octets, Duration::from_millis(50))?;
            assert_eq!(trips.answered, 3, "{octets} octets from {host} to {to}");
        }
    }
    serve_page(&network, "server", SERVER, "from the server")?;
    for (host, page) in [("red", "from red"), ("blue", "from blue")] {
        serve_page(&network, host, "10.0.0.2", page)?;
        assert_eq!(fetch(&network, host, &format!("http://{SERVER}/"))?.body, "from the server");
    }
    for (from, outside, page) in [
        ("server", RED.1, "from red"),
        ("server", BLUE.1, "from blue"),
        ("red", BLUE.1, "from blue"),
        ("blue", RED.1, "from red"),
        ("red", RED.1, "from red"),
    ] {
        assert_eq!(fetch(&network, from, &format!("http://{outside}/"))?.body, page, "{from} to {outside}");
    }
    let shown = ask(&guest, "show")?;
    assert!(shown.contains("VRF red") && !shown.contains("not translated"), "{shown}");
    // Another program takes a device out of its VRF, and removes a route.
    guest.sh("ip link set nat-red nomaster && ip route del default dev nat-blue table 102")?;
    both_are_translated(&network, "after another program changed both")?;
    let doctor = guest.sh(&format!(
        "{} doctor -c {} 2>&1 || true",
        sixway()?.display(),
        network.folder().join("sixway-guest.toml").display()
    ))?;
    assert!(doctor.contains("nat-red is in VRF red"), "{doctor}");
    // At an orderly end everything of ours is gone, and what is the operator's is there.
    guest.sh(
        "kill $(cat /run/process); while kill -0 $(cat /run/process); do sleep 0.1; done 2>/dev/null; true",
    )?;
    let left = guest.sh("ip link; ip rule; ip route show table all; ip route show table 101")?;
    assert!(!left.contains("nat-") && !left.contains("unreachable") && !left.contains("sixway0"), "{left}");
    assert!(left.contains(" red:") && left.contains("l3mdev"), "{left}");
    Ok(())
}

fn waits_and_crashes() -> Result<()> {
    let network = network()?;
    let guest = guest(&network, &["blue"])?;
    let configuration = configuration([(RED, in_vrf("red")), (BLUE, in_vrf("blue"))]);
    start(&network, &guest, "", &configuration)?;
    assert_eq!((answered(&network, "blue")?, answered(&network, "red")?), (3, 0));
    let shown = ask(&guest, "show")?;
    assert!(shown.contains("VRF red does not exist") && shown.contains("ip link add red"), "{shown}");
    make_vrf(&guest, "red")?;
    both_are_translated(&network, "when the VRF has appeared")?;
    assert!(!ask(&guest, "show")?.contains("does not exist"));
    // Another VRF of the same name, with another table.
    guest.sh("ip link del red; ip link add red up type vrf table 103; ip link set eth0 master red; ip address add 10.0.0.1/24 dev eth0 2>/dev/null; true")?;
    both_are_translated(&network, "in a VRF that was made anew")?;
    // A takeover leaves the devices where they are.
    let index = guest.sh("cat /sys/class/net/nat-red/ifindex")?;
    start(&network, &guest, "--takeover", &configuration)?;
    both_are_translated(&network, "after a takeover")?;
    assert_eq!(guest.sh("cat /sys/class/net/nat-red/ifindex")?, index);
    guest.sh("kill -9 $(cat /run/process); while [ -e /sys/class/net/nat-red ]; do sleep 0.1; done")?;
    let before = network.host("server")?.received_packets("up0")?;
    assert_eq!((answered(&network, "blue")?, answered(&network, "red")?), (0, 0));
    let after = network.host("server")?.received_packets("up0")?;
    assert!(after - before < 3, "{} packets reached the server", after - before);
    start(&network, &guest, "", &configuration)?;
    both_are_translated(&network, "after a crash")
}

fn reloads() -> Result<()> {
    let network = network()?;
    let guest = guest(&network, &["blue"])?;
    guest.sh("ip route add 10.0.0.0/24 dev eth0 table 103")?;
    let in_table = |table: u32| format!("interfaces = [\"eth0\"]\ntable = {table}");
    let of = |red: String| configuration([(RED, red), (BLUE, in_vrf("blue"))]);
    start(&network, &guest, "", &of(in_table(103)))?;
    both_are_translated(&network, "with a table and a VRF")?;
    let doctor = |expected: &str| -> Result<()> {
        let file = network.folder().join("sixway-guest.toml");
        let said = guest.sh(&format!("{} doctor -c {} 2>&1 || true", sixway()?.display(), file.display()))?;
        match said.contains(expected) {
            true => Ok(()),
            false => Err(Failure::Unexpected(format!("doctor does not say `{expected}`: {said}"))),
        }
    };
    make_vrf(&guest, "red")?;
    doctor("eth0 belongs to VRF red")?;
    reload(&network, &guest, &of(in_vrf("red")))?;
    both_are_translated(&network, "after a reload into a VRF")?;
    let left = guest.sh("ip rule; ip route show table 103")?;
    assert!(!left.contains("6290") && !left.contains("nat-red") && !left.contains("unreachable"), "{left}");
    guest.sh("ip link set eth0 nomaster; ip address add 10.0.0.1/24 dev eth0 2>/dev/null; ip route replace 10.0.0.0/24 dev eth0 table 103")?;
    reload(&network, &guest, &of(in_table(103)))?;
    both_are_translated(&network, "after a reload into a table")?;
    let left = guest.sh("ip link show master red; ip route show table 101")?;
    assert!(!left.contains("nat-red") && !left.contains("unreachable"), "{left}");
    Ok(())
}

fn reload(network: &Network, guest: &KernelPeer<'_>, configuration: &str) -> Result<()> {
    network.file("sixway-guest.toml", configuration)?;
    ask(guest, "reload").map(drop)
}

/// Where this machine's kernel has VRFs, the gateway waits for them.
fn no_vrfs() -> Result<()> {
    let network = network()?;
    let host = network.host("gateway")?;
    let has_vrfs = host.ip("link add probe type vrf table 99").is_ok();
    let configuration = configuration([(RED, in_vrf("red")), (BLUE, in_vrf("blue"))]);
    let file = network
        .file("sixway.toml", &configuration.replace("/run/", &format!("{}/", network.folder().display())))?;
    let mut run = std::process::Command::new("timeout");
    run.args(["5"]).arg(sixway()?).arg("run").arg("-c").arg(&file);
    let ended = host.run(run, Duration::from_secs(20))?;
    let said = ended.stderr + &ended.stdout;
    match has_vrfs {
        true => assert!(said.contains("VRF red does not exist") && said.contains("ready"), "{said}"),
        false => {
            assert!(said.contains("this kernel has no VRFs") && said.contains("realm.table"), "{said}");
            assert!(!said.contains("ready"), "{said}");
        }
    }
    Ok(())
}
