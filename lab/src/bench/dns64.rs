//! DNS64 compared with unbound, BIND and pdns-recursor, one thread each: answers from the cache, answers that must be fetched, memory, what one client can
//! do to another. All of them stand ready, and they are measured in turn, round by round.

mod crowding;
mod private;

use super::{Figure, Options, Section, Target};
use crate::dns64::{Flags, Running, Server, Tree, cached_name, large_name};
use crate::failure::{Failure, Result};
use crate::probe::cpu::{cpus, pin_process, process_cpu};
use crate::probe::{Answers, Questions, dnsperf};
use std::path::PathBuf;
use std::time::Duration;

/// Names that are queried once: two answers each to cache.
const LARGE: u32 = 100_000;
/// Names that are queried repeatedly.
const CACHED: u32 = 1_000;
/// Names queried one by one before and after, whose answers must be correct.
const LOOKED_AT: u32 = 100;

/// One round of one server.
#[derive(Clone, Copy)]
struct Round {
    cached: Measured,
    uncached: Measured,
}

#[derive(Clone, Copy)]
struct Measured {
    per_second: f64,
    cpu_us: f64,
}

/// A server with what it showed.
struct Measuring {
    running: Running,
    rounds: Vec<Round>,
    at_start: f64,
    memory: f64,
}

/// Measures all that can run here.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    crate::programs::require("dnsperf")?;
    let tree = Tree::to_measure(LARGE, CACHED);
    let mut skipped = Vec::new();
    let mut all = Vec::new();
    for server in Server::ALL {
        match server.cannot_run() {
            Some(why @ Failure::Unexpected(_)) if server == Server::Sixway => return Err(why),
            Some(why) => skipped.push(format!("{}: {why}", server.name())),
            None => match (server, begin(server, &tree)) {
                (_, Ok(one)) => all.push(one),
                (Server::Sixway, Err(why)) => return Err(why),
                (_, Err(Failure::Interrupted)) => return Err(Failure::Interrupted),
                (_, Err(why)) => skipped.push(format!("{}: {why}", server.name())),
            },
        }
    }
    drop(tree);
    let seconds = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    let share = if options.quick { LARGE / 10 } else { LARGE / options.repeats().max(5) };
    for number in 0..options.repeats() {
        options.say(&format!("dns64: round {} of {}", number + 1, options.repeats()));
        for one in &mut all {
            let round = one.round(number * share..(number + 1) * share, seconds)?;
            one.rounds.push(round);
        }
    }
    for one in &mut all {
        // A short run only shows that everything works.
        one.fill(if options.quick { LARGE } else { options.repeats() * share })?;
    }
    let (rates, memory) = (rates(&all, skipped), memory(&all));
    // They need the CPUs.
    drop(all);
    Ok(vec![rates, memory, crowding::run(options)?, private::run(options)?])
}

fn begin(server: Server, tree: &Tree) -> Result<Measuring> {
    let running = server.start(tree)?;
    pin_process(running.process, 1)?;
    let at_start = running.memory()? as f64 / 1e6;
    let one = Measuring { running, rounds: Vec::new(), at_start, memory: 0.0 };
    one.must_be_right(tree)?;
    one.ask(0..CACHED, cached_name, Questions::Once)?;
    Ok(one)
}

impl Measuring {
    fn must_be_right(&self, tree: &Tree) -> Result<()> {
        let asker = self.running.asker()?;
        for sample in tree.samples.iter().take(LOOKED_AT as usize) {
            let reply = asker.ask(&sample.name, "AAAA", Flags::NONE)?;
            if !reply.addresses("AAAA")?.is(&sample.right_aaaa(Flags::NONE).expected) {
                let name = self.running.server.name();
                return Err(Failure::Unexpected(format!("{name} to {}: {reply:?}", sample.name)));
            }
        }
        Ok(())
    }

    fn round(&self, names: std::ops::Range<u32>, time: Duration) -> Result<Round> {
        Ok(Round {
            cached: self.ask(0..CACHED, cached_name, Questions::For(time))?,
            uncached: self.ask(names, large_name, Questions::Once)?,
        })
    }

    /// Queries names by their numbers.
    fn ask(
        &self,
        numbers: std::ops::Range<u32>,
        name: fn(u32) -> String,
        questions: Questions,
    ) -> Result<Measured> {
        let network = &self.running.network;
        let lines: String = numbers.map(|number| name(number) + " AAAA\n").collect();
        let file: PathBuf = network.file("questions", &lines)?;
        let before = process_cpu(self.running.process)?;
        let answers: Answers = dnsperf(network.host("client")?, self.running.address(), &file, questions)?;
        let spent = process_cpu(self.running.process)?.saturating_sub(before);
        Ok(Measured {
            per_second: answers.per_second,
            cpu_us: spent.as_secs_f64() * 1e6 / answers.count.max(1) as f64,
        })
    }

