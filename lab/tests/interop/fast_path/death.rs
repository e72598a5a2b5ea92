//! The gateway is killed, or replaced by another one, under 1,000 flows: the kernel keeps forwarding, and the next gateway has every
//! session.

use super::load::Translator::{self, Nat44, Nat64};
use super::load::{FLOWS, Gateway, PER_SECOND, all_is_well, endpoint, pause};
use crate::Interop;
use crate::counters::total;
use crate::datagrams::{arrives, socket};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::Hook;
use sixway_lab::forwarder::NAT64;

pub const TESTS: &[Interop] = &[
    Interop::new("a_thousand_flows_lose_nothing_when_the_gateway_is_killed_tc", &["sixway"], || {
        killed(Nat64, Hook::Tc)
    }),
    Interop::new("a_thousand_flows_lose_nothing_when_the_gateway_is_killed_xdp", &["sixway"], || {
        killed(Nat64, Hook::Xdp)
    }),
    Interop::new("a_thousand_flows_of_nat44_lose_nothing_when_the_gateway_is_killed_tc", &["sixway"], || {
        killed(Nat44, Hook::Tc)
    }),
    Interop::new(
        "a_thousand_flows_of_nat44_lose_nothing_when_the_gateway_is_killed_xdp",
        &["sixway"],
        || killed(Nat44, Hook::Xdp),
    ),
    Interop::new("a_thousand_flows_lose_nothing_when_another_gateway_takes_over_tc", &["sixway"], || {
        taken_over(Nat64, Hook::Tc)
    }),
    Interop::new("a_thousand_flows_lose_nothing_when_another_gateway_takes_over_xdp", &["sixway"], || {
        taken_over(Nat64, Hook::Xdp)
    }),
    Interop::new("a_thousand_flows_of_nat44_lose_nothing_when_another_takes_over_tc", &["sixway"], || {
        taken_over(Nat44, Hook::Tc)
    }),
    Interop::new("a_thousand_flows_of_nat44_lose_nothing_when_another_takes_over_xdp", &["sixway"], || {
        taken_over(Nat44, Hook::Xdp)
    }),
    Interop::new("a_pool_address_that_a_new_configuration_lacks_is_used_no_more_tc", &["sixway"], || {
        address_taken_away(Hook::Tc)
    }),
    Interop::new("a_pool_address_that_a_new_configuration_lacks_is_used_no_more_xdp", &["sixway"], || {
        address_taken_away(Hook::Xdp)
    }),
];

/// `kill -9`, more than two seconds without a gateway (so the kernel's routes are looked up again), another start, and a second with it.
fn killed(translator: Translator, hook: Hook) -> Result<()> {
    let mut gateway = Gateway::start_with(translator, hook)?;
    let stream = gateway.load()?;
    gateway.network.with_process(gateway.process, |process| process.kill())?;
    pause(2_500)?;
    gateway.start_again(translator.configuration())?;
    knows_every_session(&gateway)?;
    let by_engine = gateway.engine_sends(|| pause(1_000))?;
    all_is_well(&stream.end()?, PER_SECOND as usize * 3)?;
    few(by_engine)
}

fn taken_over(translator: Translator, hook: Hook) -> Result<()> {
    let mut gateway = Gateway::start_with(translator, hook)?;
    let stream = gateway.load()?;
    let first = gateway.process;
    gateway.take_over(translator.configuration())?;
    let runs = gateway.network.with_process(first, |process| process.runs())??;
    assert!(!runs, "the first gateway still runs");
    knows_every_session(&gateway)?;
    let by_engine = gateway.engine_sends(|| pause(1_000))?;
    all_is_well(&stream.end()?, PER_SECOND as usize)?;
    few(by_engine)
}

/// What a gateway knows of flows that another one has moved.
fn knows_every_session(gateway: &Gateway) -> Result<()> {
    for what in ["bindings", "sessions"] {
        let there = total(&gateway.network, what)?;
        if there != u64::from(FLOWS) {
            return Err(Failure::Unexpected(format!("{there} {what} were adopted, not {FLOWS}")));
        }
    }
    Ok(())
}

/// Adopted flows need not be moved again.
fn few(by_engine: u64) -> Result<()> {
    match by_engine {
        0..100 => Ok(()),
        many => Err(Failure::Unexpected(format!("{many} packets took the long way again"))),
    }
}

/// Inside addresses; one has 192.0.2.1 outside, and the other 192.0.2.2.
fn one_of_each(gateway: &Gateway) -> Result<[String; 2]> {
    let server = socket(gateway.network.host("server")?, "203.0.113.2:55")?;
    let client = gateway.network.host("client")?;
    let mut found = [None, None];
    for number in 0x10..0x30 {
        let inside = format!("2001:db8:1::{number:x}");
        gateway.network.address("client", "up0", &format!("{inside}/64"))?;
        let asking = socket(client, &format!("[{inside}]:19999"))?;
        let outside = arrives(&asking, "[64:ff9b::203.0.113.2]:55", &server, b"who am I?")?.ip();
        found[usize::from(outside.to_string() == "192.0.2.2")].get_or_insert(inside);
        if let [Some(one), Some(other)] = &found {
            return Ok([one.clone(), other.clone()]);
        }
    }
    Err(Failure::Unexpected("all inside hosts have the same outside address".to_owned()))
}

/// Two clients with an outside address each; the next gateway has but the first one's. Nothing leaves from the other one any more, and
/// nothing of the first client is lost.
fn address_taken_away(hook: Hook) -> Result<()> {
    let pool = |addresses: &str| NAT64.replace("192.0.2.0/28", addresses);
    let network = sixway_lab::topology::client_gateway_server()?;
    let mut gateway = Gateway::start_in(network, hook, &pool("192.0.2.1/32\", \"192.0.2.2/32"))?;
    let [one, other] = one_of_each(&gateway)?;
    let one = gateway.stream(&one, 53, FLOWS / 2, PER_SECOND / 2, 64)?;
    let other = gateway.stream(&other, 54, FLOWS / 2, PER_SECOND / 2, 64)?;
    sixway_lab::fast_path::wait_until_moved(&gateway.network)?;
    gateway.take_over(&pool("192.0.2.1/32"))?;
    let begun = other.now();
    pause(1_000)?;
    let gone = endpoint("192.0.2.2", 0)?.ip();
    let other = other.end()?;
    let late = other.up.arrived.iter().filter(|packet| packet.sent >= begun && packet.other.ip() == gone);
    assert_eq!(late.count(), 0, "packets left from the address that went away");
    let before = other.up.arrived.iter().filter(|packet| packet.other.ip() == gone).count();
    assert!(before > PER_SECOND as usize / 2, "{before} packets left from it before");
    all_is_well(&one.end()?, PER_SECOND as usize / 2)
}
