//! Our Teredo client behind NATs, with a server that is not ours (miredo), and relays of both kinds.

use crate::Interop;
use crate::counters::no_checksum_is_wrong;
use crate::datagrams::pattern;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on, run_sixway_with_path, show_on};
use sixway_lab::interrupt;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::teredo::{
    CLIENT, HOST, RELAY, SERVER, address_of, hides_by, network, network_of_two, run_miredo, run_miredo_relay,
    run_miredo_server,
};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("our_teredo_client_behind_a_nat_reaches_hosts_through_our_relay", PROGRAMS, by_our_relay),
    Interop::new("our_teredo_client_server_and_relay_work_together", OURS, all_ours),
    Interop::new("our_teredo_client_behind_a_nat_reaches_hosts_through_miredos_relay", PROGRAMS, by_miredo),
    Interop::new("our_teredo_client_recognises_a_symmetric_nat", PROGRAMS, symmetric),
    Interop::new("nothing_unsolicited_comes_to_our_teredo_client", PROGRAMS, unsolicited),
    Interop::new("without_its_packet_filter_our_teredo_client_has_no_address", OURS, no_filter),
    Interop::new("our_teredo_client_has_another_address_when_its_nat_has", PROGRAMS, nat_moves),
    Interop::new(
        "two_of_our_teredo_clients_behind_two_nats_reach_each_other_directly",
        PROGRAMS,
        two_clients,
    ),
    Interop::new(
        "our_teredo_client_and_a_miredo_client_behind_two_nats_reach_each_other_directly",
        PROGRAMS,
        || miredo_neighbour("client", "neighbour"),
    ),
    Interop::new(
        "a_miredo_client_and_our_teredo_client_behind_two_nats_reach_each_other_directly",
        PROGRAMS,
        || miredo_neighbour("neighbour", "client"),
    ),
    Interop::new("our_teredo_client_keeps_its_address_across_a_restart", PROGRAMS, restarts),
    Interop::new("our_teredo_client_stops_when_native_ipv6_appears", PROGRAMS, native_appears),
];

const OURS: &[&str] = &["sixway", "nft", "ping", "nginx", "curl"];
const PROGRAMS: &[&str] = &["sixway", "miredo", "miredo-server", "nft", "ping", "nginx", "curl"];

fn page() -> String {
    pattern(1_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect()
}

/// What `sixway show teredo` says on the host "client".
pub fn client_says(network: &Network) -> Result<String> {
    let words = show_on(network, "client", &["teredo"])?;
    Ok(network.host("client")?.run(words, Duration::from_secs(5))?.succeeded()?.stdout)
}

/// Starts the server and the client; the client's address.
pub fn qualified(network: &Network, configuration: &str) -> Result<String> {
    run_miredo_server(network)?;
    run_sixway_on(network, "client", configuration)?;
    has_address(network, "client", |_| true)
}

/// Starts clients that let everything in on the hosts "client" and "neighbour"; their addresses.
pub fn two_qualified(network: &Network) -> Result<[String; 2]> {
    two_qualified_with(network, "")
}

/// The same with more options.
pub fn two_qualified_with(network: &Network, options: &str) -> Result<[String; 2]> {
    let hosts = ["client", "neighbour"];
    for host in hosts {
        run_sixway_on(network, host, &format!("{CLIENT}firewall = false\n{options}"))?;
    }
    let [client, neighbour] = hosts.map(|host| has_address(network, host, |_| true));
    Ok([client?, neighbour?])
}

/// Waits for an address of this kind.
pub fn has_address(network: &Network, host: &str, is_it: impl Fn(&str) -> bool) -> Result<String> {
    let mut found = None;
    let waited = interrupt::wait_until(Duration::from_secs(30), "a Teredo address", || {
        found = address_of(network, host)?.filter(|address| is_it(address));
        Ok(found.is_some())
    });
    if let Err(error) = waited {
        return Err(Failure::Unexpected(format!("{error}: {}", client_says(network)?)));
    }
    found.ok_or_else(|| Failure::Unexpected("the address is gone".into()))
}

/// Whether a ping is answered.
pub fn answers(network: &Network, from: &str, to: &str) -> Result<bool> {
    Ok(ping(network.host(from)?, to, 1, 56, Duration::from_secs(1))?.answered == 1)
}

/// The client's first packet makes it test the relay; after that, packets of all sizes pass, and a page is whole.
pub fn passes(network: &Network) -> Result<()> {
    let waited =
        interrupt::wait_until(Duration::from_secs(20), "a first answer", || answers(network, "client", HOST));
    if let Err(error) = waited {
        return Err(Failure::Unexpected(format!("{error}: {}", client_says(network)?)));
    }
    for octets in [56, 1_232] {
        pings_come_back(network.host("client")?, HOST, octets)?;
    }
    serve_page(network, "host", &format!("[{HOST}]"), &page())?;
    let body = fetch(network, "client", &format!("http://[{HOST}]/"))?.body;
    assert!(body == page(), "another page arrived: {} octets", body.len());
    no_checksum_is_wrong(network)
}

fn by_our_relay() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    let address = qualified(&network, CLIENT)?;
    passes(&network)?;
    let said = client_says(&network)?;
    for words in ["qualified", &*address, "mapped to 198.51.100.18:", "server 198.51.100.1", "established"] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    Ok(())
}

