//! The parameters and results of a load: the same for all loads.

pub use super::histogram::{Histogram, histogram};
use super::variation::Variation;
use crate::failure::Result;
use std::fmt;
use std::time::Duration;

/// When packets or requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The next one when the last one was answered.
    Closed {
        /// Requests under way at the same time in each flow.
        in_flight: u16,
        /// How long a flow rests before it goes on to its next address.
        pause: Duration,
        /// An unanswered request is followed by the next one after this time, and its answer still counts; `None`: after [`LOST_AFTER`].
        resend: Option<Duration>,
    },
    /// At times that do not depend on answers: the only pace that shows overload.
    Open {
        /// Packets in a second, of all flows.
        per_second: f64,
        /// The times between them.
        gaps: Gaps,
    },
    /// Without any pause.
    AsFastAsPossible,
}

/// The times between packets of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// All the same.
    Even,
    /// Exponentially distributed, from this seed.
    Poisson(u64),
    /// All the same, and twice as long from this time after the first packet on: the rate is halved.
    Halved(Duration),
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All that it has was sent and is answered or lost.
    Done,
    /// After this time nothing new is begun.
    Time(Duration),
    /// After this many packets or requests.
    Count(u64),
    /// After this many, or after this time: for closed loops, which wait for each that is lost.
    CountWithin(u64, Duration),
}

/// A request without an answer for this long is lost.
pub const LOST_AFTER: Duration = Duration::from_secs(1);

/// What a load has sent and seen.
#[derive(Clone)]
pub struct Outcome {
    /// Requests or packets sent; each is counted once, and its answer not at all.
    pub sent: u64,
    /// Those that were answered, late ones included.
    pub answered: u64,
    /// Those among them that were answered after the next one had been sent.
    pub late: u64,
    /// Those that were not answered within [`LOST_AFTER`].
    pub lost: u64,
    /// Answers that came again.
    pub duplicated: u64,
    /// Answers that came after one to a later request of the same flow.
    pub reordered: u64,
    /// What the sender's own kernel refused to take: it counts neither as sent nor as lost.
    pub refused: u64,
    /// Octets of the requests from the IP header of the traffic itself on, without that of a tunnel.
    pub octets: u64,
    /// From the time at which a request was due to its answer. With a closed loop it is the same as `service`.
    pub latency: Histogram,
    /// From the time at which a request was sent to its answer.
    pub service: Histogram,
    /// From the time at which a request was due to that at which it was sent.
    pub lateness: Histogram,
    /// How long connections or calls took to be set up, if the load sets them up.
    pub setup: Histogram,
    /// The jitter of RFC 3550 §6.4.1 in nanoseconds, if the load measures it.
    pub jitter: Option<f64>,
    /// The mean of that estimate over all packets, in nanoseconds, if the load measures it.
    pub mean_jitter: Option<f64>,
    /// The variation of successive delays, if the load measures it: of the flow in which it is widest.
    pub variation: Option<Variation>,
    /// The longest time without an answer, between the first answer and the end of sending, if the load knows it.
    pub silence: Duration,
    /// The number of the last request that has no answer, from 0 among all that were due, if the load knows it and there is one.
    pub last_lost: Option<u32>,
    /// From the first request to the last answer.
    pub took: Duration,
    /// What it cost.
    pub cost: ThreadCost,
}

/// What the threads of a load have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCost {
    /// CPU time of all threads that send and receive.
    pub cpu: Duration,
    /// CPU time of all threads that answer or take.
    pub answering: Duration,
}

/// A load that is ready to run. One that has only a sender is called in its namespace; one with two ends enters theirs itself.
pub trait Load {
    /// Sends at this pace until the end.
    ///
    /// # Errors
    /// The kernel refuses a socket, or a signal has come.
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome>;
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            sent: 0,
            answered: 0,
            late: 0,
            lost: 0,
            duplicated: 0,
            reordered: 0,
            refused: 0,
            octets: 0,
            latency: histogram(),
            service: histogram(),
            lateness: histogram(),
            setup: histogram(),
            jitter: None,
            mean_jitter: None,
            variation: None,
            silence: Duration::ZERO,
            last_lost: None,
            took: Duration::ZERO,
            cost: ThreadCost::default(),
        }
    }
}

