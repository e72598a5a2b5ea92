//! Several upstreams: which is queried first, and what happens when one fails.

use super::network::*;
use sixway_control::dns64::Failure;
use sixway_control::dns64::upstream::{Event, Health};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// An upstream with a switch.
fn switched(alive: &Rc<Cell<bool>>) -> Behaviour {
    let alive = Rc::clone(alive);
    Box::new(move |sent| if alive.get() { says(answer(&sent.message)) } else { silence() })
}

/// How many of this number of questions, one each `pause`, the upstream answered, and the longest that one took.
fn share(network: &mut Network, upstream: usize, questions: usize, pause: Duration) -> (usize, u64) {
    let (mut by, mut longest) = (0, 0);
    for _ in 0..questions {
        let (outcome, took) = network.asked();
        by += usize::from(outcome.is_ok_and(|reply| reply.upstream == upstream));
        longest = longest.max(took);
        network.run_for(pause);
    }
    (by, longest)
}

#[test]
fn the_fastest_is_found_without_making_anybody_wait() {
    let mut network = Network::new(vec![(ms(80), good()), (ms(5), good()), (ms(150), good())]);
    let (by, longest) = share(&mut network, 1, 200, ms(10));
    assert!(by >= 195, "{by}");
    assert_eq!(longest, 80, "the very first, in the order of the settings");
    assert!(network.rows().iter().all(|row| row.latency.is_some()), "all were measured");
    assert!(network.rows()[2].asked <= 30, "and not more often than needed");
}

#[test]
fn an_upstream_that_becomes_faster_is_found() {
    let mut network = Network::new(vec![(ms(20), good()), (ms(60), good())]);
    assert!(share(&mut network, 0, 100, ms(1)).0 >= 99);
    network.servers[1].delay = ms(2);
    share(&mut network, 1, 1_500, ms(1));
    assert!(share(&mut network, 1, 100, ms(1)).0 >= 99);
}

#[test]
fn one_dies_and_comes_back() {
    let alive = Rc::new(Cell::new(true));
    let mut network = Network::new(vec![(ms(5), switched(&alive)), (ms(30), good())]);
    assert!(share(&mut network, 0, 100, ms(10)).0 >= 99);
    assert!(network.events.is_empty());
    alive.set(false);
    let (by, longest) = share(&mut network, 1, 500, ms(10));
    assert_eq!(by, 500, "nothing is lost");
    assert!(longest <= 250, "{longest}");
    assert_eq!(network.events, [Event::Down { upstream: 0 }]);
    assert_eq!(network.rows()[0].health, Health::Down);
    let asked = network.rows()[0].asked;
    network.run_for(Duration::from_secs(600));
    assert!((8..=18).contains(&(network.rows()[0].asked - asked)), "probes, further and further apart");
    alive.set(true);
    network.run_for(Duration::from_secs(61));
    let [_, Event::Up { upstream: 0, after }] = network.events[..] else { panic!("{:?}", network.events) };
    assert!(after >= Duration::from_secs(600), "{after:?}");
    assert_eq!(network.rows()[0].health, Health::Up);
    share(&mut network, 0, 1_000, ms(10));
    assert!(share(&mut network, 0, 100, ms(10)).0 >= 99, "and is the first again");
    assert_eq!(network.events.len(), 2);
}

#[test]
fn a_crowd_of_questions_that_one_loss_hits_is_one_silence() {
    let alive = Rc::new(Cell::new(false));
    let mut network = Network::new(vec![(ms(5), switched(&alive))]);
    for _ in 0..1_000 {
        network.ask();
    }
    network.run_for(ms(350));
    alive.set(true);
    network.run_for(Duration::from_secs(2));
    assert!(network.events.is_empty());
    assert_eq!(network.outcomes.values().filter(|(_, outcome)| is_answer(outcome)).count(), 1_000);
}

#[test]
fn names_whose_own_servers_are_dead_do_not_take_the_upstream_down() {
    let is_probe = |message: &[u8]| message[12] == 0;
    let behaviour: Behaviour =
        Box::new(move |sent| if is_probe(&sent.message) { says(answer(&sent.message)) } else { silence() });
    let mut network = Network::new(vec![(ms(5), behaviour)]);
    (0..10).for_each(|_| assert!(network.asked().0.is_err()));
    assert!(network.events.is_empty());
}

#[test]
fn a_path_that_loses_every_third_datagram_loses_hardly_a_question_and_tells_no_tales() {
    let lossy = |mut state: u32| -> Behaviour {
        Box::new(move |sent| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 16 & 0xff < 85 { silence() } else { says(answer(&sent.message)) }
        })
    };
    let mut network = Network::new(vec![(ms(5), lossy(1)), (ms(9), lossy(2))]);
    let answered = (0..2_000).filter(|_| is_answer(&network.asked().0)).count();
    assert!(answered >= 1_990, "{answered}: six tries are lost once in 729 times");
    assert!(network.events.len() <= 2, "{:?}", network.events);
}

#[test]
fn the_only_upstream_is_asked_even_when_it_is_down() {
    let alive = Rc::new(Cell::new(false));
    let mut network = Network::new(vec![(ms(5), switched(&alive))]);
    (0..5).for_each(|_| drop(network.asked()));
    assert_eq!(network.events, [Event::Down { upstream: 0 }]);
    alive.set(true);
    let (outcome, took) = network.asked();
    assert!(is_answer(&outcome) && took == 5);
    assert!(matches!(network.events[1..], [Event::Up { upstream: 0, .. }]));
}

#[test]
fn an_upstream_that_refuses_immediately_is_not_the_best_for_being_fast() {
    let behaviour: Behaviour = Box::new(|sent| says(bare(&sent.message, 5)));
    let mut network = Network::new(vec![(ms(1), behaviour), (ms(40), good())]);
    share(&mut network, 1, 20, ms(1));
    let before = network.rows()[0].asked;
    assert_eq!(share(&mut network, 1, 100, ms(1)).0, 100);
    assert!(network.rows()[0].asked - before <= 15, "it is measured, and no more");
}

#[test]
fn a_host_without_a_server_is_seen_at_once() {
    let behaviour: Behaviour = Box::new(|_| fails(Failure::Unreachable));
    let mut network = Network::new(vec![(ms(1), behaviour), (ms(40), good())]);
    assert!(share(&mut network, 1, 50, ms(1)).1 <= 41);
    assert!(network.rows()[0].unreachable > 0);
}
