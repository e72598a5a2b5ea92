//! The records of the log, and their lines of JSON.

pub(super) use super::phase::Phase;

use super::notice::{AlarmNotice, LeaseNotice, Notice};
use super::port_block::{PortBlock, PortMapping};
use super::portless::Portless;
use crate::inside_endpoint;
use serde::Deserialize;
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};
use std::io::Write as _;
use std::net::{Ipv6Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Octets of a time, and more.
const LONGEST_TIME: usize = 64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// When: microseconds since 1970.
    pub(super) micros: u64,
    pub(super) event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A binding.
    Binding(Phase, Binding),
    /// A session: its binding, and the remote endpoint if destinations are logged.
    Session(Phase, Binding, Option<Endpoint4>),
    /// A session of a protocol without ports.
    Portless(Phase, Portless),
    /// A port block.
    Block(Phase, PortBlock),
    /// How a translator gives port blocks, from here on.
    Mapping(PortMapping),
    /// The log begins: bindings that it has so far have ended, unless they are named after this as those that continue.
    Started,
    /// The log ends.
    Stopped,
    /// This number of records is missing here, or at this sink.
    Lost(u64, Arc<str>),
    /// The clock was set, forward or back, by this number of microseconds.
    Stepped(i64),
    /// A limit was reached: its drop reason, and the packets dropped for it since the last record of it.
    Limit(Arc<str>, u64),
    /// Something is exhausted, or nearly.
    Notice(Notice),
}

/// A binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// The translator's name.
    pub(super) translator: Arc<str>,
    pub(super) protocol: NatProtocol,
    /// The B4 that the inside endpoint is behind (RFC 6333).
    pub(super) softwire: Option<Ipv6Addr>,
    /// An IPv4 host goes by its IPv4-mapped address.
    pub(super) inside: Endpoint6,
    pub(super) outside: Endpoint4,
    pub(super) is_static: bool,
}

impl Event {
    /// What a line calls it.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Binding(Phase::Created, _) => "binding_created",
            Self::Binding(Phase::Deleted, _) => "binding_deleted",
            Self::Binding(Phase::Continues, _) => "binding_continues",
            Self::Session(Phase::Created, ..) => "session_created",
            Self::Session(Phase::Deleted, ..) => "session_deleted",
            Self::Session(Phase::Continues, ..) => "session_continues",
            Self::Portless(Phase::Created, _) => "portless_created",
            Self::Portless(Phase::Deleted, _) => "portless_deleted",
            Self::Portless(Phase::Continues, _) => "portless_continues",
            Self::Block(Phase::Created, _) => "block_allocated",
            Self::Block(Phase::Deleted, _) => "block_released",
            Self::Block(Phase::Continues, _) => "block_continues",
            Self::Mapping(_) => "port_mapping",
            Self::Started => "log_started",
            Self::Stopped => "log_stopped",
            Self::Lost(..) => "events_lost",
            Self::Stepped(_) => "clock_stepped",
            Self::Limit(..) => "limit_reached",
            Self::Notice(notice) => notice.name(),
        }
    }

    fn phase(name: &str) -> Option<Phase> {
        match name.rsplit_once('_')?.1 {
            "created" | "allocated" => Some(Phase::Created),
            "deleted" | "released" => Some(Phase::Deleted),
            "continues" => Some(Phase::Continues),
            _ => None,
        }
    }
}

/// A line as it is read.
#[derive(Deserialize)]
struct Line<'a> {
    time: &'a str,
    event: &'a str,
    #[serde(borrow)]
    translator: Option<std::borrow::Cow<'a, str>>,
    protocol: Option<&'a str>,
    softwire: Option<&'a str>,
    inside: Option<&'a str>,
    outside: Option<&'a str>,
    first_port: Option<u16>,
    last_port: Option<u16>,
    remote: Option<&'a str>,
    kind: Option<&'a str>,
    id: Option<u32>,
    #[serde(borrow)]
    sink: Option<std::borrow::Cow<'a, str>>,
    reason: Option<&'a str>,
    resource: Option<&'a str>,
    #[serde(borrow)]
    subscriber: Option<std::borrow::Cow<'a, str>>,
    used: Option<u64>,
    capacity: Option<u64>,
    count: Option<u64>,
    microseconds: Option<i64>,
}

