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
    // On a busy machine ping sends less often than it should. It ends as soon as it has all answers.
    // One that waits for each answer has three milliseconds for each.
    let each = if interval.is_zero() { Duration::from_millis(3) } else { interval * 5 };
    let deadline = Duration::from_secs(2) + each * count;
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
    let answered = answered(&finished.stdout).filter(|number| *number <= count).count() as u32;
    Ok(RoundTrips { sent: count, answered, milliseconds: times(&finished.stdout) })
}

/// Numbers of the requests that were answered, from 1, by what `ping` said.
pub fn answered(said: &str) -> impl Iterator<Item = u32> {
    let answers = said.lines().filter(|line| line.contains(" bytes from ") && !line.contains("DUP!"));
    answers.filter_map(|line| line.split_once("icmp_seq=")?.1.split_whitespace().next()?.parse().ok())
}

fn times(said: &str) -> Vec<f64> {
    let mut times: Vec<f64> = said
        .lines()
        .filter_map(|line| line.split_once("time=")?.1.split_whitespace().next()?.parse().ok())
        .collect();
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
        let trips = RoundTrips { sent: 2, answered: 2, milliseconds: times(said) };
        assert_eq!(trips.milliseconds, [0.03, 0.09]);
        assert_eq!(trips.median(), Some(0.06));
        assert!(answered(said).eq([1, 2]));
    }
}
