//! `make demo`: an IPv6-only client opens a page on an IPv4-only server through Sixway, by its address and by its name, and shows what happened.

use crate::failure::{Failure, Result};
use crate::forwarder::{Forwarder, Running};
use crate::gateway::show;
use crate::name_service::{self, DNS64, RESOLVER, Resolving};
use crate::packet;
use crate::probe::{
    Bulk, BulkServer, Direction, Page, RoundTrips, fetch, fetch_from, ping, serve_bulk, serve_page,
};
use crate::programs;
use crate::six_to_four::{Relay, RelayOptions, SERVER, SITE};
use crate::softwires::{self, Ready};
use crate::terminal::{self, bits, bold, dim};
use crate::topology;
use std::time::Duration;

/// How the demo runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Leave the network and the gateway there at the end.
    pub keep: bool,
    /// Show the gateway's log too.
    pub trace: bool,
}

const PICTURE: &str = "
  client ────────── gateway ────────── server
  IPv6 only         sixway             IPv4 only
  2001:db8:1::2     64:ff9b::/96       203.0.113.2
";

/// A way in a network of its own: its name, what is tried, and the network.
type Way = (&'static str, &'static str, fn() -> Result<Ready>);

const WAYS: [Way; 4] = [
    ("DS-Lite", "a B4 by its AFTR to 203.0.113.2", softwires::ds_lite),
    ("4over6", "a leased address to 203.0.113.2", softwires::four_over_six),
    ("NAT46", "10.1.0.2 to 192.168.46.80, which is 2001:db8:2::2", softwires::nat46),
    ("Teredo", "a client behind a NAT by a relay to 2001:db8:1::2", softwires::teredo),
];

/// What the server is called.
const NAME: &str = "shop.example";

/// Runs the demonstration. Fails if any of its steps fails.
pub fn run(options: Options) -> Result<()> {
    println!("\n{}\n{PICTURE}", bold("A network of three hosts, and Sixway between them:"));
    if let Some(failure) = Forwarder::Nat64.cannot_run() {
        return Err(failure);
    }
    let demo = Forwarder::Nat64.start_beside(DNS64)?;
    let suffix = demo.network.suffix().to_owned();
    let shown = show_everything(&demo, options);
    if options.keep && !matches!(shown, Err(Failure::Interrupted)) {
        how_to_look_around(&demo);
        demo.network.keep();
        return shown;
    }
    drop(demo);
    let left = topology::left_over(&suffix);
    let told = if left.is_empty() {
        "nothing left behind".to_owned()
    } else {
        format!("left behind: {}", left.join(", "))
    };
    println!();
    terminal::line(left.is_empty(), "removed", "namespaces, device, routes", &told);
    println!("  {}\n", dim("To keep the network: make demo KEEP=1"));
    if left.is_empty() { shown } else { shown.and(Err(Failure::Unexpected(told))) }
}

fn show_everything(demo: &Running, options: Options) -> Result<()> {
    let mut faults = Vec::new();
    let mut tell = |name: &str, tried: &str, outcome: Result<String>| match outcome {
        Ok(result) => {
            terminal::line(true, name, tried, &result);
            Ok(())
        }
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        Err(failure) => {
            terminal::line(false, name, tried, &failure.to_string());
            faults.push(name.to_owned());
            Ok(())
        }
    };
    let target = demo.target;
    tell("ping", target, pings(demo))?;
    tell("web page", &format!("http://[{target}]/"), page(demo))?;
    match name_service::PROGRAMS.into_iter().find_map(|program| programs::require(program).err()) {
        Some(missing) => terminal::skipped("web page", &format!("by name: {missing}")),
        None => tell("web page", &format!("http://{NAME}/ by name through DNS64"), page_by_name(demo))?,
    }
    let server = serve_bulk(&demo.network, "server")?;
    let sixway = bulk(&server, demo.target, Duration::from_secs(3));
    let tried = "iperf3, one stream, up and down";
    tell("bulk TCP", tried, sixway.as_ref().map(both_ways).map_err(|f| Failure::Unexpected(f.to_string())))?;
    let ends = format!("{} to {SERVER}", packet::six_to_four(SITE, 1));
    tell("6to4", &ends, a_site_reaches_a_native_host())?;
    for (name, tried, start) in WAYS {
        tell(name, tried, start().and_then(|ready| crosses(&ready)))?;
    }
    println!();
    for what in ["bindings", "sessions", "dns64", "counters"] {
        tell("show", &format!("sixway show {what}"), shown(demo, what))?;
    }
    println!("  {}", dim("the same transfer through other forwarders:"));
    for peer in [Forwarder::Kernel, Forwarder::SharingTayga] {
        match peer.cannot_run() {
            Some(failure) => terminal::skipped(peer.name(), &failure.to_string()),
            None => tell(peer.name(), tried, peer_bulk(peer, sixway.as_ref().ok()))?,
        }
    }
    if options.trace {
        print_log(demo)?;
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Failure::Unexpected(format!("failed: {}", faults.join(", "))))
    }
}

fn pings(demo: &Running) -> Result<String> {
    let client = demo.network.host("client")?;
    all_answered(ping(client, demo.target, 20, 56, Duration::from_millis(20))?)
}

