//! One client queries names of a zone that is silent; how many of its queries does another one lose? Sixway and its peers as forwarders, in turn.

use super::super::{Figure, Options, Section, Target};
use crate::dns64::Server;
use crate::dns64::crowding::{Crowded, Crowding, DEAD_NAMES, GOOD_NAMES};
use crate::failure::{Failure, Result};
use crate::probe::cpu::pin_process;
use std::time::Duration;

/// Time with the other client, in a round.
const TOGETHER: Duration = Duration::from_secs(5);

/// A forwarder with what it showed.
struct Measuring {
    server: Server,
    crowding: Crowding,
    rounds: Vec<Crowded>,
}

/// Measures all that can run here.
///
/// # Errors
/// Sixway cannot run, or this machine is too slow for the load.
pub(super) fn run(options: &Options) -> Result<Section> {
    let (mut all, mut skipped) = (Vec::new(), Vec::new());
    for server in Server::ALL {
        match begin(server) {
            Ok(one) => all.push(one),
            Err(why) if server == Server::Sixway || matches!(why, Failure::Interrupted) => return Err(why),
            Err(why) => skipped.push(format!("{}: {why}", server.name())),
        }
    }
    let together = if options.quick { Duration::from_secs(1) } else { TOGETHER };
    for number in 0..options.repeats() {
        options.say(&format!("dns64, dead names: round {} of {}", number + 1, options.repeats()));
        for one in &mut all {
            let round = one.crowding.round(together / 2, together)?;
            one.rounds.push(round);
        }
    }
    let figures = all.iter().flat_map(|one| {
        let cost = one.figure("lost because of it", "%", Crowded::cost);
        let ours = one.server == Server::Sixway;
        [
            one.figure("lost alone", "%", |round| round.alone.loss()),
            one.figure("lost with the other client", "%", |round| round.together.loss()),
            if ours { cost.to_reach(Target::AtMost(1.0)) } else { cost },
            one.figure("slowest answer with the other client", "ms", |round| {
                round.together.longest.as_secs_f64() * 1e3
            }),
            one.figure("queries to the upstream for a dead name", "", |round| round.tries),
        ]
    });
    Ok(Section {
        title: "DNS64: a client with dead names",
        how: format!(
            "One client queries {DEAD_NAMES} names a second in a zone for which the upstream is silent, each once; another client {GOOD_NAMES} new names a \
             second in a zone for which it answers. All servers are forwarders with one upstream, one thread, and their usual bounds. In each round the \
             second client is alone first. An answer counts that comes within 5 s and has an address."
        ),
        figures: figures.collect(),
        skipped,
    })
}

fn begin(server: Server) -> Result<Measuring> {
    if let Some(why) = server.cannot_run() {
        return Err(why);
    }
    let crowding = Crowding::start(server)?;
    pin_process(crowding.running.process, 1)?;
    Ok(Measuring { server, crowding, rounds: Vec::new() })
}

impl Measuring {
    fn figure(&self, what: &str, unit: &'static str, of: impl Fn(&Crowded) -> f64) -> Figure {
        Figure::new(format!("{what}, {}", self.server.name()), unit, self.rounds.iter().map(of).collect())
    }
}
