//! Port blocks and draining, while sessions are in the fast path.

use super::load::pause;
use super::next_to_nat44::carried;
use crate::event_log::{line, now, value, who};
use crate::pools::{asked, outside_of};
use crate::{Interop, nat44};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::{Hook, shown};
use sixway_lab::gateway::run_on_fast_path;
use sixway_lab::interrupt;
use sixway_lab::probe::ping;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "sessions_in_blocks_of_a_drained_address_stay_in_the_fast_path_tc",
        &["sixway", "ping"],
        || drained(Hook::Tc),
    ),
    Interop::new(
        "sessions_in_blocks_of_a_drained_address_stay_in_the_fast_path_xdp",
        &["sixway", "ping"],
        || drained(Hook::Xdp),
    ),
];

/// Two addresses; each subscriber gets a block.
const IN_BLOCKS: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.0/31"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"
block_size = 512
"#;

const PINGS: u32 = 2_000;
const CLIENT: &str = "192.168.1.2";

/// A session of the client is carried while its address is drained: it goes on there, and another host gets the other address. The log has
/// the blocks of both, and who had the outside endpoint.
fn drained(hook: Hook) -> Result<()> {
    let network = nat44::network()?;
    let log = network.folder().join("log").join("events.jsonl");
    run_on_fast_path(&network, hook, &format!("{IN_BLOCKS}[log.file]\npath = {log:?}\n"))?;
    std::thread::scope(|scope| {
        let client = network.host("client")?;
        let pinging = scope.spawn(|| ping(client, nat44::SERVER, PINGS, 56, Duration::from_millis(5)));
        interrupt::wait_until(Duration::from_secs(5), "packets in the fast path", || {
            Ok(carried(&network, "nat44")? > 0)
        })?;
        let rows = asked(&network, &["show", "sessions", "--json", "--inside", CLIENT])?.succeeded()?.stdout;
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap_or_default();
        let outside = rows["rows"][0]["outside"].as_str().unwrap_or_default().to_owned();
        let (old, _) = outside.split_once(':').ok_or_else(|| Failure::Unexpected(rows.to_string()))?;
        let other = if old == "192.0.2.0" { "192.0.2.1" } else { "192.0.2.0" };
        asked(&network, &["pool", "drain", "public", old])?.succeeded()?;
        let before = carried(&network, "nat44")?;
        assert_eq!(outside_of(&network, "neighbour", "192.168.2.2")?, other, "a host without bindings");
        pause(500)?;
        let after = carried(&network, "nat44")?;
        assert!(after > before + 50, "{before} and {after} packets: {}", shown(&network)?);
        let shown = asked(&network, &["show", "pools"])?.succeeded()?.stdout;
        assert!(shown.contains("512 ports") && shown.contains(&format!("{old}/32")), "{shown}");
        let finished = pinging.join().map_err(|_| Failure::Unexpected("the pings panicked".into()))??;
        assert_eq!(finished.answered, PINGS);
        for (inside, address) in [(CLIENT, old), ("192.168.2.2", other)] {
            let given = line(&log, &["block_allocated", inside])?;
            assert_eq!(value(&given, "outside")?, address);
        }
        let answer = who(&log, "icmp", &outside, &now())?;
        assert_eq!((answer["inside"].as_str(), answer["kind"].as_str()), (Some(CLIENT), Some("port block")));
        assert_eq!(answer["events_are_missing"], false, "{answer}");
        Ok(())
    })
}
