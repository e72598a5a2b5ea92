//! tcpdump next to a test: what it decodes is judged at the end.

use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::topology::Network;
use std::time::Duration;

/// A running capture on a host's device.
pub struct Capture<'a> {
    network: &'a Network,
    process: u32,
}

impl<'a> Capture<'a> {
    /// Starts to listen.
    pub fn start(network: &'a Network, host: &str, device: &str, filter: &str) -> Result<Self> {
        let mut tcpdump = command("tcpdump")?;
        tcpdump.args(["-i", device, "-nvv", "-U", "-l", "--immediate-mode", "-s", "0", filter]);
        let process = network.start(host, tcpdump)?;
        interrupt::wait_until(Duration::from_secs(5), "tcpdump listening", || {
            network.with_process(process, |process| {
                process.must_run()?;
                Ok(process.stderr().contains("listening on"))
            })?
        })?;
        Ok(Self { network, process })
    }

    /// Ends it, once what was on its way is decoded; all that it said.
    pub fn end(self) -> Result<String> {
        std::thread::sleep(Duration::from_millis(200));
        self.network.with_process(self.process, |process| {
            process.stop();
            process.stdout()
        })
    }
}

/// At least this number of checksums are right, and none is wrong; packets quoted in ICMP errors are not judged, for they are cut.
pub fn checksums_are_right(said: &str, at_least: usize) -> Result<()> {
    const RIGHT: [&str; 3] = ["(correct)", "[udp sum ok]", "[icmp6 sum ok]"];
    const WRONG: [&str; 5] =
        ["incorrect", "bad udp cksum", "bad icmp6 cksum", "wrong icmp cksum", "bad cksum"];
    let right: usize = RIGHT.iter().map(|sign| said.matches(sign).count()).sum();
    let wrong: Vec<_> = said.lines().filter(|line| WRONG.iter().any(|sign| line.contains(sign))).collect();
    if right >= at_least && wrong.is_empty() {
        return Ok(());
    }
    let first: Vec<_> = wrong.iter().take(5).collect();
    Err(Failure::Unexpected(format!("{right} checksums right, {} wrong: {first:#?}", wrong.len())))
}
