//! Any packets into tunnels, out of them, and any errors about them, in any order. The engine never panics and accounts for every
//! frame; what leaves is a packet that fits its link, with the checksums right that it had or made; and what was joined is, cut again, what
//! would have left without joining.
//!
//! ```text
//!   input:   choice (1) · packets          1: dynamic MTU · 2: normal ECN · 4: no outer fragments · 8: hardly any outbox
//!   packet:  length (2) · what (1) · octets
//!   what:    0 as it is, 1 in an outer header from the other end, 2 an error that quotes it in our outer header, 3 the same and it
//!            is given to another worker's engine (2 bits) · checksums are made right first (1) · GSO packet of 100 octets a segment:
//!            0 no, 1 TCP, 2 UDP (2) · it comes in a batch of its own (1) · ten minutes pass before it (1)
//! ```

#[path = "checksum.rs"]
#[allow(
    clippy::duplicate_mod,
    reason = "a target is a program of its own, and a module of the replay among others"
)]
mod checksum;

use checksum::State;
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::fragment::GsoPacket;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::parse::{self, Addresses};
use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{Checksum, Frame, Instant, Limits, Offload, Outbox, SegmentKind, Segments, Verdict};
use sixway_wire::{IPV4_HEADER, IcmpHeader, Ipv4Header, protocol};
use std::time::Duration;

const LIMITS: Limits = Limits { mtu4: 1_400, mtu6: 1_500 };
const LOCAL: [u8; 4] = [192, 0, 2, 9];
const REMOTE: [u8; 4] = [198, 51, 100, 7];
const ROUTER: [u8; 4] = [203, 0, 113, 1];

pub fn run(octets: &[u8]) {
    let [choice, packets @ ..] = octets else { return };
    let joined = run_with(*choice, packets, true);
    let apart = run_with(*choice, packets, false);
    assert_eq!(joined, apart, "joining changes what is on the wire");
}

/// Everything that leaves, as a wire carries it, sorted: joining lets flows overtake one another.
fn run_with(choice: u8, packets: &[u8], join: bool) -> Vec<Vec<u8>> {
    let mut engine = engine(choice, join);
    let mut outbox = Outbox::new(if choice & 8 != 0 { 3 } else { 4_096 });
    let mut now = Instant::from_secs(1);
    let mut wire = Vec::new();
    for batch in batches(packets) {
        now = now + batch.after;
        for error in &batch.elsewhere {
            engine.learn_path_error(error, now);
        }
        let mut frames: Vec<Frame> = batch.inputs.iter().map(Input::frame).collect();
        engine.process(&mut frames, now, &mut outbox);
        let leaving = frames.iter().filter(|frame| frame.verdict.leaves());
        leaving.for_each(|frame| wire.extend(judged(frame)));
        outbox.frames().iter().for_each(|frame| wire.extend(judged(frame)));
        outbox.clear();
        assert!(frames.iter().all(|frame| frame.verdict != Verdict::Pending));
        assert!(engine.counters().frames_are_conserved(), "{:?}", engine.counters());
        engine.tick(now, &mut outbox);
        outbox.clear();
    }
    for _ in 0..4 {
        now = now + Duration::from_secs(600);
        engine.tick(now, &mut outbox);
        outbox.clear();
    }
    assert_eq!(engine.counters().held, 0, "frames are held for ever");
    wire.sort();
    wire
}

fn engine(choice: u8, join: bool) -> Engine {
    let policy = TunnelPolicy {
        mtu: if choice & 1 != 0 { TunnelMtu::Dynamic } else { TunnelMtu::Static(1_480) },
        ecn: if choice & 2 != 0 { Ecn::Normal } else { Ecn::Compatibility },
        outer_fragments: if choice & 4 != 0 { OuterFragments::Never } else { OuterFragments::Allowed },
        ..TunnelPolicy::default()
    };
    let tunnel = ConfiguredConfig {
        local: LOCAL.into(),
        remote: Some(REMOTE.into()),
        prefixes: vec!["2001:db8:7::/48".parse().unwrap()],
        strict_sources: false,
        policy,
    };
    Engine::new(&EngineConfig {
        own6: Some("2001:db8::fe".parse().unwrap()),
        limits: LIMITS,
        tunnels: vec![TunnelConfig::Configured(tunnel)],
        join,
        ..EngineConfig::default()
    })
    .unwrap()
}

/// A packet as a link hands it in.
struct Input {
    octets: Vec<u8>,
    offload: Offload,
}

