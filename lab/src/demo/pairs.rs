//! Which host reaches which server, and the rates.

use super::faults::Faults;
use crate::failure::{Failure, Result};
use crate::probe::{Bulk, BulkServer, Direction, Page, RoundTrips, fetch_from, ping, serve_bulk, serve_page};
use crate::site::{EMBEDDED4, HOSTS, Kind, LanHost, OutsideServer, SERVER4, SERVER6, Site};
use crate::terminal::{self, bold, cross, dim, tick};
use std::result::Result as StdResult;
use std::time::Duration;

/// A host, a server, and what is between them.
struct Pair {
    host: &'static LanHost,
    server: &'static OutsideServer,
    by: &'static str,
}

/// What the kernel forwards, and nothing translates.
const NATIVE: &str = "native";

/// Native IPv6 comes first: the others are compared with it.
const PAIRS: [Pair; 5] = [
    Pair { host: &HOSTS[1], server: &SERVER6, by: NATIVE },
    Pair { host: &HOSTS[2], server: &SERVER6, by: NATIVE },
    Pair { host: &HOSTS[0], server: &SERVER4, by: "NAT44" },
    Pair { host: &HOSTS[2], server: &SERVER4, by: "NAT44" },
    Pair { host: &HOSTS[1], server: &SERVER4, by: "DNS64, NAT64" },
];

struct UpAndDown {
    up: Bulk,
    down: Bulk,
}

/// Shows all of them.
pub(super) fn show(site: &Site, faults: &mut Faults) -> Result<()> {
    let network = &site.network;
    let servers = [&SERVER4, &SERVER6];
    for server in servers {
        serve_page(network, server.role, &server.in_brackets(), &welcome(server))?;
    }
    let (bulk4, bulk6) = (serve_bulk(network, SERVER4.role)?, serve_bulk(network, SERVER6.role)?);
    println!("\n  {}", bold("Who reaches whom: a page by name, 20 pings, one TCP stream up and down"));
    println!("    {}", dim(row("host", "server", "by", ["page", "ping", "TCP"])));
    let mut native = Vec::new();
    for pair in &PAIRS {
        let server = if *pair.server == SERVER4 { &bulk4 } else { &bulk6 };
        let rate = rates(server, pair);
        let compared =
            rate.as_ref().map(|rate| both_ways(rate, pair.by, &native)).map_err(ToString::to_string);
        let cells =
            [page(site, pair), pings(site, pair)].map(|cell| cell.map_err(|failure| failure.to_string()));
        let [page, ping] = cells;
        tell(pair, [page, ping, compared], faults);
        crate::interrupt::check()?;
        native.extend(rate.ok().filter(|_| pair.by == NATIVE));
    }
    let outcome = does_not_reach(site);
    let what = format!("{} → {}", HOSTS[0].kind.name(), SERVER6.kind.name());
    faults.tell("no way", &what, outcome)
}

fn row(host: &str, server: &str, by: &str, [page, ping, bulk]: [&str; 3]) -> String {
    format!("{host:<11} {server:<10} {by:<13} {page:<18} {ping:<18} {bulk}")
}

fn tell(pair: &Pair, cells: [StdResult<String, String>; 3], faults: &mut Faults) {
    let (host, server) = (pair.host.kind.name(), pair.server.kind.name());
    let text = |cell: &StdResult<String, String>| cell.clone().unwrap_or_else(|_| "failed".to_owned());
    let [page, ping, bulk] = cells.each_ref().map(text);
    let is_whole = cells.iter().all(StdResult::is_ok);
    let mark = if is_whole { tick() } else { cross() };
    println!("  {mark} {}", row(host, server, pair.by, [&page, &ping, &bulk]));
    for why in cells.iter().filter_map(|cell| cell.as_ref().err()) {
        println!("      {why}");
    }
    if !is_whole {
        faults.note(format!("{host} to {server}"));
    }
}

/// The server's address for this host.
fn target(pair: &Pair) -> &'static str {
    match (pair.host.kind, pair.server.kind) {
        (Kind::Ipv6, Kind::Ipv4) => EMBEDDED4,
        _ => pair.server.address,
    }
}

fn page(site: &Site, pair: &Pair) -> Result<String> {
    let url = format!("http://{}/", pair.server.name);
    the_page(&fetch_from(&site.resolving(pair.host)?, &site.network, &url)?, pair.server)
}

fn the_page(page: &Page, server: &OutsideServer) -> Result<String> {
    if page.status != 200 || page.body != welcome(server) {
        let (status, octets) = (page.status, page.octets);
        return Err(Failure::Unexpected(format!("status {status}, {octets} octets: not the page")));
    }
    Ok(format!("{} in {:.1} ms", terminal::octets(page.octets), page.seconds * 1e3))
}

fn welcome(server: &OutsideServer) -> String {
    let line = format!("<p>This page is on {}, a server that has {}.</p>\n", server.name, server.kind.name());
    format!("<!doctype html><title>Sixway</title>\n{}", line.repeat(60))
}

fn pings(site: &Site, pair: &Pair) -> Result<String> {
    let host = site.network.host(pair.host.role)?;
    all_answered(&ping(host, target(pair), 20, 56, Duration::from_millis(20))?)
}

/// The median of pings that were all answered.
pub(super) fn all_answered(trips: &RoundTrips) -> Result<String> {
    let said = format!("{} of {}", trips.answered, trips.sent);
    match trips.median() {
        Some(median) if trips.answered == trips.sent => Ok(format!("{median:.2} ms, {said}")),
        Some(_) | None => Err(Failure::Unexpected(format!("only {said} answered"))),
    }
}

fn rates(server: &BulkServer<'_>, pair: &Pair) -> Result<UpAndDown> {
    let once = |direction| server.transfer(pair.host.role, target(pair), direction, Duration::from_secs(1));
    Ok(UpAndDown { up: once(Direction::Up)?, down: once(Direction::Down)? })
}

/// What is translated is compared with what is not.
fn both_ways(both: &UpAndDown, by: &str, native: &[UpAndDown]) -> String {
    let (up, down) = (both.up.bits_per_second, both.down.bits_per_second);
    let said = format!("{} up, {} down", terminal::bits(up), terminal::bits(down));
    if by == NATIVE || native.is_empty() {
        return said;
    }
    let sum = |of: fn(&UpAndDown) -> f64| native.iter().map(of).sum::<f64>() / native.len() as f64;
    let up = up / sum(|one| one.up.bits_per_second).max(1.0);
    let down = down / sum(|one| one.down.bits_per_second).max(1.0);
    format!("{said} {}", dim(format!("({up:.1} and {down:.1} × native)")))
}

/// A site has no NAT46: for a host without IPv6, a server without IPv4 has no address.
fn does_not_reach(site: &Site) -> Result<String> {
    let url = format!("http://{}/", SERVER6.name);
    match fetch_from(&site.resolving(&HOSTS[0])?, &site.network, &url) {
        Err(Failure::Program(..)) => {
            Ok(format!("{} has no IPv4 address; it takes a NAT46, below", SERVER6.name))
        }
        Err(failure) => Err(failure),
        Ok(page) => Err(Failure::Unexpected(format!("{url} was reached: {} octets", page.octets))),
    }
}
