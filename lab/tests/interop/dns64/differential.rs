//! Sixway compared with unbound and BIND, name by name and flag by flag: whatever they say differently has a cause that is written.

use super::generated;
use crate::Interop;
use sixway_lab::dns64::cause::{CAUSES, Cause};
use sixway_lab::dns64::facet::Facet;
use sixway_lab::dns64::{Asker, Flags, Reply, Sample, Server};
use sixway_lab::failure::{Failure, Result};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "each_difference_between_sixway_and_unbound_has_a_cause",
        &["nsd", "taskset", "dnssec-keygen", "dnssec-signzone", "sixway", "unbound"],
        || each_difference_has_a_cause(Server::Unbound),
    ),
    Interop::new(
        "each_difference_between_sixway_and_bind_has_a_cause",
        &["nsd", "taskset", "dnssec-keygen", "dnssec-signzone", "sixway", "named"],
        || each_difference_has_a_cause(Server::Bind),
    ),
];

/// How often each cause was met, and what has none.
struct Found {
    by_cause: Vec<usize>,
    unexplained: Vec<String>,
}

fn each_difference_has_a_cause(peer: Server) -> Result<()> {
    let tree = generated()?;
    let (ours, theirs) = (Server::Sixway.start(&tree)?, peer.start(&tree)?);
    let (ours, theirs) = (ours.asker()?, theirs.asker()?);
    let mut found = Found { by_cause: vec![0; CAUSES.len()], unexplained: Vec::new() };
    for flags in Flags::OF_A_VALIDATOR {
        for sample in &tree.samples {
            let ask = |asker: &Asker| asker.ask(&sample.name, "AAAA", flags);
            found.compare(peer, sample, flags, [&ask(&ours)?, &ask(&theirs)?]);
        }
    }
    found.judged(peer)
}

impl Found {
    fn compare(&mut self, peer: Server, sample: &Sample, flags: Flags, [ours, theirs]: [&Reply; 2]) {
        for facet in Facet::ALL {
            let (we, they) = (facet.of(ours), facet.of(theirs));
            match Cause::of(peer, sample, flags, facet) {
                _ if we == they => {}
                Some(cause) => self.by_cause[cause] += 1,
                None => self.unexplained.push(format!(
                    "{} {flags} ({:?}), {}: {we:?} here, {they:?} there",
                    sample.name,
                    sample.kind,
                    facet.name()
                )),
            }
        }
    }

    fn judged(mut self, peer: Server) -> Result<()> {
        let gone = CAUSES
            .iter()
            .zip(&self.by_cause)
            .filter(|(cause, met)| cause.always && cause.peers.contains(&peer) && **met == 0);
        let gone: Vec<_> =
            gone.map(|(cause, _)| format!("{}: they are at one about it", cause.what)).collect();
        let many = self.unexplained.len();
        self.unexplained.truncate(20);
        match (many, gone.is_empty()) {
            (0, true) => Ok(()),
            _ => Err(Failure::Unexpected(format!(
                "{many} differences from {} without a cause:\n  {}",
                peer.name(),
                [self.unexplained, gone].concat().join("\n  ")
            ))),
        }
    }
}
