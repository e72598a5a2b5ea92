//! Upstreams that are slow, lying, flooding, truncating, failing or dead: answers stay right, and every query has one in time.

use crate::Interop;
use sixway_lab::dns64::trickster::{TRUTH, Trick, Trickster};
use sixway_lab::dns64::{Expected, Flags, Running, Server, Tree, embedded};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::topology::client_gateway_server;
use std::net::IpAddr;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("answers_stay_right_whatever_the_upstream_does", &["sixway"], || {
        answers_stay_right_whatever_the_upstream_does()
    }),
    Interop::new("every_query_is_answered_when_the_upstream_is_silent", &["sixway"], || {
        every_query_is_answered_when_the_upstream_is_silent()
    }),
];

/// A query is answered within five seconds in every case, and a little is the test's own.
const IN_TIME: Duration = Duration::from_millis(5_500);

fn start() -> Result<(Running, Trickster)> {
    let network = client_gateway_server()?;
    let trickster = Trickster::start(&network)?;
    Ok((Server::Sixway.start_in(network, &Tree::of_hosts(&[]))?, trickster))
}

fn answers_stay_right_whatever_the_upstream_does() -> Result<()> {
    let (running, _trickster) = start()?;
    let (running, mut wrong) = (&running, Vec::new());
    // One after the other for each manner, all manners in parallel: most of the time they wait.
    std::thread::scope(|scope| {
        let asked: Vec<_> = Trick::ALL.map(|trick| scope.spawn(move || wrong_about(running, trick))).into();
        for one in asked {
            wrong.extend(one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(wrong.join("\n  "))),
    }
}

/// What is not right, or not in time.
fn wrong_about(running: &Running, trick: Trick) -> Vec<String> {
    let right = match trick.answers() {
        true => Expected::Addresses(vec![IpAddr::V6(embedded(TRUTH))]),
        false => Expected::Failure,
    };
    let mut wrong = Vec::new();
    for number in 0..if trick.answers() { 3 } else { 1 } {
        let start = Instant::now();
        let reply = running.asker().and_then(|asker| asker.ask(&trick.name(number), "AAAA", Flags::NONE));
        let said = reply.and_then(|reply| reply.addresses("AAAA"));
        let took = start.elapsed();
        if !said.as_ref().is_ok_and(|said| said.is(&right)) || took > IN_TIME {
            wrong.push(format!("{trick:?}: {said:?} after {took:?}, not {right:?}"));
        }
    }
    wrong
}

fn every_query_is_answered_when_the_upstream_is_silent() -> Result<()> {
    let (running, _trickster) = start()?;
    let asker = running.asker()?;
    let before = running.memory()?;
    let came = asker.ask_all((0..3_000).map(|number| Trick::Silent.name(number)), Duration::from_secs(8))?;
    assert_eq!(came, [("SERVFAIL".to_owned(), 3_000)].into());
    let grown = running.memory()?.saturating_sub(before);
    assert!(grown < 30_000_000, "{grown} octets more than before");
    Ok(())
}
