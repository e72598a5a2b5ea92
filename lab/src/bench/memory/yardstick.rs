//! Three small pieces of work, timed in between the engine's runs: nanoseconds differ from machine to machine, and from hour to hour on a shared
//! one; multiples of what the same machine took at the same time do not.

use super::cpu_time::undisturbed;
use super::packets::{Flow, SIZE, read4, write6};
use crate::bench::{Figure, Section, Target};
use crate::failure::{Failure, Result};
use crate::terminal::median;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Packets that are worked on in turn: few, so that the engine's data stay in the caches.
const PACKETS: usize = 64;
/// How often each is run between two reads of the clock.
const TIMES: u32 = 16;
/// Lines of the memory that is read: 512 MiB, more than any cache.
const LINES: u32 = 1 << 23;
/// Reads of memory between two reads of the clock.
const LOADS: u32 = 128;

/// The pieces of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Checksum and copy of a packet of 64 octets.
    Copy,
    /// One dependent random read from memory.
    MemoryRead,
    /// NAT64 for one flow whose every value is known: no parsing, no tables, no checks.
    Straight,
}

impl Unit {
    const ALL: [Self; 3] = [Self::Copy, Self::MemoryRead, Self::Straight];

    /// What a figure in multiples of it has as its unit.
    const fn multiple(self) -> &'static str {
        match self {
            Self::Copy => "× copy",
            Self::MemoryRead => "× memory read",
            Self::Straight => "× straight NAT64",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy: checksum and copy of 64 octets",
            Self::MemoryRead => "memory read: one dependent random read from 512 MiB",
            Self::Straight => "straight NAT64: one flow, no tables, no checks",
        }
    }
}

/// Nanoseconds of each piece of work, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct YardstickTimes([f64; 3]);

impl YardstickTimes {
    fn of(self, unit: Unit) -> f64 {
        self.0[unit as usize]
    }
}

/// One round of a figure: what a packet took in each part of it, and the yardsticks right after that part.
#[derive(Default)]
pub struct Round {
    spent: Duration,
    packets: usize,
    parts: Vec<(f64, YardstickTimes)>,
}

impl Round {
    /// Notes a part, if any of its packets was counted.
    pub fn push(&mut self, spent: Duration, packets: usize, yardstick: &mut Yardstick) -> Result<()> {
        let moment = yardstick.look()?;
        self.spent += spent;
        self.packets += packets;
        if let (1.., Some(moment)) = (packets, moment) {
            self.parts.push((spent.as_nanos() as f64 / packets as f64, moment));
        }
        Ok(())
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Nanoseconds of a packet.
    pub fn nanoseconds(&self) -> f64 {
        self.spent.as_nanos() as f64 / self.packets.max(1) as f64
    }

    fn multiple(&self, of: Unit) -> f64 {
        median(&self.parts.iter().map(|(took, moment)| took / moment.of(of)).collect::<Vec<_>>())
    }
}

/// A figure's rounds in nanoseconds; with `bound` also as multiples of a piece of work; it is their upper bound.
pub fn figures(name: &str, unit: &'static str, rounds: &[Round], bound: Option<(f64, Unit)>) -> Vec<Figure> {
    let mut figures = vec![Figure::new(name, unit, rounds.iter().map(Round::nanoseconds).collect())];
    figures.extend(bound.map(|(most, of)| {
        let multiples = rounds.iter().map(|round| round.multiple(of)).collect();
        Figure::new(name, of.multiple(), multiples).to_reach(Target::AtMost(most))
    }));
    figures
}

/// A frame with room before the packet.
type Room = [u8; FRONT + SIZE];
/// Octets before the packet, as a frame has them.
const FRONT: usize = 32;

/// A place in memory that names the next one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

/// What is worked on, and what was measured so far.
pub struct Yardstick {
    packet: [u8; SIZE],
    rooms: Vec<Room>,
    lines: Vec<Line>,
    at: u32,
    moments: Vec<YardstickTimes>,
}

impl Yardstick {
    /// Takes its memory.
    pub fn new() -> Result<Self> {
        Self::with_lines(LINES)
    }

