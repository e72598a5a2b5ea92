//! Messages of IPFIX (RFC 7011) with the templates of RFC 8158 §4.6.
//!
//! ```text
//!     version 10 (2)  length (2)  export time (4)  sequence number (4)  observation domain (4)
//!     set: template 2, or the template's number (2)  length (2)  records …
//! ```

use super::encode::Encode;
use super::ipfix_limits;
use super::ipfix_template::Template;
use super::notice::{LeaseNotice, Notice};
use super::port_block::PortBlock;
use super::portless::Portless;
use super::quota::Quota;
use super::record::{Binding, Event, Phase, Record};
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::protocol;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// RFC 7011 §3.1.
const VERSION: u16 = 10;
const MESSAGE_HEADER: usize = 16;
const SET_HEADER: usize = 4;
/// RFC 7011 §3.3.2: the Set ID of templates.
const TEMPLATES: u16 = 2;
/// Seconds after which templates are sent again over UDP (RFC 7011 §8.4).
const TEMPLATE_SECONDS: u64 = 60;
/// RFC 7011 §10.3.3: without knowledge of the path MTU, a packet should have at most 512 octets. What is left of it for sets, before the
/// last record: without the headers of IPv6 and UDP, that of the message, and a set of one record.
const MOST_OCTETS: usize = 512 - 48 - MESSAGE_HEADER - LONGEST_SET;
/// A NAT64 session.
const LONGEST_SET: usize = SET_HEADER + 40;
/// The same over TCP, where the length of a message is the limit.
const MOST_OCTETS_OF_A_STREAM: usize = 16_000;

/// Writes messages of one observation domain.
pub(super) struct Ipfix {
    domain: u32,
    /// Records sent (RFC 7011 §3.1), without templates.
    sequence: u32,
    /// Whether templates are repeated.
    repeats: bool,
    /// When they were sent last: seconds since 1970.
    told: u64,
    /// The set that the message ends with: its template, and where it begins.
    open: Option<(Template, usize)>,
    /// Of the translators, in their order.
    quotas: Arc<[Quota]>,
}

impl Ipfix {
    /// `repeats`: for UDP, where a template may be lost.
    pub(super) fn new(domain: u32, repeats: bool, quotas: Arc<[Quota]>) -> Self {
        Self { domain, sequence: 0, repeats, told: 0, open: None, quotas }
    }

    /// RFC 8158 §4.3: the record of an event; `None`: RFC 8158 has none for it.
    fn data(&self, record: &Record) -> Option<(Template, Vec<u8>)> {
        data(record).or_else(|| ipfix_limits::data(record, &self.quotas))
    }

    /// A message with the templates.
    fn templates(&self, seconds: u64) -> Vec<u8> {
        let mut set = Vec::new();
        for template in Template::ALL {
            set.extend((template as u16).to_be_bytes());
            set.extend((template.elements().len() as u16).to_be_bytes());
            for (number, octets) in template.elements() {
                set.extend(number.to_be_bytes());
                set.extend(octets.to_be_bytes());
            }
        }
        let mut body = TEMPLATES.to_be_bytes().to_vec();
        body.extend(((set.len() + SET_HEADER) as u16).to_be_bytes());
        body.extend(set);
        self.message(&body, seconds)
    }

    fn message(&self, body: &[u8], seconds: u64) -> Vec<u8> {
        let mut message = VERSION.to_be_bytes().to_vec();
        message.extend(((body.len() + MESSAGE_HEADER) as u16).to_be_bytes());
        message.extend((seconds as u32).to_be_bytes());
        message.extend(self.sequence.to_be_bytes());
        message.extend(self.domain.to_be_bytes());
        message.extend_from_slice(body);
        message
    }
}

