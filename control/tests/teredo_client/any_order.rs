//! Events in any order: what holds always.

use super::*;
use proptest::prelude::*;
use sixway_control::teredo_client::Phase;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The last question is answered, with one of two mappings.
    Answer(bool),
    /// The last question is answered from the second address of the server, as a probe for a cone NAT is.
    Elsewhere(bool),
    Wait(u16),
    /// Time passes and nothing is done.
    Suspend(u16),
    Moved(Option<u8>),
    Native(bool),
    Doubt,
    Resumed,
    Start,
    ShutDown,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => any::<bool>().prop_map(Event::Answer),
        1 => any::<bool>().prop_map(Event::Elsewhere),
        4 => (0..400_u16).prop_map(Event::Wait),
        1 => any::<u16>().prop_map(Event::Suspend),
        1 => proptest::option::of(1..4_u8).prop_map(Event::Moved),
        1 => any::<bool>().prop_map(Event::Native),
        1 => Just(Event::Doubt),
        1 => Just(Event::Resumed),
        2 => Just(Event::Start),
        1 => Just(Event::ShutDown),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(512)))]

    #[test]
    fn whatever_happens_the_state_told_is_the_state_kept_and_little_is_sent(
        events in proptest::collection::vec(event(), 0..60),
        symmetric in any::<bool>(), learn_interval in any::<bool>(), local_discovery in any::<bool>(),
    ) {
        let settings = Settings { symmetric, learn_interval, local_discovery, ..Settings::new(vec![SERVER, OTHER]) };
        let mut host = Host::new(settings);
        let (begin, mut shut, mut native, mut attached) = (host.now, false, false, true);
        let mut quiet = 0;
        for event in &events {
            let is_question = |out: &Out| Prologue::split(&out.octets).is_ok_and(|(prologue, _)| prologue.authentication.is_some());
            match *event {
                Event::Answer(same) | Event::Elsewhere(same) => {
                    let Some(out) = host.sent.iter().rev().find(|out| is_question(out)).cloned() else { continue };
                    let server = if [OTHER.primary, OTHER.secondary.unwrap()].contains(&out.to.address) { OTHER } else { SERVER };
                    let octets = Answer::to(&out.asked(), server.primary, if same { MAPPED } else { ELSEWHERE }).octets();
                    let from = if matches!(event, Event::Answer(_)) { out.to } else { at(server.secondary.unwrap()) };
                    let _ = host.receive(out.from, from, &octets);
                }
                Event::Wait(seconds) => host.wait_secs(seconds.into()),
                Event::Suspend(seconds) => host.now = host.now + Duration::from_secs(seconds.into()),
                Event::Moved(n) => {
                    attached = n.is_some();
                    let there = n.map(|n| local(Endpoint4::new(Ipv4Addr::new(10, 0, 0, n), 40_001)));
                    host.client.moved(there, host.now);
                }
                Event::Native(exists) => {
                    native = exists;
                    host.client.native_ipv6(exists, host.now);
                }
                Event::Doubt => host.client.doubt(host.now),
                Event::Resumed => host.client.resumed(host.now),
                Event::Start => {
                    shut = false;
                    host.client.start(host.now);
                }
                Event::ShutDown => {
                    shut = true;
                    host.client.shut_down();
                }
            }
            host.settle();
            let status = host.client.status(host.now);
            prop_assert_eq!(status.in_use, host.told, "{:?}", event);
            if shut || native || !attached {
                prop_assert_eq!((status.in_use, status.phase, host.client.due()), (None, Phase::Stopped, None));
                prop_assert!(status.why.is_some());
                prop_assert!(quiet == 0 || quiet == host.sent.len() + 1, "nothing is sent");
                quiet = host.sent.len() + 1;
            } else {
                quiet = 0;
                prop_assert!(host.client.due().is_some(), "it goes on");
                prop_assert!(status.phase != Phase::Stopped);
            }
            prop_assert!(status.phase != Phase::Qualified || status.in_use.is_some());
        }
        let seconds = host.now.since(begin).as_secs();
        let most = 8 + seconds + 8 * events.len() as u64;
        prop_assert!(host.sent.len() as u64 <= most, "{} datagrams in {seconds} s", host.sent.len());
    }
}
