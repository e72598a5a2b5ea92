//! Messages for syslog (RFC 5424).
//!
//! ```text
//!     <134>1 2026-11-20T12:00:00.000001Z gw1 sixway 4711 binding_created [nat@32473 translator="nat64" …] …
//! ```
//!
//! Its structured data has the enterprise number for documentation (RFC 5612): Sixway has none of its own.

use super::encode::Encode;
use super::notice::Notice;
use super::port_block::{Lists, PortBlock, PortMapping, ROOM_OF_MESSAGE};
use super::record::{Binding, Event, Record, time_text};
use crate::config::Facility;
use crate::inside_endpoint;
use std::io::Write as _;

/// RFC 5424 §6.2.1: informational.
const INFORMATIONAL: u8 = 6;
/// Warning, of what is missing or used up.
const WARNING: u8 = 4;
/// RFC 5424 §6.2.4: the longest HOSTNAME.
const LONGEST_HOST: usize = 255;

/// Writes messages of one sender.
pub(super) struct Syslog {
    facility: u8,
    host: String,
    process: u32,
    /// Whether each message is preceded by its length (RFC 6587 §3.4.1).
    counts: bool,
    /// RFC 5424 §7.3.1: sequenceId, from 1 on.
    sequence: u32,
}

impl Syslog {
    /// `host` is this host's name; `counts`: for a stream.
    pub(super) fn new(facility: Facility, host: &str, counts: bool) -> Self {
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '-' };
        let host: String = host.chars().map(plain).take(LONGEST_HOST).collect();
        let host = if host.is_empty() { "-".to_owned() } else { host };
        Self { facility: facility.number(), host, process: std::process::id(), counts, sequence: 0 }
    }

    fn message(&mut self, record: &Record) -> Vec<u8> {
        let severity = match record.event {
            Event::Notice(Notice::Alarm(_) | Notice::Subscriber { .. })
            | Event::Lost(..)
            | Event::Stepped(_)
            | Event::Limit(..) => WARNING,
            Event::Notice(Notice::Lease(_))
            | Event::Binding(..)
            | Event::Session(..)
            | Event::Portless(..)
            | Event::Block(..)
            | Event::Mapping(_)
            | Event::Started
            | Event::Stopped => INFORMATIONAL,
        };
        // RFC 5424 §7.3.1: after the maximum comes 1.
        self.sequence = if self.sequence >= i32::MAX as u32 { 1 } else { self.sequence + 1 };
        let (priority, time, name) =
            (self.facility * 8 + severity, time_text(record.micros), record.event.name());
        let (data, text) = words(&record.event);
        let Self { host, process, sequence, .. } = self;
        format!(
            "<{priority}>1 {time} {host} sixway {process} {name} [nat@32473{data}][meta sequenceId=\"{sequence}\"] {text}"
        )
        .into_bytes()
    }
}

impl Encode for Syslog {
    fn connected(&mut self, _now: u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let message = self.message(record);
        if self.counts {
            // Writing to memory does not fail.
            let _ = write!(out, "{} ", message.len());
        }
        out.extend(message);
    }

    fn is_joined(&self) -> bool {
        self.counts
    }

    fn finish(&mut self, _records: usize, _now: u64, out: Vec<u8>) -> Vec<Vec<u8>> {
        vec![out]
    }
}

/// The parameters of the structured data, and the message for people.
fn words(event: &Event) -> (String, String) {
    match event {
        Event::Binding(_, binding) => {
            let kind = if binding.is_static { "static" } else { "dynamic" };
            let (data, text) = of_binding(binding);
            (format!("{data} kind=\"{kind}\""), text)
        }
        Event::Session(_, binding, remote) => {
            let (data, text) = of_binding(binding);
            match remote {
                Some(remote) => (format!("{data} remote=\"{remote}\""), format!("{text} to {remote}")),
                None => (data, text),
            }
        }
        Event::Portless(_, session) => {
            let of_field =
                |(name, value, _): (&str, String, bool)| format!(" {name}=\"{}\"", escaped(&value));
            (session.fields().map(of_field).collect(), session.to_string())
        }
        Event::Block(_, block) => {
            let PortBlock { translator, address, first, .. } = block;
            let (who, last) = (block.who(), block.last());
            let data = format!(
                " translator=\"{}\" subscriber=\"{who}\" outside=\"{address}\" first_port=\"{first}\" last_port=\"{last}\"",
                escaped(translator)
            );
            (data, format!("{who} as {address}:{first}-{last}"))
        }
        Event::Mapping(mapping) => {
            let PortMapping { translator, block_size, bits, deterministic, .. } = mapping;
            let Lists { inside, pool, ports, is_cut } = mapping.lists(ROOM_OF_MESSAGE);
            let data = format!(
                " translator=\"{}\" block_size=\"{block_size}\" subscriber_prefix_length=\"{bits}\" inside_prefixes=\"{}\" pool=\"{}\" ports=\"{}\" deterministic=\"{deterministic}\"{}",
                escaped(translator),
                inside.join(","),
                pool.join(","),
                ports.join(","),
                if is_cut { " cut=\"true\"" } else { "" }
            );
            (data, format!("{translator} gives blocks of {block_size} ports"))
        }
        Event::Started => (String::new(), "the log begins".into()),
        Event::Stopped => (String::new(), "the log ends".into()),
        Event::Lost(count, sink) => (
            format!(" count=\"{count}\" sink=\"{}\"", escaped(sink)),
            format!("{count} events lost at {sink}"),
        ),
        Event::Stepped(by) => {
            (format!(" microseconds=\"{by}\""), format!("the clock was set by {by} microseconds"))
        }
        Event::Limit(reason, count) => (
            format!(" reason=\"{}\" count=\"{count}\"", escaped(reason)),
            format!("{reason}: {count} packets dropped"),
        ),
        Event::Notice(notice) => notice.syslog(escaped),
    }
}

