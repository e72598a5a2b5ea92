//! There is no attacker, but something is missing: an upstream that comes back, a link that is down, file descriptors, room in the cache.

use super::hostile::wants;
use super::upstream::{Manner, Upstream};
use super::{RESOLVER, Scene};
use crate::Interop;
use crate::dns64_upstreams::crowd::Crowd;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("dns64_asks_an_upstream_again_that_came_back", &["sixway"], upstream_comes_back),
    Interop::new("dns64_answers_with_what_is_old_while_its_upstream_is_away", &["sixway"], stale),
    Interop::new("dns64_answers_again_when_a_link_came_back", &["sixway"], link_comes_back),
    Interop::new("dns64_answers_each_query_without_a_free_descriptor", &["sixway", "prlimit"], no_descriptor),
    Interop::new("dns64_answers_each_query_beyond_those_that_may_wait", &["sixway"], few_may_wait),
    Interop::new("dns64_with_a_small_cache_stays_small", &["sixway"], small_cache),
];

/// How long the DNS64 may take to find out.
const SOON: Duration = Duration::from_secs(12);

impl Scene {
    fn ask(&self, numbers: std::ops::Range<u16>) -> Result<Crowd> {
        Crowd::ask(self.network.host("client")?, RESOLVER, numbers, 50)
    }

    /// Waits until names that were not asked for before are found, a few each time.
    fn recovers(&self, from: u16) -> Result<()> {
        let mut numbers = (from..).step_by(8);
        interrupt::wait_until(SOON, "right answers again", || {
            std::thread::sleep(Duration::from_millis(250));
            let first = numbers.next().unwrap_or(from);
            Ok(self.ask(first..first + 8)?.right == 8)
        })
    }
}

fn upstream_comes_back() -> Result<()> {
    let mut scene = Scene::before(&[Manner::Honest])?;
    assert_eq!(scene.ask(0..40)?.right, 40);
    scene.upstreams.clear();
    let dead = scene.ask(1_000..1_050)?;
    wants("nobody listens", &dead, 50, dead.failed == 50)?;
    assert_eq!(scene.ask(0..40)?.right, 40, "the cache knows them");
    scene.upstreams.push(Upstream::start(scene.network.host("server")?, "203.0.113.20", Manner::Honest)?);
    scene.recovers(2_000)
}

/// RFC 8767: answers that are over serve on, with a TTL of 30 s, when no upstream gives new ones; and no longer than that.
fn stale() -> Result<()> {
    let brief = "max_ttl = \"1 s\"\nmax_negative_ttl = \"1 s\"";
    for manner in [None, Some(Manner::Silent)] {
        let mut scene = Scene::with(&[Manner::Honest], brief, "")?;
        assert_eq!(scene.ask(0..40)?.right, 40);
        let server = "203.0.113.20";
        scene.upstreams.clear();
        if let Some(manner) = manner {
            scene.upstreams.push(Upstream::start(scene.network.host("server")?, server, manner)?);
        }
        std::thread::sleep(Duration::from_millis(2_500));
        let old = scene.ask(0..40)?;
        wants(("away", manner), &old, 40, old.right == 40 && old.longest < Duration::from_secs(4))?;
        let unknown = scene.ask(1_000..1_020)?;
        wants(("never known", manner), &unknown, 20, unknown.failed == 20)?;
        scene.upstreams.clear();
        scene.upstreams.push(Upstream::start(scene.network.host("server")?, server, Manner::Honest)?);
        scene.recovers(2_000)?;
    }
    Ok(())
}

fn link_comes_back() -> Result<()> {
    let scene = Scene::before(&[Manner::Honest])?;
    assert_eq!(scene.ask(0..40)?.right, 40);
    let gateway = scene.network.host("gateway")?;
    gateway.ip("link set out0 down")?;
    let dead = scene.ask(1_000..1_200)?;
    wants("the link is down", &dead, 200, dead.failed == 200 && dead.longest < Duration::from_secs(6))?;
    gateway.ip("link set out0 up")?;
    scene.recovers(2_000)
}

/// Each question to an upstream takes a descriptor; when they are taken away, queries are answered with SERVFAIL or wait, and later with
/// what is right.
fn no_descriptor() -> Result<()> {
    let scene = Scene::before(&[Manner::Slow(Duration::from_millis(200))])?;
    assert_eq!(scene.ask(0..8)?.right, 8);
    let limit = |files: &str| {
        let mut prlimit = command("prlimit")?;
        prlimit.arg(format!("--nofile={files}")).args(["--pid", &scene.process.to_string()]);
        scene.network.host("gateway")?.run(prlimit, Duration::from_secs(5))?.succeeded()
    };
    limit("40:4096")?;
    let crowd = scene.crowd_of(1_000..3_000, 500)?;
    wants("40 descriptors", &crowd, 2_000, crowd.right > 0)?;
    limit("4096:4096")?;
    scene.recovers(10_000)
}

fn few_may_wait() -> Result<()> {
    let scene = Scene::with(&[Manner::Slow(Duration::from_millis(150))], "waiting = 200", "")?;
    let crowd = scene.crowd_of(0..8_000, 4_000)?;
    wants("200 may wait", &crowd, 8_000, crowd.right > 100 && crowd.failed > 100)?;
    scene.recovers(10_000)?;
    let scene = Scene::before(&[Manner::Silent])?;
    let crowd = scene.crowd_of(0..30_000, 30_000)?;
    wants("10,000 may wait", &crowd, 30_000, crowd.failed == 30_000)
}

fn small_cache() -> Result<()> {
    let scene = Scene::with(&[Manner::Honest], "cache = \"1 MiB\"", "")?;
    assert_eq!(scene.ask(0..40)?.right, 40);
    let before = scene.memory()?;
    let crowd = scene.crowd_of(0..60_000, 200)?;
    wants("60,000 names", &crowd, 60_000, crowd.right == 60_000)?;
    let grown = scene.memory()?.saturating_sub(before);
    match grown {
        0..=12_000_000 => Ok(()),
        _ => Err(Failure::Unexpected(format!("{grown} octets more than before"))),
    }
}
