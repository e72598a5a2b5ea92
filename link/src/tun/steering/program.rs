//! The steering program, instruction by instruction.
//!
//! It is a socket filter: packets are read by the "absolute" and "indirect" loads, which take big-endian numbers out of the
//! packet, from its IP header on, and end the program with 0 where the packet ends too early. These loads want the context in
//! r6 and put the number into r0; r1 to r5 are lost, r7 to r9 are kept.

use super::block_map::BlockMap;
use super::queue_choice::{SPREAD, Steering};
use crate::tun::ebpf::Instruction;
use crate::tun::ebpf::assembler::{
    ADD, ALWAYS, AND, Assembler, BYTE, DIV, EQUAL, EXCLUSIVE_OR, HALF, MOVE, MUL, NOT_EQUAL, SHIFT_LEFT,
    SHIFT_RIGHT, WORD,
};
use sixway_dataplane::nat::Spread;
use sixway_wire::{Prefix4, protocol};

/// Jump targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Ipv6,
    Inside4,
    Pool,
    Ports,
    Block,
    Addresses,
    Scale,
    Nobody,
}

/// The program that returns [`Steering::worker_by`] of a packet, where blocks have the owners of the map.
pub fn steering_program(steering: &Steering, blocks: &BlockMap) -> Vec<Instruction> {
    let mut program = Assembler::<Label>::default();
    program.registers(MOVE, 6, 1);
    program.load(BYTE, 0);
    program.number(SHIFT_RIGHT, 0, 4);
    program.jump(EQUAL, 0, 6, Label::Ipv6);
    program.jump(NOT_EQUAL, 0, 4, Label::Nobody);

    program.load(HALF, 6);
    program.number(AND, 0, 0x3fff);
    program.jump(NOT_EQUAL, 0, 0, Label::Addresses);
    if !steering.inside4.is_empty() {
        jump_if_in(&mut program, 12, &steering.inside4, Label::Inside4);
    }
    match &steering.pools {
        Some(pools) if pools.is_empty() => {}
        pools => {
            if let Some(pools) = pools {
                jump_if_in(&mut program, 16, pools, Label::Pool);
                program.jump(ALWAYS, 0, 0, Label::Addresses);
                program.label(Label::Pool);
            }
            go_by_port(&mut program, steering, blocks);
        }
    }
    program.label(Label::Addresses);
    program.load_two_words(12);
    program.constant(1, 0, SPREAD);
    program.registers(MUL, 7, 1);
    program.jump(ALWAYS, 0, 0, Label::Scale);

    // The kernel refuses code that nothing leads to.
    if !steering.inside4.is_empty() {
        program.label(Label::Inside4);
        add_words(&mut program, &steering.spread4, 12, 1);
        program.jump(ALWAYS, 0, 0, Label::Scale);
    }
    program.label(Label::Ipv6);
    add_words(&mut program, &steering.spread, 8, 4);

    program.label(Label::Scale);
    program.number(SHIFT_RIGHT, 7, 32);
    program.number(MUL, 7, i32::from(steering.workers.max(1)));
    program.number(SHIFT_RIGHT, 7, 32);
    program.registers(MOVE, 0, 7);
    program.exit();

    program.label(Label::Nobody);
    program.number(MOVE, 0, 0);
    program.exit();
    program.finish()
}

/// Ends with the owner of an IPv4 packet's destination port or ICMP identifier, or jumps to [`Label::Addresses`].
fn go_by_port(program: &mut Assembler<Label>, steering: &Steering, blocks: &BlockMap) {
    // r7 becomes the length of the IPv4 header.
    program.load(BYTE, 0);
    program.number(AND, 0, 0x0f);
    program.number(SHIFT_LEFT, 0, 2);
    program.registers(MOVE, 7, 0);
    program.load(BYTE, 9);
    for with_ports in [protocol::TCP, protocol::UDP, protocol::UDP_LITE, protocol::DCCP, protocol::SCTP] {
        program.jump(EQUAL, 0, i32::from(with_ports), Label::Ports);
    }
    program.jump(NOT_EQUAL, 0, i32::from(protocol::ICMPV4), Label::Addresses);
    program.load_behind(BYTE, 7, 0);
    program.registers(MOVE, 8, 0);
    program.number(AND, 8, !8); // echo reply is 0, echo request 8
    program.jump(NOT_EQUAL, 8, 0, Label::Addresses);
    program.load_behind(HALF, 7, 4);
    program.jump(ALWAYS, 0, 0, Label::Block);

    program.label(Label::Ports);
    program.load_behind(HALF, 7, 2);
    program.label(Label::Block);
    program.number(DIV, 0, i32::from(steering.ports_per_block.max(1)));
    program.look_up(blocks.number(), Label::Nobody);
    program.exit();
}

/// Jumps if the address at this offset is in one of the prefixes.
fn jump_if_in(program: &mut Assembler<Label>, at: i32, prefixes: &[Prefix4], to: Label) {
    program.load(WORD, at);
    for prefix in prefixes {
        program.registers(MOVE, 1, 0);
        program.half_number(EXCLUSIVE_OR, 1, prefix.address().to_bits().cast_signed());
        program.half_number(AND, 1, prefix.mask().cast_signed());
        program.jump(EQUAL, 1, 0, to);
    }
}

/// r7 becomes the sum of the words of a source address at this offset, as far as the subscriber's prefix goes, each times its key.
fn add_words(program: &mut Assembler<Label>, spread: &Spread, at: i32, words: usize) {
    program.constant(7, 0, spread.sum());
    for (place, (mask, key)) in spread.words().into_iter().take(words).enumerate() {
        if mask != 0 {
            program.load(WORD, at + 4 * place as i32);
            program.number(AND, 0, mask as i32);
            program.constant(1, 0, key);
            program.registers(MUL, 0, 1);
            program.registers(ADD, 7, 0);
        }
    }
}
