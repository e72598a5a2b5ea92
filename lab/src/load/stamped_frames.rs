//! Frames with a stamp in each, as fast as a driver could bring them or at a rate, and what answers and measures them in the kernel. See
//! `stamped.bpf.c`.

use super::bpf::{attach, attach_with_room, compile_source, first, refused, strange, times};
use super::clock;
use super::live_sender::{BATCH, LiveSender};
use super::outcome::{Gaps, Histogram, LOST_AFTER, Load, Outcome, Pace, ThreadCost, Until};
use super::stamp::Stamp;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::Namespace;
use crate::packet;
use aya::maps::{Array, MapData};
use aya::programs::{TestRun as _, TestRunOptions};
use aya::{Ebpf, EbpfLoader};
use sixway_wire::{Ipv4Header, UdpHeader, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOURCE: &str = include_str!("stamped.bpf.c");

/// Octets of the longest frame.
const LONGEST: usize = 80;
/// Frames of one call then.
const CALL: u32 = 32_768;
/// Frames of which none has come for this time are in no queue any more.
const SETTLED: Duration = Duration::from_millis(300);
/// Flows whose order is measured.
const FLOWS: u32 = 1_024;
/// Packets for which it is known whether they came before.
const KNOWN: u64 = 512 * 512 * 64;

/// Compiles the programs into a folder; where they are then.
///
/// # Errors
/// clang is not installed, or refuses.
pub fn compile_stamped(folder: &Path) -> Result<PathBuf> {
    compile_source(folder, "stamped", SOURCE)
}

/// Where frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEnds {
    /// The link address of the next host.
    pub to: [u8; 6],
    /// The source; flows beyond 1,024 need its last 16 bits to be zero.
    pub source: IpAddr,
    /// The destination, of the same family.
    pub destination: IpAddr,
    /// The destination's port.
    pub port: u16,
    /// Flows, 1,024 at most if their order counts.
    pub flows: u32,
    /// Octets of a frame without its check sequence; 80 at least with IPv6, 64 with IPv4.
    pub octets: usize,
}

impl FrameEnds {
    /// The program that makes the frames, and a whole frame without what differs.
    fn pattern(&self) -> Result<(&'static str, Vec<u8>)> {
        let (program, kind, packet) = match (self.source, self.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ("stamped6", [0x86, 0xdd], self.udp6(source, destination))
            }
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ("stamped4", [8, 0], self.udp4((source, 0), (destination, self.port)))
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
                return Err(Failure::Unexpected("a frame from one family to the other".to_owned()));
            }
        };
        Ok((program, self.ethernet(kind, &packet)))
    }

    pub(super) fn ethernet(&self, kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
        [&self.to[..], &[2, 0, 0, 0, 0, 1], &kind, packet].concat()
    }

    fn udp6(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        packet::udp((source, 0), (destination, self.port), &vec![0; self.octets.max(80) - 14 - 40 - 8])
    }

    fn udp4(&self, source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16)) -> Vec<u8> {
        let data = vec![0; self.octets.max(64) - 14 - 20 - 8];
        let header = UdpHeader::new(source.1, destination.1, data.len());
        let header = header.with_checksum4(source.0, destination.0, &data);
        let datagram = [&header.octets()[..], &data].concat();
        let ip = Ipv4Header::new(source.0, destination.0, protocol::UDP, datagram.len());
        [&ip.octets()[..], &datagram].concat()
    }
}

/// A sender, at a device of a host.
pub struct StampedFrames<'a> {
    host: &'a Namespace,
    programs: Ebpf,
    sender: LiveSender,
}

