//! TCP connections without sockets: programs in the kernel open them at a rate, keep them open, and ask over each of them when all are open
//! (RFC 3511 §5.2). A connection takes the tester 24 octets, and no port, file or memory of a socket. See `connections.bpf.c`.

use super::bpf::{attach, attach_loaded, compile_source, first, refused, strange, times};
use super::clock;
use super::ends::on;
use super::flood::thread_cpu;
use super::live_sender::LiveSender;
use super::outcome::{Outcome, ThreadCost, Until};
use super::stamp::STAMP;
use super::stamped_frames::FrameEnds;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::Namespace;
use crate::packet;
use aya::maps::{Array, MapData};
use aya::{Ebpf, EbpfLoader};
use sixway_wire::tcp::{ACK, PSH, SYN};
use sixway_wire::{Ipv4Header, TcpHeader, protocol};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOURCE: &str = include_str!("connections.bpf.c");

/// 16-bit words of the longest frame.
const LONGEST: usize = 46;
/// The server's initial sequence number.
const SERVERS: u32 = 0x5100_0000;
/// The option of a SYN: segments of 1,220 octets at most, which any path over IPv6 has room for.
const MSS: [u8; 4] = [2, 4, 4, 196];
/// Connections that a run of a sender passes over, at most, because they have what it is for.
const PASSED_OVER: u64 = 256;
/// How often what has no answer is sent, at most: hosts send a SYN seven times, too.
const TURNS: u32 = 7;
/// When no segment has come to either end for this time, none is under way; and how long is waited for that at most.
const SETTLED: Duration = Duration::from_millis(300);
const BACKLOG: Duration = Duration::from_secs(10);
/// After this many turns in which nothing was answered there is no more to come.
const VAIN: u32 = 2;

/// Compiles the programs into a folder; where they are then.
///
/// # Errors
/// clang is not installed, or refuses.
pub fn compile_connections(folder: &Path) -> Result<PathBuf> {
    compile_source(folder, "connections", SOURCE)
}

/// Where connections begin and end. A host's link is its name.
pub struct ConnectionEnds<'a> {
    /// Addresses, the first port of the server, and how many there are; 16,384 share a port of the server. The length is not used.
    pub frames: FrameEnds,
    /// The client's link.
    pub client: (&'a Namespace, &'a str),
    /// The server's, which packets reach over IPv4.
    pub server: (&'a Namespace, &'a str),
    /// The other ends of these links that have no program: a veth device takes what a program sends back only if it has one, too.
    pub others: Vec<(&'a Namespace, &'a str)>,
    /// The CPU of the thread that sends, if it has one: the tester's.
    pub core: Option<usize>,
}

/// A frame with a segment from any port to the server's first one; what differs from connection to connection is zero.
fn segment(ends: &FrameEnds, header: TcpHeader, rest: &[u8]) -> Result<Vec<u8>> {
    let header = TcpHeader { destination: ends.port, window: u16::MAX, ..header };
    match (ends.source, ends.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = header.with_checksum6(source, destination, rest);
            let segment = [&header.octets()[..], rest].concat();
            let packet = packet::ipv6(source, destination, protocol::TCP, &segment);
            Ok(ends.ethernet([0x86, 0xdd], &packet))
        }
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = header.with_checksum4(source, destination, rest);
            let segment = [&header.octets()[..], rest].concat();
            let ip = Ipv4Header::new(source, destination, protocol::TCP, segment.len());
            Ok(ends.ethernet([8, 0], &[&ip.octets()[..], &segment].concat()))
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
            Err(Failure::Unexpected("a segment from one family to the other".to_owned()))
        }
    }
}

fn syn(ends: &FrameEnds) -> Result<Vec<u8>> {
    segment(ends, TcpHeader { data_offset: 6, ..TcpHeader::new(0, 0, SYN) }, &MSS)
}

fn data(ends: &FrameEnds) -> Result<Vec<u8>> {
    let header = TcpHeader { acknowledgment: SERVERS + 1, ..TcpHeader::new(0, 0, PSH | ACK) };
    segment(ends, header, &[0; STAMP])
}

/// Its first octets as words of the host's order, as programs copy them.
fn words(frame: &[u8]) -> [u16; LONGEST] {
    let mut words = [0; LONGEST];
    for (word, pair) in words.iter_mut().zip(frame.chunks_exact(2)) {
        *word = u16::from_ne_bytes([pair[0], pair[1]]);
    }
    words
}

/// Connections of a client to a server, none of which is open. The state at both ends goes away with it, without a packet.
pub struct ConnectionFrames<'a> {
    client: &'a Namespace,
    core: Option<usize>,
    flows: u32,
    programs: Ebpf,
    open: LiveSender,
    ask: LiveSender,
    _others: Vec<Ebpf>,
}

