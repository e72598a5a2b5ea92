//! The DHCP 4o6 servers that a host of 4over6 queries for its lease, and the address and port that their responses are sent to.

use super::finding::Finding;
use super::holders::{Place, Process, Transport, holders, sockets_at};
use crate::config::{Config, FourOverSixEnd, HostEnd};
use crate::host::Hop;
use crate::lease_text;
use sixway_control::dhcp4o6::{CLIENT_PORT, is_on_link, servers_in};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

const CHECK: &str = "leases";
/// What the kernel calls this program's processes.
const OWN: &str = "sixway";

/// A server that is asked from a global address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseServer {
    /// Its address.
    pub server: Ipv6Addr,
    /// The address that it answers to.
    pub own: Ipv6Addr,
    /// The link towards it.
    pub link: String,
}

/// The ends that lease their addresses.
fn leasing(config: &Config) -> impl Iterator<Item = (&str, &HostEnd)> {
    config.others.four_over_six.iter().filter_map(|it| match &it.end {
        FourOverSixEnd::Host(end) if end.address.is_none() => Some((it.name.as_str(), end)),
        FourOverSixEnd::Host(_) | FourOverSixEnd::Concentrator(_) => None,
    })
}

/// The servers of an end; an error says why it has no servers.
fn servers(end: &HostEnd) -> Result<Vec<Ipv6Addr>, String> {
    let Some(path) = &end.server_lease_file else { return Ok(end.servers.clone()) };
    let text = lease_text::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let missing = || format!("{}: no DHCP 4o6 Server Address option (number 88)", path.display());
    servers_in(&text).ok_or_else(missing)
}

/// Those that are queried from a global address. Queries on the link take the path of the system's DHCPv6 client, which works, or there would be no lease.
pub(super) fn lease_servers(config: &Config, toward: impl Fn(IpAddr) -> Option<Hop>) -> Vec<LeaseServer> {
    let all = leasing(config).flat_map(|(_, end)| servers(end).unwrap_or_default());
    let known = all.filter(|server| !is_on_link(*server)).filter_map(|server| {
        let link = toward(IpAddr::V6(server))?.interface;
        let probe = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok()?;
        probe.connect((server, CLIENT_PORT)).ok()?;
        match probe.local_addr().ok()?.ip() {
            IpAddr::V6(own) if link != "lo" => Some(LeaseServer { server, own, link }),
            IpAddr::V6(_) | IpAddr::V4(_) => None,
        }
    });
    known.collect()
}

/// Whether the servers are known, and who else has the port that they answer to.
pub(super) fn check(config: &Config) -> Vec<Finding> {
    let of = |(name, end): (&str, &HostEnd)| match servers(end) {
        Ok(servers) => {
            let all: Vec<String> = servers.iter().map(Ipv6Addr::to_string).collect();
            Finding::fine(CHECK, format!("{name} requests leases at {}", all.join(", ")))
        }
        Err(why) => Finding::warning(
            CHECK,
            format!("{name} takes no lease: {why}"),
            "configure the DHCPv6 client to request option 88 and write its lease there, or set four_over_six.servers",
        ),
    };
    let mut findings: Vec<Finding> = leasing(config).map(of).collect();
    if !findings.is_empty() {
        let at = SocketAddr::from((Ipv6Addr::UNSPECIFIED, CLIENT_PORT));
        let place = Place { transport: Transport::Udp, at, is_dual: false };
        findings.extend(others(&holders(&sockets_at(place))));
    }
    findings
}

/// Another DHCPv6 client at the port does not matter, whatever it is bound to.
fn others(by: &[Process]) -> Option<Finding> {
    let others: Vec<String> = by
        .iter()
        .filter(|one| one.name != OWN)
        .map(|one| format!("{} (process {})", one.name, one.number))
        .collect();
    let names = others.join(", ");
    (!others.is_empty()).then(|| {
        Finding::fine(CHECK, format!("UDP port {CLIENT_PORT} is shared with {names}: each gets its answers"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use std::fs;

    fn config(key: &str) -> Config {
        crate::sample::config(&format!(
            "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\n{key}\n"
        ))
    }

    #[test]
    fn a_host_without_option_88_is_named_with_its_file_and_another_client_is_no_fault() {
        let path = std::env::temp_dir().join(format!("sixway-doctor-88-{}", std::process::id()));
        let config = config(&format!("server_lease_file = {path:?}"));
        let said = || check(&config).remove(0);
        assert!(said().what.starts_with("four_over_six takes no lease: "), "{:?}", said());
        fs::write(&path, "reason=BOUND6\n").unwrap();
        assert!(said().what.ends_with("no DHCP 4o6 Server Address option (number 88)"), "{:?}", said());
        assert_eq!(said().verdict, Verdict::Warning);
        fs::write(&path, "OPTION_88=\n").unwrap();
        assert_eq!(said(), Finding::fine(CHECK, "four_over_six requests leases at ff02::1:2"));
        fs::remove_file(&path).unwrap();
        let process = |name: &str| Process { number: 7, name: name.into() };
        assert_eq!(others(&[process(OWN)]), None);
        let found = others(&[process(OWN), process("systemd-network")]).unwrap();
        assert_eq!(found.verdict, Verdict::Fine);
        assert!(found.what.contains("shared with systemd-network (process 7)"), "{found:?}");
    }

    #[test]
    fn servers_that_are_asked_from_a_global_address_have_their_links() {
        let hop = |_| Some(Hop { interface: "wan0".into(), gateway: None });
        // This host reaches itself from the same address.
        let found = lease_servers(&config("servers = [\"::1\", \"ff02::1:2\"]"), hop);
        let (server, own) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        assert_eq!(found, [LeaseServer { server, own, link: "wan0".into() }]);
        assert_eq!(lease_servers(&config("address = \"192.0.2.1\""), hop), []);
    }
}
