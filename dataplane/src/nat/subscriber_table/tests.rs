use super::*;
use crate::instant::Instant;
use core::net::Ipv4Addr;

const UDP: NatProtocol = NatProtocol::Udp;

fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn table(limits: SubscriberLimits) -> SubscriberTable<Ipv4Addr> {
    SubscriberTable::new(32, limits, 100, [1, 2])
}

fn join(table: &mut SubscriberTable<Ipv4Addr>, host: Ipv4Addr, is_exempt: bool) -> u32 {
    let known = table.find(host);
    table.join(host, known, is_exempt).unwrap()
}

const INSIDE: Counted = Counted { is_exempt: false, from_outside: false };
const OUTSIDE: Counted = Counted { is_exempt: false, from_outside: true };

/// As many ports are left, and bindings without end.
fn ports(ports: u32) -> Left {
    Left { ports, bindings: u32::MAX }
}

/// Plenty is left, and the destination is not exempt.
const PLENTY: (u32, bool) = (u32::MAX, false);

fn clock() -> Clock {
    Clock::at(Instant::from_secs(100))
}

#[test]
fn a_subscriber_has_a_row_as_long_as_one_of_its_hosts_has_bindings() {
    let mut table = SubscriberTable::<Ipv4Addr>::new(24, SubscriberLimits::NONE, 100, [1, 2]);
    let slot = join(&mut table, host(1), false);
    assert_eq!(join(&mut table, host(2), false), slot, "they are one subscriber");
    let other = join(&mut table, Ipv4Addr::new(10, 0, 1, 1), false);
    assert_ne!(other, slot);
    table.leave(slot);
    assert_eq!(table.find(host(9)), Some(slot));
    table.leave(slot);
    assert_eq!((table.find(host(1)), table.row(slot, 0)), (None, None));
    assert_eq!(table.row(other, 0).unwrap().1.hosts, 1);
}

#[test]
fn the_limits_on_bindings_are_those_of_all_and_of_each_protocol() {
    let limits = SubscriberLimits { bindings: 3, bindings_of: [0, 2, 0], ..SubscriberLimits::NONE };
    let mut table = table(limits);
    let slot = join(&mut table, host(1), false);
    let other = join(&mut table, host(2), false);
    let may = |table: &mut SubscriberTable<Ipv4Addr>, slot, protocol| {
        table.may_bind(slot, protocol, ports(u32::MAX), clock()).is_ok()
    };
    (0..2).for_each(|_| table.has_bound(slot, UDP));
    assert!(!may(&mut table, slot, UDP) && may(&mut table, slot, NatProtocol::Tcp));
    assert!(may(&mut table, other, UDP), "another subscriber");
    table.has_bound(slot, NatProtocol::Tcp);
    assert!(!may(&mut table, slot, NatProtocol::Tcp) && table.is_at_limit(slot, NatProtocol::Icmp));
    table.has_unbound(slot, UDP);
    assert!(may(&mut table, slot, UDP));
    table.was_refused(host(1));
    assert_eq!(table.row(slot, 0).unwrap().1.refused, 1);
}

#[test]
fn new_bindings_and_sessions_a_second_are_limited_each_by_its_own_rate() {
    let limits =
        SubscriberLimits { new_bindings_per_second: 5, new_sessions_per_second: 7, ..SubscriberLimits::NONE };
    let mut table = table(limits);
    let slot = join(&mut table, host(1), false);
    let other = join(&mut table, host(2), false);
    let bindings = |table: &mut SubscriberTable<Ipv4Addr>, slot| {
        (0..20).filter(|_| table.may_bind(slot, UDP, ports(u32::MAX), clock()).is_ok()).count()
    };
    assert_eq!(
        (bindings(&mut table, slot), bindings(&mut table, slot), bindings(&mut table, other)),
        (5, 0, 5)
    );
    let sessions = (0..20).filter(|_| table.may_open(slot, PLENTY, clock()).is_ok()).count();
    assert_eq!(sessions, 7);
    assert_eq!(table.may_open(slot, (9, true), clock()), Ok(()), "an exempt destination");
    assert_eq!(table.may_open(slot, PLENTY, clock()), Err(DropReason::SubscriberLimit));
    let later = Clock::at(Instant::from_secs(101));
    assert_eq!(table.may_open(slot, PLENTY, later), Ok(()));
}

#[test]
fn packets_from_outside_take_nothing_of_what_a_subscriber_may_open() {
    let mut table = table(SubscriberLimits { sessions: 8, ..SubscriberLimits::NONE });
    let slot = join(&mut table, host(1), false);
    for _ in 0..2 {
        assert_eq!(table.may_open_from_outside(slot, (1_000, 1_000)), Ok(()));
        table.has_opened(slot, OUTSIDE, 100);
    }
    assert_eq!(table.may_open_from_outside(slot, (1_000, 1_000)), Err(DropReason::OutsideSessionsFull));
    for _ in 0..8 {
        assert_eq!(table.may_open(slot, PLENTY, clock()), Ok(()));
        table.has_opened(slot, INSIDE, 100);
    }
    assert_eq!(table.may_open(slot, PLENTY, clock()), Err(DropReason::SubscriberLimit));
    table.has_answered(slot, OUTSIDE);
    assert_eq!(
        table.may_open_from_outside(slot, (1_000, 1_000)),
        Err(DropReason::OutsideSessionsFull),
        "what was answered counts"
    );
    let (_, row) = table.row(slot, 105).unwrap();
    assert_eq!((row.sessions, row.from_outside, row.made, row.per_second), (10, 1, 10, 1));
    table.has_closed(slot, OUTSIDE);
    (0..2).for_each(|_| table.has_closed(slot, INSIDE));
    assert_eq!(table.may_open(slot, PLENTY, clock()), Ok(()), "seven are left of the eight");
    assert_eq!(table.row(slot, 100).unwrap().1.sessions, 7);
}

