//! Tests of the table alone: which numbers of blocks a worker has, and which it gives.

use super::*;

const POLICY: BlockPolicy = BlockPolicy { size: 1_024, most: 4, idle_seconds: 10 };

/// A table for two open addresses, with these numbers.
fn table(numbers: &[u16], is_compact: bool) -> PortBlocks {
    let mut blocks = PortBlocks::new(POLICY, 2, 100, is_compact);
    numbers.iter().for_each(|number| blocks.gain(*number));
    (0..2).for_each(|_| blocks.opened(false));
    blocks
}

const ONE: PoolSlot = PoolSlot(0);
const TWO: PoolSlot = PoolSlot(1);

/// Every free number that a search finds, from wherever it begins.
fn found(blocks: &PortBlocks, slot: PoolSlot) -> Vec<u16> {
    let mut all: Vec<u16> =
        (0..64).filter_map(|start: u32| blocks.free_number(slot, start << 26 | 1 << 25)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn what_a_worker_has_lost_is_given_no_more_and_what_it_gains_once_counts_once() {
    let mut blocks = table(&[5, 9], false);
    blocks.gain(9);
    assert_eq!((blocks.counts(2).blocks, found(&blocks, ONE)), (4, vec![5, 9]));
    blocks.lose(9);
    blocks.lose(9);
    assert_eq!((blocks.counts(2).blocks, found(&blocks, TWO)), (2, vec![5]));
    blocks.lose(5);
    assert!((0..8).all(|n| blocks.available_address(n << 29).is_none()), "no address has a block");
    assert_eq!(blocks.counts(2).blocks, 0);
    blocks.gain(7);
    assert_eq!(found(&blocks, ONE), [7]);
    assert!(blocks.available_address(0).is_some());
}

#[test]
fn a_block_that_is_returned_after_its_number_has_moved_is_not_given_again() {
    let mut blocks = table(&[5], false);
    let block = blocks.give(ONE, 5).unwrap();
    assert_eq!(blocks.available_address(0), Some(TWO));
    blocks.lose(5);
    blocks.take_back(block);
    assert_eq!((found(&blocks, ONE), blocks.available_address(0)), (vec![], None));
}

#[test]
fn several_workers_give_blocks_of_numbers_that_are_in_use_first() {
    let numbers: Vec<u16> = (1..64).collect();
    let mut blocks = table(&numbers, true);
    let [seven, nine] = [7, 9].map(|number| blocks.give(ONE, number).unwrap());
    assert_eq!(found(&blocks, TWO), [7, 9], "whichever comes next");
    let other = blocks.give(TWO, 7).unwrap();
    assert_eq!(found(&blocks, TWO), [9], "the next one that is free there");
    blocks.take_back(other);
    assert_eq!(found(&blocks, TWO), [7, 9], "it is still in use at the other address");
    blocks.take_back(seven);
    assert_eq!(found(&blocks, TWO), [9]);
    blocks.take_back(nine);
    assert!(found(&blocks, TWO).len() > 30, "none is in use");
    assert!(found(&table(&numbers, false), TWO).len() > 30, "one worker alone has no reason to");
}

#[test]
fn unused_blocks_leave_a_list_from_either_end() {
    let mut blocks = table(&[1, 2, 3], false);
    let mut list = NONE;
    let given: Vec<u32> = (1..4)
        .map(|number| {
            let block = blocks.give(ONE, number).unwrap();
            blocks.set_owner(block, 77, list);
            list = block;
            block
        })
        .collect();
    let members = |blocks: &PortBlocks, first| {
        let next = |block: &u32| Some(blocks.get(*block).next).filter(|next| *next != NONE);
        std::iter::successors(Some(first), next).collect::<Vec<u32>>()
    };
    let [oldest, middle, newest] = given[..] else { panic!() };
    assert_eq!(members(&blocks, list), [newest, middle, oldest]);
    list = blocks.unlink(list, middle);
    assert_eq!(members(&blocks, list), [newest, oldest]);
    list = blocks.unlink(list, newest);
    assert_eq!(members(&blocks, list), [oldest]);
    assert_eq!(blocks.unlink(list, oldest), NONE);
}
