//! The integration tests, one program: each file is a module.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::duplicate_mod, reason = "each fuzz target brings what it needs")]

mod memory;
mod replay;
