//! Two workers: a packet is processed by the one that has its softwire, whichever receives it.

use super::*;
use crate::support::{icmp4, icmp6};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, StaticBinding, StaticBindingError};
use sixway_dataplane::{Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6};

struct Workers {
    engines: Vec<Engine>,
    now: Instant,
    sent: Vec<Vec<u8>>,
}

fn workers(edit: impl Fn(&mut DsLiteConfig)) -> Workers {
    let engine = |worker| {
        let mut aftr = aftr();
        edit(&mut aftr);
        let config = EngineConfig {
            own4: Some("192.0.2.254".parse().unwrap()),
            worker: WorkerId(worker),
            workers: 2,
            seed: [0x5eed, 0x1ab],
            worker_key: [5, 6],
            others: vec![aftr.into()],
            ..EngineConfig::default()
        };
        Engine::new(&config).unwrap()
    };
    Workers { engines: vec![engine(0), engine(1)], now: Instant::from_secs(1_000), sent: Vec::new() }
}

impl Workers {
    #[track_caller]
    fn receives(&mut self, at: usize, packet: impl Into<Vec<u8>>) {
        let (mut frame, mut out) = (Frame::holding(&packet.into()), Outbox::new(64));
        self.engines[at].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        let mut times = 0;
        while let Verdict::HandOver(worker) = frame.verdict {
            times += 1;
            assert!(times < 4, "it goes in circles: {frame:?}");
            self.engines[usize::from(worker.0)].take_over(
                std::slice::from_mut(&mut frame),
                self.now,
                &mut out,
            );
        }
        if frame.verdict.leaves() {
            self.sent.push(frame.bytes().to_vec());
        }
        self.sent.extend(out.frames().iter().map(|frame| frame.bytes().to_vec()));
        assert!(self.engines.iter().all(|engine| engine.counters().frames_are_conserved()));
    }

    #[track_caller]
    fn sent(&mut self) -> Vec<u8> {
        assert!(!self.sent.is_empty(), "nothing was sent");
        self.sent.remove(0)
    }

    /// A B4 of each worker.
    fn b4s(&mut self) -> [String; 2] {
        let ownership = self.engines[0].ds_lite()[0].ownership();
        let all = |worker| {
            let mut b4s = (1..256).map(|n| format!("2001:db8:b4:{n:x}00::1"));
            b4s.find(|b4| ownership.worker_of_inside(b4.parse().unwrap()) == WorkerId(worker)).unwrap()
        };
        [all(0), all(1)]
    }
}

