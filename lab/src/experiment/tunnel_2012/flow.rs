//! The packets between routers b and c: a capture, like the paper's.

use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::AtWork;
use crate::failure::Result;
use crate::interrupt;
use crate::namespace::command;
use crate::results::Unit;
use std::time::Duration;

/// Requests that are sent while it runs.
const REQUESTS: u16 = 5;

/// Captures protocol 41 while requests of this length are answered through the tunnel and past it.
pub fn flow(at_work: &AtWork, data: usize, sheet: &mut Sheet) -> Result<()> {
    let network = at_work.network();
    let mut tcpdump = command("tcpdump")?;
    tcpdump.args(["-i", "out0", "-nvv", "-U", "-l", "--immediate-mode", "ip proto 41"]);
    let capture = network.start("b", tcpdump)?;
    interrupt::wait_until(Duration::from_secs(10), "tcpdump listening", || {
        network.with_process(capture, |process| {
            process.must_run()?;
            Ok(process.stderr().contains("listening on"))
        })?
    })?;
    let way = at_work.way();
    let (outcome, cost, _) = at_work.metered(|| at_work.echo(way.target(), data, REQUESTS))?;
    let native = at_work.echo(way.native(), data, REQUESTS)?;
    std::thread::sleep(Duration::from_millis(200));
    let said = network.with_process(capture, |process| {
        process.stop();
        process.stdout()
    })?;
    sheet.tester(cost);
    sheet.value("answered", outcome.answered as f64, Unit::Count);
    sheet.value("answered-natively", native.answered as f64, Unit::Count);
    sheet.value("there", packets(&said, "192.0.2.1", "198.51.100.1") as f64, Unit::Count);
    sheet.value("back", packets(&said, "198.51.100.1", "192.0.2.1") as f64, Unit::Count);
    sheet.keep("flow.txt", &said)
}

/// Packets from one router to the other in tcpdump's output.
fn packets(said: &str, from: &str, to: &str) -> usize {
    said.matches(&format!("{from} > {to}:")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_direction() {
        let said = "IP (tos 0x0, ttl 63, proto IPv6 (41), length 124)\n    192.0.2.1 > 198.51.100.1: IP6 (hlim 63)\n";
        assert_eq!(packets(said, "192.0.2.1", "198.51.100.1"), 1);
        assert_eq!(packets(said, "198.51.100.1", "192.0.2.1"), 0);
    }
}
