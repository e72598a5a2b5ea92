//! Real Linux kernels as hosts of a network, and what they understand of each other without Sixway: the ground of every test with them.

use crate::{Interop, SIT_6RD};
use sixway_lab::failure::Result;
use sixway_lab::kernel_peer::{Features, KernelPeer, with_six_rd};
use sixway_lab::probe::ping;
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_linux_guest_tells_how_its_commands_end_and_goes_with_the_network",
        &["linux.uml", "busybox"],
        a_guest_comes_and_goes,
    ),
    Interop::new(
        "two_linux_kernels_talk_over_6to4_and_a_configured_tunnel",
        &["linux.uml", "busybox", "ping"],
        two_kernels_talk,
    ),
    Interop::new(
        "two_linux_kernels_talk_over_6rd",
        &["linux.uml", "busybox", "ping", SIT_6RD],
        two_kernels_talk_over_six_rd,
    ),
];

fn a_guest_comes_and_goes() -> Result<()> {
    let network = Network::new(&["peer", "other"])?;
    network.link(("peer", "up0"), ("other", "up0"))?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    let said = peer.run_script("uname -s; echo two >&2; exit 3", Duration::from_secs(5))?;
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("Linux\n", "two\n"));
    assert_eq!(said.status.code(), Some(3));
    assert!(peer.sh("ip -brief link")?.contains("eth0"));
    assert!(peer.sh("no-such-program").is_err());
    let process = peer.process();
    drop(network);
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
    Ok(())
}

/// Two guests, joined by one link.
fn two_guests() -> Result<Network> {
    let network = Network::new(&["one", "two"])?;
    network.link(("one", "up0"), ("two", "up0"))?;
    Ok(network)
}

fn two_kernels_talk() -> Result<()> {
    let network = two_guests()?;
    let one = KernelPeer::start(&network, "one", &["up0"])?;
    let two = KernelPeer::start(&network, "two", &["up0"])?;
    for (peer, own, other, six_to_four, tunnel) in [
        (&one, "192.0.2.1", "192.0.2.2", "2002:c000:201::1/16", "2001:db8::1/64"),
        (&two, "192.0.2.2", "192.0.2.1", "2002:c000:202::1/16", "2001:db8::2/64"),
    ] {
        peer.sh(&format!(
            "set -e
             ip address add {own}/24 dev eth0
             ip tunnel add six mode sit remote any local {own} ttl 64
             ip address add {six_to_four} dev six
             ip link set six up
             ip tunnel add fixed mode sit remote {other} local {own} ttl 64
             ip address add {tunnel} dev fixed
             ip link set fixed up"
        ))?;
    }
    for to in ["192.0.2.2", "2002:c000:202::1", "2001:db8::2"] {
        for octets in [56, 1_400, 4_000] {
            let trips = ping(&one, to, 3, octets, Duration::from_millis(10))?;
            assert_eq!(trips.answered, 3, "pings of {octets} octets to {to}");
        }
    }
    Ok(())
}

fn two_kernels_talk_over_six_rd() -> Result<()> {
    let network = two_guests()?;
    let features = Features { instead: with_six_rd(), ..Features::default() };
    let one = KernelPeer::start_with(&network, "one", &["up0"], &features)?;
    let two = KernelPeer::start_with(&network, "two", &["up0"], &features)?;
    for (peer, own, delegated) in
        [(&one, "10.1.2.1", "2001:db8:102:100::1/32"), (&two, "10.1.2.2", "2001:db8:102:200::1/32")]
    {
        peer.sh(&format!(
            "set -e
             ip address add {own}/8 dev eth0
             ip tunnel add rd mode sit local {own} ttl 64
             ip tunnel 6rd dev rd 6rd-prefix 2001:db8::/32 6rd-relay_prefix 10.0.0.0/8
             ip address add {delegated} dev rd
             ip link set rd up"
        ))?;
    }
    let trips = ping(&one, "2001:db8:102:200::1", 3, 56, Duration::from_millis(10))?;
    assert_eq!(trips.answered, 3);
    Ok(())
}
