//! The flow table in memory of this process: what workers do to it, and what the next gateway finds in it.

use sixway_dataplane::Instant;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::{Direction, Inside, NatProtocol, Outside};
use sixway_dataplane::offload::{FastPath, FlowHandle, OffloadedFlow};
use sixway_fastpath::layout::{
    Config, FLOW_ACTIVE, FLOW_ARMED, FLOW_FREE, FLOW_RESTING, KIND_NAT64, TO_INSIDE, TO_OUTSIDE, flow_state,
};
use sixway_fastpath::{FastPathWriter, FlowTable};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A table whose translators 0 and 1 have the prefixes 64:ff9b::/96 and 2001:db8:64::/48.
fn table(capacity: u32) -> Arc<FlowTable> {
    let table = FlowTable::anonymous(capacity).unwrap();
    table.set_translators(&config());
    Arc::new(table)
}

fn config() -> Config {
    let mut config = Config::zero();
    for (number, (prefix, length)) in [("64:ff9b::", 96), ("2001:db8:64::", 48)].into_iter().enumerate() {
        let prefix: Ipv6Addr = prefix.parse().unwrap();
        let translator = &mut config.translators[number];
        (translator.kind, translator.length, translator.prefix) = (KIND_NAT64, length, prefix.octets());
        translator.identity = nat64(number as u32).number();
    }
    config.translators_count = 2;
    config
}

/// The translators by their number.
fn nat64(number: u32) -> Identity {
    let prefix = ["64:ff9b::/96", "2001:db8:64::/48"][number as usize % 2];
    Identity::of_nat64(prefix.parse().unwrap())
}

fn flow(number: u32) -> OffloadedFlow {
    OffloadedFlow {
        mechanism: nat64(number),
        protocol: if number.is_multiple_of(3) { NatProtocol::Udp } else { NatProtocol::Tcp },
        inside: Inside(Endpoint6::new(
            Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)),
            number as u16,
        )),
        outside: Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, 1), (number >> 3) as u16)),
        remote: Endpoint4::new(Ipv4Addr::from_bits(0xc633_6400 | number), 443),
    }
}

/// Sum of one's complement words in network order, as the RFCs have it.
fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn a_flow_that_was_used_elsewhere_is_not_idle() {
    let table = table(10);
    let start = Instant::from_secs(1_000_000);
    let mut writer = FastPathWriter::new(Arc::clone(&table), start);
    let handle = writer.arm(&flow(4)).unwrap();
    let last = || table.halves_of(handle).map(|slot| table.read(slot).last);
    let armed = last();
    writer.touch(handle, Instant::from_secs(999_000));
    assert_eq!(last(), armed, "that was before");
    writer.touch(handle, Instant::from_secs(1_000_100));
    let ticks = (100_000_000_000_u64 >> 20) as u32;
    assert!(last().iter().zip(armed).all(|(last, armed)| last.wrapping_sub(armed).abs_diff(ticks) < 10));
}

#[test]
fn an_armed_flow_has_both_halves_as_the_programs_read_them() {
    let table = table(10);
    let flow = flow(4);
    let handle = table.arm(&flow).unwrap();
    let [out, into] = table.halves_of(handle).map(|slot| table.read(slot));
    for half in [out, into] {
        assert_eq!(half.word, FLOW_ARMED << 24);
        assert_eq!(half.inside, flow.inside.0.address.octets());
        assert_eq!(half.outside.to_ne_bytes(), flow.outside.0.address.octets());
        assert_eq!(half.remote.to_ne_bytes(), flow.remote.address.octets());
        assert_eq!(half.inside_port.to_ne_bytes(), flow.inside.0.port.to_be_bytes());
        assert_eq!(half.outside_port.to_ne_bytes(), flow.outside.0.port.to_be_bytes());
        assert_eq!(half.remote_port.to_ne_bytes(), 443u16.to_be_bytes());
        assert_eq!((half.protocol, half.mechanism, half.next_hop, half.ingress), (6, 0, 0, 0));
        assert_ne!(half.last, 0, "it was not idle since the machine started");
    }
    assert_eq!((out.direction, into.direction), (TO_OUTSIDE, TO_INSIDE));
    // What was and what becomes are sums of the same value, the delta added.
    let remote6: Ipv6Addr = format!("64:ff9b::{}", flow.remote.address).parse().unwrap();
    let six = sum(&flow.inside.0.address.octets()) + sum(&remote6.octets());
    let four = sum(&flow.outside.0.address.octets()) + sum(&flow.remote.address.octets());
    assert_eq!(folded(six + u64::from(u16::from_be(out.delta))), folded(four));
    assert_eq!(folded(four + u64::from(u16::from_be(into.delta))), folded(six));
}

