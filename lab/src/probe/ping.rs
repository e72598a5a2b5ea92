//! Round trips, by `ping`.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::{Namespace, command};
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
        self.milliseconds.get(self.milliseconds.len() / 2).copied()
    }
}

/// Sends `count` echo requests with `octets` of payload, one every `interval` (zero: each when the last one came back).
pub fn ping(from: &Namespace, to: &str, count: u32, octets: u32, interval: Duration) -> Result<RoundTrips> {
    let mut ping = command("ping")?;
    ping.args(["-n", "-W", "1", "-c", &count.to_string(), "-s", &octets.to_string()]);
    ping.args(["-i", &interval.as_secs_f64().to_string(), to]);
    let limit = Duration::from_secs(5) + (interval + Duration::from_millis(20)) * count;
    let finished = from.run(ping, limit)?;
    interrupt::check()?;
    if finished.stdout.is_empty() {
        return Err(Failure::Program(finished.typed, finished.stderr.trim().to_owned()));
    }
    let answered = finished.stdout.matches(" bytes from ").count() as u32;
    Ok(RoundTrips { sent: count, answered, milliseconds: times(&finished.stdout) })
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
        assert_eq!(trips.median(), Some(0.09));
    }
}
