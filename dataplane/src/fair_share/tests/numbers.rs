//! The quota of a single sender from the numbers of its intervals.

use crate::fair_share::PACKET;
use crate::fair_share::control::{Control, Interval, over};
use core::time::Duration;

/// Of an engine that can process 1,000 packets in 10 ms.
fn control(in_front: bool) -> Control {
    Control::new(100_000, 1, in_front)
}

/// An interval in which the queue was never empty. Numbers are of packets.
fn busy(milliseconds: u64, offered: u64, processed: u64, dropped: u64) -> Interval {
    let lasted = Duration::from_millis(milliseconds);
    Interval { lasted, offered, processed, refused: 0, dropped, was_empty: false }
}

fn empty(milliseconds: u64, offered: u64, processed: u64, dropped: u64) -> Interval {
    Interval { was_empty: true, ..busy(milliseconds, offered, processed, dropped) }
}

/// The quota in packets.
fn quota(control: &mut Control, seen: &Interval) -> Option<u32> {
    control.add(0, u32::try_from(seen.offered).unwrap() * PACKET, seen.lasted);
    control.quota(seen, true).map(|quota| quota / PACKET)
}

#[test]
fn with_a_filter_a_fifth_of_what_waits_is_not_admitted_and_half_of_the_capacity_is() {
    let first = |seen: Interval| quota(&mut control(true), &seen);
    assert_eq!(first(empty(10, 2_000, 1_000, 0)), Some(1_000));
    // As many packets as pass in an interval wait at least.
    assert_eq!(first(busy(10, 2_000, 1_000, 1_000)), Some(800));
    assert_eq!(first(busy(10, 3_000, 1_000, 500)), Some(700));
    assert_eq!(first(busy(10, 9_000, 1_000, 0)), Some(500));
}

#[test]
fn without_a_filter_four_fifths_of_the_capacity_are_admitted() {
    let mut control = control(false);
    assert_eq!(quota(&mut control, &empty(10, 2_000, 1_000, 0)), Some(1_000));
    for _ in 0..20 {
        quota(&mut control, &busy(10, 2_000, 1_000, 0));
    }
    assert_eq!(quota(&mut control, &busy(10, 2_000, 1_000, 0)), Some(799));
}

#[test]
fn below_seven_eighths_of_the_capacity_and_before_the_filter_may_drop_there_is_no_quota() {
    assert_eq!(quota(&mut control(true), &busy(10, 870, 1_000, 0)), None);
    assert!(quota(&mut control(true), &busy(10, 1_300, 1_000, 0)).is_some());
    let mut control = control(true);
    control.add(0, 2_000 * PACKET, Duration::from_millis(10));
    assert_eq!(control.quota(&busy(10, 2_000, 1_000, 0), false), None);
}

#[test]
fn a_queue_that_was_empty_while_packets_were_dropped_raises_the_capacity() {
    assert_eq!(quota(&mut control(true), &empty(10, 3_000, 1_000, 1_000)), Some(1_015));
    assert_eq!(quota(&mut control(false), &empty(10, 3_000, 1_000, 1_000)), Some(1_000));
}

#[test]
fn an_interval_without_a_processor_does_not_lower_the_capacity() {
    let mut control = control(true);
    quota(&mut control, &busy(10, 2_000, 1_000, 1_000));
    quota(&mut control, &busy(100, 20_000, 10, 19_990));
    quota(&mut control, &busy(10, 2_000, 1_000, 1_000));
    assert_eq!(quota(&mut control, &empty(10, 4_000, 1_000, 0)), Some(1_000));
}

#[test]
fn a_quota_is_of_ten_milliseconds_however_long_the_interval_was() {
    assert_eq!(quota(&mut control(true), &empty(12, 3_000, 1_200, 0)), Some(1_000));
    let lasted = Duration::from_millis;
    assert_eq!((over(Some(100), lasted(100)), over(Some(100), lasted(5))), (1_000, 50));
    assert_eq!(over(Some(u32::MAX), lasted(100)), u32::MAX);
    assert_eq!(over(None, lasted(10)), u32::MAX);
}
