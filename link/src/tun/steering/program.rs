//! The steering program, instruction by instruction.
//!
//! It is a socket filter: packets are read by the "absolute" and "indirect" loads, which take big-endian numbers out of the
//! packet, from its IP header on, and end the program with 0 where the packet ends too early. These loads want the context in
//! r6 and put the number into r0; r1 to r5 are lost, r7 to r9 are kept.

use super::assembler::{
    ADD, ALWAYS, AND, Assembler, BYTE, DIV, EQUAL, HALF, Instruction, Label, MOVE, MUL, NOT_EQUAL,
    SHIFT_LEFT, SHIFT_RIGHT, WORD,
};
use super::block_map::BlockMap;
use super::queue_choice::{SPREAD, Steering};
use sixway_wire::protocol;

/// The program that returns [`Steering::worker_by`] of a packet, where blocks have the owners of the map.
pub fn steering_program(steering: Steering, blocks: &BlockMap) -> Vec<Instruction> {
    let (workers, block) = (i32::from(steering.workers.max(1)), i32::from(steering.ports_per_block.max(1)));
    let mut program = Assembler::default();
    program.registers(MOVE, 6, 1);
    program.load(BYTE, 0);
    program.number(SHIFT_RIGHT, 0, 4);
    program.jump(EQUAL, 0, 6, Label::Ipv6);
    program.jump(NOT_EQUAL, 0, 4, Label::Nobody);

    // IPv4: r7 becomes the length of its header.
    program.load(BYTE, 0);
    program.number(AND, 0, 0x0f);
    program.number(SHIFT_LEFT, 0, 2);
    program.registers(MOVE, 7, 0);
    program.load(HALF, 6);
    program.registers(MOVE, 8, 0);
    program.load(BYTE, 9);
    program.number(AND, 8, 0x3fff);
    program.jump(NOT_EQUAL, 8, 0, Label::Addresses);
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
    program.number(DIV, 0, block);
    program.look_up(blocks.number(), Label::Nobody);
    program.exit();

    program.label(Label::Addresses);
    program.load_two_words(12);
    program.jump(ALWAYS, 0, 0, Label::Share);

    // IPv6: the words of the source address as far as its prefix goes, each times its key.
    program.label(Label::Ipv6);
    program.constant(7, 0, steering.spread.sum());
    for (place, (mask, key)) in steering.spread.words().into_iter().enumerate() {
        if mask != 0 {
            program.load(WORD, 8 + 4 * place as i32);
            program.number(AND, 0, mask as i32);
            program.constant(1, 0, key);
            program.registers(MUL, 0, 1);
            program.registers(ADD, 7, 0);
        }
    }
    program.jump(ALWAYS, 0, 0, Label::Scale);

    program.label(Label::Share);
    program.constant(1, 0, SPREAD);
    program.registers(MUL, 7, 1);
    program.label(Label::Scale);
    program.number(SHIFT_RIGHT, 7, 32);
    program.number(MUL, 7, workers);
    program.number(SHIFT_RIGHT, 7, 32);
    program.registers(MOVE, 0, 7);
    program.exit();

    program.label(Label::Nobody);
    program.number(MOVE, 0, 0);
    program.exit();
    program.finish()
}
