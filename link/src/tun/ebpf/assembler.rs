//! An assembler for the few eBPF instructions of a TUN device's programs.

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
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const ALU64: u8 = 0x07;
pub(in crate::tun) const WORD: u8 = 0x00;
pub(in crate::tun) const HALF: u8 = 0x08;
pub(in crate::tun) const BYTE: u8 = 0x10;
const DOUBLE: u8 = 0x18;
const ABSOLUTE: u8 = 0x20;
const INDIRECT: u8 = 0x40;
const REGISTER: u8 = 0x08;
pub(in crate::tun) const ADD: u8 = 0x00;
pub(in crate::tun) const MUL: u8 = 0x20;
pub(in crate::tun) const DIV: u8 = 0x30;
const OR: u8 = 0x40;
pub(in crate::tun) const AND: u8 = 0x50;
pub(in crate::tun) const SHIFT_LEFT: u8 = 0x60;
pub(in crate::tun) const SHIFT_RIGHT: u8 = 0x70;
pub(in crate::tun) const EXCLUSIVE_OR: u8 = 0xa0;
pub(in crate::tun) const MOVE: u8 = 0xb0;
pub(in crate::tun) const ALWAYS: u8 = 0x00;
pub(in crate::tun) const EQUAL: u8 = 0x10;
pub(in crate::tun) const NOT_EQUAL: u8 = 0x50;
pub(in crate::tun) const ABOVE: u8 = 0x20;
pub(in crate::tun) const NOT_BELOW: u8 = 0x30;
pub(in crate::tun) const BELOW: u8 = 0xa0;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const LOAD_DOUBLE: u8 = 0x79;
/// Adds a register to a number in memory, which others may change as well.
const ADD_ATOMICALLY: u8 = 0xc3;
const ADD_DOUBLE_ATOMICALLY: u8 = 0xdb;

/// The register of the frame, at whose end the stack lies.
const FRAME: u8 = 10;
/// In place of a source register: the constant is the number of a map (BPF_PSEUDO_MAP_FD).
const MAP: u8 = 1;
/// The same: the constant is the address of a map's only element (BPF_PSEUDO_MAP_VALUE).
const MAP_VALUE: u8 = 2;
/// The helper bpf_map_lookup_elem.
const LOOK_UP: i32 = 1;
/// The helper bpf_ktime_get_ns: CLOCK_MONOTONIC.
const MONOTONIC_TIME: i32 = 5;

/// Instructions in order, with jumps to labels that are filled in at the end.
pub(in crate::tun) struct Assembler<Label> {
    code: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
    jumps: Vec<(usize, Label)>,
}

impl<Label> Default for Assembler<Label> {
    fn default() -> Self {
        Self { code: Vec::new(), labels: Vec::new(), jumps: Vec::new() }
    }
}

impl<Label: PartialEq> Assembler<Label> {
    fn push(&mut self, code: u8, destination: u8, source: u8, immediate: i32) {
        let registers = if cfg!(target_endian = "little") {
            source << 4 | destination
        } else {
            destination << 4 | source
        };
        self.code.push(Instruction { code, registers, offset: 0, immediate });
    }

    /// An operation on two registers.
    pub(in crate::tun) fn registers(&mut self, operation: u8, destination: u8, source: u8) {
        self.push(ALU64 | operation | REGISTER, destination, source, 0);
    }

    /// An operation on a register and a number.
    pub(in crate::tun) fn number(&mut self, operation: u8, destination: u8, number: i32) {
        self.push(ALU64 | operation, destination, 0, number);
    }

    /// An operation on the lower half of a register and a number; the upper half becomes zero.
    pub(in crate::tun) fn half_number(&mut self, operation: u8, destination: u8, number: i32) {
        self.push(ALU | operation, destination, 0, number);
    }

    /// r0 becomes the number at offset `at` in the packet.
    pub(in crate::tun) fn load(&mut self, size: u8, at: i32) {
        self.push(LD | ABSOLUTE | size, 0, 0, at);
    }

    /// r0 becomes the number `at` octets behind the offset in a register.
    pub(in crate::tun) fn load_behind(&mut self, size: u8, register: u8, at: i32) {
        self.push(LD | INDIRECT | size, 0, register, at);
    }

    /// r7 becomes the 64-bit number at offset `at` in the packet. Overwrites r9.
    pub(in crate::tun) fn load_two_words(&mut self, at: i32) {
        self.load(WORD, at);
        self.registers(MOVE, 9, 0);
        self.number(SHIFT_LEFT, 9, 32);
        self.load(WORD, at + 4);
        self.registers(MOVE, 7, 0);
        self.registers(OR, 7, 9);
    }

    /// r0 becomes the entry of the map at its own number. The packet's registers are kept.
    pub(in crate::tun) fn look_up(&mut self, map: i32, missing: Label) {
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

    /// A register becomes a 64-bit constant, or what a number of the kind `source` represents: an instruction of two.
    pub(in crate::tun) fn constant(&mut self, register: u8, source: u8, value: u64) {
        self.push(LD | DOUBLE, register, source, value as i32);
        self.push(0, 0, 0, (value >> 32) as i32);
    }

    /// A register becomes the address of the only element of the map with this number.
    pub(in crate::tun) fn map_value(&mut self, register: u8, map: i32) {
        self.constant(register, MAP_VALUE, u64::from(map.cast_unsigned()));
    }

    /// r0 becomes the time in nanoseconds. r1 to r5 are lost.
    pub(in crate::tun) fn monotonic_time(&mut self) {
        self.push(JMP | CALL, 0, 0, MONOTONIC_TIME);
    }

    fn push_at(&mut self, code: u8, (destination, source): (u8, u8), offset: i16) {
        let place = self.code.len();
        self.push(code, destination, source, 0);
        self.code[place].offset = offset;
    }

    /// A register becomes the 32-bit number in memory, `offset` octets behind an address.
    pub(in crate::tun) fn read(&mut self, register: u8, address: u8, offset: i16) {
        self.push_at(LOAD, (register, address), offset);
    }

    /// The same of 64 bits.
    pub(in crate::tun) fn read_double(&mut self, register: u8, address: u8, offset: i16) {
        self.push_at(LOAD_DOUBLE, (register, address), offset);
    }

    /// Adds a register to the 32-bit number in memory.
    pub(in crate::tun) fn add_to(&mut self, address: u8, offset: i16, register: u8) {
        self.push_at(ADD_ATOMICALLY, (address, register), offset);
    }

    /// The same of 64 bits.
    pub(in crate::tun) fn add_to_double(&mut self, address: u8, offset: i16, register: u8) {
        self.push_at(ADD_DOUBLE_ATOMICALLY, (address, register), offset);
    }

    /// Jumps by a comparison of two registers.
    pub(in crate::tun) fn jump_registers(&mut self, condition: u8, register: u8, other: u8, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(JMP | condition | REGISTER, register, other, 0);
    }

    pub(in crate::tun) fn jump(&mut self, condition: u8, register: u8, number: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(JMP | condition, register, 0, number);
    }

    pub(in crate::tun) fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    pub(in crate::tun) fn exit(&mut self) {
        self.push(JMP | EXIT, 0, 0, 0);
    }

    /// Fills in the jumps: offsets count from the next instruction.
    pub(in crate::tun) fn finish(mut self) -> Vec<Instruction> {
        for (from, to) in self.jumps {
            if let Some((_, at)) = self.labels.iter().find(|(label, _)| *label == to) {
                self.code[from].offset = (at - from - 1) as i16;
            }
        }
        self.code
    }
}