    fn with_lines(count: u32) -> Result<Self> {
        let mut packet = [0; SIZE];
        write6(&INSIDE, &mut packet);
        let mut new = Self {
            packet,
            rooms: vec![[0; FRONT + SIZE]; PACKETS],
            lines: circle(count),
            at: 0,
            moments: Vec::new(),
        };
        new.fill();
        new.rooms.iter_mut().for_each(|room| straight(room, &PrecomputedFlow::new()));
        match new.rooms.iter().all(|room| read4(&room[FRONT + 20..]) == Some(OUTSIDE)) {
            true => Ok(new),
            false => Err(Failure::Unexpected("the yardstick's own NAT64 translates wrongly".to_owned())),
        }
    }

    /// Does all of them once; `None` if the kernel preempted this thread.
    pub fn look(&mut self) -> Result<Option<YardstickTimes>> {
        let ((copy, a), (load, b), (straight, c)) = (self.copy()?, self.load()?, self.straight()?);
        let moment = (a && b && c).then_some(YardstickTimes([copy, load, straight]));
        self.moments.extend(moment);
        Ok(moment)
    }

    fn copy(&mut self) -> Result<(f64, bool)> {
        let (rooms, packet) = (&mut self.rooms, &self.packet);
        let mut sum = 0;
        let taken = repeated(|| {
            for room in rooms.iter_mut() {
                sum ^= copied(room, black_box(packet));
            }
        })?;
        black_box(sum);
        Ok(taken)
    }

    fn straight(&mut self) -> Result<(f64, bool)> {
        self.fill();
        let (rooms, known) = (&mut self.rooms, PrecomputedFlow::new());
        repeated(|| {
            for room in rooms.iter_mut() {
                straight(room, black_box(&known));
            }
        })
    }

    fn load(&mut self) -> Result<(f64, bool)> {
        let (lines, mut at) = (&self.lines, self.at);
        let (spent, is_undisturbed) = undisturbed(|| {
            for _ in 0..LOADS {
                at = lines[at as usize].0;
            }
            black_box(at);
        })?;
        self.at = at;
        Ok((spent.as_nanos() as f64 / f64::from(LOADS), is_undisturbed))
    }

    fn fill(&mut self) {
        self.rooms.iter_mut().for_each(|room| room[FRONT..].copy_from_slice(&self.packet));
    }

    /// What they took in the whole run.
    pub fn section(&self) -> Section {
        let figure = |unit: Unit| {
            let took = self.moments.iter().map(|moment| moment.of(unit)).collect();
            Figure::new(unit.name(), "ns", took)
        };
        Section {
            title: "Yardsticks",
            how: "Timed after every fourth run of 256 packets; the targets below are multiples of these."
                .to_owned(),
            figures: Unit::ALL.map(figure).into(),
            skipped: Vec::new(),
        }
    }
}

/// Nanoseconds per packet over all repetitions, and whether this thread kept the CPU.
fn repeated(mut work: impl FnMut()) -> Result<(f64, bool)> {
    let (spent, is_undisturbed) = undisturbed(|| (0..TIMES).for_each(|_| work()))?;
    Ok((spent.as_nanos() as f64 / f64::from(TIMES) / PACKETS as f64, is_undisturbed))
}

/// Lines in one circle, in an order that no prefetcher guesses (Sattolo's shuffle).
fn circle(count: u32) -> Vec<Line> {
    let mut lines: Vec<Line> = (0..count).map(Line).collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for at in (1..lines.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        lines.swap(at, (state % at as u64) as usize);
    }
    lines
}

/// Copies the packet to where a link would have it, and computes its checksum.
#[inline(never)]
fn copied(room: &mut Room, packet: &[u8; SIZE]) -> u16 {
    room[FRONT..].copy_from_slice(packet);
    fold(
        packet
            .chunks_exact(4)
            .map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
            .sum(),
    )
}

fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

const INSIDE: Flow<Ipv6Addr> = Flow {
    source: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
    source_port: 4_000,
    destination: Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xcb00, 0x7102),
    destination_port: 443,
};