#[test]
fn a_half_becomes_active_when_the_last_mark_is_that_of_the_last_packet() {
    let table = table(10);
    let mut writer = FastPathWriter::new(table.clone(), Instant(0));
    let handle = writer.arm(&flow(1)).unwrap();
    assert!(!writer.activate(handle, Direction::Out, 7), "no packet has left this mark");
    assert!(writer.activate(handle, Direction::Out, 0));
    assert!(writer.activate(handle, Direction::Out, 9), "it is active already");
    let [out, into] = table.halves_of(handle);
    assert!(table.is_active(out) && !table.is_active(into));
    writer.force(handle);
    assert!(table.is_active(into));
    let before = table.read(out).word;
    writer.force(handle);
    assert_eq!(table.read(out).word, before, "one incarnation");
    let usage = writer.remove(handle);
    assert!(usage.iter().all(|half| half.packets == 0 && half.last.is_some()), "it was made");
    assert!(!writer.activate(handle, Direction::Out, 0), "it was removed");
    writer.force(handle);
    assert_eq!(flow_state(table.read(out).word), FLOW_RESTING);
}

#[test]
fn a_removed_entry_is_nobodys_for_two_seconds() {
    let table = table(1);
    let first = table.arm(&flow(1)).unwrap();
    let slots = table.halves_of(first);
    table.remove(first);
    let second = table.arm(&flow(1)).unwrap();
    assert!(!table.halves_of(second).iter().any(|slot| slots.contains(slot)));
    table.remove(second);
    std::thread::sleep(std::time::Duration::from_millis(2_050));
    let third = table.arm(&flow(1)).unwrap();
    assert_eq!(table.halves_of(third), slots, "the first place is taken again");
    table.activate(slots[0], 0);
    assert_eq!(flow_state(table.read(slots[0]).word), FLOW_ACTIVE);
}

#[test]
fn a_table_takes_nearly_as_many_flows_as_it_was_made_for_and_never_more() {
    let table = table(20_000);
    let handles: Vec<_> = (0..20_000).filter_map(|number| table.arm(&flow(number))).collect();
    assert!(handles.len() > 19_600, "{}", handles.len());
    assert_eq!(table.used() as usize, handles.len());
    let more: Vec<_> = (20_000..40_000).filter_map(|number| table.arm(&flow(number))).collect();
    assert_eq!((handles.len() + more.len(), table.used()), (20_000, 20_000));
    table.remove(handles[5]);
    assert!((40_000..40_100).any(|number| table.arm(&flow(number)).is_some()));
}

#[test]
fn flows_that_cannot_be_offloaded_are_refused() {
    let table = table(10);
    let stranger = Identity::of_nat64("2001:db8:65::/48".parse().unwrap());
    assert!(table.arm(&OffloadedFlow { mechanism: stranger, ..flow(1) }).is_none(), "it has no slot");
    assert_eq!(table.used(), 0);
}

