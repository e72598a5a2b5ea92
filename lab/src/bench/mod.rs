//! `make bench`: what was measured, beside what is to be reached. A benchmark prints a table; it is no timed test, and a missed
//! target is no failure.

mod dns64;
mod fastpath;
mod figure;
mod memory;
mod relay;
mod wire;

pub use figure::{Figure, Section, Target};

use crate::failure::{Failure, Result};

/// How the benchmark runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only one part
    #[arg(value_enum)]
    pub part: Option<Part>,
    /// Only this one of the fast path's tables
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<fastpath::Table>,
    /// JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Repeats, interleaved; the median is shown
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Seconds for each transfer on the wire
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// One short round: to see that it works, not to believe the figures
    #[arg(long)]
    pub quick: bool,
}

/// The parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The engine alone, in memory
    Memory,
    /// Real packets between namespaces, side by side with peers; needs root
    Wire,
    /// Real packets through a 6to4 relay; needs root
    Relay,
    /// The fast path beside the kernel and peers; needs root
    Fastpath,
    /// DNS64 beside other resolvers; needs root
    Dns64,
}

impl Options {
    fn repeats(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }

    fn wants(&self, part: Part) -> bool {
        let only = if self.table.is_some() { Some(Part::Fastpath) } else { self.part };
        only.is_none_or(|only| only == part)
    }

    fn say(&self, what: &str) {
        if !self.json {
            eprintln!("{what}");
        }
    }
}

type Measuring = fn(&Options) -> Result<Vec<Section>>;

/// Runs it and prints tables, or JSON.
pub fn run(options: &Options) -> Result<()> {
    let mut sections = Vec::new();
    if options.wants(Part::Memory) {
        sections.extend(shown(options, memory::run(options)?));
    }
    let on_real_packets: [(Part, Measuring); 4] = [
        (Part::Wire, wire::run),
        (Part::Relay, relay::run),
        (Part::Fastpath, fastpath::run),
        (Part::Dns64, dns64::run),
    ];
    for (part, measure) in on_real_packets {
        if !options.wants(part) {
            continue;
        } else if nix::unistd::geteuid().is_root() {
            sections.extend(shown(options, measure(options)?));
        } else if options.part.is_some() {
            return Err(Failure::Unexpected("network namespaces need root: run it with sudo".to_owned()));
        } else {
            options.say("skipped: the parts on real packets need root");
        }
    }
    if options.json {
        println!("{:#}", serde_json::Value::Array(sections.iter().map(Section::json).collect()));
    }
    Ok(())
}

fn shown(options: &Options, sections: Vec<Section>) -> Vec<Section> {
    if !options.json {
        sections.iter().for_each(Section::print);
    }
    sections
}
