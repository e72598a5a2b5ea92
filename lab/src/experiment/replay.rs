//! Which experiment runs, and how.

use super::relay_2013;
use crate::failure::Result;

/// The papers whose experiments can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Paper {
    /// 6to4 relays under rising load (Lencse, Répás 2013)
    #[value(name = "relay-2013")]
    Relay2013,
}

/// How an experiment runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which
    #[arg(value_enum)]
    pub paper: Paper,
    /// What is under test
    #[arg(long, value_enum, default_value_t = relay_2013::Relay::Sixway)]
    pub relay: relay_2013::Relay,
    /// A smaller load, to check that everything runs; the figures mean nothing
    #[arg(long)]
    pub quick: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Runs it and prints what was measured.
pub fn run(options: &Options) -> Result<()> {
    match options.paper {
        Paper::Relay2013 => {
            let scale = if options.quick { relay_2013::QUICK } else { relay_2013::USUAL };
            let measured = relay_2013::run(options.relay, &scale, |hosts| {
                if !options.json {
                    eprintln!("relay-2013: {hosts} hosts");
                }
            })?;
            relay_2013::print(options.relay, &measured, options.json);
            Ok(())
        }
    }
}
