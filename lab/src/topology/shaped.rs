//! Links of limited rate.

use super::network::Network;
use crate::failure::Result;
use crate::namespace;
use std::process::Command;
use std::time::Duration;

/// The longest frame of Ethernet without its checksum.
const FRAME: u32 = 1_514;

/// A link's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Megabits a second, frames with their Ethernet header.
    pub megabits: f64,
    /// Frames of the longest size that wait.
    pub queue: u32,
}

impl Shape {
    /// Fast Ethernet, with a queue of a hundred frames (12 ms).
    pub const FAST_ETHERNET: Self = Self { megabits: 100.0, queue: 100 };
}

impl Network {
    /// Limits what leaves a host by a device. The bucket holds one frame: the first frame passes without delay, and the next one leaves when it
    /// would on such a wire. Frames of several segments are cut before they are counted.
    pub fn shape(&self, host: &str, device: &str, shape: Shape) -> Result<()> {
        // The bucket holds 26 octets more than the longest frame: a tunnel adds its header before the link, not on it.
        let (rate, burst, limit) = (shape.megabits * 1e6, FRAME + 26, FRAME * (shape.queue + 1));
        let words =
            format!("qdisc replace dev {device} root tbf rate {rate:.0}bit burst {burst} limit {limit}");
        self.run_words(host, "tc", &words)?;
        // Threads that receive for a link end without GRO, and with theirs nothing is joined.
        let gro = if self.threads_of(host, device).is_empty() { "off" } else { "on" };
        self.run_words(host, "ethtool", &format!("-K {device} tso off gso off gro {gro}"))
    }

    /// Limits a link in both directions.
    pub fn shape_link(&self, a: (&str, &str), b: (&str, &str), shape: Shape) -> Result<()> {
        self.shape(a.0, a.1, shape)?;
        self.shape(b.0, b.1, shape)
    }

    /// Lets a device send as fast as it can.
    pub fn unshape(&self, host: &str, device: &str) -> Result<()> {
        self.run_words(host, "tc", &format!("qdisc delete dev {device} root"))
    }

    fn run_words(&self, host: &str, program: &'static str, words: &str) -> Result<()> {
        let mut command: Command = namespace::command(program)?;
        command.args(words.split_whitespace());
        self.host(host)?.run(command, Duration::from_secs(20))?.succeeded().map(drop)
    }
}