impl<'a> StampedFrames<'a> {
    /// Loads the compiled programs.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn load(object: &Path, ends: &FrameEnds, host: &'a Namespace, device: &str) -> Result<Self> {
        Self::load_part(object, (ends, 0..ends.flows), host, device)
    }

    /// The same for a part of the flows.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn load_part(
        object: &Path,
        (ends, flows): (&FrameEnds, Range<u32>),
        host: &'a Namespace,
        device: &str,
    ) -> Result<Self> {
        Self::load_program(object, ends.pattern()?, flows, (host, device))
    }

    /// A sender to each of these flows in turn: over IPv4, to where their packets came from, and from the source and the port of `ends`. The
    /// destination of `ends` is not used.
    ///
    /// # Errors
    /// The kernel refuses it, or `ends` has IPv6 addresses.
    pub fn replies(
        object: &Path,
        ends: &FrameEnds,
        states: &[FlowState],
        (host, device): (&'a Namespace, &str),
    ) -> Result<Self> {
        let IpAddr::V4(source) = ends.source else {
            return Err(Failure::Unexpected("replies are sent over IPv4 only".to_owned()));
        };
        let packet = ends.udp4((source, ends.port), (Ipv4Addr::UNSPECIFIED, 0));
        let frame = ends.ethernet([8, 0], &packet);
        let mut sender =
            Self::load_program(object, ("stamped_replies4", frame), 0..states.len() as u32, (host, device))?;
        let map = sender.programs.map_mut("states").ok_or_else(|| strange("states"))?;
        let mut map: Array<&mut MapData, FlowState> =
            Array::try_from(map).map_err(|error| refused("states", &error))?;
        for (at, state) in (0..).zip(states) {
            map.set(at, state, 0).map_err(|error| refused("noting a state", &error))?;
        }
        Ok(sender)
    }

    fn load_program(
        object: &Path,
        (name, frame): (&'static str, Vec<u8>),
        flows: Range<u32>,
        (host, device): (&'a Namespace, &str),
    ) -> Result<Self> {
        let (first, flows) = (flows.start, flows.len().max(1) as u32);
        let mut words = [0_u8; LONGEST];
        words.iter_mut().zip(&frame).for_each(|(word, octet)| *word = *octet);
        let mut programs = EbpfLoader::new()
            .override_global("pattern", &words, true)
            .override_global("flows", &flows, true)
            .override_global("first", &first, true)
            .map_max_entries("states", if name == "stamped_replies4" { flows } else { 1 })
            .load_file(object)
            .map_err(|error| refused("loading the senders", &error))?;
        let sender = LiveSender::new(&mut programs, (name, frame), (host, device))?;
        Ok(Self { host, programs, sender })
    }

    /// Makes one frame, and sends it nowhere.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn example(&self) -> Result<Vec<u8>> {
        let mut out = vec![0; LONGEST];
        let options = TestRunOptions {
            data_in: Some(self.sender.frame()),
            data_out: Some(&mut out),
            ..TestRunOptions::new()
        };
        let program = self.sender.program(&self.programs)?;
        let done = program.test_run(options).map_err(|error| refused("making a frame", &error))?;
        out.truncate(done.data_size_out as usize);
        Ok(out)
    }
}

/// IPv4 address and port of a flow's packet as it arrived, as they are in its header, and whether one has arrived.
pub type FlowState = [u8; 8];

/// What measures stamped packets where they arrive, and takes them away.
pub struct StampedSink {
    programs: Ebpf,
}

/// What has arrived.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// Packets, each counted once.
    pub packets: u64,
    /// Octets of all frames.
    pub octets: u64,
    /// Packets that came again.
    pub repeated: u64,
    /// Packets that came after a later one of their flow.
    pub reordered: u64,
    /// From the time at which a frame was made, to 6 %.
    pub latency: Histogram,
}

impl StampedSink {
    /// Attaches it to a device of a host.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn attach(object: &Path, host: &Namespace, device: &str) -> Result<Self> {
        Ok(Self { programs: attach(object, "stamped_sink", host, (device, 0))? })
    }

    /// The same, and it notes where each of this number of packets came from, by their numbers.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn attach_noting(object: &Path, (host, device): (&Namespace, &str), flows: u32) -> Result<Self> {
        Ok(Self { programs: attach_with_room(object, "stamped_sink", host, device, flows.max(1))? })
    }

    /// The states of flows from which a packet has arrived over IPv4.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn states(&self) -> Result<Vec<FlowState>> {
        let map = self.programs.map("states").ok_or_else(|| strange("states"))?;
        let map: Array<&MapData, FlowState> =
            Array::try_from(map).map_err(|error| refused("states", &error))?;
        let mut states = Vec::new();
        for at in 0..map.len() {
            let state = map.get(&at, 0).map_err(|error| refused("reading a state", &error))?;
            if state[6..] != [0, 0] {
                states.push(state);
            }
        }
        Ok(states)
    }

    /// What has arrived since it was attached.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn seen(&self) -> Result<Stamped> {
        let [packets, octets, repeated, reordered] = first::<[u64; 4]>(&self.programs, "stamped")?;
        let latency = times(&self.programs, "times")?;
        Ok(Stamped { packets: packets - repeated, octets, repeated, reordered, latency })
    }

    fn count(&self) -> Result<u64> {
        let [packets, _, repeated, _] = first::<[u64; 4]>(&self.programs, "stamped")?;
        Ok(packets - repeated)
    }
}

