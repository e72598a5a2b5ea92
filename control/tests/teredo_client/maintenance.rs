//! RFC 4380 §5.2.5, RFC 6081 §5.1.1, and changes of what is around.

use super::*;
use sixway_control::teredo_client::{NatKind, Phase};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_server_is_asked_after_three_quarters_to_all_of_the_refresh_interval_at_random() {
    let mut host = Host::qualified(settings());
    let mut gaps = Vec::new();
    for _ in 0..200 {
        let before = host.now;
        host.until_sent();
        assert_eq!((host.last().to, host.last().from), (at(PRIMARY), Port::Service));
        assert!(!TeredoInterface::of_link_local(host.last().asked().link_local).unwrap().is_cone());
        gaps.push(host.now.since(before));
        host.answer(MAPPED).unwrap();
    }
    let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
    assert!(*least >= Duration::from_millis(22_500) && *least < secs(24), "{least:?}");
    assert!(*most <= secs(30) && *most > secs(29), "{most:?}");
    assert_eq!((host.used.len(), host.stopped.len()), (1, 0));
}

#[test]
fn the_interval_can_be_configured() {
    let mut host = Host::qualified(Settings { interval: secs(10), ..settings() });
    let before = host.now;
    host.until_sent();
    assert!((Duration::from_millis(7_500)..=secs(10)).contains(&host.now.since(before)));
}

#[test]
fn an_answer_with_the_same_mapping_changes_nothing() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    let sent = host.sent.len();
    host.answer(MAPPED).unwrap();
    assert_eq!((host.sent.len(), host.used.len()), (sent, 1));
    assert_eq!(host.client.status(host.now).answered, Some(Duration::ZERO));
}

#[test]
fn a_changed_mapping_is_used_after_a_second_answer_and_the_nat_is_looked_at_again() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!(host.used.len(), 1);
    host.answer(ELSEWHERE).unwrap();
    assert_eq!(host.used.len(), 2);
    assert_eq!(host.used[1].address.mapped(), ELSEWHERE);
    assert_eq!(host.client.status(host.now).phase, Phase::Qualifying);
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    let status = host.client.status(host.now);
    assert_eq!((status.phase, status.mapping_changes), (Phase::Qualified, 1));
    assert_eq!((host.used.len(), host.stopped.len()), (2, 0), "the address is the same as before the look");
}

#[test]
fn a_nat_that_has_become_symmetric_is_noticed_with_the_changed_mapping() {
    let mut host = Host::qualified(Settings { symmetric: false, ..settings() });
    host.until_sent();
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.stopped, [Why::Symmetric]);
}

#[test]
fn while_a_server_is_asked_for_maintenance_the_address_stays_and_after_three_questions_it_qualifies_again() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    let lost = host.now;
    host.wait(Duration::from_millis(11_999));
    assert!(host.stopped.is_empty());
    assert_eq!(host.client.status(host.now).phase, Phase::Qualified);
    host.wait_secs(1);
    assert_eq!(host.client.status(host.now).phase, Phase::Qualifying);
    assert!(host.stopped.is_empty(), "the address stays in use");
    assert!(host.words().contains("no answer"), "{}", host.words());
    host.answer(MAPPED).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!((host.used.len(), host.stopped.len()), (1, 0));
    assert!(host.now.since(lost) < secs(14));
}

#[test]
fn a_server_that_stays_silent_ends_the_use_of_the_address_after_24_seconds() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    let lost = host.now;
    while host.stopped.is_empty() {
        host.wait_secs(1);
    }
    assert!((secs(24)..=secs(25)).contains(&host.now.since(lost)));
    assert_eq!(host.stopped, [Why::NoAnswer(PRIMARY)]);
}

#[test]
fn a_doubt_asks_the_server_immediately_but_no_more_than_each_five_seconds() {
    let mut host = Host::qualified(settings());
    host.wait_secs(6);
    for _ in 0..100 {
        host.client.doubt(host.now);
        host.settle();
    }
    assert_eq!((host.sent.len(), host.last().at), (3, host.now));
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!(host.used[1].address.mapped(), ELSEWHERE, "found without waiting");
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    let sent = host.sent.len();
    for _ in 0..40 {
        host.wait(Duration::from_millis(100));
        host.client.doubt(host.now);
        host.settle();
    }
    assert_eq!(host.sent.len(), sent);
}

/// Packets of the last second, for some seconds: to peers, and from them.
fn passed(host: &mut Host, seconds: u64, sent: bool, received: bool) {
    for _ in 0..seconds {
        host.wait_secs(1);
        host.client.observe(sent, received, host.now);
        host.settle();
    }
}

#[test]
fn a_host_that_sends_and_hears_nothing_has_its_server_asked_within_seconds() {
    let mut host = Host::qualified(settings());
    passed(&mut host, 6, true, true);
    assert_eq!(host.sent.len(), 2, "somebody answers");
    passed(&mut host, 5, true, false);
    assert_eq!(host.sent.len(), 2);
    passed(&mut host, 1, true, false);
    assert_eq!((host.sent.len(), host.last().at), (3, host.now));
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!(host.used[1].address.mapped(), ELSEWHERE);
}

