//! Nobody outside reaches a host of the LAN unasked.

use super::Faults;
use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use crate::site::{HOSTS, LanHost, PUBLIC, SERVER4, SERVER6, Site};
use crate::terminal::bold;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A service of each host, to which nobody outside was told to come.
const SERVICE: u16 = 8_080;
/// How long is waited for an answer that is not to come.
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

fn tried(site: &Site, host: &LanHost) -> Result<String> {
    let network = &site.network;
    let mut attempts: Vec<(&str, SocketAddr)> = Vec::new();
    let mut inside = Vec::new();
    if host.kind.has_ipv4() {
        let own = at(&host.address(network, false)?, SERVICE)?;
        inside.push(own);
        for from in [SERVER4.role, "server"] {
            attempts.extend([(from, own), (from, at(PUBLIC, SERVICE)?)]);
        }
    }
    if host.kind.has_ipv6() {
        let own = at(&host.address(network, true)?, SERVICE)?;
        inside.push(own);
        attempts.extend([(SERVER6.role, own), ("server", own)]);
    }
    // Who was not contacted does not come in by ports that hosts have outside either.
    attempts.extend(outside_ports(site, &inside)?.into_iter().map(|port| ("server", port)));
    let listeners: Vec<TcpListener> = inside
        .iter()
        .map(|own| {
            network
                .host(host.role)?
                .enter(|| TcpListener::bind(own))?
                .asking(|| format!("listening at {own}"))
        })
        .collect::<Result<_>>()?;
    for own in &inside {
        // The box does reach it: what is kept out is not merely absent.
        if !connects(site.gateway()?, *own)? {
            return Err(Failure::Unexpected(format!("nobody listens at {own}")));
        }
    }
    for (from, to) in &attempts {
        if connects(network.host(from)?, *to)? {
            return Err(Failure::Unexpected(format!("{from} was let in to {to}")));
        }
    }
    drop(listeners);
    let mut places: Vec<String> = attempts.iter().map(|(_, to)| to.to_string()).collect();
    places.sort_unstable();
    places.dedup();
    let more = if places.len() > 2 { format!(" and {} more", places.len() - 2) } else { String::new() };
    places.truncate(2);
    Ok(format!("{} of {} let in: {}{more}", 0, attempts.len(), places.join(", ")))
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
