//! `sixway up --dhcp` where another program listens for DNS queries already: hosts get a server that answers them.

use crate::Interop;
use crate::site_ipv6::lease;
use crate::site_nat64::up_resolving;
use crate::site_network::{HOST4, home, socket};
use sixway_lab::dns64::{Asker, Flags};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::name_service::serve;
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::topology::Network;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const PROGRAMS: &[&str] = &["sixway", "nft", "nsd", "taskset", "unshare", "dnsmasq", "busybox"];

pub const TESTS: &[Interop] = &[
    Interop::new(
        "site_up_answers_dns_next_to_the_servers_of_virtual_machines_and_of_the_box_itself",
        PROGRAMS,
        elsewhere,
    ),
    Interop::new("site_up_announces_the_dns_server_that_answers_at_all_addresses", PROGRAMS, everywhere),
    Interop::new("site_up_knows_hosts_by_their_names_but_for_those_that_others_look_up", PROGRAMS, names),
];

/// The box at the LAN.
const BOX: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);

/// Another program's dnsmasq on the box, with these words of its configuration.
fn other(network: &Network, words: &str) -> Result<u32> {
    let text = format!("user=root\nlog-facility=-\npid-file=\nno-hosts\nno-resolv\n{words}");
    let mut server = command("dnsmasq")?;
    let file = network.file("other.dnsmasq", &text)?;
    server.arg("--keep-in-foreground").arg(format!("--conf-file={}", file.display()));
    network.start("gateway", server)
}

/// Waits until a server of the box answers queries at this address. A socket that is bound there, to see whether the address is taken, could
/// keep the server from it: a child of another test has this process's sockets until it runs its own program.
fn waits_for(network: &Network, address: Ipv4Addr) -> Result<()> {
    let server = SocketAddr::new(IpAddr::V6(address.to_ipv6_mapped()), 53);
    let asker = Asker::open(network.host("gateway")?, server)?;
    interrupt::wait_until(Duration::from_secs(10), "the other server", || {
        Ok(asker.ask_within("ns.example", "A", Flags::NONE, Duration::from_millis(200)).is_ok())
    })
}

/// What the box answers the host's query for the address of ns.example; nothing is an error.
fn answered(network: &Network) -> Result<String> {
    let server = SocketAddr::new(IpAddr::V6(BOX.to_ipv6_mapped()), 53);
    let asker = Asker::open(network.host("host")?, server)?;
    let mut last = None;
    interrupt::wait_until(Duration::from_secs(20), "an answer of the box", || {
        let reply = asker.ask_within("ns.example", "A", Flags::NONE, Duration::from_millis(500));
        last = reply.ok().map(|reply| format!("{reply:?}"));
        Ok(last.as_ref().is_some_and(|reply| reply.contains("NOERROR")))
    })?;
    last.ok_or_else(|| Failure::Unexpected("no answer".into()))
}

/// A host takes a lease, and asks the server that it was told.
fn resolves(network: &Network) -> Result<()> {
    network.host("host")?.ip("-4 address flush dev up0")?;
    let told = lease(network)?;
    assert!(told.lines().any(|line| line == "dns=192.168.1.1"), "{told}");
    network.address("host", "up0", &format!("{HOST4}/24"))?;
    let reply = answered(network)?;
    assert!(reply.contains("203.0.113.2"), "{reply}");
    Ok(())
}

/// libvirt's dnsmasq at its bridge, and systemd-resolved at a loopback address, leave the LAN's address free.
fn elsewhere() -> Result<()> {
    let network = home()?;
    serve(&network, "")?;
    network.link(("gateway", "virbr0"), ("server", "guest0"))?;
    network.address("gateway", "virbr0", "192.168.122.1/24")?;
    other(&network, "bind-dynamic\nlisten-address=192.168.122.1\n")?;
    let _resolved = socket(&network, "gateway", "127.0.0.53", 53)?;
    waits_for(&network, Ipv4Addr::new(192, 168, 122, 1))?;
    let id = up_resolving(&network, &["--dhcp"])?;
    let said = network.with_process(id, |process| process.stdout())?;
    assert!(said.contains("IPv4 addresses and DNS by dnsmasq"), "{said}");
    resolves(&network)?;
    network.with_process(id, Process::must_run)?
}

/// A server at all addresses of the box is what hosts get, and the summary says so.
fn everywhere() -> Result<()> {
    let network = home()?;
    serve(&network, "")?;
    other(&network, "server=203.0.113.2\n")?;
    waits_for(&network, BOX)?;
    let id = up_resolving(&network, &["--dhcp"])?;
    let said = network.with_process(id, |process| process.stdout())?;
    assert!(said.contains("DNS by another program of this host, at 192.168.1.1"), "{said}");
    resolves(&network)?;
    network.with_process(id, Process::must_run)?
}

/// CERT VU#598349: a host that calls itself wpad would be the proxy of the others' browsers.
fn names() -> Result<()> {
    let network = home()?;
    serve(&network, "")?;
    let id = up_resolving(&network, &["--dhcp"])?;
    answered(&network)?;
    let inside = network.host("host")?;
    let asker = Asker::open(inside, SocketAddr::new(IpAddr::V6(BOX.to_ipv6_mapped()), 53))?;
    for (name, is_known) in [("printer", true), ("wpad", false), ("ISATAP", false)] {
        let mut client = command("busybox")?;
        client.args(["udhcpc", "-f", "-n", "-q", "-t", "10", "-T", "1", "-i", "up0", "-s", "/bin/true"]);
        client.args(["-x", &format!("hostname:{name}")]);
        inside.run(client, Duration::from_secs(30))?;
        let reply = format!("{:?}", asker.ask_within(name, "A", Flags::NONE, Duration::from_secs(5))?);
        assert_eq!(reply.contains("192.168.1."), is_known, "{name}: {reply}");
    }
    network.with_process(id, Process::must_run)?
}
