//! The program of the overload filter, instruction by instruction.
//!
//! It returns how many octets of a packet are kept: all ([`PASS`]), or none, which drops it. The loads of a packet end the program with 0 where the
//! packet ends too early, so its length is compared before. They want the context in r6 and put the number into r0; r1 to r5 are lost, as by a
//! helper. r8 is the queue's table.

use super::layout::{BUCKET_SHIFT, DROPPED, KEYS, LEVEL, LIMIT, OFFERED, TABLE, UNTIL};
use crate::tun::ebpf::Instruction;
use crate::tun::ebpf::assembler::{
    ABOVE, ADD, ALWAYS, AND, Assembler, BELOW, BYTE, EQUAL, MOVE, MUL, NOT_BELOW, NOT_EQUAL, SHIFT_LEFT,
    SHIFT_RIGHT, WORD,
};
use sixway_dataplane::fair_share::{BUCKET_BITS, PACKET};
use sixway_dataplane::frame::Realm;

/// All octets of a packet, as a number of 32 bits.
const PASS: i32 = -1;
/// Members of `struct __sk_buff`.
const LENGTH: i16 = 0;
const QUEUE_MAPPING: i16 = 12;

/// Jump targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Ipv6,
    Bucket,
    Drop,
    Pass,
}

/// Whose packets a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Senders {
    /// The bits of an IPv6 address that identify a sender.
    pub bits: u8,
    /// The device's realm.
    pub realm: Realm,
}

/// The program for a device with this many queues, whose tables are the only element of the array with the number `map`.
pub(super) fn filter_program(senders: Senders, queues: u16, map: i32) -> Vec<Instruction> {
    let mut program = Assembler::<Label>::default();
    program.registers(MOVE, 6, 1);
    program.read(9, 6, QUEUE_MAPPING);
    program.jump(NOT_BELOW, 9, i32::from(queues), Label::Pass);
    program.number(MUL, 9, i32::from(TABLE));
    program.map_value(8, map);
    program.registers(ADD, 8, 9);
    program.read_double(9, 8, UNTIL);
    program.jump(EQUAL, 9, 0, Label::Pass);
    program.monotonic_time();
    program.jump_registers(ABOVE, 0, 9, Label::Pass);

    program.read(9, 6, LENGTH);
    program.jump(BELOW, 9, 16, Label::Pass);
    program.load(BYTE, 0);
    program.number(SHIFT_RIGHT, 0, 4);
    program.read_double(7, 8, KEYS);
    program.jump(EQUAL, 0, 6, Label::Ipv6);
    program.jump(NOT_EQUAL, 0, 4, Label::Pass);
    // The IPv4-mapped address.
    program.number(MOVE, 0, 0xffff);
    add(&mut program, 3);
    program.load(WORD, 12);
    add(&mut program, 4);
    program.jump(ALWAYS, 0, 0, Label::Bucket);

    program.label(Label::Ipv6);
    program.jump(BELOW, 9, 24, Label::Pass);
    let mask = u128::MAX.checked_shl(128 - u32::from(senders.bits.min(128))).unwrap_or(0);
    for (key, shift) in (1..).zip([96, 64, 32, 0]) {
        let mask = (mask >> shift) as u32;
        if mask != 0 {
            program.load(WORD, 8 + 4 * (i32::from(key) - 1));
            program.half_number(AND, 0, mask.cast_signed());
            add(&mut program, key);
        }
    }

    program.label(Label::Bucket);
    if senders.realm != Realm(0) {
        program.number(MOVE, 0, i32::from(senders.realm.0));
        program.number(SHIFT_LEFT, 0, 16);
        add(&mut program, 5);
    }
    program.number(SHIFT_RIGHT, 7, (u64::BITS - BUCKET_BITS) as i32);
    program.number(SHIFT_LEFT, 7, BUCKET_SHIFT);
    program.registers(ADD, 7, 8);
    program.number(MOVE, 1, PACKET as i32);
    program.add_to(7, OFFERED, 1);
    program.read(0, 7, LEVEL);
    program.read_double(2, 8, LIMIT);
    program.jump_registers(NOT_BELOW, 0, 2, Label::Drop);
    program.add_to(7, LEVEL, 1);
    program.jump(ALWAYS, 0, 0, Label::Pass);

    program.label(Label::Drop);
    program.number(MOVE, 1, 1);
    program.add_to_double(8, DROPPED, 1);
    program.number(MOVE, 0, 0);
    program.exit();
    program.label(Label::Pass);
    program.half_number(MOVE, 0, PASS);
    program.exit();
    program.finish()
}

/// Adds r0 times a key to r7. Overwrites r1.
fn add(program: &mut Assembler<Label>, key: i16) {
    program.read_double(1, 8, KEYS + 8 * key);
    program.registers(MUL, 0, 1);
    program.registers(ADD, 7, 0);
}