/// What answers echo requests and UDP to any address, at a device of a host.
pub struct XdpResponder {
    _programs: Vec<Ebpf>,
}

impl XdpResponder {
    /// Attaches it. A veth device takes answers only if it has a program, too: `other_end` gets one that lets all pass, if it has no sink. UDP of sockets
    /// has unfinished checksums unless their devices are configured to finish them (`ethtool -K DEVICE tx off`).
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn attach(
        object: &Path,
        (host, device): (&Namespace, &str),
        other_end: Option<(&Namespace, &str)>,
    ) -> Result<Self> {
        let mut programs = vec![attach(object, "responder", host, (device, 0))?];
        if let Some((host, device)) = other_end {
            programs.push(attach(object, "pass", host, (device, 0))?);
        }
        Ok(Self { _programs: programs })
    }
}

/// A sender and a sink. A frame is due when it is made; with a rate, [`Outcome::lateness`] says how late calls were that made them.
pub struct FrameStream<'a> {
    /// The sender.
    pub sender: &'a StampedFrames<'a>,
    /// The sink: at the other end, or at the sender's device if there is a responder. `None`: nobody counts what arrives.
    pub sink: Option<&'a StampedSink>,
}

impl Load for FrameStream<'_> {
    /// At [`Pace::Open`] with even gaps and [`Pace::AsFastAsPossible`], until a time or a count. To be called on the tester's CPU.
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        let Some(sink) = self.sink else {
            let (outcome, first) = self.sender.host.enter(|| self.send(pace, until))??;
            let octets = outcome.sent * (self.sender.sender.frame().len() as u64 - 14);
            let took = Duration::from_nanos(clock::now() - first);
            return Ok(Outcome { octets, took, ..outcome });
        };
        let before = sink.seen()?;
        // `enter` has a thread of its own, on the same CPU.
        let (mut outcome, first) = self.sender.host.enter(|| self.send(pace, until))??;
        let ended = clock::now();
        wait(sink, before.packets + outcome.sent)?;
        let after = sink.seen()?;
        outcome.answered = after.packets - before.packets;
        outcome.lost = outcome.sent.saturating_sub(outcome.answered);
        outcome.duplicated = after.repeated - before.repeated;
        outcome.reordered = after.reordered - before.reordered;
        outcome.octets = outcome.sent * (self.sender.sender.frame().len() as u64 - 14);
        let mut latency = after.latency;
        latency
            .subtract(&before.latency)
            .map_err(|error| Failure::Unexpected(format!("a sink went back: {error:?}")))?;
        outcome.service = latency.clone();
        outcome.latency = latency;
        outcome.took = Duration::from_nanos(ended - first);
        Ok(outcome)
    }
}

/// Waits until this many have come, none has come for a time, or what is under way is lost.
fn wait(sink: &StampedSink, all: u64) -> Result<()> {
    let start = clock::now();
    let (mut came, mut last) = (sink.count()?, start);
    while came < all && !is_over(clock::now() - start, clock::now() - last) {
        interrupt::check()?;
        std::thread::sleep(Duration::from_millis(2));
        let now = sink.count()?;
        if now > came {
            (came, last) = (now, clock::now());
        }
    }
    Ok(())
}

