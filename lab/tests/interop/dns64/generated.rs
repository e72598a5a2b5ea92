//! About a thousand generated names, each asked for, and compared with what the generator knows to be right.

use super::{generated, programs, start};
use crate::Interop;
use sixway_lab::dns64::difference::{DIFFERENCES, explained};
use sixway_lab::dns64::{Flags, Running, Server, Tree, Trust};
use sixway_lab::failure::{Failure, Result};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "pdns_recursor_is_right_about_generated_names_but_for_what_is_written",
        programs!("pdns_recursor"),
        || is_right(Server::Recursor),
    ),
    Interop::new(
        "sixway_is_right_about_generated_names_whatever_the_flags",
        programs!("sixway"),
        sixway_is_right_about_generated_names_whatever_the_flags,
    ),
    Interop::new(
        "sixway_without_validation_is_right_about_generated_names_whatever_the_flags",
        programs!("sixway"),
        sixway_without_validation_is_right_about_generated_names_whatever_the_flags,
    ),
];

fn is_right(server: Server) -> Result<()> {
    let (running, tree) = start(server)?;
    let asker = running.asker()?;
    let mut wrong = Vec::new();
    let mut known = Vec::new();
    for sample in &tree.samples {
        let said = asker.ask(&sample.name, "AAAA", Flags::NONE).and_then(|reply| reply.addresses("AAAA"));
        let right = sample.right_aaaa(Flags::NONE).expected;
        if said.as_ref().is_ok_and(|said| said.is(&right)) {
            continue;
        }
        match explained(server, sample) {
            Some(difference) => known.push(difference.what),
            None => wrong.push(format!("{} ({:?}): {said:?}, not {right:?}", sample.name, sample.kind)),
        }
    }
    let own = DIFFERENCES.iter().filter(|difference| difference.server == server && difference.always);
    wrong.extend(
        own.filter(|difference| !known.contains(&difference.what))
            .map(|gone| format!("{}: it is right about them, which is not what is written", gone.what)),
    );
    let (many, all) = (wrong.len(), tree.samples.len());
    wrong.truncate(20);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{many} of {all}:\n  {}", wrong.join("\n  ")))),
    }
}

fn sixway_is_right_about_generated_names_whatever_the_flags() -> Result<()> {
    let (running, tree) = start(Server::Sixway)?;
    is_right_whatever_the_flags(&running, &tree)
}

fn sixway_without_validation_is_right_about_generated_names_whatever_the_flags() -> Result<()> {
    let mut tree = generated()?;
    tree.anchor.clear();
    tree.samples.iter_mut().for_each(|sample| sample.trust = [Trust::Insecure; 2]);
    is_right_whatever_the_flags(&Server::Sixway.start(&tree)?, &tree)
}

fn is_right_whatever_the_flags(running: &Running, tree: &Tree) -> Result<()> {
    let asker = running.asker()?;
    let mut wrong = Vec::new();
    // Twice: what is remembered for one client is served to another.
    let all = Flags::OF_A_VALIDATOR;
    for flags in all.into_iter().chain(all.into_iter().rev()) {
        for sample in &tree.samples {
            for (kind, right) in [("A", sample.right_a(flags)), ("AAAA", sample.right_aaaa(flags))] {
                let said = asker.ask(&sample.name, kind, flags)?;
                let is = said.addresses(kind)?.is(&right.expected);
                if !is || right.authentic.is_some_and(|authentic| authentic != said.authentic) {
                    let name = &sample.name;
                    wrong.push(format!("{name} {kind} {flags} ({:?}): {said:?}, not {right:?}", sample.kind));
                }
            }
        }
    }
    let many = wrong.len();
    wrong.truncate(12);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{many} are wrong:\n  {}", wrong.join("\n  ")))),
    }
}
