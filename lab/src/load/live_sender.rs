//! A program that makes frames, run by BPF_PROG_RUN with live frames: as many as possible, or at a rate.

use super::bpf::{program, refused, rest, strange};
use super::clock;
use super::outcome::{Gaps, Outcome, Pace, Until};
use super::pacer::pace as paced;
use crate::failure::{Asking as _, Result};
use crate::interrupt;
use crate::namespace::Namespace;
use aya::Ebpf;
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp};
use nix::net::if_::if_nametoindex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Frames that the kernel makes together when they are to be as many as possible.
pub(super) const BATCH: u32 = 64;
/// Calls in a second when frames have a rate.
const CALLS: f64 = 2_000.0;
/// How long is waited for a number of memory for frames.
const FULL: Duration = Duration::from_secs(5);

/// Whether an error is that of the kernel without a free number (ENOSPC).
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let own = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    own == Some(libc::ENOSPC) || error.source().is_some_and(is_full)
}

/// One of some loaded programs, which makes frames that leave by a device.
pub(super) struct LiveSender {
    program: &'static str,
    frame: Vec<u8>,
    context: [u8; 24],
}

impl LiveSender {
    /// Loads this program, whose frames are as long as this one, for a device of a host.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn new(
        programs: &mut Ebpf,
        (name, frame): (&'static str, Vec<u8>),
        (host, device): (&Namespace, &str),
    ) -> Result<Self> {
        let sender = program(programs, name)?;
        sender.load().map_err(|error| refused("loading a sender", &error))?;
        rest(sender, host)?;
        let index = host.enter(|| if_nametoindex(device))?.asking(|| format!("looking for {device}"))?;
        let mut context = [0; 24];
        context[4..8].copy_from_slice(&(frame.len() as u32).to_ne_bytes());
        context[12..16].copy_from_slice(&index.to_ne_bytes());
        Ok(Self { program: name, frame, context })
    }

    /// A whole frame, without what differs.
    pub(super) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// The program.
    ///
    /// # Errors
    /// It is not in these programs.
    pub(super) fn program<'a>(&self, programs: &'a Ebpf) -> Result<&'a Xdp> {
        let found = programs.program(self.program).and_then(|program| program.try_into().ok());
        found.ok_or_else(|| strange(self.program))
    }

    /// Runs it this often. To be called inside the host's namespace. Each call takes one of the kernel's 65,534 numbers of memory for frames, which is
    /// free again when its last frame is: in an overload all of them may be in use for a moment.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn send(&self, programs: &Ebpf, count: u32, batch: u32) -> Result<()> {
        let start = clock::now();
        loop {
            let options = TestRunOptions {
                data_in: Some(&self.frame),
                ctx_in: Some(&self.context),
                repeat: count,
                attrs: TestRunAttrs::new().xdp_live_frames(batch),
                ..TestRunOptions::new()
            };
            match self.program(programs)?.test_run(options) {
                Err(error) if is_full(&error) && clock::now() - start < clock::nanoseconds(FULL) => {
                    interrupt::check()?;
                    std::thread::sleep(Duration::from_millis(5));
                }
                sent => {
                    return sent.map_err(|error| refused("sending frames (BPF_PROG_RUN)", &error)).map(drop);
                }
            }
        }
    }

    /// The same at a rate. Each call makes the frames of half a millisecond, or one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn at_rate(&self, programs: &Ebpf, per_second: f64, until: Until) -> Result<Outcome> {
        let batch = (per_second / CALLS).round().max(1.0);
        let calls = match until {
            Until::Count(count) => Until::Count((count as f64 / batch).ceil() as u64),
            Until::CountWithin(count, time) => Until::CountWithin((count as f64 / batch).ceil() as u64, time),
            Until::Time(_) | Until::Done => until,
        };
        let rate = Pace::Open { per_second: per_second / batch, gaps: Gaps::Even };
        // The last call makes the rest.
        let most = match until {
            Until::Count(count) | Until::CountWithin(count, _) => count,
            Until::Time(_) | Until::Done => u64::MAX,
        };
        let batch = batch as u64;
        let sent = paced(&AtomicBool::new(false), rate, calls, |due| {
            let left = most.saturating_sub(u64::from(due.sequence) * batch).min(batch) as u32;
            self.send(programs, left, left.min(BATCH)).map(|()| true)
        })?;
        let count = (sent.count * batch).min(most);
        Ok(Outcome { sent: count, lateness: sent.lateness, ..Outcome::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_free_number_is_told_from_other_errors() {
        let error = |number| {
            let io_error = std::io::Error::from_raw_os_error(number);
            aya::programs::ProgramError::SyscallError(aya::sys::SyscallError { call: "x", io_error })
        };
        assert!(is_full(&error(libc::ENOSPC)) && !is_full(&error(libc::ENOMEM)));
    }
}
