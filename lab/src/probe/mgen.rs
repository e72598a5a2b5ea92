//! MGEN: datagrams one way at a rate. Debian's package receives over IPv4 only.

use crate::failure::Result;
use crate::interrupt;
use crate::namespace::command;
use crate::process::Process;
use crate::topology::Network;
use std::net::Ipv4Addr;
use std::time::Duration;

const PORT: u16 = 5_001;

/// What its two logs say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MgenReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived.
    pub arrived: u64,
    /// From sending to arrival, in milliseconds, in the order of arrival: both ends have the same clock.
    pub milliseconds: Vec<f64>,
}

/// Sends datagrams with this data from one host to another.
///
/// # Errors
/// MGEN is not installed or does not start.
pub fn mgen(
    network: &Network,
    (from, to): (&str, &str),
    address: Ipv4Addr,
    (payload, per_second, time): (usize, f64, Duration),
) -> Result<MgenReport> {
    let (sent, received) =
        (network.folder().join("mgen-sent.log"), network.folder().join("mgen-received.log"));
    let mut receiver = command("mgen")?;
    receiver.args(["event", &format!("0.0 LISTEN UDP {PORT}"), "output"]).arg(&received);
    let receiver = network.start(to, receiver)?;
    let text = |file: &std::path::Path| std::fs::read_to_string(file).unwrap_or_default();
    interrupt::wait_until(Duration::from_secs(5), "mgen listening", || {
        network.with_process(receiver, |process| {
            process.must_run()?;
            // It writes its log when it ends.
            Ok([process.stdout(), process.stderr()].iter().any(|said| said.contains("starting now")))
        })?
    })?;
    let script = format!(
        "0.0 ON 1 UDP DST {address}/{PORT} PERIODIC [{per_second:.1} {payload}]\n{:.3} OFF 1\n",
        time.as_secs_f64()
    );
    let mut sender = command("mgen")?;
    sender.arg("input").arg(network.file("sender.mgn", &script)?).args(["txlog", "output"]).arg(&sent);
    network.host(from)?.run(sender, time + Duration::from_secs(10))?.succeeded()?;
    std::thread::sleep(Duration::from_millis(200));
    network.with_process(receiver, Process::stop)?;
    Ok(read(&text(&sent), &text(&received)))
}

fn read(sent: &str, received: &str) -> MgenReport {
    let milliseconds: Vec<f64> = received.lines().filter_map(delay).collect();
    let sent = sent.lines().filter(|line| line.contains(" SEND ")).count() as u64;
    MgenReport { sent, arrived: milliseconds.len() as u64, milliseconds }
}

fn delay(line: &str) -> Option<f64> {
    let (at, rest) = line.split_once(" RECV ")?;
    let sent = rest.split_once(" sent>")?.1.split_whitespace().next()?;
    // Past midnight the clock begins again.
    Some((seconds(at)? - seconds(sent)?).rem_euclid(86_400.0) * 1e3)
}

/// Seconds since midnight of a time such as `15:44:26.926098`.
fn seconds(clock: &str) -> Option<f64> {
    let mut parts = clock.trim().splitn(3, ':').map(str::parse::<f64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some(hours * 3_600.0 + minutes * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_from_the_receivers_log() {
        let received = "15:44:26.0 LISTEN proto>UDP port>5000\n\
                        15:44:26.926243 RECV proto>UDP flow>1 seq>1 src>127.0.0.1/51598 dst>127.0.0.1/5000 sent>15:44:26.926183 size>512\n\
                        00:00:00.000100 RECV proto>UDP flow>1 seq>2 src>127.0.0.1/51598 dst>127.0.0.1/5000 sent>23:59:59.999900 size>512\n";
        let sent =
            "15:44:26.909369 SEND proto>UDP flow>1 seq>0\n15:44:26.926183 SEND proto>UDP flow>1 seq>1\n";
        let report = read(sent, received);
        assert_eq!((report.sent, report.arrived), (2, 2));
        assert!((report.milliseconds[0] - 0.06).abs() < 1e-6 && (report.milliseconds[1] - 0.2).abs() < 1e-6);
    }
}