impl Encode for Ipfix {
    fn connected(&mut self, now: u64) -> Vec<Vec<u8>> {
        // A stream is a new transport session (RFC 7011 §10.4.2.1), whose numbers begin again.
        if !self.repeats {
            self.sequence = 0;
        }
        self.told = now;
        vec![self.templates(now)]
    }

    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        let Some((template, octets)) = self.data(record) else { return };
        let start = match self.open {
            Some((open, start)) if open == template && !out.is_empty() => start,
            Some(_) | None => {
                let start = out.len();
                out.extend((template as u16).to_be_bytes());
                out.extend([0; 2]);
                start
            }
        };
        self.open = Some((template, start));
        out.extend(octets);
        let length = ((out.len() - start) as u16).to_be_bytes();
        if let Some(field) = out.get_mut(start + 2..start + SET_HEADER) {
            field.copy_from_slice(&length);
        }
    }

    fn is_joined(&self) -> bool {
        true
    }

    fn is_full(&self, out: &[u8]) -> bool {
        out.len() > if self.repeats { MOST_OCTETS } else { MOST_OCTETS_OF_A_STREAM }
    }

    fn carries(&self, record: &Record) -> bool {
        self.data(record).is_some()
    }

    fn finish(&mut self, records: usize, now: u64, out: Vec<u8>) -> Vec<Vec<u8>> {
        self.open = None;
        let mut messages = Vec::new();
        if self.repeats && now >= self.told + TEMPLATE_SECONDS {
            self.told = now;
            messages.push(self.templates(now));
        }
        if !out.is_empty() {
            messages.push(self.message(&out, now));
        }
        // RFC 7011 §3.1: the number of records before this message.
        self.sequence = self.sequence.wrapping_add(records as u32);
        messages
    }

    fn not_sent(&mut self, records: usize) {
        self.sequence = self.sequence.wrapping_sub(records as u32);
    }
}

/// The record of what begins or ends.
fn data(record: &Record) -> Option<(Template, Vec<u8>)> {
    let (phase, binding, remote) = match &record.event {
        Event::Binding(phase, binding) => (*phase, binding, None),
        Event::Session(phase, binding, remote) => (*phase, binding, Some(*remote)),
        Event::Portless(phase, session) => {
            return Some((Template::Nat44Session, portless_data(record.micros, *phase, session)?));
        }
        Event::Block(phase, block) => return data_of_block(record.micros, *phase, block),
        Event::Notice(Notice::Lease(lease)) => return data_of_lease(record.micros, lease),
        Event::Mapping(_)
        | Event::Started
        | Event::Stopped
        | Event::Lost(..)
        | Event::Stepped(_)
        | Event::Limit(..)
        | Event::Notice(Notice::Alarm(_) | Notice::Subscriber { .. }) => return None,
    };
    let inside4 = binding.inside.address.to_ipv4_mapped();
    // Behind a softwire it is a NAT44, whose record has the B4's address too.
    let (event, template): (u8, _) = match (remote, inside4, binding.softwire) {
        (None, Some(_), None) => (8, Template::Nat44Binding),
        (None, Some(_), Some(_)) => (8, Template::DsLiteBinding),
        (None, None, _) => (10, Template::Nat64Binding),
        (Some(_), Some(_), None) => (4, Template::Nat44Session),
        (Some(_), Some(_), Some(_)) => (4, Template::DsLiteSession),
        (Some(_), None, _) => (6, Template::Nat64Session),
    };
    let is_end = match phase {
        Phase::Created => 0,
        Phase::Deleted => 1,
        Phase::Continues => return None,
    };
    let mut octets = (record.micros / 1_000).to_be_bytes().to_vec();
    octets.extend([event + is_end, number(binding, inside4.is_some())]);
    match inside4 {
        Some(address) => {
            octets.extend(binding.softwire.iter().flat_map(Ipv6Addr::octets));
            octets.extend(address.octets());
        }
        None => octets.extend(binding.inside.address.octets()),
    }
    octets.extend(binding.inside.port.to_be_bytes());
    octets.extend(binding.outside.address.octets());
    octets.extend(binding.outside.port.to_be_bytes());
    if let Some(remote) = remote {
        // Without destinations, they are zero: the template is the same.
        octets.extend(remote.map_or([0; 4], |remote| remote.address.octets()));
        octets.extend(remote.map_or(0, |remote| remote.port).to_be_bytes());
    }
    Some((template, octets))
}

