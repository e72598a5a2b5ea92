//! One question: whom it goes to, how often, and what it ends with.

use super::network::*;
use sixway_control::dns64::upstream::{DEADLINE, Exhausted, Health, MAX_TRIES, Question};
use sixway_control::dns64::{Failure, QueryTransport};
use std::time::Duration;

fn with_rcode(rcode: u8) -> Behaviour {
    Box::new(move |sent| says(bare(&sent.message, rcode)))
}

fn failing(failure: Failure) -> Behaviour {
    Box::new(move |_| fails(failure))
}

#[test]
fn a_question_gets_its_reply() {
    let mut network = Network::new(vec![(ms(20), good())]);
    let (outcome, took) = network.asked();
    let reply = outcome.unwrap();
    assert_eq!((reply.upstream, reply.way, took), (0, QueryTransport::Datagram, 20));
    let sent = &network.sent[0].1.message;
    assert_eq!(reply.message, answer(sent));
    assert!(network.open.is_empty());
    let row = network.rows()[0];
    assert_eq!((row.asked, row.replies, row.open, row.latency), (1, 1, 0, Some(ms(20))));
}

#[test]
fn a_lost_datagram_is_sent_again_with_another_id() {
    let mut lost = 1;
    let behaviour: Behaviour = Box::new(move |sent| {
        lost -= 1;
        if lost >= 0 { silence() } else { says(answer(&sent.message)) }
    });
    let mut network = Network::new(vec![(ms(20), behaviour)]);
    let (outcome, took) = network.asked();
    assert!(is_answer(&outcome));
    assert_eq!(took, 420);
    let ids: Vec<_> = network.sent.iter().map(|(_, sent)| sent.message[..2].to_vec()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1]);
    assert!(network.open.is_empty(), "the first exchange was cancelled too");
}

#[test]
fn a_late_reply_is_taken_while_another_upstream_is_tried() {
    let mut network = Network::new(vec![(ms(700), good()), (ms(900), good())]);
    let (outcome, took) = network.asked();
    assert_eq!((outcome.unwrap().upstream, took), (0, 700));
}

#[test]
fn a_reply_that_takes_seconds_is_still_taken() {
    let mut network = Network::new(vec![(ms(3_000), good())]);
    let (outcome, took) = network.asked();
    assert!(is_answer(&outcome) && took == 3_000);
    assert!(network.sent.len() < MAX_TRIES);
}

#[test]
fn nobody_answers_and_the_question_ends_in_time() {
    let mut network = Network::new(vec![(ms(1), dead())]);
    let (outcome, took) = network.asked();
    assert_eq!(outcome, Err(Exhausted::NoReply));
    assert!(took <= DEADLINE.as_millis() as u64);
    let tries = network.sent.iter().filter(|(_, sent)| sent.message.len() > NAME.len() + 12).count();
    assert!(tries <= MAX_TRIES && network.sent.len() <= tries + 3, "and probes");
    assert!(network.open.len() <= 1);
}

#[test]
fn the_first_definite_answer_wins_over_failures() {
    for failure in [with_rcode(2), with_rcode(5), with_rcode(9), failing(Failure::Unreachable)] {
        let mut network = Network::new(vec![(ms(10), failure), (ms(10), good())]);
        let (outcome, took) = network.asked();
        assert!(is_answer(&outcome));
        assert!(took <= 20, "{took}");
    }
}

#[test]
fn a_failure_that_all_agree_on_is_passed_on_immediately() {
    let mut network = Network::new(vec![(ms(10), with_rcode(5)), (ms(10), with_rcode(2))]);
    let (outcome, took) = network.asked();
    let reply = outcome.unwrap();
    assert_eq!((reply.upstream, reply.message[3] & 0x0f, took), (1, 2, 20), "SERVFAIL before REFUSED");
    let mut network = Network::new(vec![(ms(10), with_rcode(2)), (ms(10), dead())]);
    let (outcome, took) = network.asked();
    assert_eq!((outcome.unwrap().message[3] & 0x0f, took), (2, 410), "one says so, one is silent");
}

