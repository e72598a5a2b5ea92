//! What changes under a Teredo client: its server fails, its NAT or its host gets another address, the process is replaced.

use crate::Interop;
use crate::teredo_client::{answers, client_says, has_address, passes};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{ask_on, run_sixway, run_sixway_on, take_over, take_over_on};
use sixway_lab::interrupt;
use sixway_lab::probe::numbered::{Numbered, Plan, StreamReport};
use sixway_lab::teredo::{CLIENT, HOST, RELAY, SERVER, address_of, network, network_with_spare};
use sixway_lab::topology::Network;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("our_teredo_client_goes_to_its_second_server_when_the_first_one_dies", PINGS, failover),
    Interop::new(
        "our_teredo_client_qualifies_within_seconds_at_another_address_of_its_host",
        PINGS,
        host_moves,
    ),
    Interop::new("our_teredo_client_notices_another_nat_within_its_interval", PINGS, nat_moves),
    Interop::new(
        "our_teredo_client_keeps_its_address_in_a_takeover_and_a_reload",
        PROGRAMS,
        client_gives_way,
    ),
    Interop::new("our_teredo_relay_keeps_its_streams_in_a_takeover_and_a_reload", PROGRAMS, relay_gives_way),
];

const PINGS: &[&str] = &["sixway", "nft", "ping"];
const PROGRAMS: &[&str] = &["sixway", "nft", "ping", "nginx", "curl"];

/// Until an address of this kind is there; how long it took.
fn until(network: &Network, is_it: impl Fn(&str) -> bool) -> Result<(String, Duration)> {
    let start = Instant::now();
    let address = has_address(network, "client", is_it)?;
    Ok((address, start.elapsed()))
}

/// The time for which a client may be without an answer: its interval of 5 s, three attempts of 4 s, and what a busy machine needs.
const SILENT: Duration = Duration::from_secs(5 + 12 + 6);

fn failover() -> Result<()> {
    let network = network_with_spare()?;
    run_sixway(&network, RELAY)?;
    let first = run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(
        &network,
        "spare",
        &SERVER.replace("198.51.100.1", "198.51.100.65").replace("198.51.100.2\"", "198.51.100.66\""),
    )?;
    let servers = "{ address = \"198.51.100.1\", secondary = \"198.51.100.2\" }";
    let both = format!("{servers}, {{ address = \"198.51.100.65\", secondary = \"198.51.100.66\" }}");
    run_sixway_on(&network, "client", &CLIENT.replace(servers, &both))?;
    let of_first = has_address(&network, "client", |address| is_of(address, 1))?;
    reaches_host(&network)?;
    network.with_process(first, |process| process.kill())?;
    let (of_spare, time) = until(&network, |address| is_of(address, 65))?;
    assert!(time < SILENT, "{of_first} until {of_spare}: {time:?}");
    let said = client_says(&network)?;
    for words in ["qualified", "server 198.51.100.65", &*of_spare] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    reaches_host(&network)
}

/// Whether an address contains the server 198.51.100.this.
fn is_of(address: &str, last: u8) -> bool {
    let server = address.parse::<Ipv6Addr>().map(|address| address.octets());
    server.is_ok_and(|octets| octets[4..8] == [198, 51, 100, last])
}

fn reaches_host(network: &Network) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(20), "an answer of the host", || {
        answers(network, "client", HOST)
    })
}

fn host_moves() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", CLIENT)?;
    has_address(&network, "client", |_| true)?;
    reaches_host(&network)?;
    let before = client_says(&network)?;
    let start = Instant::now();
    for change in [
        "address delete 192.168.1.2/24 dev up0",
        "address add 192.168.1.7/24 dev up0",
        "route replace default via 192.168.1.1",
    ] {
        network.host("client")?.ip(change)?;
    }
    interrupt::wait_until(Duration::from_secs(30), "a client at the new address", || {
        interrupt::pause(Duration::from_millis(50))?;
        let said = client_says(&network)?;
        Ok(said.contains("UDP 192.168.1.7:")
            && said.contains("qualified")
            && address_of(&network, "client")?.is_some())
    })?;
    // It looks at its addresses each second, and needs two round trips.
    let time = start.elapsed();
    assert!(time < Duration::from_secs(8), "{time:?}; before:\n{before}");
    reaches_host(&network)
}

fn nat_moves() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", CLIENT)?;
    let before = has_address(&network, "client", |_| true)?;
    reaches_host(&network)?;
    for change in [
        "address delete 198.51.100.18/28 dev out0",
        "address add 198.51.100.19/28 dev out0",
        "route replace default via 198.51.100.30",
    ] {
        network.host("nat")?.ip(change)?;
    }
    let (_, time) = until(&network, |address| address != before)?;
    assert!(time < Duration::from_secs(5 + 6), "{time:?}");
    let said = client_says(&network)?;
    assert!(said.contains("mapped to 198.51.100.19:"), "{said}");
    reaches_host(&network)
}