#[test]
fn workers_arm_and_remove_at_the_same_time() {
    let table = table(60_000);
    let work = |first: u32| {
        let mut writer = FastPathWriter::new(table.clone(), Instant(0));
        let mut kept = Vec::new();
        for number in (first..40_000).step_by(4) {
            let Some(handle) = writer.arm(&flow(number)) else { continue };
            writer.force(handle);
            if number.is_multiple_of(3) {
                writer.remove(handle);
            } else {
                kept.push((number, handle));
            }
        }
        kept
    };
    let kept: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|first| scope.spawn(move || work(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(table.used() as usize, kept.len());
    assert!(kept.len() > 26_000, "{}", kept.len());
    let mut taken = std::collections::HashSet::new();
    for (number, handle) in &kept {
        let [out, into] = table.halves_of(*handle);
        assert!(taken.insert(out) && taken.insert(into), "a place was given twice");
        for half in [out, into].map(|slot| table.read(slot)) {
            assert_eq!(half.inside, flow(*number).inside.0.address.octets());
            assert_eq!(flow_state(half.word), FLOW_ACTIVE);
        }
    }
    let mut entries: Vec<_> = table.entries().map(|(handle, flow, _)| (handle.0, flow)).collect();
    let mut wanted: Vec<_> = kept.iter().map(|(number, handle)| (handle.0, flow(*number))).collect();
    entries.sort_by_key(|entry| entry.0);
    wanted.sort_by_key(|entry| entry.0);
    assert_eq!(entries, wanted);
}

#[test]
fn the_next_gateway_keeps_whole_flows_that_it_wants_and_nothing_else() {
    let table = table(100);
    let arm = |number| {
        let handle = table.arm(&flow(number)).unwrap();
        assert_eq!(table.halves_of(handle).map(|slot| table.force(slot)), [true; 2]);
        handle
    };
    let handles: Vec<_> = (0..20).map(arm).collect();
    table.arm(&flow(50)).unwrap(); // never active
    let half = table.arm(&flow(51)).unwrap();
    table.force(table.halves_of(half)[1]); // active one way
    let twice = arm(7);
    let mut offered = Vec::new();
    let adopted = table.adopt(|handle, flow, halves| {
        assert_eq!((halves[0].direction, halves[1].direction), (TO_OUTSIDE, TO_INSIDE));
        offered.push((handle, *flow));
        flow.inside.0.port != 3
    });
    offered.sort_by_key(|(handle, _)| handle.0);
    let mut wanted: Vec<(FlowHandle, _)> =
        handles.iter().zip(0..).map(|(handle, number)| (*handle, flow(number))).collect();
    wanted.sort_by_key(|(handle, _)| handle.0);
    if offered.iter().any(|(handle, _)| *handle == twice) {
        // Whichever lies first is the one that the programs find.
        assert_eq!(offered.len(), wanted.len());
    } else {
        assert_eq!(offered, wanted);
    }
    assert_eq!((adopted.kept, adopted.refused, adopted.strays), (19, 1, 6));
    assert_eq!((table.used(), table.entries().count()), (19, 19));
}

/// The same, but for the prefix of the first translator, which has the same sum: it adds the same to checksums.
fn other_config() -> Config {
    let mut other = config();
    let prefix: Ipv6Addr = "2001:dffe::".parse().unwrap();
    other.translators[0].prefix = prefix.octets();
    other.translators[0].identity = Identity::of_nat64("2001:dffe::/96".parse().unwrap()).number();
    other
}

/// A flow of the first translator, active.
fn activate(table: &FlowTable, number: u32) -> FlowHandle {
    let handle = table.arm(&flow(number)).unwrap();
    assert_eq!(table.halves_of(handle).map(|slot| table.force(slot)), [true; 2]);
    handle
}

#[test]
fn flows_of_a_translator_that_is_gone_are_not_adopted_whoever_has_its_slot() {
    let table = table(10);
    let (gone, stays) = (activate(&table, 2), activate(&table, 3));
    table.expect_translators(&other_config());
    let adopted = table.adopt(|handle, flow, _| {
        assert_eq!((handle, flow.mechanism), (stays, nat64(1)));
        true
    });
    assert_eq!((adopted.kept, adopted.refused, adopted.gone, adopted.strays), (1, 0, 1, 0));
    assert!(table.halves_of(gone).iter().all(|slot| flow_state(table.read(*slot).word) == FLOW_RESTING));
    assert!(table.arm(&flow(2)).is_none(), "its translator is gone");
    let heir = Identity::of_nat64("2001:dffe::/96".parse().unwrap());
    let handle = table.arm(&OffloadedFlow { mechanism: heir, ..flow(2) }).unwrap();
    assert_eq!(table.read(table.halves_of(handle)[0]).mechanism, 0);
}

#[test]
fn who_adopts_nothing_takes_over_no_flow_of_a_translator_that_is_gone() {
    let table = table(16);
    let (gone, stays) = (activate(&table, 2), activate(&table, 3));
    let waits = table.half_open(&flow(4)).unwrap();
    table.set_translators(&config());
    assert!(table.halves_of(gone).iter().all(|slot| table.is_active(*slot)), "nobody is gone");
    table.set_translators(&other_config());
    assert!(!table.halves_of(gone).iter().any(|slot| table.is_active(*slot)));
    assert_eq!(flow_state(table.read(table.halves_of(waits)[1]).word), FLOW_RESTING);
    table.remove(waits);
    assert_eq!(table.used(), 2, "it was none of them");
    assert!(table.halves_of(stays).iter().all(|slot| table.is_active(*slot)));
}

#[test]
fn a_flow_that_says_something_else_than_its_translators_prefix_is_not_adopted() {
    let table = table(10);
    activate(&table, 2);
    let mut other = config();
    // A prefix that is not part of the identity.
    other.translators[0].prefix[15 - 4] = 9;
    table.set_translators(&other);
    let adopted = table.adopt(|_, _, _| panic!("it is not of the configuration"));
    assert_eq!((adopted.kept, adopted.gone, adopted.strays), (0, 0, 2));
}

#[test]
fn half_open_flows_take_a_share_and_no_capacity_of_the_others() {
    let table = table(800);
    // An eighth may be half-open; half of these in any two seconds.
    let half_open: Vec<_> = (0..200).map_while(|number| table.half_open(&flow(number))).collect();
    assert_eq!((half_open.len(), table.used()), (50, 0));
    let armed = (1_000..2_000).filter_map(|number| table.arm(&flow(number))).count();
    assert!(armed >= 790, "{armed}: two buckets may be full");
    assert_eq!(table.used(), armed as u32);
}

#[test]
fn a_scan_leaves_the_table_to_established_flows() {
    let table = table(800);
    // Each is refused soon, and the next one is sent at the same moment.
    for number in 0..100_000 {
        if let Some(handle) = table.half_open(&flow(number)) {
            table.remove(handle);
        }
    }
    let armed = (200_000..201_000).filter_map(|number| table.arm(&flow(number))).count();
    assert!(armed >= 790, "{armed}: what rests is little");
}

/// Each that ends makes room for another one.
#[test]
fn the_share_of_half_open_flows_is_not_used_up() {
    let table = table(8);
    for number in 0..3 {
        let handle = table.half_open(&flow(number)).expect("one may be, and one in two seconds");
        assert!(table.half_open(&flow(100)).is_none());
        table.remove(handle);
        std::thread::sleep(std::time::Duration::from_millis(2_050));
    }
    assert_eq!(table.used(), 0);
}

#[test]
fn a_slot_that_is_used_again_is_another_incarnation() {
    let table = table(100);
    let words: Vec<u32> = (0..3)
        .map(|number| {
            let [_, into] = table.halves_of(table.half_open(&flow(number)).unwrap());
            table.read(into).word
        })
        .collect();
    assert!(words[0] != words[1] && words[1] != words[2], "{words:?}");
}

#[test]
fn a_half_open_flow_that_is_removed_rests_to_the_inside_alone() {
    let table = table(16);
    let handle = table.half_open(&flow(1)).unwrap();
    let [out, into] = table.halves_of(handle);
    table.remove(handle);
    assert_eq!([out, into].map(|slot| flow_state(table.read(slot).word)), [FLOW_FREE, FLOW_RESTING]);
    assert_eq!(table.used(), 0);
    // Its share is free again: one in eight, half of them in two seconds.
    assert!(table.half_open(&flow(2)).is_none());
}

#[test]
fn the_next_gateway_has_no_half_open_flows_and_says_nothing_of_them() {
    let table = table(100);
    let kept = activate(&table, 1);
    let waits = table.half_open(&flow(4)).unwrap();
    let adopted = table.adopt(|_, _, _| true);
    assert_eq!((adopted.kept, adopted.refused, adopted.gone, adopted.strays), (1, 0, 0, 0));
    assert!(table.is_active(table.halves_of(kept)[0]));
    let state = |slot: usize| flow_state(table.read(slot).word);
    assert_eq!(table.halves_of(waits).map(state), [FLOW_FREE, FLOW_RESTING]);
    assert_eq!(table.entries().count(), 1);
}