/// The record of a protocol without ports: a NAT44 session whose ports are zero.
fn portless_data(micros: u64, phase: Phase, session: &Portless) -> Option<Vec<u8>> {
    let event = match phase {
        Phase::Created => 4,
        Phase::Deleted => 5,
        Phase::Continues => return None,
    };
    let mut octets = (micros / 1_000).to_be_bytes().to_vec();
    octets.extend([event, session.protocol.number()]);
    let remote = session.remote.unwrap_or(Ipv4Addr::UNSPECIFIED);
    for address in [session.inside, session.outside, remote] {
        octets.extend(address.octets());
        octets.extend([0; 2]);
    }
    Some(octets)
}

/// RFC 8158 §4.6.9: the record of a lease, which binds a whole address to a host. Prefixes are static: they neither begin nor end.
fn data_of_lease(micros: u64, lease: &LeaseNotice) -> Option<(Template, Vec<u8>)> {
    let event = match lease.phase {
        Phase::Created => 14,
        Phase::Deleted => 15,
        Phase::Continues => return None,
    };
    let mut octets = (micros / 1_000).to_be_bytes().to_vec();
    octets.push(event);
    octets.extend(lease.host.octets());
    octets.extend(lease.ipv4.address().octets());
    Some((Template::Nat64Address, octets))
}

/// RFC 8158 §4.6.10: the record of a port block. The subscriber is the first address of its prefix.
fn data_of_block(micros: u64, phase: Phase, block: &PortBlock) -> Option<(Template, Vec<u8>)> {
    let event = match phase {
        Phase::Created => 16,
        Phase::Deleted => 17,
        Phase::Continues => return None,
    };
    let mut octets = (micros / 1_000).to_be_bytes().to_vec();
    octets.push(event);
    let template = match block.subscriber.address().to_ipv4_mapped() {
        Some(address) => {
            octets.extend(address.octets());
            Template::Nat44Block
        }
        None => {
            octets.extend(block.subscriber.address().octets());
            Template::Nat64Block
        }
    };
    octets.extend(block.address.octets());
    octets.extend(block.first.to_be_bytes());
    octets.extend(block.last().to_be_bytes());
    Some((template, octets))
}

/// The protocol of the inside packets.
const fn number(binding: &Binding, is_ipv4: bool) -> u8 {
    match (binding.protocol, is_ipv4) {
        (NatProtocol::Tcp, _) => protocol::TCP,
        (NatProtocol::Udp, _) => protocol::UDP,
        (NatProtocol::Icmp, true) => protocol::ICMPV4,
        (NatProtocol::Icmp, false) => protocol::ICMPV6,
    }
}

#[cfg(test)]
mod tests {
    use super::super::notice::{AlarmNotice, LeaseNotice, Notice};
    use super::super::record::endpoint4;
    use super::super::record::tests::{binding, block};
    use super::*;

    #[test]
    fn a_port_block_has_the_record_of_rfc_8158() {
        let given = |phase| record(Event::Block(phase, block("10.0.0.1/32", "192.0.2.1", 1_536)));
        let (template, octets) = data(&given(Phase::Created)).unwrap();
        assert_eq!(template, Template::Nat44Block);
        assert_eq!(octets[8..], [16, 10, 0, 0, 1, 192, 0, 2, 1, 6, 0, 7, 255]);
        assert_eq!(data(&given(Phase::Deleted)).unwrap().1[8], 17);
        assert_eq!(data(&given(Phase::Continues)), None);
    }

    fn lease() -> LeaseNotice {
        let host = "2001:db8:99:b::1".parse().unwrap();
        LeaseNotice::begun("hub".into(), "192.0.2.7/32".parse().unwrap(), host)
    }

