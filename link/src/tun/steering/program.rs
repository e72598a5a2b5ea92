//! The steering program, instruction by instruction.
//!
//! It is a socket filter: packets are read by the "absolute" and "indirect" loads, which take big-endian numbers out of the
//! packet, from its IP header on, and end the program with 0 where the packet ends too early. These loads want the context in
//! r6 and put the number into r0; r1 to r5 are lost, r7 to r9 are kept.

use super::{BlockMap, SPREAD, Steering};
use sixway_wire::protocol;

/// One eBPF instruction, as the kernel lays it out (struct bpf_insn).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    code: u8,
    /// Destination and source register, a nibble each.
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Classes, sizes, modes and operations (RFC 9669; the packet loads in its appendix on legacy instructions).
const LD: u8 = 0x00;
const JMP: u8 = 0x05;
const ALU64: u8 = 0x07;
const WORD: u8 = 0x00;
const HALF: u8 = 0x08;
const BYTE: u8 = 0x10;
const DOUBLE: u8 = 0x18;
const ABSOLUTE: u8 = 0x20;
const INDIRECT: u8 = 0x40;
const REGISTER: u8 = 0x08;
const ADD: u8 = 0x00;
const MUL: u8 = 0x20;
const DIV: u8 = 0x30;
const OR: u8 = 0x40;
const AND: u8 = 0x50;
const SHIFT_LEFT: u8 = 0x60;
const SHIFT_RIGHT: u8 = 0x70;
const MOVE: u8 = 0xb0;
const ALWAYS: u8 = 0x00;
const EQUAL: u8 = 0x10;
const NOT_EQUAL: u8 = 0x50;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;

/// The register of the frame, at whose end the stack lies.
const FRAME: u8 = 10;
/// In the place of a source register: the constant is the number of a map (BPF_PSEUDO_MAP_FD).
const MAP: u8 = 1;
/// The helper bpf_map_lookup_elem.
const LOOK_UP: i32 = 1;

/// Places that are jumped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Ipv6,
    Ports,
    Block,
    Addresses,
    Share,
    Scale,
    Nobody,
}

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

/// Instructions in order, with jumps to labels that are filled in at the end.
#[derive(Default)]
struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, code: u8, destination: u8, source: u8, immediate: i32) {
        let registers = if cfg!(target_endian = "little") {
            source << 4 | destination
        } else {
            destination << 4 | source
        };
        self.code.push(Instruction { code, registers, offset: 0, immediate });
    }

    /// An operation on two registers.
    fn registers(&mut self, operation: u8, destination: u8, source: u8) {
        self.push(ALU64 | operation | REGISTER, destination, source, 0);
    }

    /// An operation on a register and a number.
    fn number(&mut self, operation: u8, destination: u8, number: i32) {
        self.push(ALU64 | operation, destination, 0, number);
    }

    /// r0 becomes the number at so many octets into the packet.
    fn load(&mut self, size: u8, at: i32) {
        self.push(LD | ABSOLUTE | size, 0, 0, at);
    }

    /// r0 becomes the number so many octets behind the offset in a register.
    fn load_behind(&mut self, size: u8, register: u8, at: i32) {
        self.push(LD | INDIRECT | size, 0, register, at);
    }

    /// r7 becomes the 64-bit number at so many octets into the packet. r9 is used.
    fn load_two_words(&mut self, at: i32) {
        self.load(WORD, at);
        self.registers(MOVE, 9, 0);
        self.number(SHIFT_LEFT, 9, 32);
        self.load(WORD, at + 4);
        self.registers(MOVE, 7, 0);
        self.registers(OR, 7, 9);
    }

    /// r0 becomes the entry of the map at its own number. The packet's registers are kept.
    fn look_up(&mut self, map: i32, missing: Label) {
        let stored = self.code.len();
        self.push(STORE, FRAME, 0, 0);
        self.code[stored].offset = -4;
        self.registers(MOVE, 2, FRAME);
        self.number(ADD, 2, -4);
        self.constant(1, MAP, map as u64);
        self.push(JMP | CALL, 0, 0, LOOK_UP);
        self.jump(EQUAL, 0, 0, missing);
        self.push(LOAD, 0, 0, 0);
    }

    /// A register becomes a 64-bit constant, or what a number of the kind `source` stands for: an instruction of two.
    fn constant(&mut self, register: u8, source: u8, value: u64) {
        self.push(LD | DOUBLE, register, source, value as i32);
        self.push(0, 0, 0, (value >> 32) as i32);
    }

    fn jump(&mut self, condition: u8, register: u8, number: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(JMP | condition, register, 0, number);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    fn exit(&mut self) {
        self.push(JMP | EXIT, 0, 0, 0);
    }

    /// Fills in the jumps: offsets count from the next instruction.
    fn finish(mut self) -> Vec<Instruction> {
        for (from, to) in self.jumps {
            if let Some((_, at)) = self.labels.iter().find(|(label, _)| *label == to) {
                self.code[from].offset = (at - from - 1) as i16;
            }
        }
        self.code
    }
}
