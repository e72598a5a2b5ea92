//! Warnings when packets are dropped because something is used up: one line a minute for each reason, with the number.

use super::problems::EXHAUSTED;
use sixway_dataplane::Counters;
use std::time::{Duration, Instant};

/// Between two warnings of the same reason.
const PAUSE: Duration = Duration::from_secs(60);

/// What was warned of.
#[derive(Debug, Default)]
pub(super) struct Exhaustion {
    told: [Option<(Instant, u64)>; EXHAUSTED.len()],
}

impl Exhaustion {
    /// Looks at the counters, which begin at zero; the warnings that are due.
    pub fn due(&mut self, counters: &Counters, now: Instant) -> Vec<String> {
        let mut due = Vec::new();
        for ((reason, advice), told) in EXHAUSTED.into_iter().zip(&mut self.told) {
            let count = counters.dropped[reason as usize];
            let (at, before) = told.map_or((None, 0), |(at, count)| (Some(at), count));
            let waits = at.is_some_and(|at| now.duration_since(at) < PAUSE);
            if count <= before || waits {
                continue;
            }
            *told = Some((now, count));
            let packets = crate::show::plural(count - before, "packet");
            due.push(format!("{packets} dropped: {}: {} {advice}", reason.name(), reason.help()));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::DropReason;

    #[test]
    fn a_reason_is_told_once_a_minute_with_what_came_meanwhile() {
        let (mut exhaustion, start) = (Exhaustion::default(), Instant::now());
        let mut counters = Counters::default();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(exhaustion.due(&counters, at(0)), Vec::<String>::new());
        counters.dropped[DropReason::PortPoolEmpty as usize] = 3;
        let said = exhaustion.due(&counters, at(1));
        assert!(said.len() == 1 && said[0].starts_with("3 packets dropped: PortPoolEmpty: "), "{said:?}");
        assert!(said[0].ends_with("add addresses to the pool"));
        counters.dropped[DropReason::PortPoolEmpty as usize] = 10;
        counters.dropped[DropReason::NoBinding as usize] = 10;
        assert_eq!(exhaustion.due(&counters, at(60)).len(), 0);
        assert!(exhaustion.due(&counters, at(61))[0].starts_with("7 packets"));
        assert_eq!(exhaustion.due(&counters, at(200)).len(), 0);
    }
}
