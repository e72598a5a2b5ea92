//! Any packets in any order. The engine never panics, gives every frame its verdict and accounts for it; what it sends is a packet
//! that fits its link, with a right checksum where what came in had one; all of it is the same whatever the size of the batches; and in
//! the end nothing is left behind.
//!
//! ```text
//!   input:   choice (1) · packets                         the choice is read by `gateway.rs`
//!   packet:  length (2) · what (1) · octets
//!   what:    time before it, 2^n ms; n = 0: none, it is of the packet's batch before it (4 bits)
//!            checksums are made right first, of a tunnel packet the inner one's (1) · GSO packet: 0 no, 1 TCP, 2 TCP with ECN, 3 UDP (2) · checksum unfinished (1)
//! ```

#[path = "checksum.rs"]
mod checksum;
#[path = "gateway.rs"]
mod gateway;

use checksum::State;
use gateway::{Choice, LIMITS};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::fragment::GsoPacket;
use sixway_dataplane::parse::{self, Addresses, Packet, Transport};
use sixway_dataplane::{
    Checksum, Counters, DropReason, Frame, Instant, Offload, Outbox, SegmentKind, Segments, Verdict,
};
use sixway_wire::protocol;
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// Whether packets may come out of tunnels.
    static WITH_TUNNELS: Cell<bool> = const { Cell::new(false) };
}

pub fn run(octets: &[u8]) {
    let [choice, packets @ ..] = octets else { return };
    let choice = Choice(*choice);
    WITH_TUNNELS.set(choice.tunnels());
    let mut one_by_one = Gateway::new(choice);
    let mut in_batches = Gateway::new(choice);
    // Where the outbox runs full depends on when it is emptied, and whom a hand-over meets on when that comes.
    let comparable = choice.workers() == 1 && choice.outbox() > 64;
    let mut now = Instant::from_secs(1);
    for batch in batches(packets) {
        now = now + batch.after;
        // A packet without octets also changes the addresses of the tunnels.
        if batch.inputs.first().is_some_and(|input| input.octets.is_empty()) {
            one_by_one.moves();
            in_batches.moves();
        }
        for input in &batch.inputs {
            one_by_one.receives(input, now);
        }
        one_by_one.ticks(now);
        if comparable {
            in_batches.receives_at_once(&batch.inputs, now);
            in_batches.ticks(now);
            // Who is joined to whom depends on who comes together; what is on the wire then does not.
            if !choice.join() {
                assert_eq!(
                    one_by_one.verdicts, in_batches.verdicts,
                    "verdicts depend on the size of the batch"
                );
                let (alone, together) = (one_by_one.counters(), in_batches.counters());
                assert_eq!(alone, together, "counters depend on the size of the batch");
            }
            one_by_one.sent.sort();
            in_batches.sent.sort();
            assert_eq!(one_by_one.sent, in_batches.sent, "octets depend on the size of the batch");
        }
        one_by_one.forget();
        in_batches.forget();
    }
    one_by_one.ends(now);
}

/// A packet as a link hands it in.
struct Input {
    octets: Vec<u8>,
    offload: Offload,
}

/// Packets that arrive together.
struct Batch {
    after: Duration,
    inputs: Vec<Input>,
}

fn batches(mut rest: &[u8]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    while let [high, low, what, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (octets, behind) = more.split_at(length);
        rest = behind;
        let input = Input::new(octets, *what);
        match (what >> 4, batches.last_mut()) {
            (0, Some(batch)) => batch.inputs.push(input),
            (time, _) => batches.push(Batch { after: Duration::from_millis(1 << time), inputs: vec![input] }),
        }
    }
    batches
}

impl Input {
    fn new(octets: &[u8], what: u8) -> Self {
        let mut octets = octets.to_vec();
        // A link finishes the checksums of all but TCP and UDP by itself.
        let may_wait = |packet: Packet| matches!(packet.protocol, protocol::TCP | protocol::UDP);
        let finished = what & 1 == 0 || !innermost(&octets).is_some_and(|(_, packet)| may_wait(packet));
        let size = (octets.len() / 4 + 1) as u16;
        let kind = match what >> 1 & 3 {
            0 => None,
            1 => Some(SegmentKind::Tcp),
            2 => Some(SegmentKind::TcpEcn),
            _ => Some(SegmentKind::Udp),
        };
        if what & 8 != 0 {
            checksum::seal_header(&mut octets);
            if let Some((at, packet)) = innermost(&octets) {
                checksum::seal_transport(&mut octets[at..], &packet, finished);
            }
        }
        let checksum = if finished { Checksum::Complete } else { Checksum::Partial };
        let segments = kind.map(|kind| Segments { size, kind });
        Self { octets, offload: Offload { checksum, segments, ..Offload::default() } }
    }

