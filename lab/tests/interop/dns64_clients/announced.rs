//! Hosts that learn by router advertisements who resolves names, and with which prefix.

use super::{RECORDS, SERVER};
use crate::Interop;
use crate::advertisements::{last_advertisement, options};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::load::icmpv6_socket;
use sixway_lab::name_service::{DNS64, RESOLVER, Resolving, addresses, serve};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch_from, serve_page};
use sixway_lab::topology::{Network, client_gateway_server};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("rdisc6_sees_who_resolves_names_and_the_prefix", &["sixway", "rdisc6"], told),
    Interop::new(
        "a_host_that_was_told_all_by_advertisements_opens_a_page_by_name",
        &["sixway", "nsd", "taskset", "unshare", "rdnssd", "rdisc6", "getent", "curl", "nginx"],
        configured_by_advertisements,
    ),
];

/// Neither `rdnss` nor `pref64` is written.
const ADVERTISEMENT: &str = r#"
[router_advertisement]
interface = "in0"
prefixes = [{ prefix = "2001:db8:1::/64" }]
"#;

fn gateway(network: &Network) -> Result<u32> {
    run_sixway(network, &format!("{NAT64}{DNS64}{ADVERTISEMENT}"))
}

fn solicited(network: &Network) -> Result<String> {
    let mut rdisc6 = command("rdisc6")?;
    rdisc6.args(["-1", "-w", "1000", "up0"]);
    Ok(network.host("client")?.run(rdisc6, Duration::from_secs(10))?.stdout)
}

fn told() -> Result<()> {
    let network = client_gateway_server()?;
    gateway(&network)?;
    let socket = network.host("client")?.enter(icmpv6_socket)??;
    let mut said = String::new();
    interrupt::wait_until(Duration::from_secs(15), "a router advertisement", || {
        said = solicited(&network)?;
        Ok(said.contains("Router lifetime"))
    })?;
    let servers: Vec<_> = said.lines().filter(|line| line.contains("Recursive DNS server")).collect();
    assert!(servers.len() == 1 && servers[0].ends_with(RESOLVER), "{said}");
    // Debian 12's rdisc6 does not show PREF64: type 38, 16 octets, a length code of 0 for /96, and 96 bits of the prefix (RFC 8781 §4).
    let options = options(&last_advertisement(&socket)?[16..])?;
    let pref64 = options.iter().find(|option| option.first() == Some(&38)).map(|option| &option[4..]);
    assert_eq!(pref64, Some(&[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0][..]), "{options:x?}");
    Ok(())
}

/// The client has no address, no route and no resolver but those that it learns.
fn configured_by_advertisements() -> Result<()> {
    let network = client_gateway_server()?;
    serve(&network, RECORDS)?;
    serve_page(&network, "server", "203.0.113.2", "a page")?;
    let client = network.host("client")?;
    client.ip("link set up0 down")?;
    client.ip("-6 address flush dev up0 scope global")?;
    for (key, value) in [("accept_ra", "1"), ("autoconf", "1"), ("router_solicitations", "3")] {
        client.sysctl(&format!("ipv6/conf/up0/{key}"), value)?;
    }
    client.ip("link set up0 up")?;
    let file = network.folder().join("resolv-learnt.conf");
    let mut rdnssd = command("rdnssd")?;
    rdnssd.args(["-f", "-u", "root", "-r"]).arg(&file);
    rdnssd.arg("-p").arg(network.folder().join("rdnssd.pid"));
    let rdnssd = network.start("client", rdnssd)?;
    gateway(&network)?;
    let mut learnt = String::new();
    interrupt::wait_until(Duration::from_secs(20), "a resolver from an advertisement", || {
        network.with_process(rdnssd, |process| process.must_run())??;
        solicited(&network)?;
        learnt = std::fs::read_to_string(&file).unwrap_or_default();
        Ok(learnt.contains("nameserver"))
    })?;
    assert_eq!(learnt.trim(), format!("nameserver {RESOLVER}"));
    interrupt::wait_until(Duration::from_secs(10), "an address from an advertisement", || {
        let said = client.ip("-6 address show dev up0 scope global -tentative")?;
        Ok(said.contains("inet6 2001:db8:1:"))
    })?;
    let client = Resolving::with(&network, "client", &learnt)?;
    for name in ["shop.example", "alias.example"] {
        // glibc asks for A records too; the host has no IPv4, so programs have one address that works.
        let found = addresses(&client, name)?;
        assert!(found.contains(&SERVER.to_owned()), "{name}: {found:?}");
    }
    let page = fetch_from(&client, &network, "http://shop.example/")?;
    match (page.status, page.body.as_str()) {
        (200, "a page") => Ok(()),
        other => Err(Failure::Unexpected(format!("{other:?}"))),
    }
}
