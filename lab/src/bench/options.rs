//! How the benchmark runs: its arguments.

/// How the benchmark runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Run one part only
    #[arg(value_enum)]
    pub part: Option<Part>,
    /// Run only this table of the fast path's part
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<FastPathTable>,
    /// In memory, ten million sessions of NAT44, too; this needs 3 GB of memory
    #[arg(long)]
    pub ten_million: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Number of interleaved repeats; the median is shown
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Seconds for each transfer on the wire
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// One short round, to check that everything runs; the figures mean nothing
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
    /// Real packets through DS-Lite, 4over6 and NAT46; needs root
    Softwires,
    /// Real packets through a Teredo relay, side by side with miredo; needs root
    Teredo,
    /// The fast path compared with the kernel and peers; needs root
    Fastpath,
    /// DNS64 compared with other resolvers; needs root
    Dns64,
}

impl Options {
    /// How often each figure is measured.
    pub fn repeats(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }

    /// Whether this part runs.
    pub fn wants(&self, part: Part) -> bool {
        let only = if self.table.is_some() { Some(Part::Fastpath) } else { self.part };
        only.is_none_or(|only| only == part)
    }

    /// Reports progress, unless the output is JSON.
    pub fn say(&self, what: &str) {
        if !self.json {
            eprintln!("{what}");
        }
    }
}

/// The tables of the fast path's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FastPathTable {
    /// Small packets, and one million flows
    Small,
    /// Bulk TCP
    Bulk,
    /// New flows
    NewFlows,
    /// Round trips
    Latency,
}
