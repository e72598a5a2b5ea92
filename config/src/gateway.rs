//! `[gateway]`, `[tun]` and `[fragments]`: the process, the device for packets, and the bounds of waiting fragments.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::{Claims, Owner};
use crate::fault::Report;
use crate::host::HostFacts;
use crate::interface_name::is_interface_name;
use crate::route_choice::RouteChoice;
use crate::section::Reader;
use crate::text;
use crate::word::words;

words! {
    /// The least severe log level.
    LogLevel {
        /// What failed.
        Error = "error",
        /// Warnings.
        Warn = "warn",
        /// What the gateway did.
        Info = "info",
        /// Why it did so; hosts' addresses appear.
        Debug = "debug",
        /// Each step.
        Trace = "trace",
    }
}

words! {
    /// How messages are written.
    LogFormat {
        /// A line for people.
        Text = "text",
        /// A JSON object in each line.
        Json = "json",
    }
}

/// `[gateway]`, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gateway {
    /// The gateway's name.
    pub name: String,
    /// The source of its ICMPv4 errors.
    pub ipv4_address: Option<Ipv4Addr>,
    /// The source of its ICMPv6 errors.
    pub ipv6_address: Option<Ipv6Addr>,
    /// Threads that translate, 1 to 64.
    pub workers: u8,
    /// For how long a worker polls after a packet before it sleeps, up to 1 s.
    #[serde(serialize_with = "text::as_duration")]
    pub busy_poll: Duration,
    /// ICMP errors per second, of all workers.
    pub icmp_errors_per_second: u32,
    /// The admin API's Unix socket.
    pub admin_socket: PathBuf,
    /// The group that has read access there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_group: Option<String>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The least severe log level.
    pub log: LogLevel,
    /// How messages are written.
    pub log_format: LogFormat,
}

/// The directory of admin sockets.
const SOCKET_DIRECTORY: &str = "/run/sixway";

impl Gateway {
    pub(crate) fn read(
        section: &Reader,
        host: &HostFacts,
        claims: &mut Claims,
        report: &mut Report,
    ) -> Option<Self> {
        let name = section.value("name", report).and_then(|v| {
            let name = v.text(report)?;
            let plain =
                name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            if !plain || name.starts_with('.') {
                report.fault(
                    &v.place,
                    "is not a valid name; write up to 64 letters, digits, -, _ and ., not starting with a dot",
                );
                return None;
            }
            Some(name)
        });
        let ipv4_address = section.value("ipv4_address", report).and_then(|v| {
            let address = v.address4(report)?;
            if !crate::unicast::is_unicast(address) {
                report.fault(&v.place, "is not a valid host address; write a unicast address");
            }
            claims.v4(Prefix4::holding(address, 32), Owner::Gateway, &v.place);
            Some(address)
        });
        let ipv6_address = section.value("ipv6_address", report).and_then(|v| {
            let address = v.address6(report)?;
            if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
                report.fault(&v.place, "is not a valid host address; write a unicast address");
            }
            claims.v6(Prefix6::holding(address, 128), Owner::Gateway, &v.place);
            Some(address)
        });
        let workers = section.value("workers", report).and_then(|v| v.integer_or::<u8>(report));
        let busy_poll = section.value("busy_poll", report).and_then(|v| v.duration(report));
        let icmp_errors_per_second =
            section.value("icmp_errors_per_second", report).and_then(|v| v.integer(report));
        let admin_socket = section.value("admin_socket", report).map(|v| {
            let path = v.path(report)?;
            if path.as_os_str().len() > SOCKET_PATH {
                report.fault(&v.place, "is too long for a socket; write a path of up to 107 octets");
                return None;
            }
            Some(path)
        });
        let admin_group =
            section.value("admin_group", report).map_or(Some(None), |v| v.text(report).map(Some));
        let metrics = section.value("metrics", report).and_then(|v| v.socket(report));
        let log = section.value("log", report).and_then(|v| v.word(report));
        let log_format = section.value("log_format", report).and_then(|v| v.word(report));
        let name = name?;
        Some(Self {
            ipv4_address,
            ipv6_address,
            workers: workers?.unwrap_or_else(|| host.cpus.clamp(1, 64).try_into().unwrap_or(1)),
            busy_poll: busy_poll?,
            icmp_errors_per_second: icmp_errors_per_second?,
            admin_group: admin_group?,
            admin_socket: match admin_socket {
                Some(path) => path?,
                None => PathBuf::from(format!("{SOCKET_DIRECTORY}/{name}.sock")),
            },
            name,
            metrics,
            log: log?,
            log_format: log_format?,
        })
    }
}

