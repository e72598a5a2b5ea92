//! One flow of a sweep: requests to one address after the other, as `ping -i 0 -c N` sends them. It is pure: time is an argument.

use super::super::outcome::{LOST_AFTER, Outcome};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How a flow sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    /// Requests to each address.
    pub each: u16,
    /// The next request follows an unanswered one after this time.
    pub resend: Duration,
    /// The time between two addresses.
    pub pause: Duration,
}

/// What a flow wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// To send this request now, and to be asked again.
    Send { target: IpAddr, sequence: u16 },
    /// To be asked again at this time, or after an answer.
    Wait(Instant),
    /// Nothing: all its addresses are done.
    Nothing,
}

/// A flow.
pub(super) struct Flow<'a> {
    targets: &'a [IpAddr],
    habit: Habit,
    /// The address that is visited, and the time at which it may begin.
    at: usize,
    begins: Instant,
    /// For each request to this address, when it was sent and whether it was answered.
    requests: Vec<(Instant, bool)>,
    /// The highest sequence number that was answered, from 1.
    highest: usize,
}

impl<'a> Flow<'a> {
    pub(super) fn new(targets: &'a [IpAddr], habit: Habit, begins: Instant) -> Self {
        Self { targets, habit, at: 0, begins, requests: Vec::new(), highest: 0 }
    }

    /// How many addresses it has left behind.
    pub(super) const fn visited(&self) -> usize {
        self.at
    }

    /// The actions to take now. A request that it wants to send counts as sent at `now`. All replies were read that had come by `read`:
    /// only by that time may one be missing. With `ends` no other address is begun.
    pub(super) fn want(&mut self, now: Instant, read: Instant, ends: bool, outcome: &mut Outcome) -> Want {
        let Some(target) = self.targets.get(self.at).copied() else { return Want::Nothing };
        if self.requests.is_empty() {
            if ends {
                self.at = self.targets.len();
                return Want::Nothing;
            }
            return if now < self.begins { Want::Wait(self.begins) } else { self.send(target, now, outcome) };
        }
        let is_last = self.requests.len() == usize::from(self.habit.each);
        let Some((last, is_answered)) = self.requests.last().copied() else { return Want::Nothing };
        if !is_last {
            let due = last + self.habit.resend;
            return if is_answered || now >= due { self.send(target, now, outcome) } else { Want::Wait(due) };
        }
        let open = self.requests.iter().filter(|(_, answered)| !answered).count();
        let end = last + LOST_AFTER;
        if open > 0 && read < end {
            return Want::Wait(end);
        }
        outcome.lost += open as u64;
        self.requests.clear();
        self.highest = 0;
        self.at += 1;
        self.begins = now + self.habit.pause;
        if self.at < self.targets.len() { Want::Wait(self.begins) } else { Want::Nothing }
    }

    /// Notes an answer to a request of this address.
    pub(super) fn answer(&mut self, sequence: u16, now: Instant, outcome: &mut Outcome) {
        let number = usize::from(sequence);
        let newest = self.requests.len();
        let Some((sent, answered)) = number.checked_sub(1).and_then(|at| self.requests.get_mut(at)) else {
            return;
        };
        if *answered {
            outcome.duplicated += 1;
            return;
        }
        *answered = true;
        outcome.answer(now.saturating_duration_since(*sent));
        outcome.late += u64::from(number < newest);
        outcome.reordered += u64::from(number < self.highest);
        self.highest = self.highest.max(number);
    }

    fn send(&mut self, target: IpAddr, now: Instant, outcome: &mut Outcome) -> Want {
        self.requests.push((now, false));
        outcome.sent += 1;
        Want::Send { target, sequence: self.requests.len() as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const MS: Duration = Duration::from_millis(1);
    const HABIT: Habit =
        Habit { each: 2, resend: Duration::from_millis(10), pause: Duration::from_millis(5) };
    const TARGETS: [IpAddr; 2] = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];

    fn sends(want: Want, to: usize, number: u16) -> bool {
        want == Want::Send { target: TARGETS[to], sequence: number }
    }

    #[test]
    fn an_answer_brings_the_next_request_and_a_pause_the_next_address() {
        let (start, mut outcome) = (Instant::now(), Outcome::default());
        let mut flow = Flow::new(&TARGETS, HABIT, start);
        assert!(sends(flow.want(start, start, false, &mut outcome), 0, 1));
        assert_eq!(flow.want(start + MS, start + MS, false, &mut outcome), Want::Wait(start + 10 * MS));
        flow.answer(1, start + 2 * MS, &mut outcome);
        assert!(sends(flow.want(start + 2 * MS, start + 2 * MS, false, &mut outcome), 0, 2));
        flow.answer(2, start + 3 * MS, &mut outcome);
        assert_eq!(
            flow.want(start + 3 * MS, start + 3 * MS, false, &mut outcome),
            Want::Wait(start + 8 * MS)
        );
        assert_eq!(
            flow.want(start + 7 * MS, start + 7 * MS, false, &mut outcome),
            Want::Wait(start + 8 * MS)
        );
        assert!(sends(flow.want(start + 8 * MS, start + 8 * MS, false, &mut outcome), 1, 1));
        assert_eq!((outcome.sent, outcome.answered, outcome.late, outcome.lost), (3, 2, 0, 0));
    }

    #[test]
    fn a_reply_after_the_next_request_counts_as_late_and_not_as_lost() {
        let (start, mut outcome) = (Instant::now(), Outcome::default());
        let mut flow = Flow::new(&TARGETS[..1], HABIT, start);
        assert!(sends(flow.want(start, start, false, &mut outcome), 0, 1));
        assert!(sends(flow.want(start + 10 * MS, start + 10 * MS, false, &mut outcome), 0, 2));
        flow.answer(2, start + 11 * MS, &mut outcome);
        flow.answer(1, start + 12 * MS, &mut outcome);
        flow.answer(1, start + 13 * MS, &mut outcome);
        flow.answer(7, start + 13 * MS, &mut outcome);
        assert_eq!(flow.want(start + 13 * MS, start + 13 * MS, false, &mut outcome), Want::Nothing);
        let counted = (outcome.answered, outcome.late, outcome.reordered, outcome.duplicated, outcome.lost);
        assert_eq!(counted, (2, 1, 1, 1, 0));
        assert!(outcome.latency.max() >= 11_900_000, "from its own request");
    }

    #[test]
    fn what_is_not_answered_within_a_second_is_lost_and_counts_once() {
        let (start, mut outcome) = (Instant::now(), Outcome::default());
        let mut flow = Flow::new(&TARGETS, HABIT, start);
        assert!(sends(flow.want(start, start, false, &mut outcome), 0, 1));
        assert!(sends(flow.want(start + 10 * MS, start + 10 * MS, false, &mut outcome), 0, 2));
        flow.answer(2, start + 11 * MS, &mut outcome);
        let end = start + 10 * MS + LOST_AFTER;
        assert_eq!(flow.want(start + 12 * MS, start + 12 * MS, false, &mut outcome), Want::Wait(end));
        assert_eq!(
            flow.want(end, start, false, &mut outcome),
            Want::Wait(end),
            "a reply may wait to be read"
        );
        assert_eq!(flow.want(end, end, false, &mut outcome), Want::Wait(end + HABIT.pause));
        assert_eq!((outcome.sent, outcome.answered, outcome.lost), (2, 1, 1));
        assert_eq!(flow.want(end + HABIT.pause, end + HABIT.pause, true, &mut outcome), Want::Nothing);
        assert_eq!(outcome.sent, outcome.answered + outcome.lost);
    }
}
