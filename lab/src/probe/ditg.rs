//! D-ITG's sender and receiver: packets at a rate that come back (its meter `rttm`), or go one way.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::Process;
use crate::topology::Network;
use std::net::IpAddr;
use std::time::Duration;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DitgLoad {
    /// Over TCP, or UDP.
    pub is_tcp: bool,
    /// Octets of data of a packet.
    pub payload: usize,
    /// Packets in a second; more than some thousands it does not keep.
    pub per_second: f64,
    /// How long.
    pub time: Duration,
}

/// What its decoder says about the packets that came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DitgReport {
    /// Packets.
    pub packets: u64,
    /// Packets that did not come back, as far as it knows.
    pub dropped: u64,
    /// Mean round-trip time in milliseconds.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// Packets in a second.
    pub per_second: f64,
    /// Bits of data in a second.
    pub bits_per_second: f64,
    /// Round-trip times of all packets in milliseconds, in the order in which they were sent.
    pub times: Vec<f64>,
}

/// Sends from one host to another.
///
/// # Errors
/// D-ITG is not installed, does not start or says nothing.
pub fn ditg(
    network: &Network,
    (from, to): (&str, &str),
    address: IpAddr,
    load: DitgLoad,
) -> Result<DitgReport> {
    let mut receiver = command("ITGRecv")?;
    receiver.arg("-l").arg(network.folder().join("itg-receiver.log"));
    let receiver = network.start(to, receiver)?;
    // Its server for signals has this port.
    let probe = std::net::SocketAddr::new(address, 9_000);
    interrupt::wait_until(Duration::from_secs(5), "ITGRecv listening", || {
        network.with_process(receiver, Process::must_run)??;
        network
            .host(to)?
            .enter(|| std::net::TcpStream::connect_timeout(&probe, Duration::from_secs(1)).is_ok())
    })?;
    let log = network.folder().join("itg-sender.log");
    let mut sender = command("ITGSend")?;
    sender.args(["-a", &address.to_string(), "-rp", "9500", "-m", "rttm"]);
    sender.args(["-T", if load.is_tcp { "TCP" } else { "UDP" }, "-c", &load.payload.to_string()]);
    sender.args(["-C", &format!("{:.0}", load.per_second), "-t", &load.time.as_millis().to_string()]);
    sender.arg("-l").arg(&log);
    let sent = network.host(from)?.run(sender, load.time + Duration::from_secs(15));
    network.with_process(receiver, Process::stop)?;
    sent?.succeeded()?;
    let mut decoder = command("ITGDec")?;
    decoder.arg(&log);
    let said = network.host(from)?.run(decoder, Duration::from_secs(30))?.succeeded()?;
    let report =
        read(&said.stdout).ok_or_else(|| Failure::Program(said.typed, "no total results".to_owned()))?;
    let list = network.folder().join("itg-packets.txt");
    let mut decoder = command("ITGDec")?;
    decoder.arg(&log).arg("-l").arg(&list);
    network.host(from)?.run(decoder, Duration::from_secs(30))?.succeeded()?;
    let text = std::fs::read_to_string(&list).asking(|| format!("reading {}", list.display()))?;
    Ok(DitgReport { times: times(&text), ..report })
}

/// Milliseconds from when a packet was sent to when it was back, for each line of the decoder's list.
fn times(list: &str) -> Vec<f64> {
    let clock = |line: &str, name: &str| -> Option<f64> {
        let time = line.split_once(name)?.1.split_whitespace().next()?;
        time.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
    };
    let of = |line: &str| {
        let (sent, back) = (clock(line, "txTime>")?, clock(line, "rxTime>")?);
        // It may be midnight.
        Some((back - sent).rem_euclid(86_400.0) * 1e3)
    };
    list.lines().filter_map(of).collect()
}

fn read(said: &str) -> Option<DitgReport> {
    let total = said.split_once("TOTAL RESULTS")?.1;
    let number = |name: &str| -> Option<f64> {
        let line = total.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
        line.trim_start().strip_prefix('=')?.split_whitespace().next()?.parse().ok()
    };
    Some(DitgReport {
        packets: number("Total packets")? as u64,
        dropped: number("Packets dropped")? as u64,
        mean: number("Average delay")? * 1e3,
        sd: number("Delay standard deviation")? * 1e3,
        per_second: number("Average packet rate")?,
        bits_per_second: number("Average bitrate")? * 1e3,
        times: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_packets_are_read_in_their_order_and_over_midnight() {
        let line = |sent: &str, back: &str| {
            format!(
                "Flow>0001 Seq>      1 Src> ::1/52370 Dest> ::1/9500 txTime>{sent} rxTime>{back} Size>  100\n"
            )
        };
        let said = line("15:28:44.380701", "15:28:44.383704")
            + "ITGDec version 2.8.1\n"
            + &line("23:59:59.999500", "0:00:00.000500");
        let times = times(&said);
        assert_eq!(times.len(), 2);
        assert!((times[0] - 3.003).abs() < 1e-3 && (times[1] - 1.0).abs() < 1e-3, "{times:?}");
    }

    #[test]
    fn the_total_is_read_from_what_the_decoder_says() {
        let said = "Flow number: 1\nTotal packets            =           1\n\
                    ****************  TOTAL RESULTS   ******************\n\
                    Total packets            =           367\nAverage delay            =      0.000142 s\n\
                    Delay standard deviation =      0.000270 s\nAverage bitrate          =    756.364075 Kbit/s\n\
                    Average packet rate      =    184.659198 pkt/s\nPackets dropped          =             2 (0.54 %)\n";
        let report = read(said).unwrap();
        assert_eq!((report.packets, report.dropped), (367, 2));
        assert!((report.mean - 0.142).abs() < 1e-9 && (report.sd - 0.27).abs() < 1e-9);
        assert!((report.per_second - 184.659_198).abs() < 1e-9);
        assert!((report.bits_per_second - 756_364.075).abs() < 1e-6);
        assert_eq!(read("ITGDec version 2.8.1"), None);
    }
}