/// Without a program of anybody else.
fn all_ours() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", CLIENT)?;
    let address = has_address(&network, "client", |_| true)?;
    passes(&network)?;
    // Answers to what the client sends; whoever begins from outside is dropped by its packet filter.
    assert!(!answers(&network, "host", &address)?);
    let said = client_says(&network)?;
    assert!(said.contains("server 198.51.100.1") && said.contains("established"), "{said}");
    Ok(())
}

fn by_miredo() -> Result<()> {
    let network = network()?;
    run_miredo_relay(&network)?;
    qualified(&network, CLIENT)?;
    passes(&network)
}

/// Each destination sees another port: the client says so. Relays of RFC 4380 reach it only by the ports that its tests opened.
fn symmetric() -> Result<()> {
    let network = network()?;
    hides_by(&network, "masquerade random,fully-random")?;
    run_sixway(&network, RELAY)?;
    qualified(&network, CLIENT)?;
    let said = client_says(&network)?;
    assert!(said.contains("NAT: symmetric"), "{said}");
    passes(&network)
}

/// With the firewall, which is the default, a host cannot begin; without, it can.
fn unsolicited() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    let address = qualified(&network, CLIENT)?;
    passes(&network)?;
    for _ in 0..5 {
        assert!(!answers(&network, "host", &address)?, "a ping that nobody asked for was answered");
    }
    pings_come_back(network.host("client")?, HOST, 56)?;
    let mut list = sixway_lab::namespace::command("nft")?;
    list.args(["list", "ruleset"]);
    let rules = network.host("client")?.run(list, Duration::from_secs(5))?.succeeded()?.stdout;
    let counted = rules.lines().find(|line| line.contains("counter packets") && line.contains("drop"));
    assert!(counted.is_some_and(|line| !line.contains("packets 0 ")), "{rules}");
    Ok(())
}

/// The folders of this `PATH` have no nft: nothing could be dropped.
fn no_filter() -> Result<()> {
    let network = network()?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_with_path(&network, "client", CLIENT, "/nowhere")?;
    // It qualified, and says why that is of no use.
    interrupt::wait_until(Duration::from_secs(20), "a client that says why it stopped", || {
        let said = client_says(&network)?;
        Ok(said.contains("the packet filter's table cannot be made") && said.contains("answered"))
    })?;
    for _ in 0..20 {
        assert_eq!(address_of(&network, "client")?, None);
        interrupt::pause(Duration::from_millis(100))?;
    }
    Ok(())
}

