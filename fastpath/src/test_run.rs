//! Packets through a program without a wire: the kernel's BPF_PROG_TEST_RUN.

use crate::error::FastPathError;
use aya::programs::{SchedClassifier, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use std::time::Duration;

/// Octets that a result may be longer than its packet.
const MORE: usize = 256;

/// A frame as a program is to see it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its octets, from the Ethernet header on.
    pub octets: &'a [u8],
    /// Index of the interface that it came in by, in the calling thread's namespace; 0: the loopback device. Its Ethernet address decides
    /// whether a frame at tc ingress is for this host.
    pub ifindex: u32,
    /// tc ingress: segment size in octets of a GSO packet; 0: not a GSO packet. The kernel does not let a test set the GSO type.
    pub gso_size: u32,
    /// tc ingress: its segments.
    pub gso_segments: u32,
}

impl<'a> Frame<'a> {
    /// A frame that came in by the loopback device.
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { octets, ifindex: 0, gso_size: 0, gso_segments: 0 }
    }

    /// The same frame by another interface.
    pub const fn by(self, ifindex: u32) -> Self {
        Self { ifindex, ..self }
    }
}

/// The result of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it returned: XDP_… or TC_ACT_….
    pub verdict: u32,
    /// The frame as it left it.
    pub octets: Vec<u8>,
    /// Mean time of a run.
    pub time: Duration,
}

/// Runs the program at tc ingress once.
///
/// # Errors
/// The kernel refuses the frame: it is shorter than 14 octets, longer than a page less its headroom, or its interface does not exist.
pub fn run_tc(program: &SchedClassifier, frame: &Frame<'_>) -> Result<Ran, FastPathError> {
    repeat_tc(program, frame, 1)
}

/// Runs it `times` times, each run on the result of the previous one.
///
/// # Errors
/// As for [`run_tc`].
pub fn repeat_tc(program: &SchedClassifier, frame: &Frame<'_>, times: u32) -> Result<Ran, FastPathError> {
    let context = buffer_context(frame);
    run(program, frame.octets, &context, times)
}

/// Runs the program in the driver once.
///
/// # Errors
/// As for [`run_tc`]; an interface other than the loopback device must be up.
pub fn run_xdp(program: &Xdp, frame: &Frame<'_>) -> Result<Ran, FastPathError> {
    repeat_xdp(program, frame, 1)
}

/// Runs it `times` times, as [`repeat_tc`].
///
/// # Errors
/// As for [`run_xdp`].
pub fn repeat_xdp(program: &Xdp, frame: &Frame<'_>, times: u32) -> Result<Ran, FastPathError> {
    let context = driver_context(frame);
    run(program, frame.octets, &context, times)
}

/// Sends the frame through the program this number of times as though it had come in by the interface: what the program redirects leaves, what it
/// passes goes up to the host's stack (Linux 5.18). `batch` frames at a time, 0: 64.
///
/// # Errors
/// As for [`run_xdp`].
pub fn send_xdp(program: &Xdp, frame: &Frame<'_>, times: u32, batch: u32) -> Result<(), FastPathError> {
    let context = driver_context(frame);
    let options = TestRunOptions {
        data_in: Some(frame.octets),
        ctx_in: Some(&context),
        repeat: times,
        attrs: TestRunAttrs::new().xdp_live_frames(batch),
        ..TestRunOptions::new()
    };
    program.test_run(options).map(|_| ()).map_err(FastPathError::when("send frames"))
}

fn run<P>(program: &P, octets: &[u8], context: &[u8], times: u32) -> Result<Ran, FastPathError>
where
    P: for<'a> TestRun<Opts<'a> = TestRunOptions<'a>, Result = aya::TestRunResult>,
{
    let mut out = vec![0; octets.len() + MORE];
    let options = TestRunOptions {
        data_in: Some(octets),
        data_out: Some(&mut out),
        ctx_in: Some(context),
        repeat: times,
        ..TestRunOptions::new()
    };
    let result = program.test_run(options).map_err(FastPathError::when("run the program"))?;
    out.truncate(result.data_size_out as usize);
    Ok(Ran { verdict: result.return_value, octets: out, time: result.duration })
}

/// `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
fn driver_context(frame: &Frame<'_>) -> [u8; 24] {
    let end = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
    let mut context = [0; 24];
    context[4..8].copy_from_slice(&end.to_ne_bytes());
    context[12..16].copy_from_slice(&frame.ifindex.to_ne_bytes());
    context
}

/// `struct __sk_buff`: those fields that a test may set.
fn buffer_context(frame: &Frame<'_>) -> [u8; 192] {
    let mut context = [0; 192];
    let mut put = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(36, frame.ifindex); // ingress_ifindex
    put(40, frame.ifindex); // ifindex
    put(164, frame.gso_segments);
    put(176, frame.gso_size);
    context
}