/// `[tun]`, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tun {
    /// The device's name, 1 to 15 characters.
    pub name: String,
    /// Its MTU in octets, 1,280 to 65,535.
    pub mtu: u16,
    /// Its queues; `None`: as many as workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u8>,
    /// Packets that may wait in each queue.
    pub queue_length: u32,
    /// Whether GSO packets are taken and given.
    pub super_frames: bool,
    /// Which routes lead into it.
    pub routes: RouteChoice,
}

/// unix(7): octets that a socket's path may have.
const SOCKET_PATH: usize = 107;

impl Tun {
    pub(crate) fn read(section: &Reader, report: &mut Report) -> Option<Self> {
        let name = section.value("name", report).and_then(|v| {
            let name = v.text(report)?;
            let plain = name.bytes().all(|b| b.is_ascii_graphic() && !b"/:%".contains(&b));
            // `lo` exists already; the other two are the kernel's names for settings of every device.
            let taken = matches!(&*name, "lo" | "all" | "default");
            if !is_interface_name(&name) || !plain || taken {
                let what = "is not a valid device name; write up to 15 letters, digits and ASCII punctuation except /, : and %, not \"lo\", \"all\" or \"default\"";
                report.fault(&v.place, what);
                return None;
            }
            Some(name)
        });
        let mtu = section.value("mtu", report).and_then(|v| v.integer(report));
        let queues = section.value("queues", report).and_then(|v| v.integer_or(report));
        let queue_length = section.value("queue_length", report).and_then(|v| v.integer(report));
        let super_frames = section.value("super_frames", report).and_then(|v| v.boolean(report));
        let routes = section.value("routes", report).and_then(|v| RouteChoice::read(v, report));
        Some(Self {
            name: name?,
            mtu: mtu?,
            queues: queues?,
            queue_length: queue_length?,
            super_frames: super_frames?,
            routes: routes?,
        })
    }
}

/// `[fragments]`, resolved; each bound is a worker's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fragments {
    /// Octets of memory.
    #[serde(serialize_with = "text::as_octets")]
    pub memory: u64,
    /// Packets at a time.
    pub packets: u32,
    /// Concurrent packets from one source address.
    pub packets_per_source: u32,
    /// Fragments of one packet.
    pub fragments_per_packet: u32,
    /// How long a packet's fragments wait for the rest.
    #[serde(serialize_with = "text::as_duration")]
    pub timeout: Duration,
}

impl Fragments {
    pub(crate) fn read(section: &Reader, report: &mut Report) -> Option<Self> {
        let memory = section.value("memory", report).and_then(|v| v.size(report));
        let packets = section.value("packets", report).and_then(|v| v.integer(report));
        let per_source = section.value("packets_per_source", report);
        let packets_per_source = per_source.as_ref().and_then(|v| v.integer(report));
        let fragments_per_packet =
            section.value("fragments_per_packet", report).and_then(|v| v.integer(report));
        let timeout = section.value("timeout", report).and_then(|v| v.duration(report));
        let (packets, packets_per_source) = (packets?, packets_per_source?);
        if let Some(v) = per_source.filter(|_| packets_per_source > packets) {
            report.fault(
                &v.place,
                format!("is more than fragments.packets, {packets}, which applies to all sources together; lower it"),
            );
        }
        Some(Self {
            memory: memory?,
            packets,
            packets_per_source,
            fragments_per_packet: fragments_per_packet?,
            timeout: timeout?,
        })
    }
}
