//! Frames as fast as a driver could bring them: programs in the kernel make them, run by BPF_PROG_RUN with live frames, and another program
//! counts what arrives. See `frames.bpf.c`.

use super::bpf::{attach, compile_source, program, refused, rest, strange};
use crate::failure::{Asking as _, Result};
use crate::interrupt;
use crate::namespace::Namespace;
use aya::maps::{Array, MapData};
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use nix::net::if_::if_nametoindex;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("frames.bpf.c");

/// Octets of the largest frame that is made.
const LARGEST: usize = 128;
/// One frame in this many is kept where they arrive, and this many of them.
const APART: u64 = 1_024;
const SAMPLES: u64 = 16;
/// Packets of one call: some 10 to 50 ms of them.
const CALL: u32 = 32_768;
/// Frames that the kernel makes together.
const BATCH: u32 = 64;

/// Compiles the programs into a folder; where they are then.
pub fn compile(folder: &Path) -> Result<PathBuf> {
    compile_source(folder, "frames", SOURCE)
}

/// What a sender's frames are like.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Which program makes them.
    pub program: &'static str,
    /// A whole frame; the words that the program writes are zero in it.
    pub frame: Vec<u8>,
    /// Flows in all.
    pub flows: u32,
    /// Flows in any order, not one after the other.
    pub at_random: bool,
    /// This power of two of packets each, and then never again: for new flows.
    pub train: Option<u32>,
}

/// Sends frames of one pattern from a device.
pub struct Frames {
    programs: Ebpf,
    program: &'static str,
    frame: Vec<u8>,
    context: [u8; 24],
}

impl Frames {
    /// Loads the compiled programs for a device of a host.
    pub fn load(object: &Path, pattern: &Pattern, host: &Namespace, device: &str) -> Result<Self> {
        let mut words = [0_u8; LARGEST];
        words.iter_mut().zip(&pattern.frame).for_each(|(word, octet)| *word = *octet);
        // An upper bit distinguishes trains of one packet from no trains.
        let train = pattern.train.map_or(0, |power| power | 8);
        let mut programs = EbpfLoader::new()
            .override_global("pattern", &words, true)
            .override_global("flows", &pattern.flows, true)
            .override_global("at_random", &u32::from(pattern.at_random), true)
            .override_global("train", &train, true)
            .load_file(object)
            .map_err(|error| refused("loading the senders", &error))?;
        let sender = program(&mut programs, pattern.program)?;
        sender.load().map_err(|error| refused("loading a sender", &error))?;
        rest(sender, host)?;
        let index = host.enter(|| if_nametoindex(device))?.asking(|| format!("looking for {device}"))?;
        let mut context = [0; 24];
        context[4..8].copy_from_slice(&(pattern.frame.len() as u32).to_ne_bytes());
        context[12..16].copy_from_slice(&index.to_ne_bytes());
        Ok(Self { programs, program: pattern.program, frame: pattern.frame.clone(), context })
    }

    /// Tells `replies4` where its packets go.
    pub fn answer(&mut self, answers: &[Answer]) -> Result<()> {
        let map = self.programs.map_mut("answers").ok_or_else(|| strange("answers"))?;
        let mut map: Array<&mut MapData, [u8; 8]> =
            Array::try_from(map).map_err(|error| refused("answers", &error))?;
        for (at, answer) in (0..).zip(answers) {
            map.set(at, answer, 0).map_err(|error| refused("noting an answer", &error))?;
        }
        Ok(())
    }

    /// Sends this many frames. To be called inside the host's namespace.
    pub fn send(&self, count: u32) -> Result<()> {
        let loaded: &Xdp = self
            .programs
            .program(self.program)
            .and_then(|program| program.try_into().ok())
            .ok_or_else(|| strange(self.program))?;
        let options = TestRunOptions {
            data_in: Some(&self.frame),
            ctx_in: Some(&self.context),
            repeat: count,
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::new()
        };
        loaded.test_run(options).map_err(|error| refused("sending frames (BPF_PROG_RUN)", &error))?;
        Ok(())
    }

    /// Sends as many as possible for this time; returns the actual time. To be called inside the host's namespace.
    pub fn flood(&self, time: Duration) -> Result<Duration> {
        let start = Instant::now();
        while start.elapsed() < time {
            interrupt::check()?;
            self.send(CALL)?;
        }
        Ok(start.elapsed())
    }
}

/// IPv4 address and port of a packet's source as they are in its header, and two octets of nothing.
pub type Answer = [u8; 8];

/// What arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounts {
    /// Frames.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Those that were the first of a new flow.
    pub firsts: u64,
    /// Answers noted.
    pub noted: u64,
}

/// Counts UDP and tunnel packets that arrive by a device, and takes them away. All else goes on to the host.
pub struct Sink {
    programs: Ebpf,
}

impl Sink {
    /// Attaches it to a device of a host.
    pub fn attach(object: &Path, host: &Namespace, device: &str) -> Result<Self> {
        Ok(Self { programs: attach(object, "sink", host, (device, 0))? })
    }

    /// What arrived since it was attached.
    pub fn seen(&self) -> Result<SinkCounts> {
        let map = self.programs.map("seen").ok_or_else(|| strange("seen"))?;
        let map: Array<&MapData, [u64; 4]> = Array::try_from(map).map_err(|error| refused("seen", &error))?;
        let [packets, octets, firsts, noted] =
            map.get(&0, 0).map_err(|error| refused("reading the sink", &error))?;
        Ok(SinkCounts { packets, octets, firsts, noted })
    }

    /// The answers that were noted.
    pub fn answers(&self) -> Result<Vec<Answer>> {
        let map = self.programs.map("answers").ok_or_else(|| strange("answers"))?;
        let map: Array<&MapData, Answer> =
            Array::try_from(map).map_err(|error| refused("answers", &error))?;
        let noted = self.seen()?.noted as u32;
        (0..noted).map(|at| map.get(&at, 0).map_err(|error| refused("reading answers", &error))).collect()
    }

    /// Some of the frames that arrived, the last one in 1,024 among them; what is behind a frame's end means nothing.
    pub fn samples(&self) -> Result<Vec<[u8; LARGEST]>> {
        let map = self.programs.map("samples").ok_or_else(|| strange("samples"))?;
        let map: Array<&MapData, [u8; LARGEST]> =
            Array::try_from(map).map_err(|error| refused("samples", &error))?;
        let kept = self.seen()?.packets.div_ceil(APART).min(SAMPLES) as u32;
        (0..kept).map(|at| map.get(&at, 0).map_err(|error| refused("reading a sample", &error))).collect()
    }
}

/// A program that sends on by one device whatever comes in by another.
pub struct Redirector {
    _programs: Ebpf,
}

impl Redirector {
    /// Attaches it to a device of a host.
    pub fn attach(object: &Path, host: &Namespace, device: &str, out: &str) -> Result<Self> {
        let out = host.enter(|| if_nametoindex(out))?.asking(|| format!("looking for {out}"))?;
        Ok(Self { _programs: attach(object, "onward", host, (device, out))? })
    }
}
