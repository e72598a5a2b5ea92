//! A host that pings many addresses: a number of flows at the same time, each with requests to one address after the other.
//!
//! Every visit of an address has an identifier of its own, as every `ping` has: a translator makes a session of each.

use super::flow::{Flow, Habit, Want};
use super::link::Link;
use super::open_loop::open_loop;
use super::targets::EchoSweep;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::flood::thread_cpu;
use crate::load::outcome::{LOST_AFTER, Load, Outcome, Pace, ThreadCost, Until};
use std::time::{Duration, Instant};

/// How often is looked for signals.
const LOOK: Duration = Duration::from_millis(100);

impl Load for EchoSweep {
    /// At [`Pace::Closed`] each flow has one request in flight, as `ping` has: one thread for all flows, until all addresses are visited or earlier. At
    /// [`Pace::Open`] and [`Pace::AsFastAsPossible`] flows take turns, begin again when all addresses are visited, and end at a time or a count.
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        match pace {
            Pace::Closed { in_flight: 1, pause, resend } => {
                self.closed(Habit { each: self.each, resend: resend.unwrap_or(LOST_AFTER), pause }, until)
            }
            Pace::Closed { .. } => {
                Err(Failure::Unexpected(format!("a flow of echo requests does not run at {pace:?}")))
            }
            Pace::Open { .. } | Pace::AsFastAsPossible => open_loop(self, pace, until),
        }
    }
}

impl EchoSweep {
    fn closed(&self, habit: Habit, until: Until) -> Result<Outcome> {
        let link = Link::open(self.from, self.octets)?;
        let (start, cpu) = (Instant::now(), thread_cpu());
        let mut flows: Vec<_> = self.flows.iter().map(|targets| Flow::new(targets, habit, start)).collect();
        let mut outcome = Outcome::default();
        let mut looked = start;
        let mut read = start;
        loop {
            let now = Instant::now();
            let ends = match until {
                Until::Done => false,
                Until::Time(time) => now - start >= time,
                Until::Count(count) => outcome.sent >= count,
                Until::CountWithin(count, time) => outcome.sent >= count || now - start >= time,
            };
            let Some(wait) = self.send_all(&link, &mut flows, (read, ends), &mut outcome)? else { break };
            if now - looked >= LOOK {
                looked = now;
                interrupt::check()?;
            }
            link.wait(wait.saturating_duration_since(Instant::now()).min(LOOK))?;
            read = Instant::now();
            while let Some([identifier, sequence]) = link.reply(|_| ())? {
                let now = Instant::now();
                let number = usize::from(identifier) % flows.len();
                if let Some(flow) = flows.get_mut(number)
                    && self.identifier(number, flow.visited()) == identifier
                {
                    flow.answer(sequence, now, &mut outcome);
                }
            }
        }
        outcome.octets = outcome.sent * self.octets as u64;
        outcome.took = start.elapsed();
        outcome.cost = ThreadCost { cpu: thread_cpu().saturating_sub(cpu), ..ThreadCost::default() };
        Ok(outcome)
    }

    /// Sends whatever is due; when to look again, or `None` if all flows are done.
    fn send_all(
        &self,
        link: &Link,
        flows: &mut [Flow<'_>],
        (read, ends): (Instant, bool),
        outcome: &mut Outcome,
    ) -> Result<Option<Instant>> {
        let mut earliest: Option<Instant> = None;
        for (number, flow) in flows.iter_mut().enumerate() {
            loop {
                match flow.want(Instant::now(), read, ends, outcome) {
                    Want::Send { target, sequence } => {
                        link.send(target, [self.identifier(number, flow.visited()), sequence], None)?;
                    }
                    Want::Wait(time) => {
                        earliest = Some(earliest.map_or(time, |other| other.min(time)));
                        break;
                    }
                    Want::Nothing => break,
                }
            }
        }
        Ok(earliest)
    }
}
