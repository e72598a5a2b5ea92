//! A host that pings many addresses: a number of flows at the same time, each with requests to one address after the other.
//!
//! Every visit of an address has an identifier of its own, as every `ping` has: a translator makes a session of each.

use super::flow::{Flow, Habit, Want};
use super::link::{From, Link};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::flood::thread_cpu;
use crate::load::outcome::{LOST_AFTER, Load, Outcome, Pace, ThreadCost, Until};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

/// How often is looked for signals.
const LOOK: Duration = Duration::from_millis(100);

/// What one host sends.
#[derive(Clone, Debug)]
pub struct EchoSweep {
    /// As which host.
    pub from: From,
    /// For each flow, the addresses that it visits, one after the other.
    pub flows: Vec<Vec<Ipv6Addr>>,
    /// Echo requests to each address.
    pub each: u16,
    /// Octets of a request's IPv6 packet, without a tunnel's header.
    pub octets: usize,
}

impl Load for EchoSweep {
    /// One thread for all flows. Only [`Pace::Closed`] with one request in flight: that is what `ping` does.
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        let Pace::Closed { in_flight: 1, pause, resend } = pace else {
            return Err(Failure::Unexpected(format!("a sweep of echo requests does not run at {pace:?}")));
        };
        let habit = Habit { each: self.each, resend: resend.unwrap_or(LOST_AFTER), pause };
        let link = Link::open(self.from, self.octets)?;
        let (start, cpu) = (Instant::now(), thread_cpu());
        let mut flows: Vec<_> = self.flows.iter().map(|targets| Flow::new(targets, habit, start)).collect();
        let mut outcome = Outcome::default();
        let mut looked = start;
        let mut read = start;
        loop {
            let now = Instant::now();
            let ends = matches!(until, Until::Time(time) if now - start >= time);
            let Some(wait) = self.send_all(&link, &mut flows, (read, ends), &mut outcome)? else { break };
            if now - looked >= LOOK {
                looked = now;
                interrupt::check()?;
            }
            link.wait(wait.saturating_duration_since(Instant::now()).min(LOOK))?;
            read = Instant::now();
            while let Some([identifier, sequence]) = link.reply()? {
                let now = Instant::now();
                let number = usize::from(identifier) % flows.len();
                if let Some(flow) = flows.get_mut(number)
                    && self.identifier(number, flow) == identifier
                {
                    flow.answer(sequence, now, &mut outcome);
                }
            }
        }
        outcome.octets = outcome.sent * self.octets as u64;
        outcome.took = start.elapsed();
        outcome.cost = ThreadCost { cpu: thread_cpu().saturating_sub(cpu) };
        Ok(outcome)
    }
}

impl EchoSweep {
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
                        link.send(target, [self.identifier(number, flow), sequence])?;
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

    /// The identifier of the visit that a flow makes. It repeats after 65,536 visits of all flows, if their number is a power of two.
    fn identifier(&self, number: usize, flow: &Flow<'_>) -> u16 {
        (flow.visited() * self.flows.len() + number) as u16
    }
}