/// Counts, and histograms by their half and their greatest value: all of their buckets are thousands of lines.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times =
            |of: &Histogram| format!("{} times, {} … {} ns", of.len(), of.value_at_quantile(0.5), of.max());
        f.debug_struct("Outcome")
            .field("sent", &self.sent)
            .field("answered", &self.answered)
            .field("late", &self.late)
            .field("lost", &self.lost)
            .field("duplicated", &self.duplicated)
            .field("reordered", &self.reordered)
            .field("refused", &self.refused)
            .field("octets", &self.octets)
            .field("latency", &times(&self.latency))
            .field("service", &times(&self.service))
            .field("lateness", &times(&self.lateness))
            .field("setup", &times(&self.setup))
            .field("jitter", &self.jitter)
            .field("mean_jitter", &self.mean_jitter)
            .field("silence", &self.silence)
            .field("last_lost", &self.last_lost)
            .field("took", &self.took)
            .field("cost", &self.cost)
            .finish()
    }
}

impl Outcome {
    /// Notes an answer: how long after its request it came, which was sent when it was due.
    pub fn answer(&mut self, time: Duration) {
        self.answered += 1;
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.latency.saturating_record(nanoseconds);
        self.service.saturating_record(nanoseconds);
    }

    /// Notes an answer of an open loop, by the times at which its request was due and sent and at which it came, in nanoseconds.
    pub fn answer_due(&mut self, due: u64, sent: u64, came: u64) {
        self.answered += 1;
        self.latency.saturating_record(came.saturating_sub(due));
        self.service.saturating_record(came.saturating_sub(sent));
    }

    /// Answered requests, or packets that arrived, in a second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// The part of a measurement that took this long in which there was something to do: those that are lost are waited for.
    pub fn active(&self, took: Duration) -> Duration {
        let waits = self.lost > 0 && !self.took.is_zero();
        if waits { took.saturating_sub(LOST_AFTER).max(self.took).min(took) } else { took }
    }

    /// Share of what was sent that is lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    /// Adds what another load of the same run brought back; the time is that of the longer one.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.late += other.late;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.refused += other.refused;
        self.octets += other.octets;
        // Both have the same bounds.
        self.latency.add(&other.latency).ok();
        self.service.add(&other.service).ok();
        self.lateness.add(&other.lateness).ok();
        self.setup.add(&other.setup).ok();
        self.jitter = self.jitter.into_iter().chain(other.jitter).reduce(f64::max);
        self.mean_jitter = self.mean_jitter.into_iter().chain(other.mean_jitter).reduce(f64::max);
        let width = |it: &Variation| it.greatest - it.least;
        self.variation = [self.variation, other.variation]
            .into_iter()
            .flatten()
            .max_by(|a, b| width(a).total_cmp(&width(b)));
        self.silence = self.silence.max(other.silence);
        self.last_lost = self.last_lost.max(other.last_lost);
        self.took = self.took.max(other.took);
        self.cost.cpu += other.cost.cpu;
        self.cost.answering += other.cost.answering;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_what_is_lost_is_not_active_time() {
        let milliseconds = Duration::from_millis;
        let outcome = |lost, took| Outcome { lost, took: milliseconds(took), ..Outcome::default() };
        assert_eq!(outcome(5, 300).active(milliseconds(1_300)), milliseconds(300));
        assert_eq!(outcome(0, 300).active(milliseconds(1_300)), milliseconds(1_300), "nothing is waited for");
        // What was lost in the middle of a long load delays its end by nothing.
        assert_eq!(outcome(5, 9_990).active(milliseconds(10_000)), milliseconds(9_990));
        assert_eq!(outcome(5, 300).active(milliseconds(5_000)), milliseconds(4_000), "a second at most");
        assert_eq!(outcome(5, 700).active(milliseconds(600)), milliseconds(600));
        assert_eq!(outcome(5, 0).active(milliseconds(1_300)), milliseconds(1_300), "the load does not say");
    }

    #[test]
    fn outcomes_of_several_hosts_add_up() {
        let mut one = Outcome { sent: 3, lost: 1, took: Duration::from_secs(2), ..Outcome::default() };
        one.answer(Duration::from_millis(1));
        one.answer(Duration::from_millis(3));
        let mut all = Outcome { sent: 1, took: Duration::from_secs(1), ..Outcome::default() };
        all.answer(Duration::from_secs(1_000));
        all.add(&one);
        assert_eq!((all.sent, all.answered, all.lost), (4, 3, 1));
        assert_eq!((all.loss(), all.took), (0.25, Duration::from_secs(2)));
        assert_eq!(all.latency.len(), 3);
        assert!(all.latency.max() >= 99_000_000_000, "what is too long is recorded as the longest");
    }
}
