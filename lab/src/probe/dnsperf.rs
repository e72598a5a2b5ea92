//! Many questions at the same time: `dnsperf`.

use crate::failure::{Failure, Result};
use crate::namespace::{Namespace, command};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The queries.
#[derive(Clone, Copy, Debug)]
pub enum Questions {
    /// The file's again and again, for so long.
    For(Duration),
    /// The file's, each once.
    Once,
}

/// The outcome of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// Answers.
    pub count: u64,
    /// Questions that were not answered within 5 s.
    pub lost: u64,
    /// Answers in a second.
    pub per_second: f64,
}

/// Asks the questions of a file (a name and a type in each line) from a host, on CPU 0: 8 sockets, one thread, at most 200 questions under way. Every answer must be
/// NOERROR, and no more than one question in a hundred may be lost (sockets overflow on a busy machine).
pub fn dnsperf(host: &Namespace, server: SocketAddr, file: &Path, questions: Questions) -> Result<Answers> {
    let mut dnsperf = command("taskset")?;
    dnsperf.args(["-c", "0"]).arg(command("dnsperf")?.get_program());
    dnsperf.args(["-c", "8", "-T", "1", "-q", "200", "-s", &server.ip().to_string()]).arg("-d").arg(file);
    let limit = match questions {
        Questions::For(time) => {
            dnsperf.args(["-l", &time.as_secs_f64().to_string()]);
            time + Duration::from_secs(20)
        }
        Questions::Once => {
            dnsperf.args(["-n", "1"]);
            Duration::from_secs(300)
        }
    };
    let said = host.run(dnsperf, limit)?.succeeded()?.stdout;
    let answers =
        read(&said).ok_or_else(|| Failure::Unexpected(format!("cannot parse dnsperf's output:\n{said}")))?;
    let codes = line(&said, "Response codes:").unwrap_or_default();
    let all_well = codes.starts_with("NOERROR") && codes.contains("(100.00%)");
    if !all_well || answers.lost * 100 > answers.count {
        return Err(Failure::Unexpected(format!(
            "dnsperf: {} lost of {}; {codes}",
            answers.lost, answers.count
        )));
    }
    Ok(answers)
}

/// Queries that were sent at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paced {
    /// Queries that were sent.
    pub sent: u64,
    /// Those that were answered in time, with NOERROR.
    pub answered: u64,
    /// From the first query to the last answer, or the end of waiting for it.
    pub took: Duration,
    /// The longest time that an answer took; zero without any answer.
    pub longest: Duration,
}

/// Queries under way at most: enough that a resolver with a backlog loses some before its backlog slows the sender down.
const UNDER_WAY: &str = "65000";

/// Asks each question of a file once, at a rate, on CPU 0; an answer that takes longer than `limit` does not count.
///
/// # Errors
/// `dnsperf` is not installed, or says something else than expected.
pub fn dnsperf_at(
    host: &Namespace,
    server: SocketAddr,
    file: &Path,
    per_second: f64,
    limit: Duration,
) -> Result<Paced> {
    let mut dnsperf = command("taskset")?;
    dnsperf.args(["-c", "0"]).arg(command("dnsperf")?.get_program());
    dnsperf.args(["-c", "8", "-T", "1", "-n", "1", "-q", UNDER_WAY, "-s", &server.ip().to_string()]);
    dnsperf.args(["-Q", &format!("{per_second:.0}"), "-t", &limit.as_secs_f64().to_string()]);
    dnsperf.arg("-d").arg(file);
    let said = host.run(dnsperf, Duration::from_secs(300))?.succeeded()?.stdout;
    paced(&said).ok_or_else(|| Failure::Unexpected(format!("cannot parse dnsperf's output:\n{said}")))
}

fn paced(said: &str) -> Option<Paced> {
    let sent = line(said, "Queries sent:")?.split_whitespace().next()?.parse().ok()?;
    let codes = line(said, "Response codes:").unwrap_or_default();
    let well = codes.split(", ").find_map(|code| code.strip_prefix("NOERROR "));
    let answered = well.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let seconds: f64 = line(said, "Run time (s):")?.parse().ok()?;
    // "Average Latency (s):  0.001234 (min 0.000042, max 0.012345)"
    let longest =
        line(said, "Average Latency (s):").and_then(|it| it.split_once("max ")?.1.strip_suffix(')'));
    let longest = longest.and_then(|it| it.trim().parse().ok()).unwrap_or(0.0);
    let time = |seconds| Duration::try_from_secs_f64(seconds).ok();
    Some(Paced { sent, answered, took: time(seconds)?, longest: time(longest).unwrap_or_default() })
}

fn line<'s>(said: &'s str, name: &str) -> Option<&'s str> {
    said.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim)
}

fn read(said: &str) -> Option<Answers> {
    let first = |name| line(said, name)?.split_whitespace().next();
    Some(Answers {
        count: first("Queries completed:")?.parse().ok()?,
        lost: first("Queries lost:")?.parse().ok()?,
        per_second: first("Queries per second:")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read() {
        let said = "Statistics:\n\n  Queries sent:         88863\n  Queries completed:    88861 (100.00%)\n  Queries lost:         2 (0.00%)\n\n  \
                    Response codes:       NOERROR 88861 (100.00%)\n  Queries per second:   44219.286578\n";
        assert_eq!(read(said), Some(Answers { count: 88_861, lost: 2, per_second: 44_219.286_578 }));
        assert_eq!(read("nothing"), None);
        let said = "  Queries sent:         400\n  Response codes:       NOERROR 390 (97.50%), SERVFAIL 8 (2.00%)\n  Run time (s):         2.000000\n  \
                    Average Latency (s):  0.001500 (min 0.000100, max 0.250000)\n";
        let longest = Duration::from_millis(250);
        let took = Duration::from_secs(2);
        assert_eq!(paced(said), Some(Paced { sent: 400, answered: 390, took, longest }));
        let without = paced(&said.replace("Average", "No")).map(|it| it.longest);
        assert_eq!(without, Some(Duration::ZERO));
    }
}
