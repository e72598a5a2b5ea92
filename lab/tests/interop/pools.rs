//! Pools on a real host: where their addresses lead when the gateway is not there, and how they are changed while it runs.

use crate::Interop;
use crate::nat44::{SERVER, SIXWAY, network};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{ask, run_sixway};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::process::Finished;
use sixway_lab::sixway::socket;
use sixway_lab::topology::Network;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "pools_lead_nowhere_after_a_crash_and_everything_is_as_before_after_an_end",
        &["sixway", "ping", "nft"],
        leads_nowhere,
    ),
    Interop::new(
        "pools_are_drained_shrunk_and_grown_while_sessions_go_on",
        &["sixway", "ping"],
        drained_shrunk_and_grown,
    ),
    Interop::new(
        "a_drain_that_was_acknowledged_during_a_reload_is_not_lost",
        &["sixway"],
        drained_during_a_reload,
    ),
];

/// Two addresses.
const TWO: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.0/31"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"
"#;

/// Counts what the gateway's host sends back to its router.
const WATCH: &str = "table ip watch {
  counter pool { }
  counter other { }
  chain out {
    type filter hook postrouting priority 0
    oifname out0 ip daddr { 192.0.2.0/29, 192.0.2.14 } counter name pool
    oifname out0 ip daddr 192.0.2.9 counter name other
  }
}
";

fn counted(network: &Network, counter: &str) -> Result<bool> {
    let mut list = command("nft")?;
    list.args(["list", "counter", "ip", "watch", counter]);
    let seen = network.host("gateway")?.run(list, Duration::from_secs(5))?.succeeded()?.stdout;
    Ok(!seen.contains("packets 0 "))
}

/// The routes and rules of the gateway's host.
fn routing(network: &Network) -> Result<Vec<String>> {
    let gateway = network.host("gateway")?;
    ["-4 route show table all", "-6 route show table all", "-4 rule show"]
        .into_iter()
        .map(|words| gateway.ip(words))
        .collect()
}

/// The router has a route to the pool, and the gateway's host a default route to the router: without the gateway, packets would loop.
fn leads_nowhere() -> Result<()> {
    let network = network()?;
    let pings = |network: &Network| {
        let trips = ping(network.host("client")?, SERVER, 3, 56, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 3);
        Ok::<_, Failure>(())
    };
    let before = routing(&network)?;
    let rules = network.file("watch.nft", WATCH)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    let gateway = run_sixway(&network, SIXWAY)?;
    let routes = routing(&network)?.swap_remove(0);
    for prefix in ["192.0.2.0/29", "192.0.2.14"] {
        assert!(routes.contains(&format!("blackhole {prefix} ")), "{routes}");
    }
    pings(&network)?;
    network.with_process(gateway, |process| process.kill())?;
    let links = network.host("gateway")?.ip("link show")?;
    assert!(!links.contains("sixway0"), "{links}");
    for address in ["192.0.2.3", "192.0.2.14", "192.0.2.9"] {
        assert_eq!(ping(network.host("server")?, address, 2, 56, Duration::from_millis(5))?.answered, 0);
    }
    assert!(counted(&network, "other")?, "packets to other addresses do circle here");
    assert!(!counted(&network, "pool")?, "packets to the pool were sent back");
    let next = run_sixway(&network, SIXWAY)?;
    pings(&network)?;
    network.with_process(next, |process| process.stop())?;
    assert_eq!(routing(&network)?, before);
    Ok(())
}

pub fn asked(network: &Network, words: &[&str]) -> Result<Finished> {
    network.host("gateway")?.run(ask(network, words)?, Duration::from_secs(30))
}

/// The outside address of a host's echo session, which a ping makes or refreshes.
pub fn outside_of(network: &Network, host: &str, inside: &str) -> Result<String> {
    let trips = ping(network.host(host)?, SERVER, 1, 56, Duration::from_millis(5))?;
    assert_eq!(trips.answered, 1, "{host}");
    let rows = asked(network, &["show", "sessions", "--json", "--inside", inside])?.succeeded()?.stdout;
    let (_, outside) = rows
        .rsplit_once("\"outside\": \"")
        .ok_or_else(|| Failure::Unexpected(format!("no session of {inside}: {rows}")))?;
    Ok(outside.split(':').next().unwrap_or_default().to_owned())
}

