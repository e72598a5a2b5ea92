//! Each manner alone, each next to an honest upstream, and ten thousand queries before the worst of them.

use super::crowd::Crowd;
use super::message::{LIE, synthesised};
use super::upstream::{Manner, VICTIM};
use super::{RESOLVER, Scene, for_each};
use crate::Interop;
use sixway_lab::dns64::{Asker, Flags};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::show;
use std::net::SocketAddr;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("dns64_before_a_lying_upstream_says_nothing_wrong", &["sixway"], lying),
    Interop::new("dns64_before_an_upstream_that_truncates_asks_by_tcp", &["sixway"], truncating),
    Interop::new(
        "dns64_before_an_upstream_that_breaks_streams_off_fails_in_time",
        &["sixway"],
        broken_streams,
    ),
    Interop::new("dns64_before_a_flooding_upstream_believes_the_right_reply_only", &["sixway"], flooding),
    Interop::new("dns64_keeps_nothing_that_an_upstream_adds_about_others", &["sixway"], poisoning),
    Interop::new(
        "dns64_beside_an_honest_upstream_is_right_whatever_the_other_says",
        &["sixway"],
        beside_an_honest_one,
    ),
    Interop::new("dns64_answers_each_of_10000_queries_before_hostile_upstreams", &["sixway"], ten_thousand),
    Interop::new("dns64_bears_upstreams_that_know_less_than_it", &["sixway"], old_ones),
    Interop::new("dns64_with_two_threads_answers_each_of_several_clients", &["sixway"], two_threads),
    Interop::new(
        "dns64_answers_each_of_10000_queries_before_silent_upstreams",
        &["sixway"],
        ten_thousand_unheard,
    ),
];

/// More is a leak: the cache's bound is 64 MiB, and these tests do not fill it.
const MEMORY: u64 = 96 << 20;

/// Each query has one answer, none is wrong, and it was also `well`.
pub fn wants(what: impl std::fmt::Debug, crowd: &Crowd, asked: u32, well: bool) -> Result<()> {
    let counted = crowd.answered() == asked && crowd.unanswered == 0 && crowd.twice == 0;
    match counted && crowd.wrong.is_empty() && well {
        true => Ok(()),
        false => {
            let (wrong, shown) = (crowd.wrong.len(), crowd.wrong.iter().take(5).collect::<Vec<_>>());
            Err(Failure::Unexpected(format!(
                "{what:?}: of {asked}: {} right, {} made, {} SERVFAIL, {wrong} wrong {shown:?}, {} unanswered, {} twice, longest {:?}",
                crowd.right, crowd.made, crowd.failed, crowd.unanswered, crowd.twice, crowd.longest
            )))
        }
    }
}

impl Scene {
    /// This number of queries, at most `window` at a time; the gateway bears them.
    pub fn crowd(&self, count: u16, window: u32) -> Result<Crowd> {
        self.crowd_of(0..count, window)
    }

    /// The same for names of these numbers.
    pub fn crowd_of(&self, numbers: std::ops::Range<u16>, window: u32) -> Result<Crowd> {
        let count = numbers.len();
        let crowd = Crowd::ask(self.network.host("client")?, RESOLVER, numbers, window)?;
        let memory = self.memory()?;
        if memory > MEMORY {
            return Err(Failure::Unexpected(format!("{memory} octets in RAM after {count} queries")));
        }
        self.network.with_process(self.process, |process| process.must_run())??;
        Ok(crowd)
    }

    /// What `sixway show dns64 --json` says.
    fn shown(&self) -> Result<serde_json::Value> {
        let gateway = self.network.host("gateway")?;
        let said =
            gateway.run(show(&self.network, &["dns64", "--json"])?, Duration::from_secs(5))?.succeeded()?;
        serde_json::from_str(&said.stdout)
            .map_err(|error| Failure::Unexpected(format!("{error}: {}", said.stdout)))
    }
}

/// Nothing true is available, and each client learns so in time.
fn fails(manner: Manner) -> Result<()> {
    let crowd = Scene::before(&[manner])?.crowd(40, 40)?;
    wants(manner, &crowd, 40, crowd.failed == 40 && crowd.longest < Duration::from_secs(6))
}

fn lying() -> Result<()> {
    for_each(&[Manner::WrongQuestion, Manner::WrongId, Manner::CnameLoop, Manner::Rubbish], fails)
}

fn truncating() -> Result<()> {
    let scene = Scene::before(&[Manner::Truncating])?;
    let crowd = scene.crowd(400, 100)?;
    wants(Manner::Truncating, &crowd, 400, crowd.right == 400)
}

fn broken_streams() -> Result<()> {
    for_each(&[Manner::TruncatingForEver, Manner::HalfClosing, Manner::HalfReply], fails)
}

