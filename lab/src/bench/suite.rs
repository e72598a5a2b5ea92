//! Runs the parts of the benchmark and prints what they measured.

use super::figure::Section;
use super::options::{Options, Part};
use super::{dns64, fastpath, memory, relay, softwires, teredo, wire};
use crate::failure::{Failure, Result};

type Measuring = fn(&Options) -> Result<Vec<Section>>;

/// Runs it and prints tables, or JSON.
pub fn run(options: &Options) -> Result<()> {
    let mut sections = Vec::new();
    if options.wants(Part::Memory) {
        sections.extend(shown(options, memory::run(options)?));
    }
    let on_real_packets: [(Part, Measuring); 6] = [
        (Part::Wire, wire::run),
        (Part::Relay, relay::run),
        (Part::Softwires, softwires::run),
        (Part::Teredo, teredo::run),
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
            options.say("skipped: the parts with real packets need root");
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
