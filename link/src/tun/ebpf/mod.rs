//! What a TUN device's eBPF programs have in common: they are written in Rust, instruction by instruction, and loaded by bpf(2).

mod array;
pub(super) mod assembler;
pub(super) mod bpf;
mod program;

pub use assembler::Instruction;
pub use program::load;

pub(super) use array::{BPF_F_MMAPABLE, array};
pub(super) use bpf::Command;