#[test]
fn both_ways_of_a_session_end_at_the_worker_of_its_b4() {
    for at in [0, 1] {
        let mut workers = workers(|_| {});
        for (owner, b4) in workers.b4s().into_iter().enumerate() {
            workers.receives(at, up(&b4, v4(HOST, SERVER).udp(4_001, 53, b"question")));
            let (outside, port) = source(&workers.sent());
            workers.receives(1 - at, v4(SERVER, &outside).udp(53, port, b"answer"));
            let expected = down(&b4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer"));
            assert_eq!(support::hex(&workers.sent()), support::hex(&expected.octets()));
            assert_eq!(workers.engines[owner].ds_lite()[0].softwires().len(), 1);
        }
    }
}

#[test]
fn all_addresses_of_a_subscriber_belong_to_one_worker() {
    let mut workers = workers(|_| {});
    let ownership = workers.engines[0].ds_lite()[0].ownership();
    let worker = |b4: String| ownership.worker_of_inside(b4.parse().unwrap());
    for n in 0..50 {
        let one = worker(format!("2001:db8:b4:{n:x}00::1"));
        assert_eq!(worker(format!("2001:db8:b4:{n:x}ff:1:2:3:4")), one);
    }
}

#[test]
fn a_hairpin_between_two_workers_softwires_and_the_error_about_it_find_their_ways() {
    let mut workers = workers(|_| {});
    let [one, other] = workers.b4s();
    workers.receives(0, up(&other, v4(HOST, SERVER).udp(4_001, 53, b"")));
    let (door, port) = source(&workers.sent());
    workers.receives(1, up(&one, v4(HOST, &door).udp(4_002, port, b"hello")));
    let sent = workers.sent();
    let (outside, from) = source(&sent[40..]);
    assert_eq!(sent, down(&other, v4(&outside, HOST).hops(63).udp(from, 4_001, b"hello")).octets());
    let arrived = v4(&outside, HOST).hops(63).udp(from, 4_001, b"hello");
    let error = v4(HOST, &outside).icmp(icmp4(3, 3, [0; 4], &arrived.octets()));
    workers.receives(0, up(&other, error));
    let quoted = v4(HOST, &door).hops(63).udp(4_002, port, b"hello");
    let expected = v4(&door, HOST).hops(63).icmp(icmp4(3, 3, [0; 4], &quoted.octets()));
    assert_eq!(support::hex(&workers.sent()), support::hex(&down(&one, expected).octets()));
}

#[test]
fn fragments_of_a_tunnel_packet_and_inside_it_meet_wherever_they_come_in() {
    let mut workers = workers(|_| {});
    for b4 in workers.b4s() {
        let whole = v4(HOST, SERVER).may_fragment().udp(4_001, 53, &[7; 1_000]);
        for (at, (from, to)) in [(0, 800), (800, 1_008)].into_iter().enumerate() {
            let part = whole.clone().fragment(9, from, to < 1_008).part(from.into(), to);
            workers.receives(at, up(&b4, part));
        }
        assert_eq!(workers.sent().len(), 1_028);
        let body = whole.octets();
        for (at, (from, to)) in [(0, 800), (800, body.len())].into_iter().enumerate() {
            let part = v6(&b4, AFTR).protocol(4, &body, None);
            workers.receives(at, part.fragment(7, from as u16, to < body.len()).part(from, to));
        }
        assert_eq!(workers.sent().len(), 1_028);
    }
}

#[test]
fn an_error_about_a_softwire_goes_to_its_worker_whichever_router_sends_it() {
    let mut workers = workers(|_| {});
    for b4 in workers.b4s() {
        for at in [0, 1] {
            workers.receives(at, up(&b4, v4(HOST, SERVER).udp(4_001, 53, b"")));
            let (outside, port) = source(&workers.sent());
            let outer = down(&b4, v4(SERVER, HOST).hops(63).udp(53, 4_001, &[7; 1_372])).octets();
            let mtu = 1_400 - 20 * u32::try_from(at).unwrap();
            let error = icmp6(2, 0, mtu.to_be_bytes(), &outer[..1_200]);
            workers.receives(at, v6("2001:db8:ff::1", AFTR).icmp(error));
            assert_eq!(workers.sent()[20..22], [3, 4]);
            workers.receives(1 - at, v4(SERVER, &outside).udp(53, port, &[7; 1_372]));
            let sent = workers.sent();
            assert_eq!(u32::from(u16::from_be_bytes([sent[26], sent[27]])), mtu - 40);
        }
    }
}

#[test]
fn a_static_binding_is_at_the_worker_of_its_b4_and_others_keep_nothing_of_it() {
    let probe = workers(|_| {}).b4s();
    for (owner, b4) in probe.iter().enumerate() {
        let inside: Ipv4Addr = HOST.parse().unwrap();
        let binding = StaticBinding {
            protocol: NatProtocol::Tcp,
            softwire: b4.parse().ok(),
            inside: Inside(Endpoint6::new(inside.to_ipv6_mapped(), 80)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 80)),
        };
        let mut workers = workers(|aftr| aftr.static_bindings = vec![binding]);
        for at in [0, 1] {
            workers.receives(at, v4(STRANGER, "192.0.2.1").tcp(5_000 + at as u16, 80, SYN, b""));
            let expected = v4(STRANGER, HOST).hops(63).tcp(5_000 + at as u16, 80, SYN, b"");
            assert_eq!(support::hex(&workers.sent()), support::hex(&down(b4, expected).octets()));
        }
        let softwires = [0, 1].map(|at| workers.engines[at].ds_lite()[0].softwires().len());
        assert_eq!(softwires, if owner == 0 { [1, 0] } else { [0, 1] });
    }
}

#[test]
fn a_full_table_of_softwires_at_one_worker_does_not_hinder_static_bindings_of_others() {
    let mut workers = workers(|aftr| aftr.max_softwires = 1);
    let [ours, theirs] = workers.b4s();
    workers.receives(1, up(&theirs, v4(HOST, SERVER).udp(4_001, 53, b"question")));
    let inside: Ipv4Addr = HOST.parse().unwrap();
    let door = |b4: &str| StaticBinding {
        protocol: NatProtocol::Tcp,
        softwire: b4.parse().ok(),
        inside: Inside(Endpoint6::new(inside.to_ipv6_mapped(), 80)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 80)),
    };
    for _ in 0..2 {
        for engine in &mut workers.engines {
            assert_eq!(engine.stateful_at(0).unwrap().0.add_static(&door(&ours)), Ok(()));
        }
        for engine in &mut workers.engines {
            let (translator, counters) = engine.stateful_at(0).unwrap();
            assert_eq!(translator.remove_static(&door(&ours), 100, counters), Some(true));
        }
    }
    // Where it is full, it says so.
    let other = theirs.replace("::1", "::2");
    let refused = workers.engines[1].stateful_at(0).unwrap().0.add_static(&door(&other));
    assert_eq!(refused, Err(StaticBindingError::SoftwireTableFull));
}