impl FrameStream<'_> {
    /// How many frames the sender makes in a second without a pause. What becomes of them does not matter; it is over when this returns.
    ///
    /// # Errors
    /// The kernel refuses to send, or a signal has come.
    pub fn ceiling(&self, time: Duration) -> Result<f64> {
        let flat_out = || self.send(Pace::AsFastAsPossible, Until::Time(time));
        let (outcome, first) = self.sender.host.enter(flat_out)??;
        let took = Duration::from_nanos(clock::now() - first);
        std::thread::sleep(SETTLED);
        Ok(outcome.sent as f64 / took.as_secs_f64().max(1e-9))
    }

    fn send(&self, pace: Pace, until: Until) -> Result<(Outcome, u64)> {
        let cpu = super::flood::thread_cpu();
        let first = clock::now();
        let mut outcome = match pace {
            Pace::Open { per_second, gaps: Gaps::Even } => {
                self.sender.sender.at_rate(&self.sender.programs, per_second, until)?
            }
            Pace::AsFastAsPossible => self.flat_out(until, first)?,
            Pace::Open { gaps: Gaps::Poisson(_) | Gaps::Halved(_), .. } | Pace::Closed { .. } => {
                return Err(Failure::Unexpected(format!("frames are not sent at {pace:?}")));
            }
        };
        let cpu = super::flood::thread_cpu().saturating_sub(cpu);
        outcome.cost = ThreadCost { cpu, ..ThreadCost::default() };
        Ok((outcome, first))
    }

    fn flat_out(&self, until: Until, first: u64) -> Result<Outcome> {
        let mut sent = 0;
        loop {
            let left = match until {
                Until::Time(time) if clock::now() - first >= clock::nanoseconds(time) => 0,
                Until::Time(_) => u64::from(CALL),
                Until::CountWithin(_, time) if clock::now() - first >= clock::nanoseconds(time) => 0,
                Until::Count(count) | Until::CountWithin(count, _) => count - sent,
                Until::Done => return Err(Failure::Unexpected("a stream needs an end".to_owned())),
            };
            if left == 0 {
                return Ok(Outcome { sent, ..Outcome::default() });
            }
            interrupt::check()?;
            let count = left.min(CALL.into());
            self.sender.sender.send(&self.sender.programs, count as u32, BATCH)?;
            sent += count;
        }
    }
}

/// Whether frames that have not come are lost, by the nanoseconds since the last one was sent, and since the last one came.
fn is_over(sent: u64, came: u64) -> bool {
    sent >= clock::nanoseconds(LOST_AFTER) || came >= clock::nanoseconds(SETTLED)
}

/// Packets and flows of which loss, order and repetitions are all known.
pub const FRAMES_KNOWN: (u64, u32) = (KNOWN, FLOWS);

/// The link address of a device of a host: what [`FrameEnds::to`] wants.
///
/// # Errors
/// The device has none.
pub fn link_address(host: &Namespace, device: &str) -> Result<[u8; 6]> {
    let said = host.ip(&format!("-o link show {device}"))?;
    let text = said.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next());
    let pairs = text.into_iter().flat_map(|text| text.split(':'));
    let octets: Vec<u8> = pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    octets.try_into().map_err(|_| Failure::Unexpected(format!("no link address: {said}")))
}

/// The stamp in a frame of ours.
pub fn stamp_of(frame: &[u8]) -> Option<Stamp> {
    let front = if frame.get(12..14)? == [8, 0] { 14 + 20 + 8 } else { 14 + 40 + 8 };
    Stamp::read(frame.get(front..)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_lost_when_none_has_come_for_a_time_and_after_a_second() {
        let over = |sent: u64, came: u64| is_over(sent * 1_000_000, came * 1_000_000);
        assert!(!over(900, 100) && over(300, 300) && over(1_000, 0) && !over(299, 299));
    }

    #[test]
    fn frames_have_the_length_that_the_programs_write() {
        let ends = |source: &str, destination: &str| FrameEnds {
            to: [2, 0, 0, 0, 0, 2],
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            port: 4_000,
            flows: 1,
            octets: 0,
        };
        let (program, frame) = ends("2001:db8::", "2001:db8:1::1").pattern().unwrap();
        assert_eq!((program, frame.len()), ("stamped6", 80));
        let (program, frame) = ends("192.0.2.0", "198.51.100.1").pattern().unwrap();
        assert_eq!((program, frame.len()), ("stamped4", 64));
        assert!(ends("192.0.2.0", "2001:db8::1").pattern().is_err());
        for (source, destination) in [("2001:db8::", "2001:db8:1::1"), ("192.0.2.0", "198.51.100.1")] {
            let (_, frame) = FrameEnds { octets: 1_514, ..ends(source, destination) }.pattern().unwrap();
            assert_eq!(frame.len(), 1_514);
        }
    }
}
