//! Two inside hosts of a NAT44 talk by an outside endpoint: a flow of two sessions, forwarded as one change of a packet.

use super::conversation::{Conversation, End, nothing_hangs};
use crate::Interop;
use crate::counters::no_checksum_is_wrong;
use crate::nat44;
use sixway_lab::failure::Result;
use sixway_lab::fast_path::{Hook, carried, sent_by_engine, shown};
use sixway_lab::gateway::run_on_fast_path;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "hosts_inside_of_nat44_talk_by_an_outside_endpoint_in_the_fast_path_tc",
        &["sixway"],
        || hairpin(Hook::Tc),
    ),
    Interop::new(
        "hosts_inside_of_nat44_talk_by_an_outside_endpoint_in_the_fast_path_xdp",
        &["sixway"],
        || hairpin(Hook::Xdp),
    ),
];

fn hairpin(hook: Hook) -> Result<()> {
    let network = nat44::network()?;
    run_on_fast_path(&network, hook, nat44::SIXWAY)?;
    let (client, neighbour) = (network.host("client")?, network.host("neighbour")?);
    // A static binding: 192.168.2.2:80 is 192.0.2.1:80.
    let conversation = Conversation::open(client, "192.0.2.1", neighbour, "192.168.2.2", 80)?;
    conversation.chat(20)?;
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    conversation.chat(5)?;
    let (before, engine) = (carried(&network)?, sent_by_engine(&network)?);
    conversation.exchange(2_000_000)?;
    let (by_fast_path, by_engine) = (carried(&network)? - before, sent_by_engine(&network)? - engine);
    // Each packet is one of both sessions.
    assert!(by_fast_path > 2 * 2_000 && by_engine < 50, "{by_engine} by the engine: {}", shown(&network)?);
    assert_ne!(
        conversation.server.peer_addr().map(|it| it.ip().to_string()).ok().as_deref(),
        Some("192.168.1.2")
    );
    conversation.end(End::Client)?;
    nothing_hangs(client)?;
    nothing_hangs(neighbour)?;
    no_checksum_is_wrong(&network)
}
