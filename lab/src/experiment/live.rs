//! Frames that the kernel makes, through a device: above the rate that sockets reach, so that it is the device that is measured.
//!
//! Packets received on the device's links are processed by threads on the device's core, and those on the tester's links by threads on the
//! tester's core:
//! else the kernel lets the CPU that sends a frame do all that follows.

use crate::affinity::pin_thread;
use crate::device::{CpuReader, CpuReading, CpuSource, MemoryReading, Running};
use crate::failure::{Failure, Result};
use crate::load::{
    ConnectionEnds, ConnectionFrames, FlowState, FrameEnds, FrameStream, Load, Outcome, Pace, StampedFrames,
    StampedSink, Trip, Until, XdpResponder, compile_stamped, link_address,
};
use crate::measure::{ClockOffset, Cores, ReceivingThreads};
use crate::namespace::Namespace;
use crate::results::Machine;
use crate::topology::Network;
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A host and its link.
pub type End = (&'static str, &'static str);

/// A way through a device for frames.
pub struct Live {
    network: Arc<Network>,
    cores: Cores,
    near: End,
    far: End,
    /// The device's links to the near end, and to the far one.
    inside: &'static str,
    outside: End,
    object: PathBuf,
    threads: ReceivingThreads,
    _tester: [ReceivingThreads; 2],
    /// The link address of the device's link to the near end.
    door: [u8; 6],
}