    /// Queries the rest of the large zone and measures the memory that it takes.
    fn fill(&mut self, from: u32) -> Result<()> {
        if from < LARGE {
            self.ask(from..LARGE, large_name, Questions::Once)?;
        }
        self.memory = self.running.memory()? as f64 / 1e6;
        Ok(())
    }

    fn is_sixway(&self) -> bool {
        self.running.server == Server::Sixway
    }

    fn figure(&self, what: &str, unit: &'static str, of: impl Fn(&Round) -> f64) -> Figure {
        let name = format!("{what}, {}", self.running.server.name());
        Figure::new(name, unit, self.rounds.iter().map(of).collect())
    }
}

fn rates(all: &[Measuring], skipped: Vec<String>) -> Section {
    let mut figures = Vec::new();
    figures.extend(all.iter().map(|one| one.figure("cached", "q/s", |round| round.cached.per_second)));
    figures.extend(
        beside(all, "cached rate, sixway vs fastest peer", |round, others| {
            let fastest = others.map(|other| other.cached.per_second).fold(0.0, f64::max);
            round.cached.per_second / fastest
        })
        .map(|figure| figure.to_reach(Target::AtLeast(1.0))),
    );
    figures.extend(all.iter().map(|one| one.figure("cached", "µs CPU/query", |round| round.cached.cpu_us)));
    figures.extend(beside_unbound(all));
    figures.extend(all.iter().map(|one| one.figure("uncached", "q/s", |round| round.uncached.per_second)));
    figures.extend(all.iter().map(|one| {
        let figure = one.figure("uncached", "µs CPU/query", |round| round.uncached.cpu_us);
        if one.is_sixway() { figure.to_reach(Target::AtMost(60.0)) } else { figure }
    }));
    Section {
        title: "DNS64",
        how: format!(
            "dnsperf -c 8 -T 1 -q 200 asks for AAAA records over IPv6, nsd knows the zones; the server has CPU 1 for itself, dnsperf and nsd have CPU 0; {} CPUs. \
             One thread each, no validation. Cached: {CACHED} names with A records only, asked before. Uncached: names of a zone of {LARGE} such names, \
             each asked once. CPU time is that of the server's process, the kernel's work for it included.",
            cpus()
        ),
        figures,
        skipped,
    }
}

/// Sixway compared with all others, round by round.
fn beside(
    all: &[Measuring],
    what: &str,
    compare: impl Fn(&Round, &mut dyn Iterator<Item = Round>) -> f64,
) -> Option<Figure> {
    let ours = all.iter().find(|one| one.is_sixway())?;
    let others = |number: usize| {
        all.iter().filter(|one| !one.is_sixway()).filter_map(move |one| one.rounds.get(number).copied())
    };
    others(0).next()?;
    let repeats = ours.rounds.iter().enumerate().map(|(number, round)| compare(round, &mut others(number)));
    Some(Figure::new(what, "×", repeats.collect()))
}

fn beside_unbound(all: &[Measuring]) -> Option<Figure> {
    let find = |server| all.iter().find(|one| one.running.server == server);
    let (ours, theirs) = (find(Server::Sixway)?, find(Server::Unbound)?);
    let pairs = ours.rounds.iter().zip(&theirs.rounds);
    let repeats = pairs.map(|(ours, theirs)| ours.cached.cpu_us / theirs.cached.cpu_us).collect();
    let figure = Figure::new("cached CPU, sixway vs unbound", "×", repeats);
    Some(figure.to_reach(Target::AtMost(0.9)))
}

fn memory(all: &[Measuring]) -> Section {
    let start = all.iter().map(|one| {
        Figure::new(format!("at the start, {}", one.running.server.name()), "MB", vec![one.at_start])
    });
    let full = all.iter().map(|one| {
        let figure = Figure::new(format!("full, {}", one.running.server.name()), "MB", vec![one.memory]);
        if one.is_sixway() { figure.to_reach(Target::AtMost(60.0)) } else { figure }
    });
    Section {
        title: "Memory of a DNS64",
        how: format!(
            "VmRSS of the server's process after its first answer, and when it remembers {LARGE} names: the A records, and that there are no AAAA \
             records. unbound has larger caches than by default, or it would forget most."
        ),
        figures: start.chain(full).collect(),
        skipped: Vec::new(),
    }
}