/// What became of connections.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Those that were attempted, and those over which an answer came when all were open. Set-up times are from the first SYN to the SYN+ACK,
    /// and those of answers are the latency.
    pub outcome: Outcome,
    /// Connections that the server has accepted.
    pub open: u64,
    /// From the first SYN to the last SYN+ACK.
    pub opening: Duration,
    /// SYNs that were sent, with those that were repeated.
    pub syns: u64,
    /// Resets that came to the client.
    pub resets: u64,
    /// Whether a failure is final: what was left had no answer in some turns, one after the other. Else more time would have changed something.
    pub is_final: bool,
    /// Data that came to the server from another address or port than the connection's SYN.
    pub from_elsewhere: u64,
}

/// What senders do.
#[derive(Clone, Copy)]
enum Phase {
    Opening,
    Asking,
}

/// What programs have counted.
#[derive(Clone, Copy)]
struct Counted {
    syns: u64,
    open: u64,
    answered: u64,
    resets: u64,
    from_elsewhere: u64,
    arrived: u64,
}

impl<'a> ConnectionFrames<'a> {
    /// Loads the compiled programs.
    ///
    /// # Errors
    /// The kernel refuses them, or the ends have addresses of both families.
    pub fn load(object: &Path, ends: &ConnectionEnds<'a>) -> Result<Self> {
        let (syn, data) = (syn(&ends.frames)?, data(&ends.frames)?);
        let flows = ends.frames.flows.max(1);
        let mut programs = EbpfLoader::new()
            .override_global("syn", &words(&syn), true)
            .override_global("data_frame", &words(&data), true)
            .override_global("port", &ends.frames.port, true)
            .map_max_entries("connections", flows)
            .map_max_entries("peers", flows)
            .load_file(object)
            .map_err(|error| refused("loading programs for connections", &error))?;
        let names = if ends.frames.source.is_ipv6() { ["open6", "ask6"] } else { ["open4", "ask4"] };
        let [open, ask] = names;
        let open = LiveSender::new(&mut programs, (open, syn), ends.client)?;
        let ask = LiveSender::new(&mut programs, (ask, data), ends.client)?;
        attach_loaded(&mut programs, "client", ends.client)?;
        attach_loaded(&mut programs, "server", ends.server)?;
        let pass = |(host, device): &(&Namespace, &str)| attach(object, "pass", host, (device, 0));
        let others = ends.others.iter().map(pass).collect::<Result<_>>()?;
        let (client, core) = (ends.client.0, ends.core);
        Ok(Self { client, core, flows, programs, open, ask, _others: others })
    }

    /// Opens all at a rate, and then asks over each at the same rate; what has no answer is sent again. If not all can be opened, none is asked.
    ///
    /// # Errors
    /// The kernel refuses to send, or a signal has come.
    pub fn run(&mut self, per_second: f64) -> Result<Connected> {
        self.run_with(per_second, || Ok(()))
    }

    /// The same; when all are open, this happens before they are asked.
    ///
    /// # Errors
    /// The kernel refuses to send, a signal has come, or `between` fails.
    pub fn run_with(&mut self, per_second: f64, between: impl FnOnce() -> Result<()>) -> Result<Connected> {
        let mut outcome = Outcome { sent: self.flows.into(), ..Outcome::default() };
        let (opening, mut is_final) = self.turns(Phase::Opening, per_second, &mut outcome)?;
        outcome.took = opening;
        if self.counted()?.open == u64::from(self.flows) {
            between()?;
            let (answering, is_final_now) = self.turns(Phase::Asking, per_second, &mut outcome)?;
            outcome.took += answering;
            is_final = is_final_now;
        }
        let Counted { syns, open, answered, resets, from_elsewhere, .. } = self.counted()?;
        outcome.answered = answered;
        outcome.lost = outcome.sent - answered;
        outcome.octets = syns * octets(&self.open) + answered * octets(&self.ask);
        outcome.setup = times(&self.programs, "setups")?;
        outcome.latency = times(&self.programs, "times")?;
        outcome.service = outcome.latency.clone();
        Ok(Connected { outcome, open, opening, syns, resets, is_final, from_elsewhere })
    }

    /// Sends until nothing is without an answer, or what is has none again: the time up to the last answer, and whether that was final.
    fn turns(&mut self, phase: Phase, per_second: f64, outcome: &mut Outcome) -> Result<(Duration, bool)> {
        let (start, flows) = (clock::now(), u64::from(self.flows));
        let (mut last, mut in_vain) = (start, 0);
        for _ in 0..TURNS {
            let before = self.done(phase)?;
            self.begin()?;
            let sender = self.sender(phase);
            let send = || {
                let (cpu, runs) = (thread_cpu(), runs(flows, before));
                let sent = sender.at_rate(&self.programs, per_second, Until::Count(runs))?;
                Ok::<_, Failure>((sent.lateness, thread_cpu().saturating_sub(cpu)))
            };
            let (lateness, cpu) = self.client.enter(|| on(self.core, send))??;
            // Both have the same bounds.
            outcome.lateness.add(&lateness).ok();
            outcome.cost = ThreadCost { cpu: outcome.cost.cpu + cpu, ..outcome.cost };
            let (came, at) = self.wait(phase)?;
            in_vain = if came > before { 0 } else { in_vain + 1 };
            last = if came > before { at } else { last };
            if came == flows || in_vain >= VAIN {
                break;
            }
        }
        Ok((Duration::from_nanos(last - start), in_vain >= VAIN))
    }