    fn frame(&self) -> Frame {
        let mut frame = Frame::with_capacity(self.octets.len() + 1_500);
        frame.fill(&self.octets, self.offload);
        frame
    }

    /// Whether the checksum is what the offload state says.
    fn is_right(&self) -> bool {
        innermost(&self.octets).is_some_and(|(at, packet)| match self.offload.checksum {
            Checksum::Complete => {
                matches!(checksum::complete(&self.octets[at..], &packet), State::Right | State::Absent)
            }
            Checksum::Partial => {
                matches!(packet.protocol, protocol::TCP | protocol::UDP)
                    && checksum::partial(&self.octets[at..], &packet) == State::Right
            }
        })
    }
}

/// Where the packet begins whose transport header an offload describes, and the packet: of a tunnel packet the one inside.
fn innermost(octets: &[u8]) -> Option<(usize, Packet)> {
    let packet = parse::parse(octets).ok()?;
    let is_tunnel = matches!(packet.addresses, Addresses::V4 { .. }) && packet.protocol == protocol::IPV6;
    let at = usize::from(packet.transport_at);
    let inner = octets.get(at..packet.length as usize).filter(|_| is_tunnel && packet.fragment.is_none());
    match inner.map(parse::parse) {
        Some(Ok(inner)) if matches!(inner.addresses, Addresses::V6 { .. }) => Some((at, inner)),
        Some(_) | None => Some((0, packet)),
    }
}

/// One or two workers' engines, and what they did with a batch.
struct Gateway {
    choice: Choice,
    moved: bool,
    engines: Vec<Engine>,
    outbox: Outbox,
    arrived: usize,
    verdicts: Vec<Verdict>,
    sent: Vec<Vec<u8>>,
}

