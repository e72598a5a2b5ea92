//! The packet filter's rules are tested when the gateway starts, and when they or the paths of packets change, in a separate thread; a rule
//! that would drop the gateway's packets is a warning. The test is repeated until the problem is fixed: whatever fixes it, such as an
//! interface that is back, need not be noticed.

use crate::config::Config;
use crate::doctor::{Finding, Verdict, packet_filter_findings};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Interval between two trials: often several rules are changed together.
const PAUSE: Duration = Duration::from_secs(30);

/// Trials of the rules.
#[derive(Debug, Default)]
pub(super) struct FilterTrial {
    running: Option<Receiver<Vec<Finding>>>,
    last: Option<Instant>,
    /// The rules, or the paths, changed since.
    is_due: bool,
    /// What was last said.
    told: Vec<(Verdict, String)>,
}

impl FilterTrial {
    /// The rules are new or changed, or packets take other paths.
    pub(super) fn note_change(&mut self) {
        self.is_due = true;
    }

    /// Begins a trial that is due, and reports one that has ended.
    pub(super) fn turn(&mut self, config: &Config) {
        match self.running.as_ref().map(Receiver::try_recv) {
            Some(Ok(findings)) => {
                self.running = None;
                self.tell(&findings);
            }
            Some(Err(TryRecvError::Disconnected)) => self.running = None,
            Some(Err(TryRecvError::Empty)) => return,
            None => {}
        }
        let now = Instant::now();
        if self.begins(now) {
            (self.is_due, self.last) = (false, Some(now));
            let (sender, receiver) = channel();
            let config = config.clone();
            let begun = std::thread::Builder::new().name("filter-trial".into()).spawn(move || {
                // Nobody waits for it at the end.
                let _ = sender.send(packet_filter_findings(&config));
            });
            self.running = begun.ok().map(|_| receiver);
        }
    }

    fn begins(&self, now: Instant) -> bool {
        let is_due = self.is_due || !self.told.is_empty();
        is_due && self.last.is_none_or(|last| now.duration_since(last) >= PAUSE)
    }

    /// The rules that drop packets at the moment.
    pub(super) fn told(&self) -> &[(Verdict, String)] {
        &self.told
    }

    fn tell(&mut self, findings: &[Finding]) {
        let bad = findings.iter().filter(|one| matches!(one.verdict, Verdict::Fault | Verdict::Warning));
        let now: Vec<(Verdict, String)> = bad
            .map(|one| {
                let cure = one.cure.as_ref().map_or_else(String::new, |cure| format!(" → {cure}"));
                (one.verdict, format!("the packet filter: {}{cure}", one.what))
            })
            .collect();
        if now == self.told {
            return;
        }
        now.iter().filter(|one| !self.told.contains(one)).for_each(|(_, what)| tracing::warn!("{what}"));
        if now.is_empty() {
            tracing::info!("the packet filter accepts the gateway's packets again");
        }
        self.told = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_change_all_the_time_are_tried_out_now_and_then() {
        let now = Instant::now();
        let mut trial = FilterTrial::default();
        assert!(!trial.begins(now));
        trial.note_change();
        assert!(trial.begins(now));
        trial.last = Some(now);
        assert!(!trial.begins(now + Duration::from_secs(29)) && trial.begins(now + PAUSE));
    }

    #[test]
    fn what_drops_packets_is_tried_again_until_it_is_mended() {
        let now = Instant::now();
        let mut trial = FilterTrial { last: Some(now), ..FilterTrial::default() };
        trial.tell(&[Finding::fault("packet filter", "inet filter forward drops", "nft insert rule")]);
        assert!(!trial.begins(now + Duration::from_secs(29)) && trial.begins(now + PAUSE));
        trial.tell(&[Finding::fine("packet filter", "lets pass")]);
        assert!(!trial.begins(now + 10 * PAUSE), "nothing has changed since");
    }

    #[test]
    fn a_finding_is_told_once() {
        let mut trial = FilterTrial::default();
        let fault = Finding::fault("packet filter", "inet filter forward drops", "nft insert rule");
        trial.tell(std::slice::from_ref(&fault));
        let what = "the packet filter: inet filter forward drops → nft insert rule".to_owned();
        assert_eq!(trial.told, [(Verdict::Fault, what)]);
        trial.tell(&[fault, Finding::not_checked("packet filter", "no nft")]);
        assert_eq!(trial.told.len(), 1);
        trial.tell(&[Finding::fine("packet filter", "lets pass")]);
        assert_eq!(trial.told, []);
    }
}