/// Packets that arrive together, and errors that another worker's engine got before them.
#[derive(Default)]
struct Batch {
    after: Duration,
    inputs: Vec<Input>,
    elsewhere: Vec<Vec<u8>>,
}

fn batches(mut rest: &[u8]) -> Vec<Batch> {
    let mut batches = vec![Batch::default()];
    while let [high, low, what, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (octets, behind) = more.split_at(length);
        rest = behind;
        if what & 0x60 != 0 {
            let after = Duration::from_secs(if what & 0x40 != 0 { 600 } else { 0 });
            batches.push(Batch { after, ..Batch::default() });
        }
        let Some(batch) = batches.last_mut() else { return batches };
        match what & 3 {
            3 => batch.elsewhere.push(error_about(&sealed(octets, *what))),
            _ => batch.inputs.push(Input::new(octets, *what)),
        }
    }
    batches
}

impl Input {
    fn new(octets: &[u8], what: u8) -> Self {
        let octets = sealed(octets, what);
        let kind = match what >> 3 & 3 {
            1 => Some(SegmentKind::Tcp),
            2 => Some(SegmentKind::Udp),
            _ => None,
        };
        let segments = kind.map(|kind| Segments { size: 100, kind });
        let offload = Offload { segments, ..Offload::default() };
        match what & 3 {
            1 => Self { octets: outer(protocol::IPV6, REMOTE, LOCAL, &octets), offload },
            2 => Self { octets: error_about(&octets), offload: Offload::default() },
            _ => Self { octets, offload },
        }
    }

    fn frame(&self) -> Frame {
        let mut frame = Frame::with_capacity(self.octets.len() + 3_000);
        frame.fill(&self.octets, self.offload);
        frame
    }
}

fn sealed(octets: &[u8], what: u8) -> Vec<u8> {
    let mut octets = octets.to_vec();
    if what & 4 != 0 {
        checksum::seal_header(&mut octets);
        if let Ok(packet) = parse::parse(&octets) {
            checksum::seal_transport(&mut octets, &packet, true);
        }
    }
    octets
}

fn outer(protocol: u8, source: [u8; 4], destination: [u8; 4], inner: &[u8]) -> Vec<u8> {
    let header = Ipv4Header::new(source.into(), destination.into(), protocol, inner.len());
    let header = Ipv4Header { identification: 7, dont_fragment: false, ..header };
    [&header.octets()[..], &inner[..inner.len().min(0xffff - IPV4_HEADER)]].concat()
}

/// The first two octets are type and code, the next two the MTU; the rest is what the tunnel packet carried.
fn error_about(octets: &[u8]) -> Vec<u8> {
    let (head, inner) = octets.split_at(octets.len().min(4));
    let at = |at: usize| head.get(at).copied().unwrap_or_default();
    let quote = outer(protocol::IPV6, LOCAL, REMOTE, inner);
    let quote = &quote[..quote.len().min(548)];
    let mtu = u16::from_be_bytes([at(2), at(3)]);
    let header = IcmpHeader::new(at(0), at(1), mtu.into()).with_checksum4(quote);
    outer(protocol::ICMPV4, ROUTER, LOCAL, &[&header.octets()[..], quote].concat())
}

/// What a wire carries of a frame that leaves: a packet, or a GSO packet's segments.
fn judged(frame: &Frame) -> Vec<Vec<u8>> {
    let Ok(packet) = parse::parse(frame.bytes()) else { panic!("what leaves is no packet: {frame:?}") };
    assert_eq!(packet.length as usize, frame.len(), "octets behind the packet leave: {frame:?}");
    if let Addresses::V4 { .. } = packet.addresses {
        assert_eq!(packet.protocol, protocol::IPV6, "{frame:?}");
        assert!(frame.len() <= usize::from(LIMITS.mtu4), "{frame:?}");
        // Identifications count on, and a packet that leaves in another order has another.
        let mut octets = frame.bytes().to_vec();
        octets[4..6].fill(0);
        octets[10..12].fill(0);
        return vec![octets];
    }
    let Some(segments) = frame.offload.segments else { return vec![frame.bytes().to_vec()] };
    let Ok(cut) = GsoPacket::of(frame.bytes(), &packet, segments) else {
        return vec![frame.bytes().to_vec()]; // the link lied, which no kernel does
    };
    if frame.offload.checksum == Checksum::Partial {
        assert_eq!(checksum::partial(frame.bytes(), &packet), State::Right, "{frame:?}");
    }
    (0..cut.count())
        .map(|number| {
            let mut segment = vec![0; cut.length(number)];
            cut.write(number, &mut segment).unwrap();
            segment
        })
        .collect()
}
