//! Other processes at the ports and sockets that the gateway listens at.

use super::facts::Facts;
use super::finding::Finding;
use super::holders::{
    Place, Process, Transport, holders, holders_of_each, is_taken, sockets_at, unix_sockets_at,
};
use crate::config::{Config, FourOverSixEnd, TeredoServer};
use sixway_control::dhcp4o6::SERVER_PORT;
use sixway_control::pcp;
use sixway_wire::teredo::TEREDO_PORT;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;

const CHECK: &str = "listen";
/// What the kernel calls this program's processes.
const OWN: &str = "sixway";

/// The key of the metrics' socket.
const METRICS: &str = "gateway.metrics";

/// A port on which the gateway listens, and the key for it.
type Wanted = (Transport, SocketAddr, &'static str);

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let wanted = wanted(config);
    let mut findings: Vec<Finding> = wanted
        .iter()
        .filter_map(|wanted| {
            // Other sockets of the gateway are of one family each.
            let place = Place { transport: wanted.0, at: wanted.1, is_dual: wanted.2 == METRICS };
            if !is_taken(place) {
                return None;
            }
            taken(wanted, &holders_of_each(&sockets_at(place)), facts.is_running)
        })
        .collect();
    findings.extend(admin(config, facts.is_running));
    // One server, whatever the transports.
    let of_any = |finding: &Finding| finding.what.replace(" TCP ", " UDP ");
    findings.dedup_by(|one, other| of_any(one) == of_any(other));
    if findings.is_empty() && !wanted.is_empty() {
        findings.push(Finding::fine(CHECK, "no other process has a port that the gateway listens at"));
    }
    findings
}

