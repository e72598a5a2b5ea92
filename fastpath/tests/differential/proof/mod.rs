//! What the programs' results are judged with: worlds, packets, the host's routes and the engine. A test and a fuzzer use it.
#![allow(clippy::unwrap_used, dead_code, missing_docs, reason = "each user needs its part")]

#[path = "../../../../link/tests/support/mod.rs"]
pub mod namespace;
#[path = "../../../../dataplane/tests/support/mod.rs"]
mod support;

pub mod choices;
mod configured;
pub mod draft;
pub mod generator;
pub mod judge;
pub mod oracle;
pub mod rig;
pub mod room;
mod routes;
pub mod scene;
pub mod sessions;
mod trouble;
mod tunnel_worlds;
pub mod world;
pub mod worlds;
