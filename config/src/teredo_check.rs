//! Teredo's relays and client must not have the same socket address and port as other sections.

use sixway_wire::teredo::TEREDO_PORT;
use std::net::Ipv4Addr;

use crate::config::Config;
use crate::fault::Report;
use crate::local_address::LocalAddress;
use crate::ports::Ports;
use crate::section::Reader;

/// Reports a port that is also a server's or a translator's.
pub(crate) fn check(config: &Config, (relays, clients): (&[Reader], &[Reader]), report: &mut Report) {
    for (relay, section) in config.others.teredo_relay.iter().zip(relays) {
        let end = (&relay.local, relay.port);
        check_end(config, end, "write another one, which clients learn from bubbles", section, report);
    }
    // Port 0: the kernel chooses none of those.
    let clients = config.others.teredo_client.iter().zip(clients).filter(|(client, _)| client.port != 0);
    for (client, section) in clients {
        check_end(
            config,
            (&client.local, client.port),
            "leave `port` out, or write another one",
            section,
            report,
        );
    }
}

fn check_end(
    config: &Config,
    (local, port): (&LocalAddress, u16),
    mend: &str,
    section: &Reader,
    report: &mut Report,
) {
    let is_here = |address: Ipv4Addr| local.found == Some(address);
    let mut servers = config.teredo_server.iter().flat_map(|server| server.addresses());
    if let Some(address) = servers.find(|address| is_here(*address) && port == TEREDO_PORT) {
        let what = format!("port {port} of {address} is the port of teredo_server; {mend}");
        report.fault(section.place(), what);
    }
    let shared = config.shared_ports();
    let is_taken = |(address, ports): &&(Ipv4Addr, Ports)| is_here(*address) && ports.contain(port);
    if let Some((address, _)) = shared.iter().find(is_taken) {
        let what = "write another port, or other ports of the pool";
        report.fault(section.place(), format!("port {port} of {address} belongs to a pool, too; {what}"));
    }
}
