//! Experiments of published papers, replayed: the same addresses and the same load at a smaller count, the published figures next to the
//! measured ones. Hardware differs, so it is the shape that is compared.

pub mod echo_load;
pub mod relay_2013;
mod replay;

pub use replay::{Options, Paper, run};
