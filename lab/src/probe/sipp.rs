//! SIPp's built-in caller and callee. Its own times are whole milliseconds: captures have better ones.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::Process;
use crate::topology::Network;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The callee's port.
pub const SIPP_PORT: u16 = 5_060;

/// The outcome of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SippReport {
    /// Calls that were made and ended.
    pub made: u64,
    /// Calls that failed.
    pub failed: u64,
}

/// Makes calls without audio from one host to another.
///
/// # Errors
/// SIPp is not installed, does not start or says nothing.
pub fn sipp(
    network: &Network,
    (from, caller): (&str, IpAddr),
    (to, callee): (&str, IpAddr),
    (calls, per_second): (u32, f64),
) -> Result<SippReport> {
    let port = SIPP_PORT.to_string();
    let mut answering = command("sipp")?;
    answering.args(["-sn", "uas", "-i", &callee.to_string(), "-p", &port, "-nostdin"]);
    answering.current_dir(network.folder());
    let answering = network.start(to, answering)?;
    interrupt::wait_until(Duration::from_secs(5), "sipp listening", || {
        network.with_process(answering, Process::must_run)??;
        // A port that is taken cannot be bound again.
        let place = SocketAddr::new(callee, SIPP_PORT);
        network.host(to)?.enter(|| std::net::UdpSocket::bind(place).is_err())
    })?;
    let mut calling = command("sipp")?;
    calling.args(["-sn", "uac", &SocketAddr::new(callee, SIPP_PORT).to_string(), "-i", &caller.to_string()]);
    calling.args(["-p", "5061", "-m", &calls.to_string(), "-r", &format!("{per_second:.0}"), "-d", "0"]);
    calling.args(["-nostdin", "-timeout", "60s"]).current_dir(network.folder());
    let said = network.host(from)?.run(calling, Duration::from_secs(70));
    network.with_process(answering, Process::stop)?;
    let said = said?.succeeded()?;
    read(&said.stdout).ok_or_else(|| Failure::Program(said.typed, "no statistics".to_owned()))
}

fn read(said: &str) -> Option<SippReport> {
    // The last screen's sums, in the last column.
    let sum = |name: &str| -> Option<u64> {
        let line = said.lines().rev().find(|line| line.trim_start().starts_with(name))?;
        line.rsplit('|').next()?.trim().parse().ok()
    };
    Some(SippReport { made: sum("Successful call")?, failed: sum("Failed call")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_from_the_last_screen() {
        let screen = |made: u32| {
            format!(
                "  Successful call        |        0                  |       {made}                 \n  Failed call            |        0                  |        1                 \n"
            )
        };
        assert_eq!(read(&(screen(3) + &screen(10))), Some(SippReport { made: 10, failed: 1 }));
        assert_eq!(read(""), None);
    }
}