    #[test]
    fn a_lease_has_the_record_of_rfc_8158() {
        let of = |phase| data(&record(Event::Notice(Notice::Lease(LeaseNotice { phase, ..lease() }))));
        let (template, octets) = of(Phase::Created).unwrap();
        assert_eq!(template, Template::Nat64Address);
        let host = [32, 1, 13, 184, 0, 153, 0, 11, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(octets[8..], [&[14][..], &host, &[192, 0, 2, 7]].concat());
        assert_eq!(of(Phase::Deleted).unwrap().1[8], 15);
        assert_eq!(of(Phase::Continues), None);
    }

    fn record(event: Event) -> Record {
        Record { micros: 1_763_640_000_123_456, event }
    }

    #[test]
    fn templates_describe_the_records() {
        let of = |inside| binding(inside, "192.0.2.1:7");
        let limit = |reason: &str| Event::Limit(reason.into(), 9);
        let alarm = |is_raised| {
            let (translator, resource) = ("nat44".into(), "tcp_ports".into());
            Event::Notice(Notice::Alarm(AlarmNotice {
                is_raised,
                translator,
                resource,
                used: 8,
                capacity: 10,
            }))
        };
        let refused = |subscriber: &str| {
            let (translator, subscriber) = ("nat44".into(), subscriber.into());
            Event::Notice(Notice::Subscriber { translator, subscriber, refused: 3 })
        };
        let behind_b4 = || Binding { softwire: "2001:db8:1::b4".parse().ok(), ..of("10.0.0.1:5") };
        let block = |subscriber| Event::Block(Phase::Created, block(subscriber, "192.0.2.1", 1_024));
        let session = |inside| Event::Session(Phase::Created, of(inside), endpoint4("203.0.113.1:53"));
        let ipfix = Ipfix::new(1, true, [].into());
        for template in Template::ALL {
            let event = match template {
                Template::Nat44Binding => Event::Binding(Phase::Created, of("10.0.0.1:5")),
                Template::Nat64Binding => Event::Binding(Phase::Created, of("[2001:db8::1]:5")),
                Template::DsLiteBinding => Event::Binding(Phase::Created, behind_b4()),
                Template::DsLiteSession => {
                    Event::Session(Phase::Created, behind_b4(), endpoint4("203.0.113.1:53"))
                }
                Template::Nat44Session => session("10.0.0.1:5"),
                Template::Nat64Session => session("[2001:db8::1]:5"),
                Template::Nat44Block => block("10.0.0.1/32"),
                Template::Nat64Block => block("2001:db8::/64"),
                Template::AddressesExhausted => limit("PortPoolEmpty"),
                Template::SessionsExceeded => limit("SessionTableFull"),
                Template::BindingsExceeded => limit("BindingTableFull"),
                Template::UserExceeded44 => refused("10.0.0.1"),
                Template::UserExceeded64 => refused("2001:db8::/64"),
                Template::PortsHigh => alarm(true),
                Template::PoolLow => alarm(false),
                Template::Nat64Address => Event::Notice(Notice::Lease(lease())),
            };
            let (used, octets) = ipfix.data(&record(event)).unwrap();
            assert_eq!(used, template);
            let length: u16 = template.elements().iter().map(|(_, octets)| octets).sum();
            assert_eq!(octets.len(), usize::from(length), "{template:?}");
        }
    }

    #[test]
    fn a_session_without_ports_is_one_of_nat44_with_ports_of_zero() {
        let of =
            |phase| data(&record(Event::Portless(phase, super::super::record::tests::portless(Some(1)))));
        let (template, octets) = of(Phase::Created).unwrap();
        let length: u16 = template.elements().iter().map(|(_, octets)| octets).sum();
        assert_eq!((template, octets.len()), (Template::Nat44Session, usize::from(length)));
        assert_eq!(octets[8..], [4, 50, 10, 0, 0, 1, 0, 0, 192, 0, 2, 1, 0, 0, 203, 0, 113, 9, 0, 0]);
        assert_eq!(of(Phase::Deleted).unwrap().1[8..10], [5, 50]);
        assert_eq!(of(Phase::Continues), None);
    }

    #[test]
    fn a_message_is_that_of_rfc_7011() {
        let mut ipfix = Ipfix::new(9, true, [].into());
        let [templates] = &ipfix.connected(1_000)[..] else { panic!() };
        assert_eq!(templates[..2], [0, 10]);
        assert_eq!(usize::from(u16::from_be_bytes([templates[2], templates[3]])), templates.len());
        assert_eq!(templates[4..16], [0, 0, 3, 232, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(templates[16..18], [0, 2]);
        let mut out = Vec::new();
        let created = |inside| record(Event::Binding(Phase::Created, binding(inside, "192.0.2.1:7")));
        for inside in ["10.0.0.1:5", "10.0.0.1:6", "[2001:db8::1]:5"] {
            ipfix.encode(&created(inside), &mut out);
        }
        let [message] = &ipfix.finish(3, 1_001, out)[..] else { panic!() };
        assert_eq!(usize::from(u16::from_be_bytes([message[2], message[3]])), message.len());
        assert_eq!(message[8..12], [0; 4], "no record before these");
        // One set of two records of 22 octets, one of one of 34.
        assert_eq!(message[16..20], [1, 0, 0, 4 + 2 * 22]);
        assert_eq!(message[20..28], 1_763_640_000_123_u64.to_be_bytes());
        assert_eq!(message[28..42], [8, 17, 10, 0, 0, 1, 0, 5, 192, 0, 2, 1, 0, 7]);
        assert_eq!(message[64..68], [1, 1, 0, 4 + 34]);
        assert_eq!(message[76], 10);
        let mut out = Vec::new();
        ipfix.encode(&created("10.0.0.1:5"), &mut out);
        let again = ipfix.finish(1, 1_060, out);
        assert_eq!((again.len(), &again[1][8..12]), (2, &[0, 0, 0, 3][..]), "the templates come again");
        ipfix.not_sent(1);
        assert_eq!(ipfix.connected(2_000)[0][8..12], [0, 0, 0, 3]);
        let mut stream = Ipfix { sequence: 5, ..Ipfix::new(9, false, [].into()) };
        assert_eq!(stream.connected(2_000)[0][8..12], [0; 4]);
    }

    #[test]
    fn a_message_is_not_longer_than_a_packet() {
        let mut ipfix = Ipfix::new(1, true, [].into());
        let mut out = Vec::new();
        // Each record has a set of its own.
        for inside in ["10.0.0.1:5", "[2001:db8::1]:5"].into_iter().cycle() {
            let remote = endpoint4("203.0.113.1:53");
            ipfix.encode(
                &record(Event::Session(Phase::Created, binding(inside, "192.0.2.1:7"), remote)),
                &mut out,
            );
            if ipfix.is_full(&out) {
                break;
            }
        }
        let message = ipfix.finish(1, 1_000, out).pop().unwrap();
        let packet = 40 + 8 + message.len();
        assert!((512 - LONGEST_SET..=512).contains(&packet), "{packet}");
    }

    #[test]
    fn events_have_their_numbers_and_others_are_left_out() {
        let number = |event| data(&record(event)).map(|(_, octets)| octets[8]);
        let (v4, v6) = (binding("10.0.0.1:5", "192.0.2.1:7"), binding("[2001:db8::1]:5", "192.0.2.1:7"));
        let numbers: Vec<_> = [Phase::Created, Phase::Deleted]
            .into_iter()
            .flat_map(|phase| {
                let (v4, v6) = (v4.clone(), v6.clone());
                [
                    Event::Session(phase, v4.clone(), None),
                    Event::Session(phase, v6.clone(), None),
                    Event::Binding(phase, v4),
                    Event::Binding(phase, v6),
                ]
            })
            .map(number)
            .collect();
        assert_eq!(numbers, [4, 6, 8, 10, 5, 7, 9, 11].map(Some));
        let ipfix = Ipfix::new(1, true, [].into());
        for event in [Event::Started, Event::Lost(1, "a".into()), Event::Binding(Phase::Continues, v4)] {
            assert!(!ipfix.carries(&record(event)));
        }
    }
}