#[test]
fn who_only_sends_has_the_server_asked_once_and_who_is_idle_never() {
    let mut host = Host::qualified(Settings { interval: secs(600), ..settings() });
    passed(&mut host, 6, true, false);
    assert_eq!(host.sent.len(), 3);
    host.answer(MAPPED).unwrap();
    passed(&mut host, 60, true, false);
    assert_eq!(host.sent.len(), 3, "the mapping is the same");
    passed(&mut host, 60, false, false);
    // A packet each minute waits for no answer of the last one.
    passed(&mut host, 1, true, false);
    assert_eq!(host.sent.len(), 3);
    passed(&mut host, 5, true, false);
    assert_eq!(host.sent.len(), 4, "silence of another time");
}

/// The clock that a suspended host stops, and the one that goes on.
#[test]
fn a_host_that_slept_qualifies_again_in_the_second_in_which_it_wakes() {
    for (slept, is_asked) in [(secs(3_600), true), (secs(6), true), (secs(5), false), (secs(0), false)] {
        let mut host = Host::qualified(settings());
        host.client.each_second(secs(50), host.now);
        host.wait_secs(1);
        host.client.each_second(secs(50) + slept, host.now);
        host.settle();
        let phase = host.client.status(host.now).phase;
        assert_eq!(phase == Phase::Qualifying, is_asked, "{slept:?}");
        assert_eq!((host.sent.len(), host.stopped.len()), (2 + usize::from(is_asked), 0));
        if is_asked {
            assert_eq!(host.last().at, host.now);
            host.answer(ELSEWHERE).unwrap();
            host.answer(ELSEWHERE).unwrap();
            assert_eq!(host.used[1].address.mapped(), ELSEWHERE);
        }
    }
}

/// As a virtual machine that was paused: no clock tells of it.
#[test]
fn a_second_that_was_late_by_more_than_ten_is_a_suspension() {
    for (late, phase) in [(secs(10), Phase::Qualified), (secs(11), Phase::Qualifying)] {
        let mut host = Host::qualified(Settings { interval: secs(600), ..settings() });
        host.client.each_second(secs(0), host.now);
        host.now = host.now + late;
        host.client.each_second(secs(0), host.now);
        host.settle();
        assert_eq!(host.client.status(host.now).phase, phase, "{late:?}");
    }
}

#[test]
fn a_host_that_slept_through_a_pause_begins_as_if_nothing_had_failed() {
    let mut host = Host::new(settings());
    for _ in 0..6 {
        while host.client.status(host.now).phase != Phase::Waiting {
            host.now = host.client.due().unwrap();
            host.settle();
        }
        host.now = host.client.due().unwrap();
        host.settle();
    }
    while host.client.status(host.now).phase != Phase::Waiting {
        host.now = host.client.due().unwrap();
        host.settle();
    }
    assert!(host.client.status(host.now).next.unwrap() > secs(200));
    host.client.each_second(secs(0), host.now);
    host.client.each_second(secs(60), host.now + secs(1));
    host.now = host.now + secs(1);
    host.settle();
    assert_eq!((host.client.status(host.now).phase, host.last().at), (Phase::Qualifying, host.now));
}

#[test]
fn by_another_router_it_qualifies_again_immediately_and_keeps_its_address_meanwhile() {
    let way = |name: &str, last| Some((name.to_owned(), Some(Ipv4Addr::new(10, 0, 0, last))));
    let mut host = Host::qualified(settings());
    let mut route = |way, asked: usize| {
        host.client.routed(way, host.now);
        host.settle();
        assert_eq!((host.sent.len(), host.stopped.len()), (asked, 0));
        if host.client.status(host.now).phase == Phase::Qualifying {
            host.answer(MAPPED).unwrap();
            host.answer(MAPPED).unwrap();
        }
    };
    route(way("eth0", 1), 2);
    route(way("eth0", 1), 2);
    route(way("eth0", 254), 3);
    route(way("wlan0", 254), 5);
    // The cable: it may be another network afterwards.
    route(None, 6);
    route(way("wlan0", 254), 7);
    assert_eq!(host.used.len(), 1, "the mapping is the same");
}

#[test]
fn another_local_address_ends_the_address_and_qualifies_again_immediately() {
    let mut host = Host::qualified(settings());
    host.wait_secs(5);
    let moved = host.now;
    let there = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 99), 40_001);
    host.client.moved(Some(local(there)), host.now);
    host.settle();
    assert_eq!(host.stopped, [Why::Moved]);
    host.answer(ELSEWHERE).unwrap();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!(host.used[1].address.mapped(), ELSEWHERE);
    assert_eq!(host.now, moved, "it waits for answers alone");
    // The same again changes nothing.
    host.client.moved(Some(local(there)), host.now);
    host.settle();
    assert_eq!(host.stopped.len(), 1);
}

