//! The rows of the admin API: plain values, used by the server that writes them and by `sixway show` that reads them.

use super::dns64_rows::Dns64Row;
use super::log_rows::SinkRow;
use super::pcp_rows::PcpRow;
use super::problem_rows::ProblemRow;
use super::teredo_server_rows::TeredoServerRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The gateway in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The gateway's name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Seconds since it was ready.
    pub uptime_seconds: u64,
    /// Number of workers.
    pub workers: usize,
    /// Its device; `None`: it needs none.
    pub device: Option<Device>,
    /// What passes, averaged over the last seconds.
    pub rates: Rates,
    /// The fast path, if configured.
    #[serde(default)]
    pub fast_path: Option<FastPathShare>,
    /// Sessions of all mechanisms.
    pub sessions: u64,
    /// Bindings of all mechanisms.
    pub bindings: u64,
    /// One row for each configured mechanism.
    pub mechanisms: Vec<MechanismRow>,
    /// DNS64, if configured.
    pub dns64: Option<Dns64Row>,
    /// The Teredo server, if configured.
    #[serde(default)]
    pub teredo_server: Option<TeredoServerRow>,
    /// The PCP server, if configured.
    #[serde(default)]
    pub pcp: Option<PcpRow>,
    /// Where metrics are served, if they are.
    pub metrics: Option<String>,
    /// What other programs changed of the host's configuration; `None` without a device.
    #[serde(default)]
    pub host: Option<HostRow>,
    /// What needs the operator's attention, most serious first; empty if all is well.
    #[serde(default)]
    pub problems: Vec<ProblemRow>,
    /// When this process, or its last reload, started: milliseconds since 1970.
    #[serde(default)]
    pub started_milliseconds: u64,
    /// The configuration file.
    #[serde(default)]
    pub config_file: String,
    /// The sinks of the event log; none without a log.
    #[serde(default)]
    pub event_log: Vec<SinkRow>,
    /// The last reload; `None`: there was none since the start.
    #[serde(default)]
    pub reload: Option<ReloadRow>,
}

/// A reload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadRow {
    /// `on trial`, `awaits confirmation`, `kept` or `rolled back`.
    pub state: String,
    /// Why the gateway returned to the previous configuration.
    pub reason: Option<String>,
    /// Seconds until the trial ends; `None`: it has ended.
    pub seconds_left: Option<u64>,
    /// Sessions that the engine of the previous process had.
    pub sessions: u64,
    /// Those that continue.
    pub sessions_kept: u64,
    /// Only the DNS64 is another one: the process, its sessions and its connections continued.
    #[serde(default)]
    pub in_process: bool,
}

/// What other programs changed of the host's configuration since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// What the gateway restored, and how often.
    pub restored: Vec<RestoredRow>,
    /// Settings that it no longer restores, because they were changed repeatedly.
    pub left_alone: Vec<String>,
}

/// A part of the host's configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestoredRow {
    /// Which: `device`, `sysctl`, `route`, `address`, `rule`, `packet_filter` or `steering`.
    pub what: String,
    /// How often it was restored.
    pub times: u64,
}

/// The device that packets come through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its MTU in octets.
    pub mtu: u32,
    /// Number of queues.
    pub queues: usize,
    /// What it passes whole: `TCP, UDP`, `TCP` or nothing.
    pub gso: String,
}

/// Rates over the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bits a second forwarded, IP headers included.
    pub bits: f64,
    /// Packets a second as a wire would carry them.
    pub packets: f64,
    /// Frames per second received from the device; a GSO packet counts as one.
    pub frames: f64,
    /// Frames a second dropped.
    pub drops: f64,
    /// The reason most frames were dropped for, if any were.
    pub top_reason: Option<String>,
}

/// The fast path in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FastPathShare {
    /// The part of all packets that it carried in the last seconds; `None`: there were none.
    pub share: Option<f64>,
    /// Where: `eth0 XDP · eth1 tc`, or `off`.
    pub attached: String,
    /// Flows that it carries.
    pub flows: u64,
    /// How many there may be.
    pub flows_capacity: u64,
}

impl FastPathShare {
    /// It was there, and was removed while the gateway runs.
    pub fn is_off(&self) -> bool {
        self.attached == "off"
    }
}

/// The fast path: packets forwarded, and those passed to the engine, since this process started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FastPathRow {
    /// In a few numbers.
    pub summary: FastPathShare,
    /// Next hops that it sends to.
    pub next_hops: u64,
    /// Packets forwarded, by mechanism and direction.
    pub carried: Vec<CarriedRow>,
    /// What it passed on to the kernel, and so to the engine, by cause.
    pub passed: Vec<PassedRow>,
}

/// Packets of one mechanism that the fast path forwarded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarriedRow {
    /// The mechanism.
    pub mechanism: String,
    /// Packets from IPv6 to IPv4, to the outside, or into tunnels; each segment of a GSO packet counts.
    pub packets_out: u64,
    /// Their octets, as they came.
    pub octets_out: u64,
    /// Packets the other way.
    pub packets_in: u64,
    /// Their octets.
    pub octets_in: u64,
}