#[test]
fn a_name_error_and_no_data_are_answers() {
    let soa: Behaviour = Box::new(|sent| says(authority(&sent.message, 6)));
    for behaviour in [with_rcode(3), with_rcode(0), with_rcode(6), soa] {
        let mut network = Network::new(vec![(ms(10), behaviour), (ms(1), good())]);
        assert_eq!(network.asked().0.unwrap().upstream, 0);
    }
}

#[test]
fn a_referral_and_records_that_cannot_be_read_are_not_answers() {
    let referral: fn(&[u8]) -> Vec<u8> = |query| authority(query, 2);
    let cut: fn(&[u8]) -> Vec<u8> = |query| answer(query)[..answer(query).len() - 1].to_vec();
    let no_question: fn(&[u8]) -> Vec<u8> = |query| {
        let mut header = bare(query, 2)[..12].to_vec();
        header[5] = 0;
        header
    };
    for made in [referral, cut, no_question] {
        let useless = move || -> Behaviour { Box::new(move |sent| says(made(&sent.message))) };
        let mut network = Network::new(vec![(ms(10), useless()), (ms(10), good())]);
        assert!(is_answer(&network.asked().0));
        let mut network = Network::new(vec![(ms(10), useless())]);
        assert_eq!(network.asked(), (Err(Exhausted::Unusable), 10));
    }
}

#[test]
fn a_truncated_reply_is_fetched_by_stream() {
    let behaviour: Behaviour = Box::new(|sent| match sent.way {
        QueryTransport::Datagram => says(truncated(&sent.message)),
        QueryTransport::Stream => says(answer(&sent.message)),
    });
    let mut network = Network::new(vec![(ms(10), behaviour), (ms(1), good())]);
    let (outcome, took) = network.asked();
    let reply = outcome.unwrap();
    assert_eq!((reply.upstream, reply.way, took), (0, QueryTransport::Stream, 20));
    assert_eq!(network.rows()[0].truncated, 1);
}

#[test]
fn another_upstream_is_asked_when_a_truncated_reply_cannot_be_fetched() {
    let behaviour: Behaviour = Box::new(|sent| match sent.way {
        QueryTransport::Datagram => says(truncated(&sent.message)),
        QueryTransport::Stream => fails(Failure::Unreachable),
    });
    let mut network = Network::new(vec![(ms(10), behaviour), (ms(10), good())]);
    assert_eq!(network.asked().0.unwrap().upstream, 1);
    let health = network.rows()[0].health;
    (0..20).for_each(|_| drop(network.asked()));
    assert_eq!(network.rows()[0].health, health, "UDP is alive all the same");
}

#[test]
fn a_stream_that_was_closed_under_a_question_is_tried_once_more() {
    let mut closed = 0;
    let behaviour: Behaviour = Box::new(move |sent| {
        closed += 1;
        if closed == 1 { fails(Failure::Closed) } else { says(answer(&sent.message)) }
    });
    let mut network = Network::of(&[for_names(&[], false)], vec![(ms(10), behaviour)]);
    let (outcome, took) = network.asked();
    assert!(is_answer(&outcome));
    assert_eq!((took, network.tries()), (20, vec![(0, QueryTransport::Stream, true); 2]));
    let mut network = Network::of(&[for_names(&[], false)], vec![(ms(10), failing(Failure::Closed))]);
    assert_eq!(network.asked(), (Err(Exhausted::Unreachable), 20));
}

#[test]
fn failures_of_all_upstreams_end_a_question_at_once() {
    let ends = [
        (Failure::Unreachable, Exhausted::Unreachable),
        (Failure::Untrusted, Exhausted::Unreachable),
        (Failure::Malformed, Exhausted::Unusable),
    ];
    for (failure, end) in ends {
        let upstreams = [for_names(&[], false), for_names(&[], false)];
        let servers = vec![(ms(10), failing(failure)), (ms(10), failing(failure))];
        assert_eq!(Network::of(&upstreams, servers).asked(), (Err(end), 20));
    }
}

