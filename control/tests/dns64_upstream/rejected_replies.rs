//! Replies that are not to the question.

use super::network::*;
use sixway_control::dns64::upstream::{Exhausted, Question};
use sixway_control::dns64::{Exchange, Failure, QueryTransport};
use std::time::Duration;

/// Ways to spoil a reply.
fn spoilt() -> Vec<fn(Vec<u8>) -> Vec<u8>> {
    vec![
        |mut reply| {
            reply[0] ^= 1;
            reply
        },
        |mut reply| {
            reply[1] ^= 0x80;
            reply
        },
        // A query, not a reply.
        |mut reply| {
            reply[2] &= 0x7f;
            reply
        },
        // Another opcode.
        |mut reply| {
            reply[2] |= 0x20;
            reply
        },
        // Another name, type, class.
        |mut reply| {
            reply[13] ^= 1;
            reply
        },
        |mut reply| {
            reply[12 + NAME.len() + 1] ^= 1;
            reply
        },
        |mut reply| {
            reply[12 + NAME.len() + 3] ^= 2;
            reply
        },
        // Two questions, and none.
        |mut reply| {
            reply[5] = 2;
            reply
        },
        |mut reply| {
            reply[5] = 0;
            reply
        },
        // Cut short.
        |reply| reply[..11].to_vec(),
        |reply| reply[..12 + NAME.len()].to_vec(),
        |_| Vec::new(),
        |mut reply| {
            reply.resize(70_000, 0);
            reply
        },
    ]
}

#[test]
fn what_is_not_the_reply_is_counted_and_the_true_one_is_still_awaited() {
    for (number, spoil) in spoilt().into_iter().enumerate() {
        let behaviour: Behaviour = Box::new(move |sent| {
            let reply = answer(&sent.message);
            vec![(ms(0), Ok(spoil(reply.clone()))), (ms(10), Ok(reply))]
        });
        let mut network = Network::new(vec![(ms(10), behaviour)]);
        let (outcome, took) = network.asked();
        assert!(is_answer(&outcome) && took == 20, "{number}");
        assert_eq!((network.upstreams.rejected(), network.rows()[0].rejected), (1, 1), "{number}");
        assert_eq!(network.rows()[0].replies, 1);
    }
}

#[test]
fn a_name_in_another_case_is_not_the_reply() {
    let behaviour: Behaviour = Box::new(move |sent| match sent.way {
        QueryTransport::Datagram => {
            let mut swapped = answer(&sent.message);
            swapped[13] ^= 0x20;
            let last = swapped.len() - 1;
            swapped[last] = 66;
            vec![(ms(0), Ok(swapped)), (ms(10), Ok(answer(&sent.message)))]
        }
        QueryTransport::Stream => silence(),
    });
    let mut network = Network::new(vec![(ms(10), behaviour)]);
    assert!(is_answer(&network.asked().0), "neither the forgery nor the stream");
    assert_eq!(network.rows()[0].rejected, 1);
    (0..20).for_each(|_| assert!(is_answer(&network.asked().0)));
    assert!(!network.rows()[0].by_stream, "the right case came back in between");
}

#[test]
fn guesses_at_an_exchange_make_it_go_by_stream() {
    let behaviour: Behaviour = Box::new(|sent| match sent.way {
        QueryTransport::Stream => says(answer(&sent.message)),
        QueryTransport::Datagram => (0..60_000_u16)
            .map(|guess| {
                let mut reply = answer(&sent.message);
                let id = u16::from_be_bytes([reply[0], reply[1]]).wrapping_add(guess).wrapping_add(1);
                reply[..2].copy_from_slice(&id.to_be_bytes());
                (ms(0), Ok(reply))
            })
            .collect(),
    });
    let mut network = Network::new(vec![(ms(10), behaviour)]);
    let (outcome, took) = network.asked();
    assert_eq!((outcome.unwrap().way, took), (QueryTransport::Stream, 20));
    assert_eq!(network.rows()[0].rejected, 8);
}

#[test]
fn a_wrong_reply_by_stream_ends_the_try() {
    for spoil in spoilt() {
        let behaviour: Behaviour = Box::new(move |sent| says(spoil(answer(&sent.message))));
        let mut network = Network::of(&[for_names(&[], false)], vec![(ms(10), behaviour)]);
        assert_eq!(network.asked(), (Err(Exhausted::Unusable), 10));
    }
}

#[test]
fn replies_to_exchanges_that_are_over_or_never_were_are_rejected() {
    let mut network = Network::new(vec![(ms(10), good())]);
    assert!(is_answer(&network.asked().0));
    let (_, sent) = network.sent[0].clone();
    let reply = answer(&sent.message);
    for exchange in [sent.exchange, Exchange(0), Exchange(u64::MAX), Exchange(1 << 40 | 3)] {
        network.upstreams.handle_reply(network.now, exchange, Ok(&reply));
        network.upstreams.handle_reply(network.now, exchange, Err(Failure::Closed));
    }
    network.drain();
    assert_eq!(network.upstreams.rejected(), 4);
    assert_eq!((network.rows()[0].replies, network.rows()[0].unreachable), (1, 0));
}

#[test]
fn ids_and_cases_are_spread() {
    let mut network = Network::new(vec![(ms(1), good())]);
    let name = b"\x14abcdefghijklmnopqrst\0";
    (0..2_000).for_each(|_| drop(network.outcome(&Question::new(name, A))));
    let mut ids: Vec<_> = network.sent.iter().map(|(_, sent)| [sent.message[0], sent.message[1]]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() > 1_900, "{}", ids.len());
    let mut cases: Vec<_> = network.sent.iter().map(|(_, sent)| sent.message[12..32].to_vec()).collect();
    cases.sort_unstable();
    cases.dedup();
    assert!(cases.len() > 1_900, "{}", cases.len());
}

#[test]
fn an_upstream_that_lies_for_ever_does_not_hold_a_question() {
    let behaviour: Behaviour = Box::new(|sent| {
        let mut reply = answer(&sent.message);
        reply[0] ^= 1;
        (0..5).map(|n| (ms(n * 100), Ok(reply.clone()))).collect()
    });
    let mut network = Network::new(vec![(ms(10), behaviour)]);
    assert!(network.asked().0.is_err());
    network.run_for(Duration::from_secs(5));
    assert!(network.waiting.is_empty());
}