#[test]
fn who_has_much_finds_no_more_when_little_is_left_and_who_has_few_does() {
    let mut table = table(SubscriberLimits::NONE);
    let (much, few) = (join(&mut table, host(1), true), join(&mut table, host(2), true));
    for _ in 0..800 {
        table.has_opened(much, INSIDE, 0);
        table.has_opened(much, OUTSIDE, 0);
        table.has_bound(much, UDP);
    }
    let share = Err(DropReason::SubscriberShare);
    assert_eq!(table.may_open(much, (100, false), clock()), Ok(()), "8 × 100");
    assert_eq!(
        table.may_open(much, (99, true), clock()),
        share,
        "whatever the destination, and exempt or not"
    );
    assert_eq!(table.may_bind(much, UDP, ports(25), clock()), Ok(()), "32 × 25");
    assert_eq!(table.may_bind(much, UDP, ports(24), clock()), share);
    assert_eq!(
        table.may_bind(much, NatProtocol::Tcp, ports(1), clock()),
        Ok(()),
        "of this protocol it has none"
    );
    assert_eq!(table.may_open_from_outside(much, (1_000, 100)), Ok(()));
    assert_eq!(table.may_open_from_outside(much, (1_000, 99)), Err(DropReason::OutsideSessionsFull));
    assert_eq!(table.may_open(few, (1, false), clock()), Ok(()));
    assert_eq!(table.may_bind(few, UDP, ports(1), clock()), Ok(()));
    assert_eq!(table.may_open_from_outside(few, (0, 0)), Ok(()), "the table says when it is full");
    assert!(
        table.is_near_share(much, UDP, 25 + 2 * FEW - 1) && !table.is_near_share(much, UDP, 25 + 2 * FEW)
    );
}

#[test]
fn no_limit_holds_for_an_exempt_subscriber() {
    let limits = SubscriberLimits {
        bindings: 1,
        bindings_of: [1; 3],
        sessions: 1,
        new_bindings_per_second: 1,
        new_sessions_per_second: 1,
    };
    let mut table = table(limits);
    let slot = join(&mut table, host(1), true);
    for _ in 0..10 {
        assert_eq!(table.may_bind(slot, UDP, ports(u32::MAX), clock()), Ok(()));
        assert_eq!(table.may_open(slot, PLENTY, clock()), Ok(()));
        assert_eq!(table.may_open_from_outside(slot, (1_000, 1_000)), Ok(()));
        table.has_bound(slot, UDP);
        table.has_opened(slot, INSIDE, 0);
        table.has_opened(slot, OUTSIDE, 0);
    }
    assert!(!table.is_at_limit(slot, UDP));
}

#[test]
fn two_greedy_subscribers_leave_a_seventeenth_and_one_a_ninth() {
    for (greedy, left) in [(1, 1_000 / 9), (2, 1_000 / 17)] {
        let mut table = table(SubscriberLimits::NONE);
        let slots: Vec<u32> = (0..greedy).map(|last| join(&mut table, host(last), false)).collect();
        let mut taken = 0;
        for slot in slots.iter().cycle().take(5_000) {
            if table.may_open(*slot, (1_000 - taken, false), clock()).is_ok() {
                table.has_opened(*slot, INSIDE, 0);
                taken += 1;
            }
        }
        assert!((1_000 - taken).abs_diff(left) <= 3, "{greedy}: {} are left", 1_000 - taken);
    }
}

#[test]
fn the_bindings_that_are_left_and_sessions_with_exempt_destinations_count_to_the_share() {
    let mut table = table(SubscriberLimits::NONE);
    let slot = join(&mut table, host(1), false);
    for _ in 0..160 {
        table.has_bound(slot, NatProtocol::Icmp);
        table.has_opened(slot, Counted { is_exempt: true, from_outside: false }, 0);
    }
    let share = Err(DropReason::SubscriberShare);
    let left = |bindings| Left { ports: u32::MAX, bindings };
    assert_eq!(table.may_bind(slot, UDP, left(20), clock()), Ok(()), "8 × 20");
    assert_eq!(table.may_bind(slot, UDP, left(19), clock()), share, "of any protocol");
    assert_eq!(table.may_open(slot, (20, false), clock()), Ok(()));
    assert_eq!(table.may_open(slot, (19, true), clock()), share);
    let full = Err(DropReason::OutsideSessionsFull);
    assert_eq!(table.may_open_from_outside(slot, (19, 1_000)), full);
    assert_eq!(table.may_open_from_outside(slot, (1_000, 19)), full);
    assert_eq!(table.may_open_from_outside(slot, (20, 20)), Ok(()));
}

#[test]
fn answers_do_not_lift_the_limit_on_what_comes_from_outside() {
    let mut table = table(SubscriberLimits { sessions: 8, ..SubscriberLimits::NONE });
    let slot = join(&mut table, host(1), false);
    let mut admitted = 0;
    while table.may_open_from_outside(slot, (1_000, 1_000)).is_ok() {
        table.has_opened(slot, OUTSIDE, 0);
        table.has_answered(slot, OUTSIDE);
        admitted += 1;
    }
    assert_eq!(admitted, 10, "the limit, and a quarter");
}