impl Line<'_> {
    fn block(&self) -> Option<PortBlock> {
        let (first, last) = (self.first_port?, self.last_port?);
        let size = last.checked_sub(first)?.checked_add(1).filter(|size| size.is_power_of_two())?;
        Some(PortBlock {
            translator: self.translator.as_deref()?.into(),
            subscriber: inside_endpoint::side(self.subscriber.as_deref()?)?.0,
            address: self.outside?.parse().ok()?,
            first,
            size,
        })
    }
}

impl Record {
    /// Appends its line, with the line feed.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = write!(out, "{{\"time\":\"{}\",\"event\":\"{}\"", time_text(self.micros), self.event.name());
        match &self.event {
            Event::Binding(_, binding) => {
                binding.write_json(out);
                let kind = if binding.is_static { "static" } else { "dynamic" };
                let _ = write!(out, ",\"kind\":\"{kind}\"");
            }
            Event::Session(_, binding, remote) => {
                binding.write_json(out);
                if let Some(remote) = remote {
                    let _ = write!(out, ",\"remote\":\"{remote}\"");
                }
            }
            Event::Portless(_, session) => {
                for (name, value, is_number) in session.fields() {
                    let value = if is_number { value } else { quoted(&value) };
                    let _ = write!(out, ",\"{name}\":{value}");
                }
            }
            Event::Block(_, block) => {
                let PortBlock { translator, address, first, .. } = block;
                let (translator, who, last) = (quoted(translator), block.who(), block.last());
                let _ = write!(
                    out,
                    ",\"translator\":{translator},\"subscriber\":\"{who}\",\"outside\":\"{address}\",\"first_port\":{first},\"last_port\":{last}"
                );
            }
            Event::Mapping(mapping) => {
                let _ = write!(out, ",\"translator\":{}", quoted(&mapping.translator));
                mapping.write_json(out);
            }
            Event::Started | Event::Stopped => {}
            Event::Lost(count, sink) => {
                let _ = write!(out, ",\"count\":{count},\"sink\":{}", quoted(sink));
            }
            Event::Stepped(by) => {
                let _ = write!(out, ",\"microseconds\":{by}");
            }
            Event::Limit(reason, packets) => {
                let _ = write!(out, ",\"reason\":{},\"count\":{packets}", quoted(reason));
            }
            Event::Notice(notice) => notice.write_json(out),
        }
        out.extend_from_slice(b"}\n");
    }

    /// The time of a line of which this is the beginning; `None`: it is not one of ours.
    pub(super) fn time_of_beginning(octets: &[u8]) -> Option<u64> {
        let rest = octets.strip_prefix(b"{\"time\":\"")?;
        let end = rest.iter().take(LONGEST_TIME).position(|octet| *octet == b'"')?;
        time_of(std::str::from_utf8(rest.get(..end)?).ok()?)
    }

    /// The record of a line; `None`: it is not one.
    pub(super) fn read_json(octets: &[u8]) -> Option<Self> {
        let line: Line<'_> = serde_json::from_slice(octets).ok()?;
        let binding = || {
            Some(Binding {
                translator: line.translator.as_deref()?.into(),
                protocol: protocol(line.protocol?)?,
                softwire: match line.softwire {
                    Some(text) => Some(text.parse().ok()?),
                    None => None,
                },
                inside: inside_endpoint::endpoint(line.inside?)?,
                outside: endpoint4(line.outside?)?,
                is_static: line.kind == Some("static"),
            })
        };
        let event = match (line.event, line.event.split_once('_')?.0) {
            ("log_started", _) => Event::Started,
            ("log_stopped", _) => Event::Stopped,
            ("events_lost", _) => Event::Lost(line.count?, line.sink.as_deref()?.into()),
            ("clock_stepped", _) => Event::Stepped(line.microseconds?),
            ("limit_reached", _) => Event::Limit(line.reason?.into(), line.count?),
            ("port_mapping", _) => {
                Event::Mapping(PortMapping::read_json(line.translator.as_deref()?, octets)?)
            }
            (name, "block") => Event::Block(Event::phase(name)?, line.block()?),
            ("alarm_raised" | "alarm_cleared", _) => Event::Notice(Notice::Alarm(AlarmNotice {
                is_raised: line.event == "alarm_raised",
                translator: line.translator.as_deref()?.into(),
                resource: line.resource?.into(),
                used: line.used?,
                capacity: line.capacity?,
            })),
            ("subscriber_refused", _) => Event::Notice(Notice::Subscriber {
                translator: line.translator.as_deref()?.into(),
                subscriber: line.subscriber.as_deref()?.into(),
                refused: line.count?,
            }),
            (name, "lease") => {
                let outside = line.outside?;
                let ipv4 =
                    outside.parse().ok().or_else(|| Some(Prefix4::holding(outside.parse().ok()?, 32)))?;
                let (concentrator, host) = (line.translator.as_deref()?.into(), line.subscriber.as_deref()?);
                let host = host.parse().ok()?;
                let phase = Event::phase(name)?;
                Event::Notice(Notice::Lease(LeaseNotice { phase, concentrator, ipv4, host }))
            }
            (name, "binding") => Event::Binding(Event::phase(name)?, binding()?),
            (name, "session") => {
                let remote = match line.remote {
                    Some(text) => Some(endpoint4(text)?),
                    None => None,
                };
                Event::Session(Event::phase(name)?, binding()?, remote)
            }
            (name, "portless") => {
                let whose = (line.translator.as_deref()?, line.protocol?);
                let session = Portless::read(whose, (line.inside?, line.outside?), line.remote, line.id)?;
                Event::Portless(Event::phase(name)?, session)
            }
            (_, _) => return None,
        };
        Some(Self { micros: time_of(line.time)?, event })
    }
}

