//! `[log]`: which events of NAT64 and NAT44 are logged, and where.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::domain_name::is_domain_name;
use crate::fault::{Place, Report};
use crate::schema::{LOG_FILE, LOG_IPFIX, LOG_SYSLOG};
use crate::section::{Reader, place_of};
use crate::text;
use crate::value::Value;
use crate::word::words;

words! {
    /// What is logged.
    LoggedEvent {
        /// Bindings.
        Bindings = "bindings",
        /// Each binding, also where subscribers have port blocks.
        EachBinding = "each-binding",
        /// Sessions, without their remote endpoints.
        Sessions = "sessions",
        /// The remote endpoints of sessions.
        Destinations = "destinations",
        /// Limits and pools that are exhausted.
        Limits = "limits",
    }
}

words! {
    /// The transport of messages to a server or collector.
    LogTransport {
        /// UDP.
        Udp = "udp",
        /// TCP.
        Tcp = "tcp",
        /// TLS.
        Tls = "tls",
    }
}

words! {
    /// RFC 5424 §6.2.1: the facility of a message.
    Facility {
        /// 3.
        Daemon = "daemon",
        /// 16.
        Local0 = "local0",
        /// 17.
        Local1 = "local1",
        /// 18.
        Local2 = "local2",
        /// 19.
        Local3 = "local3",
        /// 20.
        Local4 = "local4",
        /// 21.
        Local5 = "local5",
        /// 22.
        Local6 = "local6",
        /// 23.
        Local7 = "local7",
    }
}

impl Facility {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Daemon => 3,
            Self::Local0 => 16,
            Self::Local1 => 17,
            Self::Local2 => 18,
            Self::Local3 => 19,
            Self::Local4 => 20,
            Self::Local5 => 21,
            Self::Local6 => 22,
            Self::Local7 => 23,
        }
    }
}

/// `[log]`, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventLog {
    /// What is logged.
    pub events: Vec<LoggedEvent>,
    /// Where events are stored while servers are unreachable.
    pub spool: PathBuf,
    /// Octets of each spool.
    #[serde(serialize_with = "text::as_octets")]
    pub spool_size: u64,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<EventLogFile>,
    /// Syslog servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub syslog: Vec<SyslogServer>,
    /// IPFIX collectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipfix: Vec<IpfixCollector>,
}

/// `[log.file]`, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventLogFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its permissions.
    #[serde(serialize_with = "octal")]
    pub mode: u32,
    /// Its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Octets at which it is full.
    #[serde(serialize_with = "text::as_octets")]
    pub rotate_size: u64,
    /// Full files that are kept.
    pub rotate_keep: u32,
}

/// A syslog server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SyslogServer {
    /// Where it listens.
    pub server: SocketAddr,
    /// By what messages go there.
    pub transport: LogTransport,
    /// Facility of the messages.
    pub facility: Facility,
    /// The name in its certificate; set with TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Certificates of trusted authorities, as PEM; `None`: the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

/// An IPFIX collector.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IpfixCollector {
    /// Where it listens.
    pub collector: SocketAddr,
    /// By what messages go there.
    pub transport: LogTransport,
    /// Observation Domain ID.
    pub observation_domain: u32,
}

/// The port of syslog (RFC 5426 §3.3), which servers also use with TCP.
const SYSLOG_PORT: u16 = 514;
/// The port of syslog over TLS (RFC 5425 §4.1).
const SYSLOG_TLS_PORT: u16 = 6_514;
/// The port of IPFIX (RFC 7011 §10.3.4).
const IPFIX_PORT: u16 = 4_739;
/// Maximum number of servers, and of collectors: each has a thread.
const MOST_SERVERS: usize = 8;
/// A log is not executable, and not writable by others.
const MODE_BITS: u32 = 0o664;

fn octal<S: Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{mode:04o}"))
}

