//! A table without room for all flows: those that find none stay with the engine, and no flow loses anything.

use super::load::{Gateway, all_is_well, pause};
use crate::Interop;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::fast_path::{Hook, carried};
use sixway_lab::forwarder::NAT64;
use sixway_lab::topology::client_gateway_server;

pub const TESTS: &[Interop] = &[
    Interop::new("flows_that_find_no_room_stay_with_the_engine_tc", &["sixway"], || no_room(Hook::Tc)),
    Interop::new("flows_that_find_no_room_stay_with_the_engine_xdp", &["sixway"], || no_room(Hook::Xdp)),
];

/// Three flows for each one that there is room for.
fn no_room(hook: Hook) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).asking(|| "RLIMIT_NOFILE".to_owned())?;
    if soft < 8_192 {
        setrlimit(Resource::RLIMIT_NOFILE, hard.min(8_192), hard).asking(|| "RLIMIT_NOFILE".to_owned())?;
    }
    let gateway = Gateway::start_with_room(client_gateway_server()?, hook, NAT64, 1_024)?;
    let stream = gateway.stream("2001:db8:1::2", 53, 4_000, 8_000, 64)?;
    pause(3_000)?;
    let before = carried(&gateway.network)?;
    let by_engine = gateway.engine_sends(|| pause(1_000))?;
    let by_fast_path = carried(&gateway.network)? - before;
    all_is_well(&stream.end()?, 20_000)?;
    assert!(by_engine > 1_000 && by_fast_path > 1_000, "{by_engine} by the engine, {by_fast_path} not");
    Ok(())
}
