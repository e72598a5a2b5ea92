//! Upstreams that are asked by TCP and break its rules, or go to their limits.

use super::Scene;
use super::hostile::wants;
use super::upstream::Manner;
use crate::Interop;
use sixway_lab::failure::{Failure, Result};
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
    for (each, manner) in [BY_TCP, ""].into_iter().flat_map(|each| {
        [Manner::Honest, Manner::Unordered, Manner::Closing, Manner::Chattering, slow]
            .map(|manner| (each, manner))
    }) {
        let scene = Scene::with(&[manner], "", each)?;
        let crowd = scene.crowd(300, 50)?;
        wants((manner, each), &crowd, 300, crowd.right == 300)?;
    }
    Ok(())
}

fn breaking_off() -> Result<()> {
    use Manner::{Deaf, Endless, HalfClosing, HalfReply, Resetting, Silent};
    for manner in [HalfClosing, HalfReply, Resetting, Silent, Deaf, Endless, Manner::Rubbish] {
        let scene = Scene::with(&[manner], "", BY_TCP)?;
        let crowd = scene.crowd(200, 100)?;
        wants(manner, &crowd, 200, crowd.failed == 200 && crowd.longest < Duration::from_secs(6))?;
    }
    Ok(())
}

fn beside_an_honest_one() -> Result<()> {
    use Manner::{Deaf, Endless, HalfClosing, HalfReply, Resetting, Silent};
    let mut faults = Vec::new();
    for manner in [HalfClosing, HalfReply, Resetting, Silent, Deaf, Endless] {
        let scene = Scene::with(&[manner, Manner::Honest], "", BY_TCP)?;
        let crowd = scene.crowd(200, 50)?;
        faults.extend(wants(manner, &crowd, 200, crowd.right == 200).err().map(|fault| fault.to_string()));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(faults.join("\n  "))),
    }
}

fn ten_thousand() -> Result<()> {
    use Manner::{Closing, Deaf, Endless, HalfClosing, Honest, Resetting, Unordered};
    let scene =
        Scene::with(&[HalfClosing, Resetting, Deaf, Endless, Closing, Unordered, Honest], "", BY_TCP)?;
    let crowd = scene.crowd(10_000, 500)?;
    wants("hostile", &crowd, 10_000, crowd.right > 5_000)?;
    scene.is_accounted_for(10_000)
}