#[test]
fn the_longest_zone_decides_whom_to_ask() {
    let upstreams = [for_names(&[], true), for_names(&[b"\x03lan\0"], true)];
    let mut network = Network::of(&upstreams, vec![(ms(10), good()), (ms(10), good())]);
    let of =
        |network: &mut Network, name: &[u8]| network.outcome(&Question::new(name, A)).0.unwrap().upstream;
    assert_eq!(of(&mut network, b"\x01a\x03LAN\0"), 1);
    assert_eq!(of(&mut network, NAME), 0);
    let mut network = Network::of(&upstreams[1..], vec![(ms(10), good())]);
    assert_eq!(network.asked(), (Err(Exhausted::NoUpstream), 0));
}

#[test]
fn an_upstream_whose_reply_was_of_no_use_is_asked_last_and_by_stream() {
    let mut question = Question::new(NAME, AAAA);
    question.unlike = Some(0);
    let mut network = Network::new(vec![(ms(1), good()), (ms(50), good())]);
    assert_eq!(network.outcome(&question).0.unwrap().upstream, 1);
    let mut network = Network::new(vec![(ms(1), good()), (ms(50), with_rcode(2))]);
    let reply = network.outcome(&question).0.unwrap();
    assert_eq!((reply.upstream, reply.way), (0, QueryTransport::Stream));
    let mut network = Network::new(vec![(ms(1), good())]);
    assert_eq!(network.outcome(&question).0.unwrap().way, QueryTransport::Stream);
}

#[test]
fn more_questions_than_a_share_are_refused_immediately() {
    let mut network = Network::bounded(&[for_names(&[], true)], vec![(ms(10), dead())], 16, 7);
    let numbers: Vec<_> = (0..20).map(|_| network.ask()).collect();
    let refused = numbers.iter().filter(|number| {
        network.outcomes.get(number).is_some_and(|(_, outcome)| *outcome == Err(Exhausted::NoShare))
    });
    assert_eq!((refused.count(), network.open.len()), (12, 8), "half of 16 for one payer");
    network.run_for(Duration::from_secs(5));
    assert!(network.waiting.is_empty() && network.open.len() <= 1);
}

#[test]
fn want_of_descriptors_is_not_an_upstreams_silence() {
    let mut network =
        Network::new(vec![(ms(0), failing(Failure::NoRoom)), (ms(0), failing(Failure::NoRoom))]);
    for _ in 0..20 {
        let (outcome, took) = network.asked();
        assert_eq!(outcome, Err(Exhausted::NoShare));
        assert!(took <= DEADLINE.as_millis() as u64);
    }
    assert!(network.events.is_empty() && network.open.is_empty());
    for row in network.rows() {
        assert_eq!((row.health, row.asked, row.unanswered), (Health::Up, 0, 0));
    }
    network.servers[1].behaviour = good();
    assert!(is_answer(&network.asked().0), "one can be asked again");
}

#[test]
fn an_abandoned_question_has_no_outcome_and_no_exchange() {
    let mut network = Network::new(vec![(ms(10), good())]);
    let number = network.ask();
    network.upstreams.abandon(number);
    network.waiting.clear();
    network.drain();
    assert!(network.open.is_empty());
    // Before its message was handed out: then it never is.
    let number = network.upstreams.ask(network.now, &Question::new(NAME, A));
    network.upstreams.abandon(number);
    assert_eq!(network.upstreams.poll_transmit(), None);
    assert_eq!(network.upstreams.poll_cancel(), None);
    network.run_for(Duration::from_secs(10));
    assert!(network.outcomes.is_empty());
    // An outcome that was not taken yet is not given out either.
    let number = network.upstreams.ask(network.now, &Question::new(b"", A));
    network.upstreams.abandon(number);
    assert_eq!(network.upstreams.poll_outcome(), None);
}
