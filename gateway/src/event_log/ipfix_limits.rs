//! Records of IPFIX about resources that are exhausted, or nearly (RFC 8158 §4.6.5 to §4.6.8).
//!
//! A pool has the number of its translator, from 1 on, in the order of the configuration; 0: it is not known which one. So has the network that a
//! subscriber is in (ingressVRFID): realms may have subscribers of the same address.

use super::ipfix_template::Template;
use super::notice::{AlarmNotice, Notice};
use super::quota::Quota;
use super::record::{Event, Record};
use crate::inside_endpoint;
use sixway_dataplane::DropReason;
use sixway_wire::protocol;

/// RFC 8158 §4.3: the values of natEvent.
const ADDRESSES_EXHAUSTED: u8 = 3;
const QUOTA_EXCEEDED: u8 = 13;
const THRESHOLD_REACHED: u8 = 18;
/// RFC 8158 §4.4: those of natQuotaExceededEvent.
const MAX_SESSIONS: u32 = 1;
const MAX_BINDINGS: u32 = 2;
const MAX_OF_USER: u32 = 3;
/// RFC 8158 §4.5: those of natThresholdEvent.
const POOL_LOW: u32 = 2;
const PORTS_HIGH: u32 = 3;

/// The record of an event; `None`: RFC 8158 has none for it.
pub(super) fn data(record: &Record, quotas: &[Quota]) -> Option<(Template, Vec<u8>)> {
    let mut octets = (record.micros / 1_000).to_be_bytes().to_vec();
    let template = match &record.event {
        Event::Limit(reason, _) => limit(reason, quotas, &mut octets)?,
        Event::Notice(Notice::Alarm(alarm)) => of_alarm(alarm, quotas, &mut octets)?,
        Event::Notice(Notice::Subscriber { translator, subscriber, .. }) => {
            let (number, most) =
                quota(quotas, translator).map_or((0, 0), |(number, quota)| (number, quota.of_subscriber));
            octets.push(QUOTA_EXCEEDED);
            octets.extend(MAX_OF_USER.to_be_bytes());
            octets.extend(most.to_be_bytes());
            let address = inside_endpoint::side(subscriber)?.0.address();
            let template = match address.to_ipv4_mapped() {
                Some(address) => {
                    octets.extend(address.octets());
                    Template::UserExceeded44
                }
                None => {
                    octets.extend(address.octets());
                    Template::UserExceeded64
                }
            };
            // Realms may have subscribers of the same address.
            octets.extend(number.to_be_bytes());
            template
        }
        Event::Notice(Notice::Lease(_))
        | Event::Binding(..)
        | Event::Session(..)
        | Event::Portless(..)
        | Event::Block(..)
        | Event::Mapping(_)
        | Event::Started
        | Event::Stopped
        | Event::Lost(..)
        | Event::Stepped(_) => return None,
    };
    Some((template, octets))
}

/// The translator's number, and its limits.
fn quota<'q>(quotas: &'q [Quota], translator: &str) -> Option<(u32, &'q Quota)> {
    (1..).zip(quotas).find(|(_, quota)| *quota.translator == *translator)
}

/// Packets were dropped because something is exhausted. The limit is that of all translators together: the event does not say which one it was.
fn limit(reason: &str, quotas: &[Quota], octets: &mut Vec<u8>) -> Option<Template> {
    let is = |wanted: DropReason| reason == wanted.name();
    if is(DropReason::PortPoolEmpty) {
        octets.push(ADDRESSES_EXHAUSTED);
        octets.extend(u32::from(quotas.len() == 1).to_be_bytes());
        return Some(Template::AddressesExhausted);
    }
    let is_of_sessions = is(DropReason::SessionTableFull) || is(DropReason::OutsideSessionsFull);
    let (event, of, template): (_, fn(&Quota) -> u32, _) = match is_of_sessions {
        true => (MAX_SESSIONS, |quota| quota.sessions, Template::SessionsExceeded),
        false if is(DropReason::BindingTableFull) => {
            (MAX_BINDINGS, |quota| quota.bindings, Template::BindingsExceeded)
        }
        false => return None,
    };
    octets.push(QUOTA_EXCEEDED);
    octets.extend(event.to_be_bytes());
    octets.extend(quotas.iter().map(of).fold(0, u32::saturating_add).to_be_bytes());
    Some(template)
}

