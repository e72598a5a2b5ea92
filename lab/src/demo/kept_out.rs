//! Hosts outside cannot open connections to a host of the LAN.

use super::faults::Faults;
use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use crate::site::{HOSTS, LanHost, PUBLIC, SERVER4, SERVER6, Site};
use crate::terminal::bold;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A service of each host, without a mapping from outside.
const SERVICE: u16 = 8_080;
/// How long to wait for an answer that should not come.
const PATIENCE: Duration = Duration::from_millis(400);

/// Shows for each host who tried, where, and that nothing came of it.
pub(super) fn show(site: &Site, faults: &mut Faults) -> Result<()> {
    println!(
        "\n  {}",
        bold("Nobody outside reaches them unasked: TCP connections to their service at port 8080")
    );
    for host in &HOSTS {
        let outcome = tried(site, host);
        faults.tell("kept out", &format!("{} ← both servers, the provider", host.kind.name()), outcome)?;
    }
    Ok(())
}

/// Who tries, where, and whether the packet is for a port that a translator has there.
type Attempt = (&'static str, SocketAddr, bool);

fn tried(site: &Site, host: &LanHost) -> Result<String> {
    let network = &site.network;
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut inside = Vec::new();
    if host.kind.has_ipv4() {
        let own = at(&host.address(network, false)?, SERVICE)?;
        inside.push(own);
        for from in [SERVER4.role, "server"] {
            attempts.extend([(from, own, false), (from, at(PUBLIC, SERVICE)?, false)]);
        }
    }
    if host.kind.has_ipv6() {
        let own = at(&host.address(network, true)?, SERVICE)?;
        inside.push(own);
        attempts.extend([(SERVER6.role, own, false), ("server", own, false)]);
    }
    // A remote host that was not contacted cannot use the hosts' outside ports either.
    let ports = outside_ports(site, &inside)?;
    attempts.extend(ports.iter().map(|port| ("server", *port, true)));
    let listen = |own: &SocketAddr| {
        let bound = network.host(host.role)?.enter(|| TcpListener::bind(own))?;
        bound.asking(|| format!("listening at {own}"))
    };
    let listeners: Vec<TcpListener> = inside.iter().map(listen).collect::<Result<_>>()?;
    for own in &inside {
        // The box does reach it: what is kept out is not merely absent.
        if !connects(site.gateway()?, *own)? {
            return Err(Failure::Unexpected(format!("nobody listens at {own}")));
        }
    }
    let outcomes: Vec<Result<bool>> = std::thread::scope(|scope| {
        let all = attempts.iter().map(|attempt| scope.spawn(|| is_let_in(site, attempt)));
        let all: Vec<_> = all.collect();
        all.into_iter().map(|one| one.join().unwrap_or(Ok(true))).collect()
    });
    drop(listeners);
    for ((from, to, _), outcome) in attempts.iter().zip(outcomes) {
        if outcome? {
            return Err(Failure::Unexpected(format!("{from} was let in to {to}")));
        }
    }
    let own: Vec<String> = inside.iter().map(|own| own.ip().to_string()).collect();
    let more = format!("{} of its ports at {PUBLIC}", ports.len());
    Ok(format!("0 of {} let in: {}, {more}", attempts.len(), own.join(", ")))
}

/// No program listens at the port of a host's connection: there, a refusal is the host's own.
fn is_let_in(site: &Site, (from, to, is_of_translator): &Attempt) -> Result<bool> {
    let error = site.network.host(from)?.enter(|| TcpStream::connect_timeout(to, PATIENCE).err())?;
    Ok(error.is_none_or(|error| *is_of_translator && error.kind() == ErrorKind::ConnectionRefused))
}

fn at(address: &str, port: u16) -> Result<SocketAddr> {
    let address: IpAddr = address.parse().map_err(|_| Failure::Unexpected(address.to_owned()))?;
    Ok(SocketAddr::new(address, port))
}

/// Whether a connection is made.
pub(super) fn connects(from: &Namespace, to: SocketAddr) -> Result<bool> {
    from.enter(|| TcpStream::connect_timeout(&to, PATIENCE).is_ok())
}

/// Outside endpoints of TCP that these hosts have at the moment, four at most.
fn outside_ports(site: &Site, inside: &[SocketAddr]) -> Result<Vec<SocketAddr>> {
    let show = site.show(&["bindings", "--json"])?;
    let said = site.gateway()?.run(show, Duration::from_secs(5))?.succeeded()?.stdout;
    let rows: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
    let rows = rows["rows"].as_array().or_else(|| rows.as_array()).cloned().unwrap_or_default();
    let endpoint = |row: &serde_json::Value, key: &str| row[key].as_str()?.parse::<SocketAddr>().ok();
    let of_them = rows.iter().filter(|row| {
        endpoint(row, "inside").is_some_and(|its| inside.iter().any(|own| own.ip() == its.ip()))
            && row["protocol"] == "tcp"
    });
    Ok(of_them.filter_map(|row| endpoint(row, "outside")).take(4).collect())
}