impl Binding {
    /// Its owner, in words: the inside endpoint, and the B4 that it is behind.
    pub(super) fn who(&self) -> String {
        let inside = inside_endpoint::text(self.inside);
        match self.softwire {
            Some(softwire) => format!("{inside} behind {softwire}"),
            None => inside,
        }
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        let Self { translator, protocol, softwire, inside, outside, .. } = self;
        let (translator, inside) = (quoted(translator), inside_endpoint::text(*inside));
        let protocol = protocol.name();
        let _ = write!(
            out,
            ",\"translator\":{translator},\"protocol\":\"{protocol}\",\"inside\":\"{inside}\",\"outside\":\"{outside}\""
        );
        if let Some(softwire) = softwire {
            let _ = write!(out, ",\"softwire\":\"{softwire}\"");
        }
    }
}

/// As a string of JSON.
fn quoted(text: &str) -> String {
    // A string has no reason to fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// The protocol of this name.
pub(super) fn protocol(name: &str) -> Option<NatProtocol> {
    NatProtocol::ALL.into_iter().find(|protocol| protocol.name() == name)
}

/// An IPv4 address and a port.
pub(super) fn endpoint4(text: &str) -> Option<Endpoint4> {
    let socket: SocketAddrV4 = text.parse().ok()?;
    Some(Endpoint4::new(*socket.ip(), socket.port()))
}

/// The present time.
pub fn now_text() -> String {
    humantime::format_rfc3339_micros(SystemTime::now()).to_string()
}

/// A time as RFC 3339 writes it, in UTC.
pub(super) fn time_text(micros: u64) -> String {
    humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + Duration::from_micros(micros)).to_string()
}

/// The time of such a text, with as many digits of the second as it has, or without seconds.
pub(super) fn time_of(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let seconds = match text.split(['T', ' ']).nth(1).map(|clock| clock.split(':').count()) {
        Some(2) => ":00",
        _ => "",
    };
    let time = humantime::parse_rfc3339_weak(&format!("{text}{seconds}Z")).ok()?;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}

