//! Bulk TCP, by `iperf3`.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::Finished;
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

/// An iperf3 server on a host of a network.
pub struct BulkServer<'a> {
    network: &'a Network,
    process: u32,
}

/// Starts an iperf3 server on a host, and waits until it listens.
pub fn serve_bulk<'a>(network: &'a Network, host: &str) -> Result<BulkServer<'a>> {
    let mut iperf = command("iperf3")?;
    iperf.args(["-s", "-p", PORT, "--forceflush"]);
    let process = network.start(host, iperf)?;
    let server = BulkServer { network, process };
    server.wait_until_it_has_listened(1)?;
    Ok(server)
}

impl BulkServer<'_> {
    /// One TCP stream between a host and this server, whose address is `to`.
    pub fn transfer(&self, from: &str, to: &str, direction: Direction, time: Duration) -> Result<Bulk> {
        let listened = self.has_listened()?;
        let mut iperf = command("iperf3")?;
        iperf.args(["-c", to, "-p", PORT, "-J", "--connect-timeout", "3000"]);
        iperf.args(["-t", &time.as_secs_f64().ceil().to_string()]);
        match direction {
            Direction::Up => {}
            Direction::Down => drop(iperf.arg("-R")),
        }
        let finished = self.network.host(from)?.run(iperf, time + Duration::from_secs(12))?;
        let bulk = read(finished)?;
        // Between two clients it closes its socket for a moment, and resets who comes then.
        self.wait_until_it_has_listened(listened + 1)?;
        Ok(bulk)
    }

    /// How often it has said that it listens: once, and once after each client.
    fn has_listened(&self) -> Result<usize> {
        self.network.with_process(self.process, |process| {
            process.must_run()?;
            Ok(process.stdout().matches("listening").count())
        })?
    }

    fn wait_until_it_has_listened(&self, times: usize) -> Result<()> {
        let enough = || Ok(self.has_listened()? >= times);
        interrupt::wait_until(Duration::from_secs(5), "iperf3 listening", enough)
    }
}

/// Datagrams with this data at a rate to the address `to` of a host, which serves meanwhile: how many were sent, and how many arrived.
///
/// # Errors
/// iperf3 is not installed, or fails.
pub fn udp_by_iperf(
    network: &Network,
    (from, host): (&str, &str),
    to: &str,
    (payload, per_second, time): (usize, f64, Duration),
) -> Result<(u64, u64)> {
    let server = serve_bulk(network, host)?;
    let mut iperf = command("iperf3")?;
    iperf.args(["-u", "-c", to, "-p", PORT, "-J", "--connect-timeout", "3000", "-l", &payload.to_string()]);
    iperf.args(["-b", &format!("{:.0}", per_second * payload as f64 * 8.0)]);
    // It counts in whole seconds.
    iperf.args(["-t", &time.as_secs_f64().ceil().to_string()]);
    let finished = network.host(from)?.run(iperf, time + Duration::from_secs(12))?;
    network.with_process(server.process, crate::process::Process::stop)?;
    let said: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    let sum = &said["end"]["sum"];
    match (sum["packets"].as_u64(), sum["lost_packets"].as_u64()) {
        (Some(sent), Some(lost)) => Ok((sent, sent.saturating_sub(lost))),
        _ => Err(Failure::Program(finished.typed, finished.stderr)),
    }
}

fn read(finished: Finished) -> Result<Bulk> {
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