/// While it is flooded it answers others.
fn flooding() -> Result<()> {
    let scene = Scene::before(&[Manner::Flooding])?;
    let crowd = scene.crowd(200, 200)?;
    wants(Manner::Flooding, &crowd, 200, crowd.right + crowd.made + crowd.failed == 200)?;
    let again = scene.crowd(200, 200)?;
    wants("once more", &again, 200, again.right >= crowd.right)
}

fn poisoning() -> Result<()> {
    let scene = Scene::before(&[Manner::Poisoning])?;
    let crowd = scene.crowd(64, 32)?;
    wants(Manner::Poisoning, &crowd, 64, crowd.right == 64)?;
    let server: SocketAddr =
        (RESOLVER.parse::<std::net::Ipv6Addr>().unwrap_or_else(|_| unreachable!()), 53).into();
    let asker = Asker::open(scene.network.host("client")?, server)?;
    for (kind, lie) in [("A", LIE.to_string()), ("AAAA", synthesised(LIE).to_string())] {
        let reply = asker.ask(VICTIM, kind, Flags::NONE)?;
        assert_eq!((reply.rcode.as_str(), reply.answer.len()), ("SERVFAIL", 0), "{reply:?}");
        assert!(!format!("{reply:?}").contains(&lie), "{reply:?}");
    }
    Ok(())
}

/// But for those that it cannot tell from honest ones.
fn beside_an_honest_one() -> Result<()> {
    let slow = Manner::Slow(Duration::from_millis(900));
    let all = [
        slow,
        Manner::Silent,
        Manner::WrongQuestion,
        Manner::WrongId,
        Manner::Rubbish,
        Manner::Refusing,
        Manner::TruncatingForEver,
        Manner::HalfClosing,
        Manner::HalfReply,
    ];
    for_each(&all, |manner| {
        let crowd = Scene::before(&[manner, Manner::Honest])?.crowd(200, 50)?;
        wants(manner, &crowd, 200, crowd.right == 200)
    })
}

const MANY: u16 = 10_000;

fn ten_thousand() -> Result<()> {
    let slow = Manner::Slow(Duration::from_millis(300));
    let scene = Scene::before(&[
        Manner::WrongId,
        Manner::Silent,
        Manner::HalfClosing,
        slow,
        Manner::Flooding,
        Manner::Honest,
    ])?;
    let crowd = scene.crowd(MANY, 1_000)?;
    wants("hostile", &crowd, MANY.into(), crowd.right > u32::from(MANY) / 2)?;
    assert!(scene.upstreams.iter().all(|upstream| upstream.asked() > 0), "some were not tried");
    scene.is_accounted_for(MANY.into())
}

/// Some servers know no EDNS, some say so by silence, and some do not keep the case of a question.
fn old_ones() -> Result<()> {
    for_each(&[Manner::Lowering, Manner::WithoutEdns, Manner::DeafToEdns], |manner| {
        let crowd = Scene::before(&[manner])?.crowd(200, 20)?;
        wants(manner, &crowd, 200, crowd.right == 200)
    })?;
    for_each(&[Manner::Questionless, Manner::WithoutTcp], fails)
}

/// Eight sockets, so that each thread has some.
fn two_threads() -> Result<()> {
    const EACH: u16 = 2_000;
    let scene = Scene::with(&[Manner::Truncating, Manner::Honest, Manner::WrongId], "threads = 2", "")?;
    let crowds: Vec<Result<Crowd>> = std::thread::scope(|scope| {
        let ask = |number: u16| {
            scope.spawn({
                let scene = &scene;
                move || scene.crowd_of(number * EACH..(number + 1) * EACH, 50)
            })
        };
        let asking: Vec<_> = (0..8).map(ask).collect();
        asking.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    assert_eq!(crowds.len(), 8);
    for crowd in crowds {
        let crowd = crowd?;
        wants("two threads", &crowd, EACH.into(), crowd.right > u32::from(EACH) * 9 / 10)?;
    }
    scene.is_accounted_for(8 * u64::from(EACH))
}

fn ten_thousand_unheard() -> Result<()> {
    let scene = Scene::before(&[Manner::Silent, Manner::Silent])?;
    let crowd = scene.crowd(MANY, 5_000)?;
    let in_time = crowd.longest < Duration::from_secs(7);
    wants("silent", &crowd, MANY.into(), crowd.failed == u32::from(MANY) && in_time)?;
    scene.is_accounted_for(MANY.into())
}

impl Scene {
    /// Its own counters say the same: each query has one outcome, none waits.
    pub fn is_accounted_for(&self, queries: u64) -> Result<()> {
        let shown = self.shown()?;
        let number = |key: &str| shown[key].as_u64();
        let outcomes: Option<u64> = shown["outcomes"]
            .as_array()
            .map(|rows| rows.iter().filter_map(|row| row["count"].as_u64()).sum());
        assert_eq!(
            (number("queries"), outcomes, number("waiting")),
            (Some(queries), Some(queries), Some(0)),
            "{shown}"
        );
        Ok(())
    }
}
