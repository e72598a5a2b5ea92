//! Round trips, by `ping`.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::RunsCommands;
use crate::terminal::median;
use std::time::Duration;

/// What came back of a series of pings.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    /// Echo requests sent.
    pub sent: u32,
    /// Echo requests answered.
    pub answered: u32,
    /// The round-trip times of those that were answered, shortest first, in milliseconds; none if they carry less than 16 octets, for then
    /// ping has no room for the time.
    pub milliseconds: Vec<f64>,
}

impl RoundTrips {
    /// The median in milliseconds, if any came back.
    pub fn median(&self) -> Option<f64> {
        (!self.milliseconds.is_empty()).then(|| median(&self.milliseconds))
    }
}

/// Sends `count` echo requests with `octets` of payload, one every `interval` (zero: each when the last one came back), and waits two
/// seconds or longer for the last answer.
pub fn ping(
    from: &impl RunsCommands,
    to: &str,
    count: u32,
    octets: u32,
    interval: Duration,
) -> Result<RoundTrips> {
    let deadline = deadline(count, interval);
    let mut ping = command("ping")?;
    // Without a deadline ping waits but two round trips for the last answer, which on a busy machine is too short; with one it continues
    // sending until it has `count` answers, and those to later requests are not ours.
    ping.args(["-n", "-w", &deadline.as_secs_f64().ceil().to_string()]);
    ping.args(["-c", &count.to_string(), "-s", &octets.to_string()]);
    ping.args(["-i", &interval.as_secs_f64().to_string(), to]);
    let finished = from.run(ping, deadline + Duration::from_secs(5))?;
    interrupt::check()?;
    if finished.stdout.is_empty() {
        return Err(Failure::Program(finished.typed, finished.stderr.trim().to_owned()));
    }
    Ok(round_trips(&finished.stdout, count))
}

/// How long `ping` may take. It ends as soon as it has all answers; on a busy machine it sends less often than it should.
fn deadline(count: u32, interval: Duration) -> Duration {
    // One that waits for each answer has three milliseconds for each.
    let each = if interval.is_zero() { Duration::from_millis(3) } else { interval * 5 };
    Duration::from_secs(2) + each * count
}

/// What became of the first `count` requests, by what `ping` said. Requests that it had no time to send are not lost.
fn round_trips(said: &str, count: u32) -> RoundTrips {
    let sent = transmitted(said).map_or(count, |sent| sent.min(count));
    let answered = answered(said).filter(|number| *number <= count).count() as u32;
    RoundTrips { sent, answered, milliseconds: times(said, count) }
}

/// The number of requests that were sent, which `ping` says at its end.
fn transmitted(said: &str) -> Option<u32> {
    let line = said.lines().find_map(|line| line.split_once(" packets transmitted"));
    line?.0.parse().ok()
}

/// Numbers of the requests that were answered, from 1, by what `ping` said.
pub fn answered(said: &str) -> impl Iterator<Item = u32> {
    let answers = said.lines().filter(|line| line.contains(" bytes from ") && !line.contains("DUP!"));
    answers.filter_map(number)
}

/// The number of the request that a line answers.
fn number(line: &str) -> Option<u32> {
    line.split_once("icmp_seq=")?.1.split_whitespace().next()?.parse().ok()
}

/// Round-trip times of the first `count` requests, shortest first.
fn times(said: &str, count: u32) -> Vec<f64> {
    let of_first = said.lines().filter(|line| number(line).is_some_and(|number| number <= count));
    let time = |line: &str| line.split_once("time=")?.1.split_whitespace().next()?.parse().ok();
    let mut times: Vec<f64> = of_first.filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_what_ping_says() {
        let said = "PING ::1(::1) 56 data bytes\n64 bytes from ::1: icmp_seq=1 ttl=64 time=0.090 ms\n\
                    64 bytes from ::1: icmp_seq=2 ttl=64 time=0.030 ms\n\n--- ::1 ping statistics ---\n";
        let trips = round_trips(said, 2);
        assert_eq!((trips.sent, trips.answered), (2, 2));
        assert_eq!(trips.milliseconds, [0.03, 0.09]);
        assert_eq!(trips.median(), Some(0.06));
        assert!(answered(said).eq([1, 2]));
    }

    #[test]
    fn a_request_that_was_not_sent_is_not_lost_and_one_too_many_does_not_count() {
        let said = |sent: u32| {
            let line =
                |number: u32| format!("64 bytes from ::1: icmp_seq={number} ttl=64 time=0.0{number} ms\n");
            let lines: String = [1, 2, 4].map(line).concat();
            format!(
                "{lines}\n--- ::1 ping statistics ---\n{sent} packets transmitted, 3 received, time 9ms\n"
            )
        };
        let trips = |sent, count| {
            let RoundTrips { sent, answered, milliseconds } = round_trips(&said(sent), count);
            (sent, answered, milliseconds)
        };
        assert_eq!(trips(4, 100), (4, 3, vec![0.01, 0.02, 0.04]), "the deadline came first");
        assert_eq!(trips(4, 3), (3, 2, vec![0.01, 0.02]), "the fourth was sent for the lost one");
    }

    #[test]
    fn each_request_has_time_for_its_answer() {
        let seconds = Duration::from_secs(2);
        assert_eq!(deadline(3_000, Duration::ZERO), seconds + Duration::from_millis(3) * 3_000);
        assert_eq!(deadline(100, Duration::from_millis(10)), seconds + Duration::from_millis(50) * 100);
    }
}