impl EventLog {
    pub(crate) fn read(section: &Reader, has_bindings: bool, report: &mut Report) -> Option<Self> {
        let events = read_events(section, report);
        let file = match section.sections("file", &LOG_FILE, report).first() {
            Some(written) => EventLogFile::read(written, report).map(Some),
            // A value that is not a table was reported.
            None => Some(None),
        };
        let syslog = section.sections("syslog", &LOG_SYSLOG, report);
        check_number(section, "syslog", syslog.len(), report);
        let ipfix = section.sections("ipfix", &LOG_IPFIX, report);
        check_number(section, "ipfix", ipfix.len(), report);
        let is_silent = ["file", "syslog", "ipfix"].iter().all(|key| section.value(key, report).is_none());
        if is_silent {
            report.fault(section.place(), "writes nothing; add [log.file], [[log.syslog]] or [[log.ipfix]]");
        }
        if !has_bindings {
            report.warn(section.place(), "logs nothing: there is no [nat64], no [nat44], no [[realm]], no AFTR and no concentrator of 4over6; remove it");
        }
        let syslog: Option<Vec<_>> = syslog.iter().map(|row| SyslogServer::read(row, report)).collect();
        let ipfix: Option<Vec<_>> = ipfix.iter().map(|row| IpfixCollector::read(row, report)).collect();
        if let Some(servers) = &syslog {
            let names = servers.iter().map(|it| (it.transport.as_str(), it.server));
            check_same(section, "syslog", "server", names, report);
        }
        if let Some(collectors) = &ipfix {
            let names = collectors.iter().map(|it| (it.transport.as_str(), it.collector));
            check_same(section, "ipfix", "collector", names, report);
        }
        let spool = section.value("spool", report).and_then(|v| v.path(report));
        let spool_size = section.value("spool_size", report).and_then(|v| v.size(report));
        Some(Self {
            events: events?,
            spool: spool?,
            spool_size: spool_size?,
            file: file?,
            syslog: syslog?,
            ipfix: ipfix?,
        })
    }

    /// Whether these events are logged.
    #[must_use]
    pub fn has(&self, event: LoggedEvent) -> bool {
        self.events.contains(&event)
    }
}

impl EventLog {
    /// Whether bindings are logged, or their port blocks.
    #[must_use]
    pub fn has_bindings(&self) -> bool {
        self.has(LoggedEvent::Bindings) || self.has(LoggedEvent::EachBinding)
    }
}

fn read_events(section: &Reader, report: &mut Report) -> Option<Vec<LoggedEvent>> {
    let Some(written) = section.value("events", report) else {
        return Some(vec![LoggedEvent::Bindings, LoggedEvent::Limits]);
    };
    let place = written.place.clone();
    let events: Vec<LoggedEvent> = written.items().iter().map(|it| it.word(report)).collect::<Option<_>>()?;
    let has = |event| events.contains(&event);
    let what = if events.is_empty() {
        "is empty; write what is to be logged, such as [\"bindings\"]"
    } else if has(LoggedEvent::Destinations) && !has(LoggedEvent::Sessions) {
        "has \"destinations\" without \"sessions\", which they are part of; add \"sessions\""
    } else {
        return Some(events);
    };
    report.fault(&place, what);
    None
}

fn check_number(section: &Reader, key: &str, number: usize, report: &mut Report) {
    if number > MOST_SERVERS {
        report.fault(&place_of(section, key), format!("are {number}; {MOST_SERVERS} at most"));
    }
}

