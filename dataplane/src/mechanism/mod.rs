//! One file or folder for each mechanism: thin, an address policy and the verbs it is composed of. They do not import one
//! another.

pub mod configured;
pub mod nat64;
pub mod siit;