impl Live {
    /// From the near end's link to the far end's, through a host with these links.
    ///
    /// # Errors
    /// This machine loads no programs of BPF.
    pub fn new(
        network: &Arc<Network>,
        cores: Cores,
        (near, far): (End, End),
        (host, [inside, outside]): (&'static str, [&'static str; 2]),
        is_process: bool,
    ) -> Result<Self> {
        if !Machine::here().bpf {
            return Err(Failure::Unexpected(
                "frames made in the kernel need permission to load BPF programs".to_owned(),
            ));
        }
        let object = compile_stamped(network.folder())?;
        // The kernel's own forwarding has its core for itself; other processes would only delay it.
        let start = if is_process { ReceivingThreads::start_as_equals } else { ReceivingThreads::start };
        let threads = start(network, host, &[inside, outside], cores.device)?;
        let of_tester = |(host, link): End| ReceivingThreads::start(network, host, &[link], cores.tester);
        let tester = [of_tester(near)?, of_tester(far)?];
        let door = link_address(network.host(host)?, inside)?;
        let network = Arc::clone(network);
        Ok(Self {
            network,
            cores,
            near,
            far,
            inside,
            outside: (host, outside),
            object,
            threads,
            _tester: tester,
            door,
        })
    }

    /// Lets what the device's links receive be worked on by these cores, a link each in turn.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn spread(&self, cores: &[usize]) -> Result<()> {
        self.threads.spread(cores)
    }

    /// The link address to which the near end sends.
    pub const fn door(&self) -> [u8; 6] {
        self.door
    }

    /// Does something with a sender at the near end, and a sink at the far one; or at the near one, with a responder at the far one.
    ///
    /// # Errors
    /// The kernel refuses a program, or `work` fails.
    pub fn with<T>(
        &self,
        ends: &FrameEnds,
        trip: Trip,
        work: impl FnOnce(&Stream<'_>) -> Result<T>,
    ) -> Result<T> {
        let (near, far) = (self.network.host(self.near.0)?, self.network.host(self.far.0)?);
        let (_responder, sink) = match trip {
            Trip::OneWay => (None, StampedSink::attach(&self.object, far, self.far.1)?),
            Trip::Round => {
                let (host, link) = (self.network.host(self.outside.0)?, self.outside.1);
                let other_end = (!has_program(host, link)?).then_some((host, link));
                let responder = XdpResponder::attach(&self.object, (far, self.far.1), other_end)?;
                (Some(responder), StampedSink::attach(&self.object, near, self.near.1)?)
            }
        };
        let sender = StampedFrames::load(&self.object, ends, near, self.near.1)?;
        work(&Stream { frames: FrameStream { sender: &sender, sink: Some(&sink) }, core: self.cores.tester })
    }

    /// The same with a sender only: what arrives is not looked at.
    ///
    /// # Errors
    /// The kernel refuses a program, or `work` fails.
    pub fn send_only<T>(&self, ends: &FrameEnds, work: impl FnOnce(&Stream<'_>) -> Result<T>) -> Result<T> {
        let near = self.network.host(self.near.0)?;
        let sender = StampedFrames::load(&self.object, ends, near, self.near.1)?;
        work(&Stream { frames: FrameStream { sender: &sender, sink: None }, core: self.cores.tester })
    }

    /// On how many CPUs what the device's links receive is worked on.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn receiving_cpus(&self) -> Result<usize> {
        self.threads.cpus()
    }

    /// The first phase of RFC 9693 (§4.2): one frame of each flow from the near end, which establishes its connection; and what the far end's state table
    /// has then.
    ///
    /// # Errors
    /// The kernel refuses a program.
    pub fn establish(
        &self,
        ends: &FrameEnds,
        flows: Range<u32>,
        pace: Pace,
    ) -> Result<(Outcome, Vec<FlowState>)> {
        let count = flows.len() as u32;
        let (near, far) = (self.network.host(self.near.0)?, self.network.host(self.far.0)?);
        let sink = StampedSink::attach_noting(&self.object, (far, self.far.1), count)?;
        let sender = StampedFrames::load_part(&self.object, (ends, flows), near, self.near.1)?;
        let frames = FrameStream { sender: &sender, sink: Some(&sink) };
        let outcome = Stream { frames, core: self.cores.tester }.run(pace, Until::Count(count.into()))?;
        Ok((outcome, sink.states()?))
    }

    /// Sends a frame to each of these states from the far end, which is this address and port: a connection that exists lets it through.
    ///
    /// # Errors
    /// The kernel refuses a program.
    pub fn validate(&self, from: (IpAddr, u16), states: &[FlowState], pace: Pace) -> Result<Outcome> {
        let (near, far) = (self.network.host(self.near.0)?, self.network.host(self.far.0)?);
        let sink = StampedSink::attach(&self.object, near, self.near.1)?;
        let to = link_address(self.network.host(self.outside.0)?, self.outside.1)?;
        let (source, port) = from;
        let flows = states.len() as u32;
        let ends = FrameEnds { to, source, destination: source, port, flows, octets: 0 };
        let sender = StampedFrames::replies(&self.object, &ends, states, (far, self.far.1))?;
        let frames = FrameStream { sender: &sender, sink: Some(&sink) };
        Stream { frames, core: self.cores.tester }.run(pace, Until::Count(states.len() as u64))
    }

    /// TCP connections from the near end to the far one, none of which is open, by programs that were compiled before.
    ///
    /// # Errors
    /// The kernel refuses a program.
    pub fn connections(&self, object: &Path, ends: &FrameEnds) -> Result<ConnectionFrames<'_>> {
        let (near, far) = (self.network.host(self.near.0)?, self.network.host(self.far.0)?);
        let host = self.network.host(self.outside.0)?;
        let mut others = Vec::new();
        for link in [self.inside, self.outside.1] {
            if !has_program(host, link)? {
                others.push((host, link));
            }
        }
        let ends = ConnectionEnds {
            frames: *ends,
            client: (near, self.near.1),
            server: (far, self.far.1),
            others,
            core: self.cores.tester,
        };
        ConnectionFrames::load(object, &ends)
    }

    /// The device with the CPU time of the threads that receive for it.
    pub fn counting<'a>(&'a self, running: &'a dyn Running) -> impl Running + 'a {
        WithThreads { running, threads: &self.threads }
    }
}

fn has_program(host: &Namespace, link: &str) -> Result<bool> {
    Ok(host.ip(&format!("link show {link}"))?.contains("prog/xdp"))
}

/// Frames that are sent by the tester's core.
pub struct Stream<'a> {
    /// The frames.
    pub frames: FrameStream<'a>,
    /// That core.
    pub core: Option<usize>,
}

