//! Bulk TCP, by `iperf3`.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::topology::Network;
use serde_json::Value;
use std::time::Duration;

const PORT: &str = "5201";

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    Up,
    /// To the client.
    Down,
}

/// A bulk transfer's result.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// Bits of payload received in a second.
    pub bits_per_second: f64,
    /// Octets received.
    pub octets: u64,
    /// Segments sent again.
    pub retransmits: u64,
}

/// Starts an iperf3 server on a host, and waits until it listens.
pub fn serve_bulk(network: &Network, host: &str) -> Result<()> {
    let mut iperf = command("iperf3")?;
    iperf.args(["-s", "-p", PORT, "--forceflush"]);
    let id = network.start(host, iperf)?;
    interrupt::wait_until(Duration::from_secs(5), "iperf3 listening", || {
        network.with_process(id, |process| {
            process.must_run()?;
            Ok(process.stdout().contains("listening"))
        })?
    })
}

/// One TCP stream between a host and the iperf3 server at `to`.
pub fn bulk_tcp(
    network: &Network,
    from: &str,
    to: &str,
    direction: Direction,
    time: Duration,
) -> Result<Bulk> {
    let mut iperf = command("iperf3")?;
    iperf.args(["-c", to, "-p", PORT, "-J", "--connect-timeout", "3000"]);
    iperf.args(["-t", &time.as_secs_f64().ceil().to_string()]);
    match direction {
        Direction::Up => {}
        Direction::Down => drop(iperf.arg("-R")),
    }
    let finished = network.host(from)?.run(iperf, time + Duration::from_secs(12))?;
    let said: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    if let Some(error) = said["error"].as_str() {
        return Err(Failure::Program(finished.typed, error.to_owned()));
    }
    let received = &said["end"]["sum_received"];
    let (Some(bits_per_second), Some(octets)) =
        (received["bits_per_second"].as_f64(), received["bytes"].as_u64())
    else {
        return Err(Failure::Program(finished.typed, finished.stderr));
    };
    let retransmits = said["end"]["sum_sent"]["retransmits"].as_u64().unwrap_or(0);
    Ok(Bulk { bits_per_second, octets, retransmits })
}
