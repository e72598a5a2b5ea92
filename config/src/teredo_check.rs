//! What Teredo's relays must not share with other sections.

use sixway_wire::teredo::TEREDO_PORT;
use std::net::Ipv4Addr;

use crate::config::Config;
use crate::fault::Report;
use crate::ports::Ports;
use crate::section::Reader;

/// Tells of a port that is also a translator's.
pub(crate) fn check(config: &Config, written: &[Reader], report: &mut Report) {
    let shared = config.shared_ports();
    for (relay, section) in config.others.teredo_relay.iter().zip(written) {
        let taken = |(address, ports): &&(Ipv4Addr, Ports)| {
            relay.local.found == Some(*address) && ports.contain(relay.port)
        };
        let is_servers =
            |address: &Ipv4Addr| relay.local.found == Some(*address) && relay.port == TEREDO_PORT;
        let mut servers = config.teredo_server.iter().flat_map(|server| server.addresses());
        if let Some(address) = servers.find(is_servers) {
            let what = "is the port of teredo_server; write another one, which clients learn from bubbles";
            report.fault(section.place(), format!("port {TEREDO_PORT} of {address} {what}"));
        }
        if let Some((address, _)) = shared.iter().find(taken) {
            let what = "write another port, or other ports of the pool";
            let port = relay.port;
            report.fault(section.place(), format!("port {port} of {address} belongs to a pool, too; {what}"));
        }
    }
}