/// A time as a person writes it.
///
/// # Errors
/// It is not one.
pub(super) fn time_as_written(at: &str) -> Result<u64, String> {
    time_of(at).ok_or_else(|| format!("--at {at}: not a time in UTC; write one such as 2026-11-20T12:00:00Z"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A binding of a host, by numbers.
    pub(in crate::event_log) fn binding(inside: &str, outside: &str) -> Binding {
        Binding {
            translator: "nat64".into(),
            protocol: NatProtocol::Udp,
            softwire: None,
            inside: inside_endpoint::endpoint(inside).unwrap(),
            outside: endpoint4(outside).unwrap(),
            is_static: false,
        }
    }

    /// A session of ESP.
    pub(in crate::event_log) fn portless(id: Option<u32>) -> Portless {
        let remote = Some("203.0.113.9");
        Portless::read(("nat44", "esp"), ("10.0.0.1", "192.0.2.1"), remote, id).unwrap()
    }

    /// A block of 512 ports.
    pub(in crate::event_log) fn block(subscriber: &str, address: &str, first: u16) -> PortBlock {
        let (subscriber, _) = inside_endpoint::side(subscriber).unwrap();
        PortBlock {
            translator: "nat64".into(),
            subscriber,
            address: address.parse().unwrap(),
            first,
            size: 512,
        }
    }

    /// Of 256 hosts of IPv4 to the pool 192.0.2.0/28.
    pub(in crate::event_log) fn mapping(deterministic: bool) -> PortMapping {
        PortMapping {
            translator: "nat44".into(),
            block_size: 512,
            bits: 128,
            inside: vec![inside_endpoint::side("10.0.0.0/24").unwrap().0],
            pool: vec!["192.0.2.0/28".parse().unwrap()],
            ports: vec![1_024..=32_767, 40_000..=65_535],
            deterministic,
            is_cut: false,
        }
    }

    fn lease(phase: Phase, ipv4: &str) -> LeaseNotice {
        let host = "2001:db8:99:b::1".parse().unwrap();
        LeaseNotice { phase, concentrator: "hub".into(), ipv4: ipv4.parse().unwrap(), host }
    }

    #[test]
    fn the_time_of_a_long_line_is_known_from_its_beginning() {
        let record = Record { micros: 1_763_640_000_123_456, event: Event::Mapping(mapping(true)) };
        let text = line(&record);
        assert_eq!(Record::time_of_beginning(&text.as_bytes()[..60]), Some(record.micros));
        for octets in [&text.as_bytes()[..20], b"", b"{\"time\":\"noon\"", b"{\"event\":\"log_started\"}"] {
            assert_eq!(Record::time_of_beginning(octets), None);
        }
    }

    #[test]
    fn a_line_about_a_block_has_its_subscriber_and_its_ports() {
        let event = Event::Block(Phase::Created, block("10.0.0.1/32", "192.0.2.1", 1_536));
        assert_eq!(
            line(&Record { micros: 1_763_640_000_000_001, event }),
            concat!(
                r#"{"time":"2025-11-20T12:00:00.000001Z","event":"block_allocated","translator":"nat64","subscriber":"10.0.0.1","#,
                r#""outside":"192.0.2.1","first_port":1536,"last_port":2047}"#,
                "\n"
            )
        );
    }

    fn line(record: &Record) -> String {
        let mut out = Vec::new();
        record.write_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_record_is_a_line_of_json_and_the_line_is_the_record() {
        let host = binding("[2001:db8:1::2]:50122", "192.0.2.1:4711");
        let of_ipv4 = Binding { is_static: true, ..binding("192.168.1.2:80", "192.0.2.1:80") };
        let behind_b4 = Binding {
            softwire: Some("2001:db8:1::b4".parse().unwrap()),
            ..binding("10.0.0.5:1000", "192.0.2.1:4000")
        };
        let odd = Binding { translator: "the \"first\" one".into(), ..host.clone() };
        let remote = endpoint4("203.0.113.9:443");
        let events = [
            Event::Binding(Phase::Created, host.clone()),
            Event::Binding(Phase::Deleted, of_ipv4),
            Event::Binding(Phase::Continues, odd),
            Event::Binding(Phase::Created, behind_b4.clone()),
            Event::Session(Phase::Created, behind_b4, remote),
            Event::Session(Phase::Created, host.clone(), remote),
            Event::Session(Phase::Deleted, host, None),
            Event::Portless(Phase::Created, portless(Some(258))),
            Event::Portless(Phase::Deleted, Portless { remote: None, ..portless(None) }),
            Event::Started,
            Event::Stopped,
            Event::Lost(7, "udp://192.0.2.5:514".into()),
            Event::Stepped(-3_600_000_000),
            Event::Limit("PortPoolEmpty".into(), 9),
            Event::Block(Phase::Created, block("2001:db8:1::/64", "192.0.2.1", 1_024)),
            Event::Block(Phase::Deleted, block("10.0.0.1/32", "192.0.2.1", 65_024)),
            Event::Block(Phase::Continues, block("10.0.0.0/24", "192.0.2.1", 65_024)),
            Event::Mapping(mapping(false)),
            Event::Notice(Notice::Alarm(AlarmNotice {
                is_raised: true,
                translator: "nat44".into(),
                resource: "udp_ports".into(),
                used: 800,
                capacity: 1_000,
            })),
            Event::Notice(Notice::Alarm(AlarmNotice {
                is_raised: false,
                translator: "the \"first\" one".into(),
                resource: "sessions".into(),
                used: 7,
                capacity: 10,
            })),
            Event::Notice(Notice::Subscriber {
                translator: "nat64".into(),
                subscriber: "2001:db8:1:2::/64".into(),
                refused: 12,
            }),
            Event::Notice(Notice::Lease(lease(Phase::Created, "192.0.2.1/32"))),
            Event::Notice(Notice::Lease(lease(Phase::Deleted, "192.0.2.8/29"))),
            Event::Notice(Notice::Lease(lease(Phase::Continues, "192.0.2.1/32"))),
        ];
        for event in events {
            let record = Record { micros: 1_763_640_000_123_456, event };
            let text = line(&record);
            assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
            assert_eq!(Record::read_json(text.as_bytes()), Some(record), "{text}");
            for length in 0..text.len() - 2 {
                assert_eq!(Record::read_json(&text.as_bytes()[..length]), None);
            }
        }
    }

    #[test]
    fn a_line_has_what_a_court_asks_for() {
        let event = Event::Binding(Phase::Created, binding("[2001:db8:1::2]:50122", "192.0.2.1:4711"));
        assert_eq!(
            line(&Record { micros: 1_763_640_000_000_001, event }),
            concat!(
                r#"{"time":"2025-11-20T12:00:00.000001Z","event":"binding_created","translator":"nat64","protocol":"udp","#,
                r#""inside":"[2001:db8:1::2]:50122","outside":"192.0.2.1:4711","kind":"dynamic"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_line_of_a_protocol_without_ports_has_addresses_and_its_number_in_place_of_ports() {
        let event = Event::Portless(Phase::Created, portless(Some(258)));
        assert_eq!(
            line(&Record { micros: 1_763_640_000_000_001, event }),
            concat!(
                r#"{"time":"2025-11-20T12:00:00.000001Z","event":"portless_created","translator":"nat44","protocol":"esp","#,
                r#""inside":"10.0.0.1","outside":"192.0.2.1","remote":"203.0.113.9","id":258}"#,
                "\n"
            )
        );
    }

    #[test]
    fn times_are_read_with_and_without_seconds() {
        let noon = Some(1_763_640_000_000_000);
        for text in
            ["2025-11-20T12:00:00Z", "2025-11-20T12:00Z", "2025-11-20 12:00", "2025-11-20T12:00:00.000000Z"]
        {
            assert_eq!(time_of(text), noon, "{text}");
        }
        assert_eq!(time_of("2025-11-20T12:00:00.5Z"), Some(1_763_640_000_500_000));
        for text in ["", "12:00", "2025-11-20", "noon", "2025-11-20T12:00:00+01:00"] {
            assert_eq!(time_of(text), None, "{text}");
        }
    }
}
