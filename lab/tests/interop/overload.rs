//! More packets than the gateway can process: packets of the heavy sender are dropped in front of the device's queue, and a light one's arrive.

use crate::Interop;
use crate::site_network::{HOST4, SERVER4, at, home, passes, socket, up};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[Interop::new(
    "a_heavy_sender_loses_packets_in_front_of_the_queue_and_a_light_one_hardly_any",
    &["sixway", "nft"],
    shared,
)
.busy()];

const LIGHT4: &str = "192.168.1.3";
const LASTS: Duration = Duration::from_secs(3);
/// The light sender's packets, and the time between two.
const LIGHT: u32 = 500;
const GAP: Duration = Duration::from_millis(5);

/// A number that the gateway shows: what is listed, and the row.
fn shown(network: &Network, kind: &str, (column, name): (&str, &str), value: &str) -> Result<u64> {
    let mut show = Command::new(sixway()?);
    let api = format!("/run/sixway/{}.sock", network.gateway_name("gateway"));
    show.args(["show", kind, "--json", "--socket", &api]);
    let shown = network.host("gateway")?.run(show, Duration::from_secs(10))?.succeeded()?.stdout;
    let shown: serde_json::Value =
        serde_json::from_str(&shown).map_err(|error| Failure::Unexpected(error.to_string()))?;
    let row = shown.as_array().into_iter().flatten().find(|row| row[column] == name);
    row.and_then(|row| row[value].as_u64()).ok_or_else(|| Failure::Unexpected(format!("no {name}: {shown}")))
}

fn shared() -> Result<()> {
    let network = home()?;
    network.address("host", "up0", &format!("{LIGHT4}/24"))?;
    up(&network, &[])?;
    let server = socket(&network, "server", SERVER4, 4_000)?;
    let light = socket(&network, "host", LIGHT4, 4_000)?;
    let to = at(&server)?;
    passes(&light, to, &server)?;
    server.set_read_timeout(Some(Duration::from_secs(2))).asking(|| "a timeout".to_owned())?;

    let sink = socket(&network, "server", SERVER4, 5_000)?;
    let heavy = [5_001, 5_002].map(|port| socket(&network, "host", HOST4, port));
    let (flood, ended) = (at(&sink)?, AtomicBool::new(false));
    let arrived = std::thread::scope(|scope| -> Result<u32> {
        let mut senders = Vec::new();
        for socket in heavy {
            let (socket, ended) = (socket?, &ended);
            senders.push(scope.spawn(move || {
                let begun = Instant::now();
                while begun.elapsed() < 2 * LASTS && !ended.load(Ordering::Relaxed) {
                    // Some find no room.
                    let _ = socket.send_to(&[0; 64], flood);
                }
            }));
        }
        // After the filter began to drop.
        std::thread::sleep(Duration::from_millis(500));
        let counted = scope.spawn(|| {
            let mut buffer = [0; 64];
            let mut arrived = 0;
            while arrived < LIGHT && server.recv_from(&mut buffer).is_ok() {
                arrived += 1;
            }
            arrived
        });
        for _ in 0..LIGHT {
            light.send_to(b"light", to).asking(|| "sending".to_owned())?;
            std::thread::sleep(GAP);
        }
        ended.store(true, Ordering::Relaxed);
        Ok(counted.join().unwrap_or(0))
    })?;

    let counter = |name| shown(&network, "counters", ("name", name), "value");
    let overload = shown(&network, "drops", ("reason", "Overload"), "count")?;
    // What the engine counts as received and the process has not read.
    let in_front = counter("received")?.saturating_sub(counter("link.received")?);
    assert!(overload > 1_000, "{overload} dropped: this host could not overload the gateway");
    assert!(in_front >= overload / 10 * 9, "{overload} dropped, {in_front} of them in front of the queue");
    assert!(arrived >= LIGHT / 10 * 9, "{arrived} of {LIGHT} arrived");
    Ok(())
}
