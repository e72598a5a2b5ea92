//! Upstreams that cannot do what is usual: EDNS, names in their case.

use super::network::*;
use sixway_control::dns64::upstream::{Event, Question};
use sixway_control::dns64::{Failure, QueryTransport};
use std::time::Duration;

#[derive(Clone, Copy)]
enum Hates {
    /// FORMERR, NOTIMP …
    Says(u8),
    /// A header alone.
    HeaderAlone,
    /// BADVERS in an OPT record.
    BadVersion,
    /// FORMERR with an OPT record.
    Odd,
    Silent,
}

fn hating_edns(how: Hates) -> Behaviour {
    Box::new(move |sent| {
        if !has_edns(&sent.message) {
            return says(answer(&sent.message));
        }
        match how {
            Hates::Says(rcode) => says(bare(&sent.message, rcode)),
            Hates::HeaderAlone => {
                let mut header = bare(&sent.message, 1)[..12].to_vec();
                header[5] = 0;
                says(header)
            }
            Hates::BadVersion => {
                let mut reply = bare(&sent.message, 0);
                reply[11] = 1;
                reply.extend_from_slice(&[0, 0, 41, 4, 208, 1, 0, 0, 0, 0, 0]);
                says(reply)
            }
            Hates::Odd => {
                let mut reply = bare(&sent.message, 1);
                reply[11] = 1;
                reply.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
                says(reply)
            }
            Hates::Silent => silence(),
        }
    })
}

#[test]
fn an_upstream_that_does_not_understand_edns_is_asked_without_and_that_is_remembered() {
    for how in [Hates::Says(1), Hates::Says(4), Hates::HeaderAlone] {
        let mut network = Network::new(vec![(ms(10), hating_edns(how))]);
        for _ in 0..2 {
            let (outcome, took) = network.asked();
            assert!(is_answer(&outcome) && took == 20);
            assert_eq!(
                network.tries(),
                [(0, QueryTransport::Datagram, true), (0, QueryTransport::Datagram, false)]
            );
        }
        assert_eq!(network.asked().1, 10);
        assert_eq!(network.tries(), [(0, QueryTransport::Datagram, false)]);
        assert!(network.rows()[0].without_edns);
        network.run_for(Duration::from_secs(901));
        assert_eq!((network.asked().1, network.asked().1), (20, 20), "it is looked at again");
        assert_eq!(network.events, vec![Event::WithoutEdns { upstream: 0 }; 2]);
    }
}

/// An upstream that answers, but for every 50th question with EDNS.
fn odd_now_and_then(how: Hates) -> Behaviour {
    let (mut odd, mut count) = (hating_edns(how), 0);
    Box::new(move |sent| {
        count += u32::from(has_edns(&sent.message));
        if count % 50 == 1 { odd(sent) } else { says(answer(&sent.message)) }
    })
}

#[test]
fn a_formerr_with_an_opt_record_costs_one_question_its_edns() {
    for how in [Hates::Odd, Hates::BadVersion] {
        let mut network = Network::new(vec![(ms(10), odd_now_and_then(how))]);
        assert!(is_answer(&network.asked().0));
        let datagram = QueryTransport::Datagram;
        assert_eq!(network.tries(), [(0, datagram, true), (0, datagram, false)]);
        assert!(!network.rows()[0].without_edns);
        assert!(is_answer(&network.asked().0));
        assert_eq!(network.tries(), [(0, datagram, true)]);
        (0..200).for_each(|_| assert!(is_answer(&network.asked().0)));
        assert!(!network.rows()[0].without_edns && network.events.is_empty());
    }
}

#[test]
fn an_upstream_that_says_badvers_to_everything_is_asked_with_edns_each_time() {
    let mut network = Network::new(vec![(ms(10), hating_edns(Hates::BadVersion))]);
    (0..5).for_each(|_| assert!(is_answer(&network.asked().0)));
    assert!(!network.rows()[0].without_edns && network.events.is_empty());
}

#[test]
fn one_formerr_without_opt_is_not_yet_an_upstream_without_edns() {
    let mut network = Network::new(vec![(ms(10), odd_now_and_then(Hates::Says(1)))]);
    (0..200).for_each(|_| assert!(is_answer(&network.asked().0)));
    assert!(!network.rows()[0].without_edns && network.events.is_empty());
    let asked = network.tries();
    assert_eq!(asked.iter().filter(|(_, _, edns)| !edns).count(), 4, "each of them once more");
}

