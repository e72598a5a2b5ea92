//! Services at ports that are the gateway's.

use super::facts::Facts;
use super::finding::Finding;
use crate::config::{Config, Ports};
use std::net::Ipv4Addr;

const CHECK: &str = "ports";

pub(super) fn check(config: &Config, _: &Facts) -> Vec<Finding> {
    let shared = config.shared_ports();
    if shared.is_empty() {
        return Vec::new();
    }
    let files = [("TCP", "tcp", "0A"), ("TCP", "tcp6", "0A"), ("UDP", "udp", "07"), ("UDP", "udp6", "07")];
    let mut findings = Vec::new();
    for (protocol, file, state) in files {
        let Ok(table) = std::fs::read_to_string(format!("/proc/net/{file}")) else { continue };
        for port in services(&table, state, &shared) {
            findings.push(Finding::fault(
                CHECK,
                format!("a service of this host listens at {protocol} port {port}, which belongs to a shared pool: it cannot be reached"),
                format!("configure it to listen at another port (ss -lnp 'sport = :{port}'), or change pool.ports"),
            ));
        }
    }
    findings.sort_by(|one, other| one.what.cmp(&other.what));
    findings.dedup();
    if findings.is_empty() {
        findings.push(Finding::fine(CHECK, "no service listens at a port of a shared pool"));
    }
    findings
}

/// The ports of pools at which something listens: /proc/net/tcp has the local address and port in its second column, the state in
/// its fourth.
fn services(table: &str, state: &str, shared: &[(Ipv4Addr, Ports)]) -> Vec<u16> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = columns.get(1)?.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        // Of IPv6, the last word is that of a mapped address; all zeros is any address. Words are in the machine's order.
        let word = u32::from_str_radix(address.get(address.len().checked_sub(8)?..)?, 16).ok()?;
        let address = Ipv4Addr::from(word.to_ne_bytes());
        let is_ours = |(own, ports): &&(Ipv4Addr, Ports)| {
            (address.is_unspecified() || address == *own) && ports.contain(port)
        };
        let found = *columns.get(3)? == state && shared.iter().any(|one| is_ours(&one));
        found.then_some(port)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of both families and protocols.
    #[test]
    fn sockets_of_this_host_are_found() {
        for any in ["0.0.0.0:0", "[::]:0"] {
            let udp = std::net::UdpSocket::bind(any).unwrap();
            let tcp = std::net::TcpListener::bind(any).unwrap();
            for (protocol, port) in [("UDP", udp.local_addr()), ("TCP", tcp.local_addr())]
                .map(|(protocol, at)| (protocol, at.unwrap().port()))
            {
                let text = format!(
                    "[gateway]\nipv4_address = \"192.0.2.14\"\n[[pool]]\nname = \"p\"\naddresses = [\"192.0.2.1\"]\nshared = true\nports = \"{port}-{port}\"\n[nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"p\"\n"
                );
                let found = check(&crate::sample::config(&text), &Facts::default());
                let expected = format!("a service of this host listens at {protocol} port {port},");
                assert!(found.iter().any(|one| one.what.starts_with(&expected)), "{any}: {found:?}");
            }
        }
    }

    #[test]
    fn listeners_at_a_pools_ports_are_found() {
        let header = "  sl  local_address rem_address   st\n";
        let own: Ipv4Addr = "203.0.113.1".parse().unwrap();
        let word = u32::from_ne_bytes(own.octets());
        let table = format!(
            "{header}   0: 00000000:EE48 00000000:0000 0A\n   1: {word:08X}:EE49 00000000:0000 0A\n   2: {word:08X}:EE4A 00000000:0000 01\n   3: 0100007F:EE4B 00000000:0000 0A\n   4: 00000000:0016 00000000:0000 0A\n"
        );
        let shared = [(own, Ports::parse("61000-65535").unwrap())];
        assert_eq!(services(&table, "0A", &shared), [61_000, 61_001]);
        let table6 = format!("{header}   0: 00000000000000000000000000000000:EE48 0:0 07\n");
        assert_eq!(services(&table6, "07", &shared), [61_000]);
    }
}