/// What was passed on for one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PassedRow {
    /// The cause.
    pub cause: String,
    /// Packets.
    pub packets: u64,
    /// Its meaning.
    pub help: String,
}

/// One mechanism in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MechanismRow {
    /// `nat64`, `siit`.
    pub name: String,
    /// A summary of what it serves: its prefix and pool.
    pub serves: String,
    /// Frames a second that it translated; shared by all mechanisms of one name.
    pub frames: f64,
    /// Whether it keeps sessions.
    pub stateful: bool,
    /// Live sessions.
    pub sessions: u64,
    /// Live bindings; for a dynamic pool, hosts that hold an address.
    pub bindings: u64,
    /// Maximum number of bindings.
    pub bindings_capacity: u64,
    /// The mappings of a NAT46.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mappings: Option<MappingsRow>,
    /// The other end of its tunnel at the moment, where that may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// How a mechanism is that has neither sessions nor bindings, in words; `None`: there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// The mappings of a NAT46 since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingsRow {
    /// Mappings made.
    pub made: u64,
    /// Mappings ended, their rest over.
    pub ended: u64,
    /// Queries that got none, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Addresses of a shared pool; 0 if each client has its own use of them.
    pub addresses: u32,
    /// How many of them are used, or rest.
    pub addresses_used: u32,
}

impl MappingsRow {
    /// Queries that got no mapping because there was no room, for whatever reason. Those that are repeated over TCP are not among them, nor those
    /// that NAT46 is not for.
    pub fn refused_for_room(&self) -> u64 {
        let is_for_room = |reason: &str| !matches!(reason, "unproven" | "not_client" | "not_server");
        self.refused.iter().filter(|(reason, _)| is_for_room(reason)).map(|(_, count)| count).sum()
    }
}

/// One counter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterRow {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub help: String,
    /// All workers together.
    pub value: u64,
    /// Each worker's share, by worker number; none of what no worker counts: the fast path's.
    pub by_worker: Vec<u64>,
}

/// One reason for drops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DropRow {
    /// The reason's name.
    pub reason: String,
    /// Frames dropped for it.
    pub count: u64,
    /// Seconds since the count was last seen to grow; `None`: never.
    pub last_seconds: Option<f64>,
    /// Its meaning.
    pub help: String,
    /// The ICMP error that the sender gets.
    pub answer: String,
    /// The last packet of it in words, at most a second old when the next one came; for members of the admin group with prefixes
    /// in place of addresses.
    #[serde(default)]
    pub sample: Option<String>,
}

/// A packet as it passed a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveRow {
    /// The worker.
    pub worker: usize,
    /// The packet as it arrived, in words.
    pub packet: String,
    /// The outcome of it.
    pub fate: String,
    /// What left in its place, in words; `None`: nothing, or several packets.
    pub sent: Option<String>,
    /// Packets since the last row that match and are not shown, because there were too many.
    pub skipped: u64,
}

/// One session (RFC 6146 §3.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The mechanism that keeps it.
    pub mechanism: String,
    /// The worker that keeps it.
    pub worker: usize,
    /// `tcp`, `udp` or `icmp`; without ports, `gre`, `esp`, `ipv6` or `ipip`, and the ends are addresses.
    pub protocol: String,
    /// The B4 that the inside endpoint is behind (RFC 6333); none where there are no softwires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softwire: Option<String>,
    /// The inside endpoint (X',x); `–` while an inbound SYN waits for a binding (RFC 6146 §3.5.2.2).
    pub inside: String,
    /// The outside endpoint (T,t).
    pub outside: String,
    /// The remote endpoint (Z,z).
    pub remote: String,
    /// TCP's state by the RFC's name, or `open`.
    pub state: String,
    /// Seconds since its last packet, if known.
    pub idle_seconds: Option<u64>,
    /// Seconds until it ends if nothing comes.
    pub ends_in_seconds: u64,
    /// Packets from inside to outside, if they are counted.
    pub packets_out: Option<u64>,
    /// Packets from outside to inside, if they are counted.
    pub packets_in: Option<u64>,
    /// Octets from inside to outside, IP headers included, if they are counted.
    pub octets_out: Option<u64>,
    /// Octets from outside to inside, IP headers included, if they are counted.
    pub octets_in: Option<u64>,
    /// What carries it: `engine`, also while the fast path rests, or the fast path: `fast (tc)`, `fast (xdp)`, or `fast` where that depends
    /// on the interface.
    pub path: String,
}