impl Stream<'_> {
    /// How many frames the tester's core makes in a second without a pause.
    ///
    /// # Errors
    /// The kernel refuses to send, or a signal has come.
    pub fn ceiling(&self, time: Duration) -> Result<f64> {
        self.there(|frames| frames.ceiling(time))
    }

    fn there<T: Send>(&self, work: impl FnOnce(&FrameStream<'_>) -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                self.core.map_or(Ok(()), pin_thread)?;
                work(&self.frames)
            });
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Load for Stream<'_> {
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        self.there(|frames| frames.run(pace, until))
    }
}

/// A device's CPU time with that of the threads of the links that frames pass: they may be threads of the device itself, which has more if it has
/// other links. What these receive by interrupts is left out: it is little, and ticks are coarse.
fn received_by(threads: Duration, own: &CpuReading) -> CpuReading {
    let process = own.without_received();
    match own.source {
        CpuSource::Interrupts => CpuReading::of(threads, CpuSource::KernelThreads),
        // Without a process, threads are in it, and the load, too.
        CpuSource::Shared if process.is_zero() => *own,
        CpuSource::Machine => CpuReading::with_received(process, threads, CpuSource::Machine),
        CpuSource::KernelThreads => CpuReading::with_received(process, threads, CpuSource::KernelThreads),
        CpuSource::Process => {
            CpuReading::with_received(process, threads.max(own.received), CpuSource::Process)
        }
        CpuSource::ProcessAndInterrupts | CpuSource::Shared => {
            CpuReading::with_received(process, threads, CpuSource::Process)
        }
    }
}

/// A device, and the threads that receive for it.
struct WithThreads<'a> {
    running: &'a dyn Running,
    threads: &'a ReceivingThreads,
}

impl Running for WithThreads<'_> {
    fn restart(&mut self) -> Result<()> {
        Err(Failure::Unexpected("a device is not restarted while it is measured".to_owned()))
    }

    fn cpu(&self) -> Result<CpuReading> {
        Ok(received_by(self.threads.cpu()?, &self.running.cpu()?))
    }

    fn cpu_reader(&self) -> Option<CpuReader> {
        let (own, threads) = (self.running.cpu_reader(), self.threads.cpu_reader());
        if self.running.cpu().ok()?.source == CpuSource::Interrupts {
            return Some(Box::new(move || Ok(CpuReading::of(threads()?, CpuSource::KernelThreads))));
        }
        let own = own?;
        Some(Box::new(move || Ok(received_by(threads()?, &own()?))))
    }

    fn memory(&self) -> Result<MemoryReading> {
        self.running.memory()
    }

    fn counters(&self) -> Result<Vec<(String, u64)>> {
        self.running.counters()
    }

    fn clock(&self) -> Result<Option<ClockOffset>> {
        self.running.clock()
    }

    fn commands(&self) -> Vec<String> {
        self.running.commands()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_device_count_once() {
        let milliseconds = Duration::from_millis;
        let read = |source| {
            received_by(
                milliseconds(70),
                &CpuReading::with_received(milliseconds(5), milliseconds(69), source),
            )
        };
        for source in [CpuSource::Process, CpuSource::ProcessAndInterrupts, CpuSource::Shared] {
            let counted = read(source);
            assert_eq!((counted.spent, counted.source), (milliseconds(75), CpuSource::Process), "{source:?}");
        }
        let with_more_links =
            CpuReading::with_received(milliseconds(5), milliseconds(90), CpuSource::Process);
        assert_eq!(received_by(milliseconds(70), &with_more_links), with_more_links);
        let kernel = received_by(milliseconds(70), &CpuReading::of(milliseconds(60), CpuSource::Interrupts));
        assert_eq!(kernel, CpuReading::of(milliseconds(70), CpuSource::KernelThreads));
        let shared = CpuReading::of(milliseconds(900), CpuSource::Shared);
        assert_eq!(received_by(milliseconds(70), &shared), shared);
    }
}
