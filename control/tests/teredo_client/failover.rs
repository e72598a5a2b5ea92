//! Several servers, and pauses.

use super::*;
use sixway_control::teredo_client::{FIRST_PAUSE, LONGEST_PAUSE, Phase};

fn two() -> Settings {
    Settings { servers: vec![SERVER, OTHER], ..settings() }
}

#[test]
fn after_a_silent_server_the_next_one_is_asked_without_a_pause() {
    let mut host = Host::new(two());
    host.wait_secs(12);
    assert_eq!((host.last().to, host.last().at.as_secs()), (at(OTHER.primary), 1_012));
    assert!(host.stopped.is_empty());
    host.answer_of(OTHER.primary, MAPPED).unwrap();
    assert_eq!(host.last().to, at(OTHER.secondary.unwrap()));
    host.answer_of(OTHER.primary, MAPPED).unwrap();
    assert_eq!(host.used[0].address.server, OTHER.primary);
}

#[test]
fn an_answer_with_the_prefix_of_the_other_server_of_the_list_is_refused() {
    let mut host = Host::new(two());
    assert_eq!(host.answer_of(OTHER.primary, MAPPED), Err(Refused::WrongPrefix));
}

#[test]
fn if_no_server_answers_udp_is_said_to_be_blocked() {
    let mut host = Host::new(two());
    host.wait_secs(24);
    assert_eq!(host.stopped, [Why::Blocked(2)]);
    assert!(host.words().contains("UDP to port 3544 is probably blocked"), "{}", host.words());
    assert!(host.client.status(host.now).next.is_some());
}

#[test]
fn pauses_double_up_to_five_minutes_and_one_why_is_told_once() {
    let mut host = Host::new(settings());
    host.wait_secs(6 * 3_600);
    let mut pauses: Vec<_> = host.sent.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    pauses.retain(|gap| *gap > Duration::from_secs(4));
    // The last question waits four seconds, too.
    let pauses: Vec<_> = pauses.into_iter().map(|gap| gap - Duration::from_secs(4)).collect();
    let mut longest = FIRST_PAUSE;
    for pause in &pauses {
        assert!((longest * 3 / 4..=longest).contains(pause), "{pause:?} of {longest:?}");
        longest = (longest * 2).min(LONGEST_PAUSE);
    }
    assert!(pauses.len() > 60, "{}", pauses.len());
    assert_eq!(host.stopped, [Why::NoAnswer(PRIMARY)]);
    assert_eq!(host.client.status(host.now).phase, Phase::Waiting);
}

#[test]
fn a_qualification_makes_the_next_pause_short_again() {
    let mut host = Host::new(settings());
    host.wait_secs(2_000);
    host.until_sent();
    host.answer(MAPPED).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.used.len(), 1);
    while host.stopped.len() < 2 {
        host.wait_secs(1);
    }
    assert!(host.client.status(host.now).next.unwrap() <= FIRST_PAUSE);
}

#[test]
fn a_server_that_fails_later_is_replaced_by_the_next_one_and_the_address_stays_until_then() {
    let mut host = Host::qualified(two());
    host.until_sent();
    let lost = host.now;
    host.wait_secs(12);
    assert_eq!(host.last().to, at(OTHER.primary));
    assert!(host.stopped.is_empty());
    host.answer_of(OTHER.primary, MAPPED).unwrap();
    host.answer_of(OTHER.primary, MAPPED).unwrap();
    assert_eq!((host.used.len(), host.used[1].address.server), (2, OTHER.primary));
    assert_eq!(host.now.since(lost), Duration::from_secs(12));
    host.until_sent();
    assert_eq!(host.last().to, at(OTHER.primary), "maintained at the one in use");
}

#[test]
fn a_symmetric_nat_is_not_asked_about_at_the_other_servers() {
    let mut host = Host::new(Settings { symmetric: false, ..two() });
    host.answer(MAPPED).unwrap();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!((host.stopped.clone(), host.sent.len()), (vec![Why::Symmetric], 2));
}

#[test]
fn without_servers_nothing_is_done_and_the_reason_is_told() {
    let host = Host::new(Settings { servers: Vec::new(), ..settings() });
    assert_eq!((host.stopped.clone(), host.sent.len(), host.client.due()), (vec![Why::NoServer], 0, None));
    let never = Client::new(settings(), None, [0; 32]);
    assert_eq!(never.status(Instant::from_secs(1)).why, Some(Why::NotStarted));
}