fn all_answered(trips: RoundTrips) -> Result<String> {
    let said = format!("{} of {}", trips.answered, trips.sent);
    match trips.median() {
        Some(median) if trips.answered == trips.sent => Ok(format!("{median:.2} ms, {said}")),
        Some(_) | None => Err(Failure::Unexpected(format!("only {said} answered"))),
    }
}

/// In a network of its own: a 6to4 host, Sixway as its relay, and a host that has only IPv6.
fn a_site_reaches_a_native_host() -> Result<String> {
    let relay = Relay::start_with_site(RelayOptions::default())?;
    all_answered(ping(relay.network.host("client")?, &SERVER.to_string(), 20, 56, Duration::from_millis(20))?)
}

fn crosses(ready: &Ready) -> Result<String> {
    softwires::answers(ready)?;
    let client = ready.network.host("client")?;
    all_answered(ping(client, ready.target, 20, 56, Duration::from_millis(20))?)
}

fn page(demo: &Running) -> Result<String> {
    serve_page(&demo.network, "server", demo.listens, &welcome())?;
    the_page(&fetch(&demo.network, "client", &format!("http://[{}]/", demo.target))?)
}

/// The client knows only a name and a resolver; the server holds the name's address.
fn page_by_name(demo: &Running) -> Result<String> {
    name_service::serve(&demo.network, "shop A 203.0.113.2\n")?;
    let client = Resolving::by(&demo.network, "client", RESOLVER)?;
    the_page(&fetch_from(&client, &demo.network, &format!("http://{NAME}/"))?)
}

fn the_page(page: &Page) -> Result<String> {
    if page.status != 200 || page.body != welcome() {
        let (status, octets) = (page.status, page.octets);
        return Err(Failure::Unexpected(format!("status {status}, {octets} octets: not the page")));
    }
    Ok(format!("{} in {:.1} ms", terminal::octets(page.octets), page.seconds * 1e3))
}

fn welcome() -> String {
    let line = "<p>This page was fetched by a client that has no IPv4 address from a server that has no IPv6 address.</p>\n";
    format!("<!doctype html><title>Sixway</title>\n{}", line.repeat(40))
}

struct UpAndDown {
    up: Bulk,
    down: Bulk,
}

fn bulk(server: &BulkServer<'_>, target: &str, time: Duration) -> Result<UpAndDown> {
    let once = |direction| server.transfer("client", target, direction, time);
    Ok(UpAndDown { up: once(Direction::Up)?, down: once(Direction::Down)? })
}

fn both_ways(both: &UpAndDown) -> String {
    format!("{} up, {} down", bits(both.up.bits_per_second), bits(both.down.bits_per_second))
}

fn peer_bulk(peer: Forwarder, sixway: Option<&UpAndDown>) -> Result<String> {
    let running = peer.start()?;
    let server = serve_bulk(&running.network, "server")?;
    let measured = bulk(&server, running.target, Duration::from_secs(2))?;
    let Some(sixway) = sixway else { return Ok(both_ways(&measured)) };
    let ratio = |ours: Bulk, theirs: Bulk| ours.bits_per_second / theirs.bits_per_second.max(1.0);
    let (up, down) = (ratio(sixway.up, measured.up), ratio(sixway.down, measured.down));
    Ok(format!("{}{}", both_ways(&measured), dim(format!("   sixway is {up:.1} × and {down:.1} × that"))))
}

fn shown(demo: &Running, what: &str) -> Result<String> {
    let command = show(&demo.network, &[what])?;
    let said = demo.network.host("gateway")?.run(command, Duration::from_secs(5))?.succeeded()?;
    let lines: String = said.stdout.trim_end().lines().filter(|line| moved(line)).map(shown_line).collect();
    Ok(format!("{lines}\n"))
}

/// Of the counters, those that moved.
fn moved(line: &str) -> bool {
    line.split_whitespace().nth(1) != Some("0")
}

fn shown_line(line: &str) -> String {
    const WIDTH: usize = 132;
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("\n      {}…", &line[..end]),
        None => format!("\n      {line}"),
    }
}

fn print_log(demo: &Running) -> Result<()> {
    let Some(id) = demo.process else { return Ok(()) };
    let said = demo.network.with_process(id, |process| process.stdout() + &process.stderr())?;
    println!("\n  {}", bold("sixway's log:"));
    said.lines().for_each(|line| println!("      {line}"));
    Ok(())
}

fn how_to_look_around(demo: &Running) {
    let name = |role| demo.network.host(role).map_or(String::new(), |host| host.name().to_owned());
    let lab = std::env::current_exe().unwrap_or_default();
    let sixway = show(&demo.network, &["sessions"]).map(|command| format!("{command:?}"));
    println!("\n  {}", bold("The network is still up. Try:"));
    println!("    ip netns exec {} ping {}", name("client"), demo.target);
    println!("    ip netns exec {} curl -g http://[{}]/", name("client"), demo.target);
    if let Ok(by_name) = Resolving::by(&demo.network, "client", RESOLVER) {
        println!("    ip netns exec {} {} curl http://{NAME}/", name("client"), by_name.script().display());
    }
    println!("    ip netns exec {} tcpdump -ni sixway0", name("gateway"));
    println!("    {}", sixway.unwrap_or_default().replace('"', ""));
    println!("  {}", bold("Remove it:"));
    println!("    {} remove {}\n", lab.display(), demo.network.suffix());
}