const OUTSIDE: Flow<Ipv4Addr> = Flow {
    source: Ipv4Addr::new(198, 18, 0, 1),
    source_port: 50_000,
    destination: Ipv4Addr::new(203, 0, 113, 2),
    destination_port: 443,
};

/// The data about the flow that are known before a packet comes.
struct PrecomputedFlow {
    /// The IPv4 header without length, hop limit and checksum.
    header: [u8; 20],
    /// Its sum.
    sum: u64,
    port: [u8; 2],
    /// What the transport checksum's complement grows by.
    delta: u64,
}

impl PrecomputedFlow {
    fn new() -> Self {
        let words = |octets: &[u8]| -> u64 {
            octets.chunks_exact(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum()
        };
        let mut header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header[12..16].copy_from_slice(&OUTSIDE.source.octets());
        header[16..].copy_from_slice(&OUTSIDE.destination.octets());
        let after = words(&header[12..]) + u64::from(OUTSIDE.source_port);
        let before = [words(&INSIDE.source.octets()), words(&INSIDE.destination.octets())];
        let before = before[0] + before[1] + u64::from(INSIDE.source_port);
        Self {
            header,
            sum: words(&header),
            port: OUTSIDE.source_port.to_be_bytes(),
            delta: after + u64::from(!fold(before)),
        }
    }
}

/// Makes the IPv6 packet an IPv4 packet, in its place.
#[inline(never)]
fn straight(room: &mut Room, known: &PrecomputedFlow) {
    let packet = &mut room[FRONT..];
    let total = u16::from_be_bytes([packet[4], packet[5]]) + 20;
    let hops = packet[7].wrapping_sub(1);
    let mut header = known.header;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[8] = hops;
    let check = !fold(known.sum + u64::from(total) + (u64::from(hops) << 8));
    header[10..12].copy_from_slice(&check.to_be_bytes());
    packet[20..40].copy_from_slice(&header);
    packet[40..42].copy_from_slice(&known.port);
    let check = !fold(u64::from(!u16::from_be_bytes([packet[46], packet[47]])) + known.delta);
    packet[46..48].copy_from_slice(&check.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_nat64_translates_rightly_and_all_of_them_take_time() {
        let mut yardstick = Yardstick::with_lines(1_024).unwrap();
        let moment = (0..100).find_map(|_| yardstick.look().unwrap()).unwrap();
        assert!(Unit::ALL.iter().all(|unit| moment.of(*unit) > 0.0), "{moment:?}");
        assert_eq!(yardstick.section().figures.len(), 3);
    }

    #[test]
    fn the_circle_comes_back_only_when_every_line_was_read() {
        let lines = circle(1_000);
        let mut at = 0;
        let steps = (1..).find(|_| {
            at = lines[at as usize].0;
            at == 0
        });
        assert_eq!(steps, Some(1_000));
    }

    #[test]
    fn a_multiple_is_of_the_yardsticks_of_its_own_moment() {
        let round = Round {
            spent: Duration::from_nanos(56_000),
            packets: 1_000,
            parts: vec![
                (30.0, YardstickTimes([1.0, 100.0, 3.0])),
                (80.0, YardstickTimes([2.0, 200.0, 4.0])),
                (60.0, YardstickTimes([2.0, 50.0, 5.0])),
            ],
        };
        assert_eq!((round.multiple(Unit::Straight), round.multiple(Unit::MemoryRead)), (12.0, 0.4));
        let figures = figures("x", "ns/packet", &[round], Some((12.0, Unit::Straight)));
        assert_eq!((figures[0].median(), figures[0].reached()), (56.0, None));
        assert_eq!((figures[1].median(), figures[1].reached()), (12.0, Some(true)));
        assert_eq!(figures[1].unit, "× straight NAT64");
    }

    #[test]
    fn a_part_that_counted_nothing_is_left_out() {
        let mut yardstick = Yardstick::with_lines(1_024).unwrap();
        let mut round = Round::default();
        round.push(Duration::ZERO, 0, &mut yardstick).unwrap();
        assert!(round.is_empty());
    }
}