#[test]
fn silence_to_edns_is_found_out_in_two_questions() {
    let mut network = Network::new(vec![(ms(10), hating_edns(Hates::Silent))]);
    assert_eq!(network.asked().1, 410);
    assert!(network.asked().1 > 200);
    assert_eq!(network.asked().1, 10);
    assert_eq!(network.events, [Event::WithoutEdns { upstream: 0 }]);
}

#[test]
fn one_that_knows_edns_is_not_asked_without_for_a_loss() {
    let mut count = 0;
    let behaviour: Behaviour = Box::new(move |sent| {
        count += 1;
        if count % 2 == 0 { silence() } else { says(answer(&sent.message)) }
    });
    let mut network = Network::new(vec![(ms(10), behaviour)]);
    (0..50).for_each(|_| assert!(is_answer(&network.asked().0)));
    assert!(network.tries().iter().all(|(_, _, edns)| *edns));
}

#[test]
fn what_needs_dnssec_is_never_asked_without_edns() {
    let question =
        Question { dnssec_ok: true, dnssec_needed: true, checking_disabled: true, ..Question::new(NAME, A) };
    for how in [Hates::Says(1), Hates::HeaderAlone, Hates::Silent] {
        let mut network = Network::new(vec![(ms(10), hating_edns(how)), (ms(10), hating_edns(how))]);
        let (outcome, _) = network.outcome(&question);
        assert!(!is_answer(&outcome));
        network.run_for(Duration::from_secs(5));
        let probes = |sent: &&(_, sixway_control::dns64::Transmit)| sent.1.message[12] != 0;
        assert!(network.sent.iter().filter(probes).all(|(_, sent)| has_edns(&sent.message)));
        let mut network = Network::new(vec![(ms(10), hating_edns(how)), (ms(10), good())]);
        let reply = network.outcome(&question).0.unwrap();
        assert!(reply.upstream == 1 && reply.dnssec_ok);
    }
}

#[test]
fn a_reply_tells_whether_it_was_asked_for_with_do() {
    let question = Question { dnssec_ok: true, ..Question::new(NAME, A) };
    let mut network = Network::new(vec![(ms(10), hating_edns(Hates::Says(1)))]);
    assert!(!network.outcome(&question).0.unwrap().dnssec_ok);
    let mut network = Network::new(vec![(ms(10), good())]);
    assert!(network.outcome(&question).0.unwrap().dnssec_ok);
    assert!(!network.asked().0.unwrap().dnssec_ok);
}

/// Names come back in lower case; by stream something else may happen.
fn folding(stream: fn(&[u8]) -> Said) -> Behaviour {
    Box::new(move |sent| match sent.way {
        QueryTransport::Datagram => says(folded(answer(&sent.message))),
        QueryTransport::Stream => stream(&sent.message),
    })
}

#[test]
fn an_upstream_that_folds_case_is_asked_by_stream() {
    let mut network = Network::new(vec![(ms(10), folding(|query| says(folded(answer(query)))))]);
    for _ in 0..3 {
        let (outcome, took) = network.asked();
        assert_eq!((outcome.unwrap().way, took), (QueryTransport::Stream, 20), "at once");
    }
    assert_eq!(network.events, [Event::ByStream { upstream: 0 }]);
    let (outcome, took) = network.asked();
    assert_eq!((outcome.unwrap().way, took), (QueryTransport::Stream, 10), "and then first");
    let row = network.rows()[0];
    assert_eq!((row.by_stream, row.rejected), (true, 3));
    network.run_for(Duration::from_secs(3_601));
    network.tries();
    assert!(is_answer(&network.asked().0));
    assert_eq!(network.tries()[0].1, QueryTransport::Datagram, "it is looked at again");
}

#[test]
fn one_that_folds_case_and_has_no_stream_is_asked_in_plain_case() {
    let mut network = Network::new(vec![(ms(10), folding(|_| fails(Failure::Unreachable)))]);
    let answered: Vec<_> = (0..8).map(|_| is_answer(&network.asked().0)).collect();
    assert!(answered[4..].iter().all(|answered| *answered), "{answered:?}");
    let folds = [Event::ByStream { upstream: 0 }, Event::WithoutCase { upstream: 0 }];
    assert_eq!(network.events, folds);
    assert_eq!(network.asked().0.unwrap().way, QueryTransport::Datagram);
}

#[test]
fn an_upstream_by_stream_may_fold_case() {
    let mut network =
        Network::of(&[for_names(&[], false)], vec![(ms(10), folding(|query| says(folded(answer(query)))))]);
    (0..5).for_each(|_| assert_eq!(network.asked().1, 10));
    let sent = &network.sent[0].1.message;
    assert_eq!(sent[12..12 + NAME.len()], *NAME, "its names are sent as they are");
    assert!(network.events.is_empty());
}