/// An alarm of the ports of a pool: RFC 8158 has no others.
fn of_alarm(alarm: &AlarmNotice, quotas: &[Quota], octets: &mut Vec<u8>) -> Option<Template> {
    let protocol = match &*alarm.resource {
        "tcp_ports" => protocol::TCP,
        "udp_ports" => protocol::UDP,
        "icmp_identifiers" => protocol::ICMPV4,
        _ => return None,
    };
    let (number, (high, low)) =
        quota(quotas, &alarm.translator).map_or((0, (0, 0)), |(number, quota)| (number, quota.alarm));
    let part = |percentage: u8| {
        u32::try_from(alarm.capacity.saturating_mul(percentage.into()) / 100).unwrap_or(u32::MAX)
    };
    octets.push(THRESHOLD_REACHED);
    if alarm.is_raised {
        octets.extend(PORTS_HIGH.to_be_bytes());
        octets.extend(part(high).to_be_bytes());
        octets.push(protocol);
        return Some(Template::PortsHigh);
    }
    octets.extend(POOL_LOW.to_be_bytes());
    octets.extend(number.to_be_bytes());
    octets.extend(part(low).to_be_bytes());
    Some(Template::PoolLow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas() -> [Quota; 2] {
        let of = |name: &str, sessions, of_subscriber| Quota {
            translator: name.into(),
            sessions,
            bindings: 7,
            of_subscriber,
            alarm: (80, 70),
        };
        [of("nat64", 100, 0), of("nat44", 200, 50)]
    }

    /// What follows the time.
    fn octets(event: Event, quotas: &[Quota]) -> Option<Vec<u8>> {
        let (_, octets) = data(&Record { micros: 1_763_640_000_123_456, event }, quotas)?;
        assert_eq!(octets[..8], 1_763_640_000_123_u64.to_be_bytes());
        Some(octets[8..].to_vec())
    }

    #[test]
    fn what_is_used_up_has_the_records_of_rfc_8158() {
        let of = |reason: DropReason, quotas: &[Quota]| octets(Event::Limit(reason.name().into(), 9), quotas);
        let all = quotas();
        assert_eq!(of(DropReason::PortPoolEmpty, &all), Some(vec![3, 0, 0, 0, 0]), "of two pools");
        assert_eq!(of(DropReason::PortPoolEmpty, &all[..1]), Some(vec![3, 0, 0, 0, 1]));
        for reason in [DropReason::SessionTableFull, DropReason::OutsideSessionsFull] {
            assert_eq!(of(reason, &all), Some(vec![13, 0, 0, 0, 1, 0, 0, 1, 44]));
        }
        assert_eq!(of(DropReason::BindingTableFull, &all), Some(vec![13, 0, 0, 0, 2, 0, 0, 0, 14]));
        for reason in [DropReason::SubscriberLimit, DropReason::FragmentMemory, DropReason::NoBinding] {
            assert_eq!(of(reason, &all), None, "{reason:?}");
        }
        let refused = |translator: &str, subscriber: &str| {
            let (translator, subscriber) = (translator.into(), subscriber.into());
            octets(Event::Notice(Notice::Subscriber { translator, subscriber, refused: 3 }), &all)
        };
        let of_user = vec![13, 0, 0, 0, 3, 0, 0, 0, 50, 10, 0, 1, 0, 0, 0, 0, 2];
        assert_eq!(refused("nat44", "10.0.1.0/24"), Some(of_user));
        let of_user = refused("nat64", "2001:db8::/64").unwrap();
        assert_eq!((of_user.len(), &of_user[..11]), (29, &[13, 0, 0, 0, 3, 0, 0, 0, 0, 32, 1][..]));
        assert_eq!(of_user[25..], [0, 0, 0, 1]);
        assert_eq!(refused("gone", "10.0.0.1").unwrap()[5..9], [0; 4]);
    }

    #[test]
    fn an_alarm_of_ports_is_a_threshold_and_others_have_no_record() {
        let of = |is_raised, translator: &str, resource: &str| {
            let (translator, resource) = (translator.into(), resource.into());
            let alarm = AlarmNotice { is_raised, translator, resource, used: 850, capacity: 1_000 };
            octets(Event::Notice(Notice::Alarm(alarm)), &quotas())
        };
        for (resource, protocol) in [("tcp_ports", 6), ("udp_ports", 17), ("icmp_identifiers", 1)] {
            assert_eq!(of(true, "nat44", resource), Some(vec![18, 0, 0, 0, 3, 0, 0, 3, 32, protocol]));
            assert_eq!(of(false, "nat44", resource), Some(vec![18, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 2, 188]));
        }
        assert_eq!(of(true, "nat44", "sessions"), None);
        assert_eq!(of(false, "gone", "tcp_ports"), Some(vec![18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]));
    }
}