    /// The first connection comes next.
    fn begin(&mut self) -> Result<()> {
        let map = self.programs.map_mut("next").ok_or_else(|| strange("next"))?;
        let mut map: Array<&mut MapData, u32> =
            Array::try_from(map).map_err(|error| refused("next", &error))?;
        map.set(0, 0, 0).map_err(|error| refused("beginning a turn", &error))
    }

    const fn sender(&self, phase: Phase) -> &LiveSender {
        match phase {
            Phase::Opening => &self.open,
            Phase::Asking => &self.ask,
        }
    }

    /// How many connections have what a phase is for.
    fn done(&self, phase: Phase) -> Result<u64> {
        let Counted { open, answered, .. } = self.counted()?;
        Ok(match phase {
            Phase::Opening => open,
            Phase::Asking => answered,
        })
    }

    /// Waits until all have an answer, or nothing is under way: how many have one, and since when.
    fn wait(&self, phase: Phase) -> Result<(u64, u64)> {
        let start = clock::now();
        let (mut came, mut last) = (self.done(phase)?, start);
        let (mut arrived, mut at) = (self.counted()?.arrived, start);
        while came < self.flows.into() && !is_over(clock::now() - start, clock::now() - at) {
            interrupt::check()?;
            std::thread::sleep(Duration::from_millis(2));
            let (now, arrived_now) = (self.done(phase)?, self.counted()?.arrived);
            if now > came {
                (came, last) = (now, clock::now());
            }
            if arrived_now > arrived {
                (arrived, at) = (arrived_now, clock::now());
            }
        }
        Ok((came, last))
    }

    fn counted(&self) -> Result<Counted> {
        let [syns, _, open, answered, resets, from_elsewhere, at_client, at_server] =
            first::<[u64; 8]>(&self.programs, "counted")?;
        Ok(Counted { syns, open, answered, resets, from_elsewhere, arrived: at_client + at_server })
    }
}

/// Whether nothing is under way any more, by the nanoseconds since the last segment was sent, and since the last one came to either end.
fn is_over(sent: u64, came: u64) -> bool {
    sent >= clock::nanoseconds(BACKLOG) || came >= clock::nanoseconds(SETTLED)
}

/// Octets of a frame's packet.
fn octets(sender: &LiveSender) -> u64 {
    sender.frame().len() as u64 - 14
}

/// How often a sender runs in a turn, so that it comes to the last connection.
fn runs(flows: u64, answered: u64) -> u64 {
    flows.saturating_sub(answered) + answered.div_ceil(PASSED_OVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs copy a whole pattern: 24 octets of a header with an option, or 20 and a stamp.
    #[test]
    fn segments_have_the_length_that_the_programs_write() {
        let ends = |source: &str, destination: &str| FrameEnds {
            to: [2, 0, 0, 0, 0, 2],
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            port: 7_000,
            flows: 1,
            octets: 0,
        };
        for (source, destination, front) in
            [("2001:db8::", "2001:db8:1::1", 14 + 40), ("192.0.2.0", "198.51.100.1", 14 + 20)]
        {
            let ends = ends(source, destination);
            let (syn, data) = (syn(&ends).unwrap(), data(&ends).unwrap());
            assert_eq!((syn.len(), data.len()), (front + 24, front + 20 + STAMP));
            assert!(data.len() <= 2 * LONGEST && data.len() % 2 == 0);
            let header = TcpHeader::read(&data[front..]).unwrap();
            assert_eq!((header.destination, header.acknowledgment), (7_000, SERVERS + 1));
            assert!(TcpHeader::split(&syn[front..]).unwrap().1.is_empty(), "the option is the header's");
            assert_eq!(words(&syn)[..2], [u16::from_ne_bytes([2, 0]), 0]);
        }
        assert!(syn(&ends("192.0.2.0", "2001:db8::1")).is_err());
    }

    #[test]
    fn a_queue_that_still_empties_is_waited_for() {
        let over = |sent: u64, came: u64| is_over(sent * 1_000_000, came * 1_000_000);
        assert!(!over(5_000, 100) && over(300, 300) && over(10_000, 0));
    }

    /// Each run passes over some that are answered, and sends to one that is not.
    #[test]
    fn a_turn_comes_to_the_last_connection_and_is_short_if_few_are_left() {
        for (flows, answered) in [(1_000, 0), (1_000, 999), (65_536, 65_000), (256, 256), (100_000, 50_000)] {
            let mut left: u64 = flows;
            for run in 0..runs(flows, answered) {
                let is_answered = run * PASSED_OVER < answered;
                left = left.saturating_sub(if is_answered { PASSED_OVER.min(answered) } else { 1 });
            }
            assert!(left == 0, "{flows}, {answered}: {left}");
        }
        assert_eq!((runs(65_536, 0), runs(65_536, 65_536), runs(65_536, 65_530)), (65_536, 256, 6 + 256));
    }
}
