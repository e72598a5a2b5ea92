//! `timeouts` of a stateful translator: when an idle session ends, and how long its port is quarantined.

use crate::fault::Report;
use crate::ports::Ports;
use crate::schema::Section;
use crate::section::Reader;
use crate::text;
use crate::word;
use serde::Serialize;
use sixway_dataplane::nat::{NatProtocol, PortTimeout};
use std::time::Duration;

/// When an idle session ends (RFC 6146 §4, RFC 7857 §2.1).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeouts {
    /// UDP_DEFAULT.
    #[serde(serialize_with = "text::as_duration")]
    pub udp_default: Duration,
    /// TCP_EST, without the TCP_TRANS that follows it.
    #[serde(serialize_with = "text::as_duration")]
    pub tcp_est: Duration,
    /// TCP_TRANS of a session that is not open yet.
    #[serde(serialize_with = "text::as_duration")]
    pub tcp_opening: Duration,
    /// TCP_TRANS of a session that closes.
    #[serde(serialize_with = "text::as_duration")]
    pub tcp_closing: Duration,
    /// TCP_INCOMING_SYN.
    #[serde(serialize_with = "text::as_duration")]
    pub tcp_incoming_syn: Duration,
    /// ICMP_DEFAULT.
    #[serde(serialize_with = "text::as_duration")]
    pub icmp_default: Duration,
    /// How long no other subscriber gets a port after its binding has ended (RFC 6888 REQ-8).
    #[serde(serialize_with = "text::as_duration")]
    pub quarantine: Duration,
    /// Other timeouts for certain remote ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<OfPorts>,
}

/// The timeout of sessions with certain remote ports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfPorts {
    /// Which sessions.
    #[serde(serialize_with = "word::serialize")]
    pub protocol: NatProtocol,
    /// The remote ports.
    #[serde(serialize_with = "text::one")]
    pub ports: Ports,
    /// Their timeout.
    #[serde(serialize_with = "text::as_duration")]
    pub timeout: Duration,
}

impl Timeouts {
    /// `of_port` is the schema of `port`.
    pub(crate) fn read(section: &Reader, of_port: &'static Section, report: &mut Report) -> Option<Self> {
        let mut read = |name: &str| section.value(name, report).map(|v| v.duration(report));
        let (udp_default, tcp_est, tcp_trans) = (read("udp_default"), read("tcp_est"), read("tcp_trans"));
        let (tcp_opening, tcp_closing) = (read("tcp_opening"), read("tcp_closing"));
        let (tcp_incoming_syn, icmp_default) = (read("tcp_incoming_syn"), read("icmp_default"));
        let quarantine = read("quarantine");
        let rows = section.sections("port", of_port, report);
        let port = rows.iter().filter_map(|row| OfPorts::read(row, report)).collect();
        Some(Self {
            udp_default: udp_default??,
            tcp_est: tcp_est??,
            tcp_opening: tcp_opening.or(tcp_trans)??,
            tcp_closing: tcp_closing.or(tcp_trans)??,
            tcp_incoming_syn: tcp_incoming_syn??,
            icmp_default: icmp_default??,
            quarantine: quarantine??,
            port,
        })
    }
}

impl Timeouts {
    /// The shortest timeout of a protocol's sessions: this one, or that of certain ports.
    pub fn shortest(&self, protocol: NatProtocol, plain: Duration) -> Duration {
        let of_ports = self.port.iter().filter(|row| row.protocol == protocol);
        of_ports.map(|row| row.timeout).fold(plain, Duration::min)
    }
}

impl OfPorts {
    fn read(row: &Reader, report: &mut Report) -> Option<Self> {
        let protocol = row.value("protocol", report).and_then(|v| v.word(report));
        let ports = row.value("ports", report).and_then(|v| v.ports(report));
        let timeout = row.value("timeout", report).and_then(|v| Some((v.duration(report)?, v.place)));
        let (protocol, ports, (timeout, place)) = (protocol?, ports?, timeout?);
        for range in ports.ranges() {
            let (least, clause) = PortTimeout::least(protocol, range);
            if timeout < least {
                report.fault(
                    &place,
                    format!("is too short; write at least {} ({clause})", text::duration(least)),
                );
                break;
            }
        }
        Some(Self { protocol, ports, timeout })
    }

    /// A row of the engine for each range.
    pub(crate) fn engine(&self) -> impl Iterator<Item = PortTimeout> {
        let (protocol, timeout) = (self.protocol, self.timeout);
        self.ports.ranges().iter().map(move |ports| PortTimeout { protocol, ports: ports.clone(), timeout })
    }
}
