//! Three small pieces of work, timed after each pass of the engine: nanoseconds differ from machine to machine, and from hour to hour on a shared
//! one; multiples of what the same machine took at the same time do not.

use super::machine::undisturbed;
use super::packets::{Flow, SIZE, read4, write6};
use crate::bench::{Figure, Section, Target};
use crate::failure::{Failure, Result};
use crate::report::median;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Packets that are worked on in turn: as many as the largest batch.
const PACKETS: usize = 256;
/// How often each is worked on between two looks at the clock.
const TIMES: u32 = 4;
/// Lines of the memory that is read: 512 MiB, more than any cache.
const LINES: u32 = 1 << 23;
/// Reads between two looks at the clock.
const LOADS: u32 = 128;
/// How often the clock is looked at: the median counts, of those times in which nobody else had the CPU.
const LOOKS: u32 = 64;

/// The pieces of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Checksum and copy of a packet of 64 octets.
    Copy,
    /// One dependent random read from memory.
    Load,
    /// NAT64 for one flow whose every value is known: no parsing, no tables, no checks.
    Straight,
}

impl Unit {
    const ALL: [Self; 3] = [Self::Copy, Self::Load, Self::Straight];

    /// What a figure in multiples of it has as its unit.
    const fn multiple(self) -> &'static str {
        match self {
            Self::Copy => "× copy",
            Self::Load => "× load",
            Self::Straight => "× straight NAT64",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy: checksum and copy of 64 octets",
            Self::Load => "load: one dependent random read from 512 MiB",
            Self::Straight => "straight NAT64: one flow, no tables, no checks",
        }
    }
}

/// Nanoseconds of each piece of work, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment([f64; 3]);

impl Moment {
    fn of(self, unit: Unit) -> f64 {
        self.0[unit as usize]
    }
}

/// One figure's rounds, each with the yardsticks right after it.
#[derive(Default)]
pub struct Rounds(Vec<(f64, Moment)>);

impl Rounds {
    /// Notes what a pass took.
    pub fn push(&mut self, nanoseconds: f64, yardstick: &mut Yardstick) -> Result<()> {
        self.0.push((nanoseconds, yardstick.measure()?));
        Ok(())
    }

    /// Nanoseconds of each round.
    pub fn nanoseconds(&self) -> Vec<f64> {
        self.0.iter().map(|round| round.0).collect()
    }

    /// The figure in nanoseconds, and as multiples of a piece of work; of these there are to be `most` at most.
    pub fn figures(&self, name: &str, unit: &'static str, bound: Option<(f64, Unit)>) -> Vec<Figure> {
        let mut figures = vec![Figure::new(name, unit, self.nanoseconds())];
        figures.extend(bound.map(|(most, of)| {
            let multiples = self.0.iter().map(|(took, moment)| took / moment.of(of)).collect();
            Figure::new(name, of.multiple(), multiples).to_reach(Target::AtMost(most))
        }));
        figures
    }
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
    moments: Vec<Moment>,
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
        new.rooms.iter_mut().for_each(|room| straight(room, &Known::new()));
        match new.rooms.iter().all(|room| read4(&room[FRONT + 20..]) == Some(OUTSIDE)) {
            true => Ok(new),
            false => Err(Failure::Unexpected("the yardstick's own NAT64 translates wrongly".to_owned())),
        }
    }

    /// Measures all of them once.
    pub fn measure(&mut self) -> Result<Moment> {
        let moment = Moment([self.copy()?, self.load()?, self.straight()?]);
        self.moments.push(moment);
        Ok(moment)
    }

    fn copy(&mut self) -> Result<f64> {
        let (rooms, packet) = (&mut self.rooms, &self.packet);
        let mut sum = 0;
        let spent = repeated(|| {
            for room in rooms.iter_mut() {
                sum ^= copied(room, black_box(packet));
            }
        })?;
        black_box(sum);
        Ok(spent)
    }

    fn straight(&mut self) -> Result<f64> {
        self.fill();
        let (rooms, known) = (&mut self.rooms, Known::new());
        repeated(|| {
            for room in rooms.iter_mut() {
                straight(room, black_box(&known));
            }
        })
    }

    fn load(&mut self) -> Result<f64> {
        let (lines, mut at) = (&self.lines, self.at);
        let spent = median_time(|| {
            for _ in 0..LOADS {
                at = lines[at as usize].0;
            }
            black_box(at);
        })?;
        self.at = at;
        Ok(spent / f64::from(LOADS))
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
            how: "Timed after each pass of what is below, whose targets are multiples of them.".to_owned(),
            figures: Unit::ALL.map(figure).into(),
            skipped: Vec::new(),
        }
    }
}

/// Nanoseconds of one packet, when all have been worked on so often.
fn repeated(mut work: impl FnMut()) -> Result<f64> {
    let spent = median_time(|| (0..TIMES).for_each(|_| work()))?;
    Ok(spent / f64::from(TIMES) / PACKETS as f64)
}

/// Nanoseconds of a piece of work.
fn median_time(mut work: impl FnMut()) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        if let (spent, true) = undisturbed(&mut work)? {
            times.push(spent.as_nanos() as f64);
        }
    }
    match times.len() {
        0 => Err(Failure::Unexpected("the CPU is so busy that no yardstick was left alone".to_owned())),
        _ => Ok(median(&times)),
    }
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

/// Copies the packet to where a link would have it, and sums it up on the way.
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

/// All that is known of the flow before a packet comes.
struct Known {
    /// The IPv4 header without length, hop limit and checksum.
    header: [u8; 20],
    /// Its sum.
    sum: u64,
    port: [u8; 2],
    /// What the transport checksum's complement grows by.
    delta: u64,
}

impl Known {
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
fn straight(room: &mut Room, known: &Known) {
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
        let moment = yardstick.measure().unwrap();
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
    fn a_multiple_is_of_the_yardstick_of_its_own_round() {
        let rounds = Rounds(vec![
            (30.0, Moment([1.0, 100.0, 3.0])),
            (80.0, Moment([2.0, 200.0, 4.0])),
            (60.0, Moment([2.0, 50.0, 5.0])),
        ]);
        let figures = rounds.figures("x", "ns/packet", Some((12.0, Unit::Straight)));
        assert_eq!((figures[0].median(), figures[0].reached()), (60.0, None));
        assert_eq!((figures[1].median(), figures[1].reached()), (12.0, Some(true)));
        assert_eq!(figures[1].unit, "× straight NAT64");
        assert_eq!(rounds.figures("x", "ns", Some((0.5, Unit::Load)))[1].repeats, [0.3, 0.4, 1.2]);
        assert_eq!(rounds.figures("x", "ns", None).len(), 1);
    }
}