fn drained_shrunk_and_grown() -> Result<()> {
    let network = network()?;
    run_sixway(&network, TWO)?;
    let old = outside_of(&network, "client", "192.168.1.2")?;
    let other = if old == "192.0.2.0" { "192.0.2.1" } else { "192.0.2.0" };
    asked(&network, &["pool", "drain", "public", &old])?.succeeded()?;
    assert_eq!(outside_of(&network, "neighbour", "192.168.2.2")?, other, "a host without bindings");
    assert_eq!(outside_of(&network, "client", "192.168.1.2")?, old, "a host that has some there");
    let shown = asked(&network, &["show", "pools"])?.succeeded()?.stdout;
    assert!(shown.contains(&format!("{old}/32")) && shown.contains("in use"), "{shown}");
    let refused = asked(&network, &["pool", "remove", "public", &old])?;
    assert!(!refused.status.success() && refused.stderr.contains("of 1 host"), "{}", refused.stderr);
    asked(&network, &["subscriber", "end", "192.168.1.2"])?.succeeded()?;
    let shown = asked(&network, &["show", "pools"])?.succeeded()?.stdout;
    assert!(shown.contains("drained"), "{shown}");
    assert_eq!(outside_of(&network, "client", "192.168.1.2")?, other);
    asked(&network, &["pool", "remove", "public", &old])?.succeeded()?;
    let routes = routing(&network)?.swap_remove(0);
    assert!(!routes.contains(&format!("{old} ")) && !routes.contains("192.0.2.0/31"), "{routes}");
    assert!(routes.contains(&format!("blackhole {other} ")), "{routes}");
    // The sessions of both hosts are those of before.
    let kept = asked(&network, &["show", "sessions", "--json"])?.succeeded()?.stdout;
    assert_eq!(kept.matches(other).count(), 2, "{kept}");
    asked(&network, &["pool", "drain", "public", other])?.succeeded()?;
    asked(&network, &["pool", "add", "public", "192.0.2.4/30"])?.succeeded()?;
    let shown = asked(&network, &["show", "config"])?.succeeded()?.stdout;
    let drains = format!("draining = [\"{other}/32\"]");
    assert!(shown.contains("192.0.2.4/30") && shown.contains(&drains), "{shown}");
    assert_eq!(outside_of(&network, "client", "192.168.1.2")?, other, "its sessions went on");
    asked(&network, &["subscriber", "end", "192.168.1.2"])?.succeeded()?;
    let new = outside_of(&network, "client", "192.168.1.2")?;
    assert!(["192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.7"].contains(&&*new), "{new}");
    // What the file says returns with a reload of it.
    asked(&network, &["reload"])?.succeeded()?;
    assert!(["192.0.2.0", "192.0.2.1"].contains(&&*outside_of(&network, "client", "192.168.1.2")?));
    Ok(())
}

/// A request to the admin API; its status.
fn request(socket: &Path, method: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: sixway\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut answer = String::new();
    // The process may be replaced before the end.
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1)?.parse().ok()
}

/// Addresses are drained one after the other while the gateway reloads itself: what it says is drained, is drained.
fn drained_during_a_reload() -> Result<()> {
    let network = network()?;
    run_sixway(&network, &TWO.replace("192.0.2.0/31", "192.0.2.128/25"))?;
    let socket = socket(&network, "gateway");
    let drains = |n: u8| format!(r#"{{"pool": "public", "prefix": "192.0.2.{n}"}}"#);
    let (answered, mut acknowledged) = std::thread::scope(|scope| {
        let added = r#"{"pool": "public", "prefix": "192.0.2.16/28"}"#;
        let reload = scope.spawn(|| request(&socket, "POST", "/v1/pools/addresses", added));
        let mut acknowledged = Vec::new();
        let one_of = |n: &u8| request(&socket, "POST", "/v1/pools/draining", &drains(*n)) == Some(204);
        // Every second one, so that no two of them are one prefix.
        for n in (128..=254).step_by(2).take(60) {
            acknowledged.extend(Some(n).filter(one_of));
            std::thread::sleep(Duration::from_millis(2));
        }
        (reload.join().ok().flatten(), acknowledged)
    });
    assert_eq!(answered, Some(204), "the reload");
    let shown = |network: &Network| -> Result<String> { Ok(asked(network, &["show", "pools"])?.stdout) };
    interrupt::wait_until(Duration::from_secs(20), "the gateway after its reload", || {
        Ok(asked(&network, &["show", "config"])?.stdout.contains("192.0.2.16/28"))
    })?;
    let shown = shown(&network)?;
    acknowledged.retain(|n| !shown.contains(&format!("192.0.2.{n}/32")));
    assert_eq!(acknowledged, [0_u8; 0], "these were said to be drained: {shown}");
    Ok(())
}
