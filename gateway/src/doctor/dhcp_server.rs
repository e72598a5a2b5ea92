//! Whether the DHCP server of a site runs and has its port.

use super::finding::Finding;
use super::holders::{Place, Process, Transport, holders, sockets_at};
use crate::config::Config;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

const CHECK: &str = "dhcp";
/// RFC 2131 §4.1.
const SERVER_PORT: u16 = 67;
/// How a site's files of a program end, in which it records the process, and the program's name.
const RECORDS: [(&str, &str); 2] = [("dnsmasq-process", "dnsmasq"), ("kea-process", "kea-dhcp4")];
/// More octets are not read.
const MOST: usize = 256;

pub(super) fn check(config: &Config) -> Option<Finding> {
    let (program, process) = recorded(&config.gateway.admin_socket)?;
    let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, SERVER_PORT));
    let by = holders(&sockets_at(Place { transport: Transport::Udp, at, is_dual: false }));
    Some(judge((program, process), &by))
}

/// The program that is to run, and its recorded process, 0 if it could not be started.
fn recorded(admin_socket: &Path) -> Option<(&'static str, u32)> {
    let process = |(ending, program)| {
        let octets = crate::lease_text::end_of(&admin_socket.with_extension(ending), MOST).ok()?;
        let text = String::from_utf8_lossy(&octets).into_owned();
        Some((program, text.split(' ').next()?.parse().unwrap_or(0)))
    };
    let configured = || admin_socket.with_extension("dnsmasq").exists().then_some(("dnsmasq", 0));
    RECORDS.into_iter().find_map(process).or_else(configured)
}

/// `by`: the processes with a socket at the port.
fn judge((program, process): (&str, u32), by: &[Process]) -> Finding {
    if by.iter().any(|one| one.number == process) {
        return Finding::fine(CHECK, format!("{program} (process {process}) leases addresses to hosts"));
    }
    let lacks = format!("{program} does not run, so hosts get no IPv4 addresses");
    match by.first() {
        Some(other) => Finding::fault(
            CHECK,
            format!("{} (process {}) has UDP port {SERVER_PORT}: {lacks}", other.name, other.number),
            "end it, or run sixway up without --dhcp",
        ),
        None => Finding::fault(CHECK, lacks, "the log of sixway up says why"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn process(number: u32, name: &str) -> Process {
        Process { number, name: name.into() }
    }

    #[test]
    fn a_server_with_its_port_is_fine_and_another_program_there_is_named() {
        let found = judge(("dnsmasq", 7), &[process(5, "dnsmasq"), process(7, "dnsmasq")]);
        assert_eq!(
            (found.verdict, &*found.what),
            (Verdict::Fine, "dnsmasq (process 7) leases addresses to hosts")
        );
        let found = judge(("kea-dhcp4", 7), &[process(5, "dhcpd")]);
        assert_eq!(found.verdict, Verdict::Fault);
        assert!(
            found.what.starts_with("dhcpd (process 5) has UDP port 67: kea-dhcp4 does not run"),
            "{found:?}"
        );
        assert_eq!(judge(("dnsmasq", 7), &[]).verdict, Verdict::Fault);
        assert_eq!(judge(("dnsmasq", 0), &[]).verdict, Verdict::Fault);
    }

    #[test]
    fn the_program_and_its_process_are_read_from_the_files_of_the_site() {
        let folder = std::env::temp_dir().join(format!("sixway-dhcp-server-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let socket = folder.join("site.sock");
        assert_eq!(recorded(&socket), None, "no DHCP");
        std::fs::write(folder.join("site.dnsmasq"), "port=53\n").unwrap();
        assert_eq!(recorded(&socket), Some(("dnsmasq", 0)));
        std::fs::write(folder.join("site.dnsmasq-process"), "4711 12 boot\n").unwrap();
        assert_eq!(recorded(&socket), Some(("dnsmasq", 4_711)));
        std::fs::remove_file(folder.join("site.dnsmasq-process")).unwrap();
        std::fs::write(folder.join("site.kea-process"), "12 12 boot\n").unwrap();
        assert_eq!(recorded(&socket), Some(("kea-dhcp4", 12)));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
