//! The table of what each says: [`sixway_lab::dns64::table`].

use super::{generated, programs, start};
use crate::Interop;
use sixway_lab::dns64::likeness::{LIKENESSES, Likeness};
use sixway_lab::dns64::table::{CASES, Case, words};
use sixway_lab::dns64::{Running, Server, Tree};
use sixway_lab::failure::{Failure, Result};

pub const TESTS: &[Interop] = &[
    Interop::new("unbound_says_what_the_table_says", programs!("unbound"), || says_so(Server::Unbound)),
    Interop::new("bind_says_what_the_table_says", programs!("named"), || says_so(Server::Bind)),
    Interop::new("pdns_recursor_says_what_the_table_says", programs!("pdns_recursor"), || {
        says_so(Server::Recursor)
    }),
    Interop::new("sixway_says_what_the_table_says", programs!("sixway"), || says_so(Server::Sixway)),
    Interop::new(
        "an_option_has_sixway_say_what_a_peer_says_and_changes_nothing_else",
        programs!("sixway"),
        an_option_has_sixway_say_what_a_peer_says_and_changes_nothing_else,
    ),
];

fn says_so(server: Server) -> Result<()> {
    let (running, _) = start(server)?;
    differences(&running, server.name(), |case| case.of(server))
}

fn an_option_has_sixway_say_what_a_peer_says_and_changes_nothing_else() -> Result<()> {
    let tree = generated()?;
    for some in LIKENESSES.chunks(4) {
        std::thread::scope(|scope| {
            let all: Vec<_> = some.iter().map(|one| scope.spawn(|| is_like(one, &tree))).collect();
            let mut done = all.into_iter().map(|one| one.join());
            done.try_for_each(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
    }
    Ok(())
}

fn is_like(likeness: &Likeness, tree: &Tree) -> Result<()> {
    let what = format!("{} as {}", likeness.written(), likeness.like.name());
    let gives = |case: &Case| likeness.concerns(case) && likeness.of(case) != case.of(Server::Sixway);
    assert!(CASES.iter().any(gives), "{what}: it is so without the option");
    differences(&likeness.start(tree)?, &what, |case| likeness.of(case))
}

/// What is not said as it is written.
fn differences(running: &Running, who: &str, written: impl Fn(&Case) -> &'static str) -> Result<()> {
    let asker = running.asker()?;
    let mut differ = Vec::new();
    for case in CASES {
        let said = asker
            .ask(case.name, case.kind, case.flags)
            .map_or_else(|failure| failure.to_string(), |reply| words(&reply));
        let written = written(case);
        if said != written {
            differ.push(format!(
                "{} ({} {} {}): {said:?}, not {written:?}",
                case.what, case.name, case.kind, case.flags
            ));
        }
    }
    match differ.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{who}:\n  {}", differ.join("\n  ")))),
    }
}