impl Gateway {
    fn new(choice: Choice) -> Self {
        Self {
            choice,
            moved: false,
            engines: (0..choice.workers()).map(|worker| choice.engine(worker)).collect(),
            outbox: Outbox::new(choice.outbox()),
            arrived: 0,
            verdicts: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// One packet, by itself, at either worker's queue.
    fn receives(&mut self, input: &Input, now: Instant) {
        let mut frame = input.frame();
        let mut worker = self.arrived % self.engines.len();
        self.arrived += 1;
        self.engines[worker].process(std::slice::from_mut(&mut frame), now, &mut self.outbox);
        for (_, other) in self.engines.iter_mut().enumerate().filter(|(number, _)| *number != worker) {
            other.learn_path_error(&input.octets, now);
        }
        let mut rounds = 0;
        while let Verdict::HandOver(to) = frame.verdict {
            assert_ne!(usize::from(to.0), worker, "handed over to itself");
            rounds += 1;
            assert!(rounds < 4, "handed over without end");
            if self.arrived % 5 == 4 {
                self.engines[worker].refused_handover(&mut frame);
                break;
            }
            worker = usize::from(to.0);
            self.engines[worker].take_over(std::slice::from_mut(&mut frame), now, &mut self.outbox);
        }
        self.verdicts.push(frame.verdict);
        self.judge(input, &frame);
        self.collect();
    }

    /// A batch in one go.
    fn receives_at_once(&mut self, inputs: &[Input], now: Instant) {
        let mut frames: Vec<Frame> = inputs.iter().map(Input::frame).collect();
        self.engines[0].process(&mut frames, now, &mut self.outbox);
        for frame in &frames {
            self.verdicts.push(frame.verdict);
            if frame.verdict.leaves() {
                self.sends(frame);
            }
        }
        self.collect();
    }

    /// The tunnels end elsewhere from now on, while fragments of their packets may be held.
    fn moves(&mut self) {
        if self.choice.tunnels() {
            self.moved = !self.moved;
            let ends = self.choice.ends(self.moved);
            self.engines.iter_mut().for_each(|engine| engine.set_tunnels(&ends, &[], &[]));
        }
    }

    /// What joining may have made one of is separated again.
    fn sends(&mut self, frame: &Frame) {
        if self.choice.join() {
            self.sent.extend(on_the_wire(frame));
        } else {
            self.sent.push(frame.bytes().to_vec());
        }
    }

    fn ticks(&mut self, now: Instant) {
        for engine in &mut self.engines {
            engine.tick(now, &mut self.outbox);
        }
        self.outbox.frames().iter().for_each(well_made);
        self.collect();
    }

    fn judge(&mut self, input: &Input, frame: &Frame) {
        match frame.verdict {
            Verdict::Pending => panic!("no verdict on {frame:?}"),
            Verdict::Forward | Verdict::Answered => {
                fits(frame);
                assert!(
                    !input.is_right() || checksum_of(frame) != State::Wrong,
                    "{:02x?} became {frame:?}",
                    input.octets
                );
                self.sends(frame);
            }
            Verdict::InPieces => {
                for whole in wholes(self.outbox.frames()) {
                    let (at, packet) = innermost(&whole).unwrap();
                    let state = checksum::complete(&whole[at..], &packet);
                    assert!(
                        !input.is_right() || state != State::Wrong,
                        "{:02x?} became {whole:02x?}",
                        input.octets
                    );
                }
            }
            Verdict::Dropped(_) => {
                assert!(self.outbox.len() <= 1, "more than one ICMP error about one packet");
                for frame in self.outbox.frames() {
                    assert!(matches!(fits(frame).transport, Transport::IcmpError { .. }), "{frame:?}");
                    well_made(frame);
                }
            }
            Verdict::Punted | Verdict::Control | Verdict::Held | Verdict::Absorbed | Verdict::Merged => {}
            Verdict::HandOver(_) => panic!("handed over to nobody"),
        }
    }

    fn collect(&mut self) {
        for at in 0..self.outbox.len() {
            let frame = &self.outbox.frames()[at];
            fits(frame);
            let sent = if self.choice.join() { on_the_wire(frame) } else { vec![frame.bytes().to_vec()] };
            self.sent.extend(sent);
        }
        self.outbox.clear();
        let counters = self.counters();
        assert!(counters.frames_are_conserved(), "{counters:?}");
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.engines.iter().for_each(|engine| sum.add(engine.counters()));
        sum
    }

    fn forget(&mut self) {
        self.verdicts.clear();
        self.sent.clear();
    }

    /// After hours of silence nothing is held and no session lives.
    fn ends(&mut self, mut now: Instant) {
        for _ in 0..64 {
            now = now + Duration::from_secs(600);
            self.ticks(now);
            self.forget();
        }
        let counters = self.counters();
        assert_eq!(counters.held, 0, "frames are held for ever");
        assert_eq!(counters.sessions_made, counters.sessions_ended, "sessions live for ever");
        assert_eq!(counters.bindings_made, counters.bindings_ended, "bindings live for ever");
        assert_eq!(counters.dropped[DropReason::NoHeadroom as usize], 0, "a frame had no room to grow");
    }
}

/// What leaves is a packet of its own length, no larger than its link takes, a GSO packet by segments.
fn fits(frame: &Frame) -> Packet {
    let Ok(packet) = parse::parse(frame.bytes()) else { panic!("what leaves is no packet: {frame:?}") };
    assert_eq!(packet.length as usize, frame.len(), "octets behind the packet leave: {frame:?}");
    let mtu = usize::from(if frame.bytes()[0] >> 4 == 4 { LIMITS.mtu4 } else { LIMITS.mtu6 });
    let at = usize::from(packet.transport_at);
    let largest = match frame.offload.segments {
        None => frame.len(),
        Some(segments) => {
            let header = match (segments.kind, packet.protocol) {
                (SegmentKind::Tcp | SegmentKind::TcpEcn, protocol::TCP) => {
                    usize::from(frame.bytes()[at + 12] >> 4) * 4
                }
                (SegmentKind::Udp, protocol::UDP) => 8,
                // The link lied, which no kernel does; it is refused there.
                (SegmentKind::Tcp | SegmentKind::TcpEcn | SegmentKind::Udp, _) => return packet,
            };
            frame.len().min(at + header + usize::from(segments.size))
        }
    };
    // What comes out of tunnels is the kernel's to route, whatever its size.
    let is_judged = frame.bytes()[0] >> 4 == 4 || !WITH_TUNNELS.get();
    assert!(!is_judged || largest <= mtu, "{largest} octets leave over an MTU of {mtu}: {frame:?}");
    if frame.offload.checksum == Checksum::Partial {
        assert_eq!(
            usize::from(frame.offload.transport),
            at,
            "the link would finish the checksum elsewhere: {frame:?}"
        );
    }
    packet
}

fn checksum_of(frame: &Frame) -> State {
    let Some((at, packet)) = innermost(frame.bytes()) else { return State::Unknown };
    match frame.offload.checksum {
        Checksum::Complete => checksum::complete(&frame.bytes()[at..], &packet),
        Checksum::Partial => checksum::partial(&frame.bytes()[at..], &packet),
    }
}

/// What the gateway makes by itself has a right checksum.
fn well_made(frame: &Frame) {
    let packet = fits(frame);
    if matches!(packet.transport, Transport::IcmpError { .. } | Transport::IcmpQuery { .. }) {
        assert_eq!(checksum_of(frame), State::Right, "{frame:?}");
    }
}

/// The packets that pieces are of: segments as they are, and fragments put together.
fn wholes(pieces: &[Frame]) -> Vec<Vec<u8>> {
    let starts_one = |piece: &Frame| fits(piece).fragment.is_none_or(|fragment| fragment.offset == 0);
    let mut wholes = Vec::new();
    let mut rest = pieces;
    while let [first, behind @ ..] = rest {
        let length = 1 + behind.iter().take_while(|piece| !starts_one(piece)).count();
        let (these, others) = rest.split_at(length);
        let is_segment = fits(first).fragment.is_none();
        wholes.push(if is_segment { first.bytes().to_vec() } else { joined(these) });
        rest = others;
    }
    wholes
}

/// A frame as it is on the wire: a GSO packet's segments, their checksums finished.
fn on_the_wire(frame: &Frame) -> Vec<Vec<u8>> {
    let cut = |segments| {
        let super_frame = GsoPacket::read(frame.bytes(), segments).ok()?;
        let each = (0..super_frame.count()).map(|number| {
            let mut octets = vec![0; super_frame.length(number)];
            super_frame.write(number, &mut octets).ok().map(|_| octets)
        });
        each.collect()
    };
    if let Some(segments) = frame.offload.segments.and_then(cut) {
        return segments;
    }
    let mut octets = frame.bytes().to_vec();
    if let Some((at, packet)) = innermost(&octets).filter(|_| frame.offload.checksum == Checksum::Partial) {
        checksum::seal_transport(&mut octets[at..], &packet, true);
    }
    vec![octets]
}

/// Fragments, in order, as the packet they came from.
fn joined(pieces: &[Frame]) -> Vec<u8> {
    let mut whole: Vec<u8> = Vec::new();
    let mut expected = 0;
    for piece in pieces {
        let packet = fits(piece);
        let fragment = packet.fragment.unwrap_or_else(|| panic!("a piece that is no fragment: {piece:?}"));
        if whole.is_empty() {
            let header =
                if packet.fragment_header == 0 { packet.transport_at } else { packet.fragment_header };
            whole.extend(&piece.bytes()[..usize::from(header)]);
            expected = usize::from(fragment.offset);
        }
        assert_eq!(usize::from(fragment.offset), expected, "a gap between pieces");
        let data = &piece.bytes()[usize::from(packet.transport_at)..];
        expected += data.len();
        whole.extend(data);
        as_whole(&mut whole, &packet);
    }
    whole
}

/// Writes lengths into a header without fragment fields.
fn as_whole(whole: &mut [u8], packet: &Packet) {
    match packet.addresses {
        Addresses::V4 { .. } => {
            let length = whole.len() as u16;
            whole[2..4].copy_from_slice(&length.to_be_bytes());
            whole[6..8].fill(0);
            checksum::seal_header(whole);
        }
        Addresses::V6 { .. } => {
            let length = (whole.len() - 40) as u16;
            whole[4..6].copy_from_slice(&length.to_be_bytes());
            whole[6] = packet.protocol;
        }
    }
}