/// Each server has a spool with its name.
fn check_same(
    section: &Reader,
    list: &str,
    key: &str,
    servers: impl Iterator<Item = (&'static str, SocketAddr)>,
    report: &mut Report,
) {
    let mut known: Vec<(&str, SocketAddr)> = Vec::new();
    for (number, server) in servers.enumerate() {
        if let Some(other) = known.iter().position(|known| *known == server) {
            let (transport, address) = server;
            let place = section.place();
            let place =
                Place { key: format!("{}.{list}[{number}].{key}", place.key).into(), ..place.clone() };
            let what = format!(
                "is {address} by {transport}, as {list}[{other}]; remove one of them, or set another transport or port"
            );
            report.fault(&place, what);
        }
        known.push(server);
    }
}

impl EventLogFile {
    fn read(section: &Reader, report: &mut Report) -> Option<Self> {
        let path = section.value("path", report).and_then(|v| {
            let path = v.path(report)?;
            if path.file_name().is_none() {
                report.fault(
                    &v.place,
                    "is not the path of a file; write one such as \"/var/log/sixway/events.jsonl\"",
                );
                return None;
            }
            Some(path)
        });
        let mode = section.value("mode", report).and_then(|v| {
            let text = v.text(report)?;
            let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| mode & !MODE_BITS == 0);
            if mode.is_none_or(|mode| mode & 0o200 == 0) {
                report.fault(
                    &v.place,
                    "is not a valid mode; write one in octal, such as \"0640\", that lets the owner write and others not",
                );
                return None;
            }
            mode
        });
        let owner = section.value("owner", report).map_or(Some(None), |v| v.text(report).map(Some));
        let group = section.value("group", report).map_or(Some(None), |v| v.text(report).map(Some));
        let rotate_size = section.value("rotate_size", report).and_then(|v| v.size(report));
        let rotate_keep = section.value("rotate_keep", report).and_then(|v| v.integer(report));
        Some(Self {
            path: path?,
            mode: mode?,
            owner: owner?,
            group: group?,
            rotate_size: rotate_size?,
            rotate_keep: rotate_keep?,
        })
    }
}

impl SyslogServer {
    fn read(row: &Reader, report: &mut Report) -> Option<Self> {
        let transport = row.value("transport", report).and_then(|v| v.word(report));
        let is_secured = transport == Some(LogTransport::Tls);
        let port = if is_secured { SYSLOG_TLS_PORT } else { SYSLOG_PORT };
        let server = read_address(row, "server", port, report);
        let facility = row.value("facility", report).and_then(|v| v.word(report));
        let name = row.value("name", report);
        let ca = row.value("ca", report);
        for value in name.iter().chain(&ca).filter(|_| transport.is_some() && !is_secured) {
            let what = "applies only to certificates; set transport = \"tls\", or remove it";
            report.fault(&value.place, what);
        }
        if name.is_none() && is_secured {
            let place = Place { key: format!("{}.name", row.place().key).into(), ..row.place().clone() };
            let what = "is missing: it is compared with the certificate; write name = \"log.example\"";
            report.fault(&place, what);
        }
        let name = name.map_or(Some(None), |v| read_name(&v, report).map(Some));
        let ca = ca.map_or(Some(None), |v| v.path(report).map(Some));
        Some(Self { server: server?, transport: transport?, facility: facility?, name: name?, ca: ca? })
    }
}

impl IpfixCollector {
    fn read(row: &Reader, report: &mut Report) -> Option<Self> {
        let collector = read_address(row, "collector", IPFIX_PORT, report);
        let transport = row.value("transport", report).and_then(|v| {
            let transport = v.word(report)?;
            if transport == LogTransport::Tls {
                report.fault(&v.place, "is not supported for IPFIX; write \"udp\" or \"tcp\"");
                return None;
            }
            Some(transport)
        });
        let observation_domain = row.value("observation_domain", report).and_then(|v| v.integer(report));
        Some(Self { collector: collector?, transport: transport?, observation_domain: observation_domain? })
    }
}

fn read_name(value: &Value, report: &mut Report) -> Option<String> {
    let name = value.text(report)?;
    if !is_domain_name(&name) && name.parse::<IpAddr>().is_err() {
        report.fault(&value.place, "is not a valid server name; write one such as log.example");
        return None;
    }
    Some(name)
}

fn read_address(row: &Reader, key: &str, port: u16, report: &mut Report) -> Option<SocketAddr> {
    let value = row.value(key, report)?;
    let address = value.socket_at(port, report)?;
    check_address(address, &value.place, report).then_some(address)
}

fn check_address(address: SocketAddr, place: &Place, report: &mut Report) -> bool {
    let ip = address.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    let what = if address.port() == 0 {
        "has port 0; write 1 to 65535"
    } else if ip.is_unspecified() || ip.is_multicast() || broadcast {
        "is not a valid server address; write a unicast address"
    } else {
        return true;
    };
    report.fault(place, what);
    false
}
