//! The process: a TUN device that returns the impaired packets.

use super::delay_line::DelayLine;
use super::impairment::Impairment;
use super::ledger::Ledger;
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::load::{before_all_others, clock, histogram};
use clap::Args;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use sixway_dataplane::{Frame, Offload};
use sixway_link::{Abilities, Faults, Faulty, Link as _, Tun, TunConfig, TunQueue};
use std::path::PathBuf;
use std::time::Duration;

/// Octets of the largest packet.
const LARGEST: usize = 65_536;
/// Packets that are read together.
const BATCH: usize = 64;
/// How often is looked for signals.
const LOOK: Duration = Duration::from_millis(50);

/// The process's command line.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The TUN device to create
    #[arg(long)]
    pub device: String,
    /// The file for the ledger, written at the end
    #[arg(long)]
    pub ledger: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a comment would become text of the command line")]
    pub impairment: Impairment,
}

/// Lets packets pass until a signal comes.
///
/// # Errors
/// The kernel refuses the device, or takes it away.
pub fn run(options: &Options) -> Result<()> {
    let config =
        TunConfig { name: options.device.clone(), abilities: Abilities::NONE, ..TunConfig::default() };
    let mut tun = Tun::open(&config).asking(|| format!("making {}", options.device))?;
    let queue = tun.queues.pop().ok_or_else(|| Failure::Unexpected("a device without a queue".to_owned()))?;
    let Impairment { loss, duplicate, corrupt, seed, .. } = options.impairment;
    let faults = Faults { drop: loss, duplicate, corrupt, ..Faults::default() };
    let link = Faulty::new(queue, faults, Faults::default(), seed);
    let lines = [1, 2].map(|side| DelayLine::new(options.impairment, seed.wrapping_mul(side)));
    clock::sleep_exactly();
    // As the kernel's own queues: other work of the machine should not affect packets. Without the privilege it may.
    before_all_others(0).ok();
    pass(link, lines)?.write(&options.ledger)
}

fn pass(mut link: Faulty<TunQueue>, mut lines: [DelayLine; 2]) -> Result<Ledger> {
    let mut frames: Vec<_> = (0..BATCH).map(|_| Frame::with_capacity(LARGEST)).collect();
    let mut out = Frame::with_capacity(LARGEST);
    let (mut ledger, mut waited) = (Ledger::default(), histogram());
    while interrupt::check().is_ok() {
        wait(&link, &lines)?;
        loop {
            let count = link.receive(&mut frames).asking(|| "reading packets".to_owned())?;
            let now = clock::now();
            for frame in &frames[..count] {
                lines[direction(frame.bytes())].take(frame.bytes().to_vec(), now);
            }
            let left = send_due(&mut link, &mut lines, &mut out, |released| {
                ledger.released += 1;
                ledger.reordered += u64::from(released.reordered);
                waited.saturating_record(released.waited);
            })?;
            if count == 0 && left == 0 {
                break;
            }
        }
    }
    let (faults, counters) = (link.faults().0, link.counters());
    Ok(Ledger {
        packets: faults.packets,
        lost: faults.dropped,
        duplicated: faults.duplicated,
        corrupted: faults.corrupted,
        refused: counters.refused + counters.no_room,
        waited: waited.iter_recorded().map(|it| [it.value_iterated_to(), it.count_at_value()]).collect(),
        ..ledger
    })
}

/// Waits for a packet, or until one may leave.
fn wait(link: &Faulty<TunQueue>, lines: &[DelayLine; 2]) -> Result<()> {
    let Some(descriptor) = link.poll_fd() else { return Ok(()) };
    let next = lines.iter().filter_map(DelayLine::next_time).min();
    let limit = next.map_or(LOOK, |time| Duration::from_nanos(time.saturating_sub(clock::now())).min(LOOK));
    let mut one = [PollFd::new(descriptor, PollFlags::POLLIN)];
    match ppoll(&mut one, Some(TimeSpec::from_duration(limit)), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error).asking(|| "waiting for packets".to_owned()),
    }
}

/// Sends what may leave; how many packets.
fn send_due(
    link: &mut Faulty<TunQueue>,
    lines: &mut [DelayLine; 2],
    out: &mut Frame,
    mut note: impl FnMut(&super::delay_line::Released),
) -> Result<usize> {
    let mut count = 0;
    for line in lines {
        while let Some(released) = line.release(clock::now()) {
            out.fill(&released.packet, Offload::default());
            link.send(out).asking(|| "sending a packet".to_owned())?;
            note(&released);
            count += 1;
        }
    }
    link.flush().asking(|| "sending packets".to_owned())?;
    Ok(count)
}

/// Which direction a packet has: whether its source or its destination is the greater address.
fn direction(packet: &[u8]) -> usize {
    let addresses = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(12..20),
        Some(6) => packet.get(8..40),
        Some(_) | None => None,
    };
    addresses
        .is_some_and(|both| {
            let (source, destination) = both.split_at(both.len() / 2);
            source > destination
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::udp;
    use std::net::Ipv6Addr;

    #[test]
    fn the_two_directions_of_a_conversation_differ() {
        let (a, b): (Ipv6Addr, Ipv6Addr) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        assert_ne!(direction(&udp((a, 1), (b, 2), &[])), direction(&udp((b, 2), (a, 1), &[])));
        assert_eq!(direction(&[0x45; 10]), 0);
    }
}
