//! Echo requests at times that do not depend on replies, with stamps in their data.

use super::link::Link;
use super::targets::EchoSweep;
use crate::failure::{Failure, Result};
use crate::load::account::{Account, Told};
use crate::load::clock;
use crate::load::ends::join;
use crate::load::flood::thread_cpu;
use crate::load::outcome::{Outcome, Pace, ThreadCost, Until};
use crate::load::pacer::pace as paced;
use crate::load::stamp::Stamp;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long the receiver waits before it looks whether there is anything to wait for.
const LOOK: Duration = Duration::from_millis(20);

/// One thread sends, and one receives; both are in this thread's namespace.
pub(super) fn open_loop(sweep: &EchoSweep, pace: Pace, until: Until) -> Result<Outcome> {
    let link = Link::open(sweep.from, sweep.octets)?;
    if !link.has_room() || sweep.request(0).is_none() {
        let octets = sweep.octets;
        return Err(Failure::Unexpected(format!(
            "echo requests of {octets} octets have no room for a stamp, or nowhere to go"
        )));
    }
    let told = Told::new();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&link, &told, sweep.flows.len() as u16));
        let cpu = thread_cpu();
        let sent = paced(&AtomicBool::new(false), pace, until, |due| {
            let Some((flow, target, numbers)) = sweep.request(due.sequence as usize) else {
                return Ok(false);
            };
            told.sends(due.sequence, due.now - due.due);
            let stamp = Stamp { flow, sequence: due.sequence, due: due.due };
            Ok(link.try_send(target, numbers, Some(stamp)).is_ok())
        });
        told.ends(sent.as_ref().map_or(0, |sent| sent.count));
        let sending = thread_cpu().saturating_sub(cpu);
        let (sent, received) = (sent, join(receiving));
        let (sent, (mut outcome, last, receiving)) = (sent?, received?);
        outcome.sent = sent.count;
        outcome.refused = sent.refused;
        outcome.lost = sent.count.saturating_sub(outcome.answered);
        outcome.octets = sent.count * sweep.octets as u64;
        outcome.lateness = sent.lateness;
        outcome.took = Duration::from_nanos(last.max(sent.last).saturating_sub(sent.first));
        outcome.cost = ThreadCost { cpu: sending + receiving, ..ThreadCost::default() };
        Ok(outcome)
    })
}

fn receive(link: &Link, told: &Told, flows: u16) -> Result<(Outcome, u64, Duration)> {
    let cpu = thread_cpu();
    let mut account = Account::new(told, flows);
    while !told.is_over(account.came()) {
        link.wait(LOOK)?;
        while link.reply(|data| account.note(data, clock::now()))?.is_some() {}
    }
    let (outcome, last) = account.end();
    Ok((outcome, last, thread_cpu().saturating_sub(cpu)))
}
