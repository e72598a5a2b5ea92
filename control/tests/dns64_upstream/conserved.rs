//! Nothing is lost, whatever happens: every question has one outcome in time, every exchange ends once.

use super::network::*;
use proptest::prelude::*;
use sixway_control::dns64::upstream::Question;
use sixway_control::dns64::{Failure, Payer, QueryTransport};
use sixway_trial::budget;
use std::time::Duration;

/// What an upstream does with the next query; the network may also do it to any.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Good,
    Silent,
    Rcode(u8),
    Referral,
    Truncating,
    Folding,
    Forged,
    Fails(u8),
    Twice,
    Garbage(u8),
}

fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        4 => Just(Mood::Good),
        3 => Just(Mood::Silent),
        2 => (0..16_u8).prop_map(Mood::Rcode),
        1 => Just(Mood::Referral),
        1 => Just(Mood::Truncating),
        1 => Just(Mood::Folding),
        1 => Just(Mood::Forged),
        2 => (0..5_u8).prop_map(Mood::Fails),
        1 => Just(Mood::Twice),
        1 => any::<u8>().prop_map(Mood::Garbage),
    ]
}

fn said(mood: Mood, query: &[u8], way: QueryTransport) -> Said {
    const FAILURES: [Failure; 5] =
        [Failure::Unreachable, Failure::Closed, Failure::Untrusted, Failure::Malformed, Failure::NoRoom];
    match mood {
        Mood::Good => says(answer(query)),
        Mood::Silent => silence(),
        Mood::Rcode(rcode) => says(bare(query, rcode)),
        Mood::Referral => says(authority(query, 2)),
        Mood::Truncating if way == QueryTransport::Datagram => says(truncated(query)),
        Mood::Truncating => says(answer(query)),
        Mood::Folding => says(folded(answer(query))),
        Mood::Forged => (0..20).map(|n| (ms(n), Ok([&[n as u8], &answer(query)[1..]].concat()))).collect(),
        Mood::Fails(which) => fails(FAILURES[usize::from(which) % 5]),
        Mood::Twice => vec![(ms(0), Ok(answer(query))), (ms(1), Ok(answer(query)))],
        Mood::Garbage(at) => {
            let mut reply = answer(query);
            let at = usize::from(at) % reply.len();
            reply[at] ^= 0xff;
            says(reply)
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask {
        local: bool,
        needed: bool,
        unlike: Option<usize>,
        client: u8,
    },
    Wait(u64),
    Abandon,
    /// An exchange that is open gets octets from elsewhere.
    Inject(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let ask = (any::<bool>(), any::<bool>(), prop::option::weighted(0.1, 0..3_usize), 0..8_u8);
    prop_oneof![
        6 => ask.prop_map(|(local, needed, unlike, client)| Step::Ask { local, needed, unlike, client }),
        4 => (0..300_u64).prop_map(Step::Wait),
        1 => (0..20_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Abandon),
        1 => any::<u8>().prop_map(Step::Inject),
    ]
}

fn take(network: &mut Network, step: Step) {
    match step {
        Step::Ask { local, needed, unlike, client } => {
            let name: &[u8] = if local { b"\x01h\x03lan\0" } else { b"\x01n\x03www\x07example\0" };
            // Two subscribers with four hosts each.
            let address =
                std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(client) / 4, 0, 0, 0, client.into());
            let payer = Payer::of(address.into(), 64, needed);
            let question = Question {
                dnssec_ok: needed,
                dnssec_needed: needed,
                unlike,
                payer,
                ..Question::new(name, AAAA)
            };
            network.ask_for(&question);
        }
        Step::Wait(milliseconds) => network.run_for(ms(milliseconds)),
        Step::Abandon => {
            if let Some((number, _)) = network.waiting.pop_first() {
                network.upstreams.abandon(number);
                network.drain();
            }
        }
        Step::Inject(octet) => {
            if let Some(exchange) = network.open.first().copied() {
                network.upstreams.handle_reply(network.now, exchange, Ok(&[octet; 40]));
                network.drain();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(192)))]

    #[test]
    fn every_question_has_one_outcome_and_every_exchange_one_end(
        seed in any::<u8>(),
        exchanges in 1..40_usize,
        moods in prop::collection::vec(mood(), 1..60),
        delays in prop::array::uniform3(0..2_000_u64),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let upstreams = [for_names(&[], true), for_names(&[], false), for_names(&[b"\x03lan\0"], true)];
        let servers = (0..3).map(|at| {
            let mut moods = moods.clone().into_iter().cycle().skip(at);
            let behaviour: Behaviour = Box::new(move |sent| said(moods.next().unwrap(), &sent.message, sent.way));
            (ms(delays[at]), behaviour)
        });
        let mut network = Network::bounded(&upstreams, servers.collect(), exchanges, seed);
        for step in steps {
            take(&mut network, step);
            prop_assert!(network.open.len() <= 2 * exchanges);
        }
        network.run_for(Duration::from_secs(10));
        prop_assert!(network.waiting.is_empty());
        let rows = network.rows();
        prop_assert!(rows.iter().map(|row| row.open).sum::<usize>() == network.open.len());
        prop_assert!(network.open.len() <= upstreams.len(), "probes alone");
    }
}
