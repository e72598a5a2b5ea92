//! Flows are moved to the fast path while their packets are under way: none overtakes another, and none is lost.

use super::load::{Gateway, all_is_well, pause};
use crate::Interop;
use sixway_lab::failure::Result;
use sixway_lab::fast_path::{Hook, wait_until_moved};

pub const TESTS: &[Interop] = &[
    Interop::new("no_packet_overtakes_another_when_flows_move_to_the_fast_path_tc", &["sixway"], || {
        datagrams_stay_in_order(Hook::Tc)
    }),
    Interop::new("no_packet_overtakes_another_when_flows_move_to_the_fast_path_xdp", &["sixway"], || {
        datagrams_stay_in_order(Hook::Xdp)
    }),
];

/// From one fast flow to many slow ones, each time with new ports.
fn datagrams_stay_in_order(hook: Hook) -> Result<()> {
    let gateway = Gateway::start(hook)?;
    for (port, (flows, per_second)) in
        (1_000..).zip([(1, 200), (1, 5_000), (4, 10_000), (50, 10_000), (300, 10_000)])
    {
        let stream = gateway.stream("2001:db8:1::2", port, flows, per_second, 64)?;
        pause(500)?;
        wait_until_moved(&gateway.network)?;
        let last = gateway.engine_sends(|| pause(200))?;
        let account = stream.end()?;
        let told = |failure| sixway_lab::failure::Failure::Unexpected(format!("{flows} flows: {failure}"));
        all_is_well(&account, per_second as usize / 2).map_err(told)?;
        assert!(last < u64::from(per_second) / 20, "{last} packets of {flows} flows took the long way again");
    }
    Ok(())
}
