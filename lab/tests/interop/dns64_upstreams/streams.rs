//! Upstreams that are asked by TCP and break its rules, or go to their limits.

use super::hostile::wants;
use super::upstream::Manner;
use super::{Scene, for_each};
use crate::Interop;
use sixway_lab::failure::Result;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("dns64_by_tcp_bears_what_rfc_7766_allows_to_upstreams", &["sixway"], allowed),
    Interop::new("dns64_by_tcp_fails_in_time_before_upstreams_that_break_off", &["sixway"], breaking_off),
    Interop::new("dns64_by_tcp_is_right_beside_an_honest_upstream", &["sixway"], beside_an_honest_one),
    Interop::new(
        "dns64_by_tcp_answers_each_of_10000_queries_before_hostile_upstreams",
        &["sixway"],
        ten_thousand,
    ),
];

const BY_TCP: &str = "transport = \"tcp\"";

fn allowed() -> Result<()> {
    let slow = Manner::Slow(Duration::from_millis(5));
    let all = [Manner::Honest, Manner::Unordered, Manner::Closing, Manner::Chattering, slow];
    for each in [BY_TCP, ""] {
        for_each(&all, |manner| {
            let crowd = Scene::with(&[manner], "", each)?.crowd(300, 50)?;
            wants((manner, each), &crowd, 300, crowd.right == 300)
        })?;
    }
    Ok(())
}

fn breaking_off() -> Result<()> {
    use Manner::{Deaf, Endless, HalfClosing, HalfReply, Resetting, Silent};
    for_each(&[HalfClosing, HalfReply, Resetting, Silent, Deaf, Endless, Manner::Rubbish], |manner| {
        let crowd = Scene::with(&[manner], "", BY_TCP)?.crowd(100, 100)?;
        wants(manner, &crowd, 100, crowd.failed == 100 && crowd.longest < Duration::from_secs(6))
    })
}

fn beside_an_honest_one() -> Result<()> {
    use Manner::{Deaf, Endless, HalfClosing, HalfReply, Resetting, Silent};
    for_each(&[HalfClosing, HalfReply, Resetting, Silent, Deaf, Endless], |manner| {
        let crowd = Scene::with(&[manner, Manner::Honest], "", BY_TCP)?.crowd(200, 50)?;
        wants(manner, &crowd, 200, crowd.right == 200)
    })
}

fn ten_thousand() -> Result<()> {
    use Manner::{Closing, Deaf, Endless, HalfClosing, Honest, Resetting, Unordered};
    let scene =
        Scene::with(&[HalfClosing, Resetting, Deaf, Endless, Closing, Unordered, Honest], "", BY_TCP)?;
    let crowd = scene.crowd(10_000, 500)?;
    wants("hostile", &crowd, 10_000, crowd.right > 5_000)?;
    scene.is_accounted_for(10_000)
}