#[test]
fn without_a_local_address_nothing_is_sent_and_with_one_it_begins() {
    let mut host = Host::qualified(settings());
    host.client.moved(None, host.now);
    host.settle();
    assert_eq!(host.stopped, [Why::NoLocalAddress]);
    let sent = host.sent.len();
    host.wait_secs(1_000);
    assert_eq!((host.sent.len(), host.client.due()), (sent, None));
    host.client.moved(Some(local(LOCAL)), host.now);
    host.settle();
    assert_eq!(host.sent.len(), sent + 1);
}

#[test]
fn native_ipv6_ends_the_service_and_its_loss_begins_it_again() {
    let mut host = Host::qualified(Settings { learn_interval: true, ..Settings::new(vec![SERVER]) });
    host.client.native_ipv6(true, host.now);
    host.settle();
    assert_eq!(host.stopped, [Why::NativeIpv6]);
    assert_eq!(host.client.status(host.now).phase, Phase::Stopped);
    assert!(host.words().contains("native IPv6"), "{}", host.words());
    assert_eq!(host.closed.len(), 2, "the other ports are closed: {:?}", host.closed);
    let sent = host.sent.len();
    host.wait_secs(1_000);
    assert_eq!(host.sent.len(), sent);
    host.client.native_ipv6(false, host.now);
    host.settle();
    host.answer(MAPPED).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.used.len(), 2);
}

#[test]
fn where_native_ipv6_exists_from_the_beginning_nothing_is_ever_sent() {
    let mut client = Client::new(settings(), Some(local(LOCAL)), [1; 32]);
    let now = Instant::from_secs(5);
    client.native_ipv6(true, now);
    client.start(now);
    assert_eq!(client.step(now), Some(Action::Stop(Why::NativeIpv6)));
    assert_eq!((client.step(now), client.due()), (None, None));
}

#[test]
fn after_a_suspension_it_qualifies_again_and_keeps_its_address_if_the_mapping_is_the_same() {
    for (mapped, used) in [(MAPPED, 1), (ELSEWHERE, 2)] {
        let mut host = Host::qualified(settings());
        let address = host.used[0].address;
        // The clock jumps: nothing was done meanwhile.
        host.now = host.now + secs(3_600);
        host.settle();
        assert_eq!(host.client.status(host.now).phase, Phase::Qualifying);
        assert_eq!(host.last().at, host.now);
        host.answer(mapped).unwrap();
        host.answer(mapped).unwrap();
        assert_eq!((host.used.len(), host.stopped.len()), (used, 0));
        assert_eq!(host.client.status(host.now).nat, NatKind::Restricted);
        assert!(used == 2 || host.client.status(host.now).in_use.unwrap().address == address);
    }
}

#[test]
fn a_daemon_that_is_a_little_late_only_asks_later() {
    let mut host = Host::qualified(settings());
    host.now = host.client.due().unwrap() + secs(9);
    host.settle();
    assert_eq!(host.client.status(host.now).phase, Phase::Qualified);
}

#[test]
fn two_clients_with_one_seed_do_the_same() {
    let run = || {
        let mut host = Host::qualified(Settings {
            learn_interval: true,
            local_discovery: true,
            ..Settings::new(vec![SERVER, OTHER])
        });
        host.wait_secs(2_000);
        host.sent.into_iter().map(|out| (out.at, out.from, out.to, out.octets)).collect::<Vec<_>>()
    };
    let (first, second) = (run(), run());
    assert!(first.len() > 50);
    assert_eq!(first, second);
}

#[test]
fn the_address_of_the_previous_process_is_kept_if_the_mapping_is_the_same() {
    let address = Host::qualified(settings()).used[0].address;
    for (mapped, is_kept) in [(MAPPED, true), (ELSEWHERE, false)] {
        let mut host = Host::seeded(settings(), 99);
        host.client.keep(address);
        host.answer(mapped).unwrap();
        host.answer(mapped).unwrap();
        assert_eq!(host.used[0].address == address, is_kept);
        assert_ne!(address, Host::seeded_and_qualified(99).used[0].address, "another seed, other bits");
    }
}

#[test]
fn after_an_interruption_the_address_is_the_same_if_the_mapping_is() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    host.wait_secs(24);
    assert_eq!(host.stopped.len(), 1);
    host.until_sent();
    host.answer(MAPPED).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.used[0], host.used[1]);
}

#[test]
fn a_client_that_is_shut_down_gives_its_address_and_ports_up_and_sends_nothing() {
    let mut host = Host::qualified(Settings { learn_interval: true, ..Settings::new(vec![SERVER]) });
    host.client.shut_down();
    host.settle();
    assert_eq!((host.stopped.clone(), host.closed.len()), (vec![Why::NotStarted], 2));
    host.client.resumed(host.now);
    host.client.native_ipv6(true, host.now);
    host.client.native_ipv6(false, host.now);
    host.client.moved(None, host.now);
    host.client.doubt(host.now);
    assert_eq!((host.client.step(host.now), host.client.due()), (None, None));
}