fn wanted(config: &Config) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for listening in config.dns64.iter().map(|dns64| &dns64.listening) {
        for at in &listening.listen {
            wanted.extend([Transport::Udp, Transport::Tcp].map(|transport| (transport, *at, "dns64.listen")));
        }
        wanted.extend(listening.listen_tls.iter().map(|at| (Transport::Tcp, *at, "dns64.listen_tls")));
        wanted.extend(listening.listen_https.iter().map(|at| (Transport::Tcp, *at, "dns64.listen_https")));
    }
    for relay in &config.others.teredo_relay {
        let at = relay.local.found.map(|address| SocketAddr::from((address, relay.port)));
        wanted.extend(at.map(|at| (Transport::Udp, at, "teredo_relay.port")));
    }
    for client in config.others.teredo_client.iter().filter(|client| client.port != 0) {
        let at = client.local.found.map(|address| SocketAddr::from((address, client.port)));
        wanted.extend(at.map(|at| (Transport::Udp, at, "teredo_client.port")));
    }
    for address in config.teredo_server.iter().flat_map(TeredoServer::addresses) {
        let at = SocketAddr::from((address, TEREDO_PORT));
        wanted.push((Transport::Udp, at, "teredo_server"));
    }
    if config.pcp.is_some() {
        let families = [
            config.nat44.as_ref().map(|_| IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            config.nat64.first().map(|_| IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        ];
        let at = |any| SocketAddr::new(any, pcp::SERVER_PORT);
        wanted.extend(families.into_iter().flatten().map(|any| (Transport::Udp, at(any), "pcp")));
    }
    for it in &config.others.four_over_six {
        // A host shares its port with another program.
        let FourOverSixEnd::Concentrator(end) = &it.end else { continue };
        let at = |address: &Ipv6Addr| SocketAddr::from((*address, SERVER_PORT));
        wanted.extend(end.listen.iter().map(|address| (Transport::Udp, at(address), "four_over_six.listen")));
    }
    wanted.extend(config.gateway.metrics.map(|at| (Transport::Tcp, at, METRICS)));
    wanted
}

/// `by`: the processes of each socket. While the gateway runs, its own process has some; another may have the port at another address.
fn taken((transport, at, key): &Wanted, by: &[Vec<Process>], is_running: bool) -> Option<Finding> {
    let name = transport.name();
    let is_own = |by: &&Vec<Process>| is_running && by.iter().any(|one| one.name == OWN);
    let mut others = by.iter().filter(|by| !is_own(by));
    let Some(Process { number, name: process }) = others.find_map(|by| by.first()) else {
        let what = format!("a process that cannot be named has {name} {at}, which {key} is to listen at");
        let cure = format!("as root: ss -lnp 'sport = :{}'", at.port());
        return (!is_running).then(|| Finding::warning(CHECK, what, cure));
    };
    let stop = match process.as_str() {
        "systemd-resolve" => "DNSStubListener=no in resolved.conf".to_owned(),
        OWN => format!("end the other gateway, process {number}"),
        process => format!("configure {process} to listen at other addresses only, or end it"),
    };
    Some(Finding::fault(
        CHECK,
        format!("{process} (process {number}) has {name} {at}, which {key} is to listen at"),
        format!("{stop}; or another {} in {key}", if key.ends_with(".port") { "port" } else { "address" }),
    ))
}

fn admin(config: &Config, is_running: bool) -> Option<Finding> {
    let path = &config.gateway.admin_socket;
    let by = match UnixStream::connect(path) {
        Ok(_) => holders(&unix_sockets_at(path)),
        Err(_) => return None,
    };
    let process = by.first().filter(|_| !(is_running && by.iter().any(|one| one.name == OWN)))?;
    Some(Finding::fault(
        CHECK,
        format!("{} (process {}) has the admin socket {}", process.name, process.number, path.display()),
        "end it, or another path in gateway.admin_socket",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

    fn config(text: &str) -> Config {
        crate::sample::config(text)
    }

    #[test]
    fn a_process_at_the_metrics_port_is_named() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = other.local_addr().unwrap();
        let config =
            config(&format!("[gateway]\nmetrics = \"{at}\"\n[siit]\nprefix = \"2001:db8:64::/96\"\n"));
        let found = check(&config, &Facts::default());
        assert_eq!(found.len(), 1, "{found:?}");
        let own =
            format!("(process {}) has TCP {at}, which gateway.metrics is to listen at", std::process::id());
        assert!(found[0].what.ends_with(&own), "{found:?}");
        drop(other);
        assert_eq!(
            check(&config, &Facts::default())[0].what,
            "no other process has a port that the gateway listens at"
        );
    }

    #[test]
    fn a_server_at_both_transports_of_a_port_is_told_once() {
        // The same port of UDP may be another program's.
        let both = (0..100).find_map(|_| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            UdpSocket::bind(tcp.local_addr().unwrap()).ok().map(|udp| (tcp, udp))
        });
        let (tcp, _udp) = both.unwrap();
        let at = tcp.local_addr().unwrap();
        let config = config(&format!(
            "[dns64]\nlisten = [\"{at}\"]\nprefix = \"64:ff9b::/96\"\ntranslated_elsewhere = true\n[[dns64.upstream]]\naddress = \"192.0.2.53\"\n"
        ));
        let found = check(&config, &Facts::default());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].what.contains(&format!("has UDP {at}, which dns64.listen is to listen at")),
            "{found:?}"
        );
    }

    #[test]
    fn the_gateways_own_process_is_fine_and_another_is_not() {
        let at = "[2001:db8::1]:53".parse().unwrap();
        let wanted = (Transport::Udp, at, "dns64.listen");
        let process = |name: &str| vec![Process { number: 7, name: name.into() }];
        assert_eq!(taken(&wanted, &[process(OWN)], true), None);
        let said = taken(&wanted, &[process(OWN)], false).unwrap();
        assert!(said.cure.unwrap().starts_with("end the other gateway, process 7"));
        let said = taken(&wanted, &[process("systemd-resolve")], true).unwrap();
        assert!(said.cure.unwrap().contains("DNSStubListener=no"));
        // With any address, the gateway's own socket and another's are at the port.
        let said = taken(&wanted, &[process(OWN), process("systemd-resolve")], true).unwrap();
        assert!(said.cure.unwrap().contains("DNSStubListener=no"));
    }

    #[test]
    fn a_process_at_the_port_of_a_teredo_client_is_named_and_another_port_is_the_cure() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = other.local_addr().unwrap();
        let servers = "servers = [{ address = \"80.64.79.1\", secondary = \"80.64.79.2\" }]";
        let of = |port: u16| {
            let text = format!("[teredo_client]\naddress = \"192.0.2.1\"\nport = {port}\n{servers}\n");
            let mut config = config(&text);
            crate::sample::localhost(&mut config.others.teredo_client[0].local);
            config
        };
        let found = check(&of(at.port()), &Facts::default());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains(&format!("has UDP {at}, which teredo_client.port")), "{found:?}");
        assert!(found[0].cure.as_ref().unwrap().ends_with("or another port in teredo_client.port"));
        assert_eq!(wanted(&of(0)), [], "the kernel chooses one");
    }

    #[test]
    fn a_dhcpv6_client_is_no_fault_for_a_host_that_shares_its_port() {
        let text = "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\nservers = [\"2001:db8::547\"]\n";
        assert_eq!(wanted(&config(text)), []);
    }

    #[test]
    fn a_process_at_the_admin_socket_is_named() {
        let path = std::env::temp_dir().join(format!("sixway-listeners-{}.sock", std::process::id()));
        let other = UnixListener::bind(&path).unwrap();
        let config =
            config(&format!("[gateway]\nadmin_socket = {path:?}\n[siit]\nprefix = \"2001:db8:64::/96\"\n"));
        let said = admin(&config, false);
        drop(other);
        std::fs::remove_file(&path).unwrap();
        assert!(said.unwrap().what.contains(&format!("(process {})", std::process::id())));
        assert_eq!(admin(&config, false), None);
    }
}