/// One binding (RFC 6146 §3.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BindingRow {
    /// The mechanism that keeps it.
    pub mechanism: String,
    /// The worker that keeps it.
    pub worker: usize,
    /// As for a session; `any` for a whole address.
    pub protocol: String,
    /// The B4 that the inside endpoint is behind (RFC 6333); none where there are no softwires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softwire: Option<String>,
    /// The inside endpoint (X',x), or an address.
    pub inside: String,
    /// The outside endpoint (T,t), or an address.
    pub outside: String,
    /// How it came about: `static` or `dynamic`; `remembered` and `resting` of what has ended.
    pub kind: String,
    /// Sessions that use it.
    pub sessions: u64,
    /// With NAT46, the server that the outside address represents for the inside host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// A subscriber of a stateful translator: a prefix, and what its hosts have together (RFC 6888 REQ-4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriberRow {
    /// The mechanism.
    pub mechanism: String,
    /// The worker that it belongs to.
    pub worker: usize,
    /// The prefix; an address if it has no other.
    pub subscriber: String,
    /// Hosts with bindings.
    pub hosts: u32,
    /// Dynamic TCP bindings: ports that it has.
    pub tcp_ports: u32,
    /// Dynamic UDP bindings.
    pub udp_ports: u32,
    /// Dynamic ICMP bindings: identifiers that it has.
    pub icmp_identifiers: u32,
    /// Sessions, those from outside included.
    pub sessions: u32,
    /// Sessions from outside that no packet from inside has answered.
    pub sessions_from_outside: u32,
    /// New sessions a second, in the last ten to twenty seconds.
    pub new_sessions_per_second: u32,
    /// New sessions since it has had a binding without a break.
    pub sessions_made: u64,
    /// New sessions and bindings that its limits or its share refused.
    pub refused: u64,
    /// Its port blocks, with their address; empty: it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port_blocks: Vec<String>,
}

/// The first subscribers, in descending order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subscribers {
    /// The rows.
    pub rows: Vec<SubscriberRow>,
    /// How many subscribers there are, those of the filter.
    pub total: u64,
}

/// What was ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Bindings, with their sessions.
    pub bindings: u64,
}

/// A lease of a 4over6 concentrator (RFC 7040), or of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// The mechanism.
    pub mechanism: String,
    /// The IPv4 address, or a prefix.
    pub ipv4: String,
    /// The host's IPv6 address.
    pub host: String,
    /// `static`, `leased`, `offered`, `ended` or `declined`; of this host's own, `held` or `remembered`.
    pub state: String,
    /// Seconds until that ends; `None`: no time is set.
    pub ends_in_seconds: Option<u64>,
}

/// A page of a table, and the cursor of the next page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// How many rows the table has in all, filters left aside.
    pub total: u64,
    /// The cursor that yields the next rows; `None` at the end.
    pub next: Option<String>,
}

/// A 6rd domain, and this gateway's part in it (RFC 5969 §7.1.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SixRdRow {
    /// Its name.
    pub name: String,
    /// `customer_edge` or `border_relay`.
    pub role: String,
    /// 6rdPrefix.
    pub prefix: String,
    /// IPv4MaskLen.
    pub ipv4_mask_length: u8,
    /// The IPv4 prefix common to all customers' addresses, if known.
    pub ipv4_common: Option<String>,
    /// This end, if it has an address.
    pub address: Option<String>,
    /// The prefix that belongs to that address.
    pub delegated: Option<String>,
    /// 6rdBRIPv4Address.
    pub border_relays: Vec<String>,
}

/// Router advertisements on a link (RFC 4861 §6.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouterAdvertisementRow {
    /// The interface, or the ISATAP router's name.
    pub link: String,
    /// `advertises`, or what keeps it from that.
    pub state: String,
    /// Where they come from.
    pub source: Option<String>,
    /// AdvDefaultLifetime.
    pub router_lifetime_seconds: u16,
    /// Advertised prefixes, including deprecated ones.
    pub prefixes: Vec<AdvertisedRow>,
    /// More specific routes.
    pub routes: Vec<String>,
    /// Recursive DNS servers.
    pub rdnss: Vec<String>,
    /// The NAT64 prefix.
    pub pref64: Option<String>,
    /// Packets with advertisements to all nodes.
    pub multicast: u64,
    /// Advertisements unicast to a soliciting host.
    pub unicast: u64,
    /// Neighbour advertisements over ISATAP.
    pub neighbours: u64,
    /// Router solicitations heard that are answered.
    pub solicitations: u64,
    /// Router solicitations dropped: too many were waiting for a response.
    pub solicitations_dropped: u64,
    /// Neighbour discovery messages that failed validation.
    pub malformed: u64,
    /// Inconsistent advertisements of other routers (RFC 4861 §6.2.7).
    pub inconsistencies: u64,
}

/// A prefix that is advertised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdvertisedRow {
    /// The prefix.
    pub prefix: String,
    /// AdvValidLifetime; 4,294,967,295: for ever.
    pub valid_seconds: u32,
    /// AdvPreferredLifetime; 4,294,967,295: for ever.
    pub preferred_seconds: u32,
    /// Whether it is deprecated (RFC 9096 §3.5).
    pub deprecated: bool,
}

/// The new remote address of a tunnel whose remote is a name, or the AFTR of a B4.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewRemote {
    /// The tunnel's name.
    pub tunnel: String,
    /// The other end's IPv4 address; for a B4 the AFTR's IPv6 address or name.
    pub remote: String,
}

/// A gateway's process makes way for another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Leaving {
    /// The process.
    pub process: u32,
}

/// What a request that cannot be answered gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What is wrong and how to fix it.
    pub error: String,
}