/// Packets a second of the stream while a process gives way.
const RATE: u32 = 100;

/// From one host to another and back, until it is ended.
fn stream(network: &Network, [from, source]: [&str; 2], [to, target]: [&str; 2]) -> Result<Numbered> {
    let of = |text: &str| text.parse::<IpAddr>().map_err(|_| Failure::Unexpected(text.into()));
    let target = SocketAddr::new(of(target)?, 4_000);
    Numbered::start(&Plan {
        client: network.host(from)?,
        source: SocketAddr::new(of(source)?, 5_000),
        server: network.host(to)?,
        target,
        listens: target,
        flows: 1,
        per_second: RATE,
        octets: 100,
    })
}

/// What was lost of a stream, and for how long; both bounded.
fn judge(report: &StreamReport, what: &str) {
    let ([up, down], [sent, answered]) = (report.lost(), report.sent());
    let outage = report.up.outage().max(report.down.outage());
    eprintln!("{what}: {up} of {sent} lost, {down} of {answered} answers, within {outage:?}");
    assert!(sent > 100, "{what}: {sent}");
    let most = MOST_LOST.as_secs_f64() * f64::from(RATE);
    assert!(
        ((up + down) as f64) < most,
        "{what}: {up} of {sent} lost, {down} of {answered}, within {outage:?}"
    );
}

/// The port is closed between two processes, and the next one has to prove its peers; a lost bubble is repeated after 2 s.
const MOST_LOST: Duration = Duration::from_millis(2_500);

fn reload(network: &Network, host: &str) -> Result<()> {
    network
        .host(host)?
        .run(ask_on(network, host, &["reload"])?, Duration::from_secs(30))?
        .succeeded()
        .map(drop)
}

/// Changes a value in the configuration that [`run_sixway_on`] has written.
fn rewrite(network: &Network, host: &str, [from, to]: [&str; 2]) -> Result<()> {
    let file = network.folder().join(format!("sixway-{host}.toml"));
    let text = std::fs::read_to_string(&file).asking(|| format!("reading {}", file.display()))?;
    assert!(text.contains(from), "{text}");
    std::fs::write(&file, text.replace(from, to)).asking(|| format!("writing {}", file.display()))
}

fn client_gives_way() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", CLIENT)?;
    let address = has_address(&network, "client", |_| true)?;
    passes(&network)?;
    let during = |what: &str, change: &dyn Fn() -> Result<()>| -> Result<()> {
        let stream = stream(&network, ["client", &address], ["host", HOST])?;
        interrupt::pause(Duration::from_millis(500))?;
        change()?;
        interrupt::pause(Duration::from_secs(3))?;
        let report = stream.end()?;
        let said = client_says(&network)?;
        assert_eq!(address_of(&network, "client")?.as_ref(), Some(&address), "{what}: {said}");
        judge(&report, what);
        interrupt::wait_until(Duration::from_secs(10), "a qualified client", || {
            interrupt::pause(Duration::from_millis(100))?;
            let said = client_says(&network)?;
            Ok(said.contains("qualified") && said.contains(&address))
        })
    };
    during("takeover", &|| take_over_on(&network, "client", CLIENT).map(drop))?;
    during("reload", &|| reload(&network, "client"))?;
    // One that changes something.
    during("reload with another interval", &|| {
        rewrite(&network, "client", ["interval = \"5 s\"", "interval = \"6 s\""])?;
        reload(&network, "client")
    })?;
    reaches_host(&network)
}

/// The host's packets make the next relay ask the client. While the client alone sends, nothing does: the relay cannot know it, and the client asks
/// again 30 s after the last packet that came.
fn relay_gives_way() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}firewall = false\n"))?;
    let address = has_address(&network, "client", |_| true)?;
    passes(&network)?;
    let during = |what: &str, change: &dyn Fn() -> Result<()>| -> Result<()> {
        let stream = stream(&network, ["host", HOST], ["client", &address])?;
        interrupt::pause(Duration::from_millis(500))?;
        change()?;
        interrupt::pause(Duration::from_secs(3))?;
        judge(&stream.end()?, what);
        Ok(())
    };
    during("takeover", &|| take_over(&network, RELAY).map(drop))?;
    during("reload", &|| reload(&network, "gateway"))?;
    during("reload with networks that are served", &|| {
        rewrite(
            &network,
            "gateway",
            ["interface = \"out0\"", "interface = \"out0\"\nserves = [\"2001:db8::/32\"]"],
        )?;
        reload(&network, "gateway")
    })?;
    reaches_host(&network)
}
