//! What each stateless mechanism's rules carry, and what they pass on: examples, at both hooks.

mod bench;
mod configured;
mod isatap;
mod packets;
mod policy_rules;
mod siit;
mod six_rd;
mod six_to_four;

use crate::support as namespace;
use bench::Harness;
use packets::settled;

/// A packet, and what becomes of it; `None`: it is the engine's.
type Example = (&'static str, Vec<u8>, Option<Vec<u8>>);

fn check(bench: &mut Harness, examples: Vec<Example>) {
    let mut wrong = Vec::new();
    for (name, packet, expected) in examples {
        // Once found out, once remembered.
        for time in ["first", "again"] {
            let (found, expected) = (bench.run(&packet).map(settled), expected.clone().map(settled));
            if found != expected {
                wrong.push(format!(
                    "{name}, {time}:\n   found    {}\n   expected {}",
                    hex(found),
                    hex(expected)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first octets of a packet.
fn hex(packet: Option<Vec<u8>>) -> String {
    let Some(packet) = packet else { return "passed on".into() };
    let octets = packet.iter().take(80).map(|octet| format!("{octet:02x}")).collect::<String>();
    format!("{} octets, {octets}", packet.len())
}
