//! What the programs forward is what the engine would send, octet for octet; and what they do not forward they leave alone.
//!
//! ```text
//!     choices ─▶ world, packet ─▶ program (test run by the kernel) ─▶ passed on: untouched?
//!                      │                                            └▶ forwarded: the same?
//!                      └────────▶ oracle: the host's routes, the engine ───────▲
//! ```
#![cfg(feature = "ebpf")]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

#[path = "../../../link/tests/support/mod.rs"]
mod namespace;
#[path = "../../../dataplane/tests/support/mod.rs"]
mod support;

mod choices;
mod draft;
mod generator;
mod oracle;
mod routes;
mod scene;
mod sessions;
mod test_run;
mod trouble;
mod tunnel_worlds;
mod world;
mod worlds;

use choices::{Choices, Random};
use oracle::{Expected, Oracle};
use scene::Scene;
use sixway_dataplane::Instant;
use sixway_dataplane::engine::Engine;
use std::collections::BTreeMap;

#[test]
fn most_of_the_packets_that_are_tried_are_such_that_the_engine_forwards_them() {
    for world in worlds::all() {
        namespace::in_namespace("generator", move || {
            let scene = Scene::new(world.routes(), &world.local);
            let mut engine = Engine::new(&world.config).unwrap();
            let now = Instant::from_secs(1_000);
            let sessions = sessions::establish(&world, &mut engine, now);
            let mut oracle = Oracle { world: &world, scene: &scene, engine: &mut engine, now };
            let mut random = Random(1);
            let mut tally: BTreeMap<String, u32> = BTreeMap::new();
            for _ in 0..2_000 {
                let input = generator::input(&world, &sessions, &mut Choices::random(&mut random));
                let why = match oracle.expects(&input) {
                    Expected::Forward(_) => format!("forward {} plain {}", input.counter, input.is_plain),
                    Expected::Pass(why) if input.is_plain => format!("PLAIN {} {why}", input.counter),
                    Expected::Pass(why) => why,
                };
                *tally.entry(why).or_default() += 1;
            }
            eprintln!("== {}: {tally:#?}", world.name);
        });
    }
}