/// The mapping's address is in the client's address: it has another one within two intervals and some questions.
fn nat_moves() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    let before = qualified(&network, CLIENT)?;
    passes(&network)?;
    // The kernel forgets what was masqueraded behind an address that goes.
    for change in [
        "address delete 198.51.100.18/28 dev out0",
        "address add 198.51.100.19/28 dev out0",
        "route replace default via 198.51.100.30",
    ] {
        network.host("nat")?.ip(change)?;
    }
    let after = has_address(&network, "client", |address| address != before)?;
    assert_ne!(before, after);
    let said = client_says(&network)?;
    assert!(said.contains("mapped to 198.51.100.19:"), "{said}");
    Ok(())
}

/// RFC 4380 §5.5: a host that has IPv6 by other means does not use Teredo.
fn native_appears() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    qualified(&network, CLIENT)?;
    network.address("client", "up0", "2001:db8:9::2/64")?;
    network.route("client", "default via 2001:db8:9::1")?;
    interrupt::wait_until(Duration::from_secs(10), "the end of the Teredo address", || {
        Ok(address_of(&network, "client")?.is_none())
    })?;
    let said = client_says(&network)?;
    assert!(said.contains("this host has native IPv6"), "{said}");
    let routes = network.host("client")?.ip("-6 route show default")?;
    assert!(!routes.contains("sixway"), "{routes}");
    network.host("client")?.ip("-6 route delete default via 2001:db8:9::1")?;
    network.host("client")?.ip("-6 address delete 2001:db8:9::2/64 dev up0")?;
    has_address(&network, "client", |_| true).map(drop)
}

/// Bubbles open both NATs, and no relay is needed or present. Who began is answered; the other's own pings are not asked for.
fn two_clients() -> Result<()> {
    let network = network_of_two()?;
    let open = format!("{CLIENT}firewall = false\n");
    let address = qualified(&network, &open)?;
    run_sixway_on(&network, "neighbour", &open)?;
    let neighbour = has_address(&network, "neighbour", |_| true)?;
    assert_ne!(address, neighbour);
    interrupt::wait_until(Duration::from_secs(20), "an answer of the other client", || {
        answers(&network, "client", &neighbour)
    })?;
    for octets in [56, 1_232] {
        pings_come_back(network.host("client")?, &neighbour, octets)?;
        pings_come_back(network.host("neighbour")?, &address, octets)?;
    }
    let said = client_says(&network)?;
    assert!(said.contains("198.51.100.50:") && said.contains("established"), "{said}");
    no_checksum_is_wrong(&network)
}

/// Our server, our client on the host "client" and miredo's on "neighbour"; this one begins. Nobody is a relay.
fn miredo_neighbour(first: &str, second: &str) -> Result<()> {
    let network = network_of_two()?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}firewall = false\n"))?;
    let options = "InterfaceName teredo\nServerAddress 198.51.100.1\n";
    run_miredo(&network, "neighbour", "miredo", options)?;
    let ours = has_address(&network, "client", |_| true)?;
    let theirs = has_address(&network, "neighbour", |_| true)?;
    let peer = |host: &str| if host == "client" { &theirs } else { &ours };
    interrupt::wait_until(Duration::from_secs(20), "an answer of the other client", || {
        answers(&network, first, peer(first))
    })?;
    for octets in [56, 1_232] {
        pings_come_back(network.host(first)?, peer(first), octets)?;
        pings_come_back(network.host(second)?, peer(second), octets)?;
    }
    let said = client_says(&network)?;
    assert!(said.contains("198.51.100.50:") && said.contains("established"), "{said}");
    no_checksum_is_wrong(&network)
}

/// The port and the address are kept; the NAT still maps the port so.
fn restarts() -> Result<()> {
    let network = network()?;
    run_miredo_server(&network)?;
    let id = run_sixway_on(&network, "client", CLIENT)?;
    let before = has_address(&network, "client", |_| true)?;
    network.with_process(id, |process| process.stop())?;
    assert_eq!(address_of(&network, "client")?, None, "the address went with its client");
    run_sixway_on(&network, "client", CLIENT)?;
    assert_eq!(has_address(&network, "client", |_| true)?, before);
    Ok(())
}