fn of_binding(binding: &Binding) -> (String, String) {
    let Binding { translator, protocol, inside, outside, .. } = binding;
    let (protocol, inside) = (protocol.name(), inside_endpoint::text(*inside));
    let (translator, escaped) = (escaped(translator), escaped(&inside));
    let softwire = binding.softwire.map(|b4| format!(" softwire=\"{b4}\"")).unwrap_or_default();
    let data = format!(
        " translator=\"{translator}\" protocol=\"{protocol}\" inside=\"{escaped}\" outside=\"{outside}\"{softwire}"
    );
    (data, format!("{protocol} {} as {outside}", binding.who()))
}

/// RFC 5424 §6.3.3: `"`, `\` and `]` are escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '\\' | ']') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::record::Phase;
    use super::super::record::tests::binding;
    use super::*;

    fn said(syslog: &mut Syslog, event: Event) -> String {
        let mut out = Vec::new();
        syslog.encode(&Record { micros: 1_763_640_000_000_001, event }, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_message_has_the_fields_of_rfc_5424() {
        let mut syslog = Syslog { process: 4711, ..Syslog::new(Facility::Local0, "gw1", false) };
        let host = binding("[2001:db8:1::2]:50122", "192.0.2.1:4711");
        assert_eq!(
            said(&mut syslog, Event::Binding(Phase::Created, host.clone())),
            concat!(
                r#"<134>1 2025-11-20T12:00:00.000001Z gw1 sixway 4711 binding_created [nat@32473 translator="nat64" protocol="udp" "#,
                r#"inside="[2001:db8:1::2\]:50122" outside="192.0.2.1:4711" kind="dynamic"][meta sequenceId="1"] "#,
                "udp [2001:db8:1::2]:50122 as 192.0.2.1:4711"
            )
        );
        let behind =
            Binding { softwire: "2001:db8:1::b4".parse().ok(), ..binding("10.0.0.5:7", "192.0.2.1:9") };
        let behind = said(&mut syslog, Event::Binding(Phase::Created, behind));
        assert!(behind.contains(r#"outside="192.0.2.1:9" softwire="2001:db8:1::b4""#), "{behind}");
        assert!(behind.ends_with("udp 10.0.0.5:7 behind 2001:db8:1::b4 as 192.0.2.1:9"), "{behind}");
        let remote = super::super::record::endpoint4("203.0.113.1:53");
        let session = said(&mut syslog, Event::Session(Phase::Deleted, host, remote));
        assert!(
            session.contains(" session_deleted ") && session.contains("remote=\"203.0.113.1:53\""),
            "{session}"
        );
        assert!(
            session.contains("sequenceId=\"3\"") && session.ends_with("as 192.0.2.1:4711 to 203.0.113.1:53")
        );
        let esp = super::super::record::tests::portless(Some(258));
        let esp = said(&mut syslog, Event::Portless(Phase::Deleted, esp));
        let data = r#"[nat@32473 translator="nat44" protocol="esp" inside="10.0.0.1" outside="192.0.2.1" remote="203.0.113.9" id="258"]"#;
        assert!(esp.contains(" portless_deleted ") && esp.contains(data), "{esp}");
        assert!(esp.ends_with("] esp 10.0.0.1 as 192.0.2.1 to 203.0.113.9"), "{esp}");
        let lost = said(&mut syslog, Event::Lost(3, "a \"b\\c]".into()));
        assert!(lost.starts_with("<132>1 ") && lost.contains(r#"sink="a \"b\\c\]""#), "{lost}");
    }

    #[test]
    fn a_message_about_a_mapping_has_its_prefixes_as_far_as_there_is_room() {
        use super::super::record::tests::mapping;
        let mut syslog = Syslog::new(Facility::Local0, "gw1", false);
        let text = said(&mut syslog, Event::Mapping(mapping(true)));
        let data = concat!(
            r#"[nat@32473 translator="nat44" block_size="512" subscriber_prefix_length="128" inside_prefixes="10.0.0.0/24" "#,
            r#"pool="192.0.2.0/28" ports="1024-32767,40000-65535" deterministic="true"]"#
        );
        assert!(text.contains(data), "{text}");
        let prefix = |n: u32| inside_endpoint::side(&format!("10.{}.{}.0/24", n >> 8, n & 255)).unwrap().0;
        let long = PortMapping { inside: (0..2_000).map(prefix).collect(), ..mapping(true) };
        let text = said(&mut syslog, Event::Mapping(long));
        assert!(text.len() < 2_048 && text.contains(r#" cut="true"]"#), "{}: {text}", text.len());
    }

    #[test]
    fn a_stream_has_counted_octets_and_names_are_plain() {
        let mut syslog = Syslog::new(Facility::Daemon, "gw 1\u{e9}", true);
        let text = said(&mut syslog, Event::Started);
        let (count, message) = text.split_once(' ').unwrap();
        assert_eq!(count.parse::<usize>().unwrap(), message.len());
        assert!(message.starts_with("<30>1 ") && message.contains("Z gw-1- sixway "), "{message}");
        syslog.sequence = i32::MAX as u32;
        assert!(said(&mut syslog, Event::Stopped).contains("sequenceId=\"1\""));
        assert!(Syslog::new(Facility::Daemon, "", true).host == "-");
    }
}
