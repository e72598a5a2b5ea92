//! A slow model next to the AFTR: who has which outside endpoint, and until when.

use super::*;
use proptest::prelude::*;
use sixway_dataplane::Verdict;
use sixway_dataplane::nat::UDP_DEFAULT;
use sixway_trial::budget;
use std::collections::BTreeMap;
use std::time::Duration;

/// An inside endpoint: B4, host, port.
type Inside = (u8, u8, u16);

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    /// A host behind a B4 sends to a server.
    Out(Inside, u8),
    /// A server sends to the outside endpoint of a host.
    In(Inside, u8),
    /// Seconds pass.
    Time(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let inside = || (0_u8..24, 0_u8..2, 0_u16..3);
    let step = prop_oneof![
        5 => (inside(), 0_u8..2).prop_map(|(inside, server)| Step::Out(inside, server)),
        3 => (inside(), 0_u8..2).prop_map(|(inside, server)| Step::In(inside, server)),
        1 => (1_u16..400).prop_map(Step::Time),
    ];
    prop::collection::vec(step, 1..150)
}

/// Twenty of them are one subscriber's.
fn b4_of(number: u8) -> String {
    if number < 20 { format!("2001:db8:b4:100::{number:x}1") } else { format!("2001:db8:b4:{number}00::1") }
}

fn host_of(number: u8) -> String {
    format!("10.0.0.{}", number + 1)
}

fn server_of(number: u8) -> String {
    format!("203.0.113.{}", number + 1)
}

/// What the AFTR should know.
#[derive(Default)]
struct Model {
    /// Outside endpoints.
    bindings: BTreeMap<Inside, (String, u16)>,
    /// With a server: the second of the last packet, and whether a host inside has sent one.
    sessions: BTreeMap<(Inside, u8), (u64, bool)>,
    second: u64,
}

impl Model {
    /// Sessions end by their lifetime, and a binding with the last one that a host inside has sent a packet of.
    fn expire(&mut self) {
        let (now, lifetime) = (self.second, UDP_DEFAULT.as_secs());
        self.sessions.retain(|_, (last, _)| now < *last + lifetime);
        let sessions = &self.sessions;
        let keeps = |inside: &Inside| sessions.iter().any(|((of, _), (_, is_kept))| of == inside && *is_kept);
        self.bindings.retain(|inside, _| keeps(inside));
        let bindings = &self.bindings;
        self.sessions.retain(|(inside, _), _| bindings.contains_key(inside));
    }

    fn b4s(&self) -> Vec<u8> {
        let mut all: Vec<u8> = self.bindings.keys().map(|(b4, _, _)| *b4).collect();
        all.dedup();
        all
    }

    /// Whether this B4 may have a softwire: there are 16 places for one subscriber.
    fn may_have(&self, b4: u8) -> bool {
        let b4s = self.b4s();
        b4s.contains(&b4) || b4 >= 20 || b4s.iter().filter(|other| **other < 20).count() < 16
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(640)))]

    #[test]
    fn every_packet_goes_where_the_model_says(steps in steps()) {
        let mut gateway = gateway(|aftr| aftr.limits.quarantined_ports = 0);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Time(seconds) => {
                    model.second += u64::from(seconds);
                    gateway.waits(Duration::from_secs(seconds.into()));
                    (0..4).for_each(|_| gateway.waits(Duration::ZERO));
                    model.expire();
                }
                Step::Out(inside @ (b4, host, port), server) => {
                    let packet = v4(&host_of(host), &server_of(server)).udp(5_000 + port, 53, b"data");
                    gateway.receives(up(&b4_of(b4), packet));
                    if !model.may_have(b4) {
                        prop_assert_eq!(gateway.last, Verdict::Dropped(sixway_dataplane::DropReason::SubscriberLimit));
                        while gateway.waiting() > 0 {
                            gateway.sent();
                        }
                        continue;
                    }
                    let outside = source(&gateway.sent());
                    let is_anothers = model.bindings.iter().any(|(of, held)| *of != inside && *held == outside);
                    prop_assert!(!is_anothers, "{:?} is given twice", outside);
                    if let Some(held) = model.bindings.get(&inside) {
                        prop_assert_eq!(held, &outside);
                    }
                    model.bindings.insert(inside, outside);
                    model.sessions.insert((inside, server), (model.second, true));
                }
                Step::In(inside @ (b4, host, port), server) => {
                    let Some((outside, outside_port)) = model.bindings.get(&inside).cloned() else { continue };
                    let session = model.sessions.entry((inside, server)).or_insert((0, false));
                    session.0 = model.second;
                    gateway.receives(v4(&server_of(server), &outside).udp(53, outside_port, b"answer"));
                    let inner = v4(&server_of(server), &host_of(host)).hops(63).udp(53, 5_000 + port, b"answer");
                    let expected = down(&b4_of(b4), inner).octets();
                    prop_assert_eq!(gateway.sent(), expected);
                }
            }
            let softwires = gateway.engine.ds_lite()[0].softwires().len() as usize;
            prop_assert_eq!(softwires, model.b4s().len());
        }
    }
}
