//! Any packets in any order: the engine never panics, every frame is accounted for, and what it sends is a packet that fits its link.
//!
//! The octets are read as a list of packets: two octets of length, one of what happens before, then the packet.

use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::nat::{Filtering, Inside, NatProtocol, Outside, PoolConfig, StaticBinding, Timeouts};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::{Checksum, Frame, Instant, Limits, Offload, Outbox, SegmentKind, Segments, parse};
use sixway_wire::{Endpoint4, Endpoint6};
use std::sync::Arc;
use std::time::Duration;

const LIMITS: Limits = Limits { mtu4: 1_400, mtu6: 1_500 };

pub fn run(octets: &[u8]) {
    let mut engine = Engine::new(&configuration()).unwrap();
    let mut outbox = Outbox::new(64);
    let mut now = Instant::from_secs(1);
    let mut rest = octets;
    while let [high, low, what, more @ ..] = rest {
        let (packet, behind) = more.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(more.len()));
        rest = behind;
        now = now + Duration::from_millis(1 << (what >> 4));
        let mut frame = Frame::with_capacity(packet.len() + 1_500);
        frame.fill(packet, offload(*what, packet.len()));
        engine.process(std::slice::from_mut(&mut frame), now, &mut outbox);
        if frame.verdict.leaves() {
            judge(&frame);
        }
        engine.tick(now, &mut outbox);
        outbox.frames().iter().for_each(judge);
        outbox.clear();
        assert!(engine.counters().frames_are_conserved(), "{:?}", engine.counters());
    }
}

/// The low bits of the octet say what the kernel would have told about the frame.
fn offload(what: u8, length: usize) -> Offload {
    let checksum = if what & 1 == 0 { Checksum::Complete } else { Checksum::Partial };
    let size = (length / 4 + 1) as u16;
    let segments = match what >> 1 & 7 {
        1 => Some(Segments { size, kind: SegmentKind::Tcp }),
        2 => Some(Segments { size, kind: SegmentKind::TcpEcn }),
        3 => Some(Segments { size, kind: SegmentKind::Udp }),
        _ => None,
    };
    Offload { checksum, segments, ..Offload::default() }
}

fn judge(frame: &Frame) {
    let packet = parse::parse(frame.bytes());
    assert!(packet.is_ok(), "what leaves is no packet ({packet:?}): {frame:?}");
    let mtu = if frame.bytes()[0] >> 4 == 4 { LIMITS.mtu4 } else { LIMITS.mtu6 };
    if frame.offload.segments.is_none() {
        assert!(frame.len() <= usize::from(mtu), "{} octets leave over an MTU of {mtu}", frame.len());
    }
}

fn configuration() -> EngineConfig {
    let prefix = |text: &str| Rfc6052::new(text.parse().unwrap(), true).unwrap();
    let rows = [("198.51.100.8/29".parse().unwrap(), "2001:db8:1::/125".parse().unwrap())];
    EngineConfig {
        own4: Some("192.0.2.254".parse().unwrap()),
        own6: Some("2001:db8::fe".parse().unwrap()),
        limits: LIMITS,
        nat64: vec![Nat64Config {
            prefix: prefix("64:ff9b::/96"),
            pool: PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![4_000..=4_063] },
            filtering: Filtering::EndpointIndependent,
            static_bindings: vec![StaticBinding {
                protocol: NatProtocol::Tcp,
                inside: Inside(Endpoint6::new("2001:db8:9::9".parse().unwrap(), 80)),
                outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 4_000)),
            }],
            timeouts: Timeouts::default(),
            max_bindings: 64,
            max_sessions: 64,
            policy: Policy::default(),
        }],
        siit: vec![SiitConfig {
            prefix: Some(prefix("2001:db8:64::/96")),
            eam: Arc::new(EamTable::new(rows).unwrap()),
            icmp_source_pool: vec!["203.0.113.9".parse().unwrap()],
            ..SiitConfig::default()
        }],
        ..EngineConfig::default()
    }
}
