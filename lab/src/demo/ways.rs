//! Other mechanisms between IPv4 and IPv6, each in a separate network, and another program for comparison.

use super::faults::Faults;
use super::pairs::all_answered;
use crate::failure::Result;
use crate::forwarder::Forwarder;
use crate::packet;
use crate::probe::{Direction, ping, serve_bulk};
use crate::six_to_four::{Relay, RelayOptions, SERVER, SITE};
use crate::softwires::{self, Ready};
use crate::terminal::{self, bits};
use std::time::Duration;

/// Its name, what is tried, and the network.
type Way = (&'static str, &'static str, fn() -> Result<Ready>);

const WAYS: [Way; 4] = [
    ("DS-Lite", "a B4 by its AFTR to 203.0.113.2", softwires::ds_lite),
    ("4over6", "a leased address to 203.0.113.2", softwires::four_over_six),
    ("NAT46", "10.1.0.2 to 192.168.46.80, which is 2001:db8:2::2", softwires::nat46),
    ("Teredo", "a client behind a NAT by a relay to 2001:db8:1::2", softwires::teredo),
];

/// Shows all of them.
pub(super) fn show(faults: &mut Faults) -> Result<()> {
    let ends = format!("{} to {SERVER}", packet::six_to_four(SITE, 1));
    faults.tell("6to4", &ends, a_site_reaches_a_native_host())?;
    for (name, tried, start) in WAYS {
        faults.tell(name, tried, start().and_then(|ready| crosses(&ready)))?;
    }
    for (name, forwarder) in [("NAT64", Forwarder::Nat64), ("tayga", Forwarder::SharingTayga)] {
        match forwarder.cannot_run() {
            Some(failure) => terminal::skipped(name, &failure.to_string()),
            None => faults.tell(name, "one TCP stream by NAT64, up and down", transfers(forwarder))?,
        }
    }
    Ok(())
}

/// A 6to4 host, Sixway as its relay, and a host that has only IPv6.
fn a_site_reaches_a_native_host() -> Result<String> {
    let relay = Relay::start_with_site(RelayOptions::default())?;
    all_answered(&ping(
        relay.network.host("client")?,
        &SERVER.to_string(),
        20,
        56,
        Duration::from_millis(20),
    )?)
}

fn crosses(ready: &Ready) -> Result<String> {
    softwires::answers(ready)?;
    let client = ready.network.host("client")?;
    all_answered(&ping(client, ready.target, 20, 56, Duration::from_millis(20))?)
}

fn transfers(forwarder: Forwarder) -> Result<String> {
    let running = forwarder.start()?;
    let server = serve_bulk(&running.network, "server")?;
    let once = |direction| server.transfer("client", running.target, direction, Duration::from_secs(1));
    let (up, down) = (once(Direction::Up)?, once(Direction::Down)?);
    Ok(format!("{} up, {} down", bits(up.bits_per_second), bits(down.bits_per_second)))
}
