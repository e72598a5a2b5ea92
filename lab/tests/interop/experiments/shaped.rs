//! Links of limited rate.

use crate::Interop;
use sixway_lab::failure::Result;
use sixway_lab::topology::{Network, Shape};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[Interop::new(
    "a_shaped_link_passes_its_rate_and_not_more",
    &["tc", "ethtool"],
    a_shaped_link_passes_its_rate,
)];

/// Octets of a datagram, and of its frame.
const DATAGRAM: usize = 1_472;
const FRAME: f64 = 1_514.0;

/// Megabits a second that arrive while a host sends as fast as it can.
fn rate(network: &Network) -> Result<f64> {
    let flood = |time: Duration| {
        let socket = UdpSocket::bind("192.0.2.1:0")?;
        socket.connect("192.0.2.2:9")?;
        let (start, datagram) = (Instant::now(), [0; DATAGRAM]);
        while start.elapsed() < time {
            // A full queue and an unreachable port are not ours to judge.
            socket.send(&datagram).ok();
        }
        Ok::<_, std::io::Error>(())
    };
    let (sender, receiver) = (network.host("sender")?, network.host("receiver")?);
    let run = |time| sender.enter(|| flood(time)).map(|done| done.expect("a socket"));
    run(Duration::from_millis(200))?;
    std::thread::sleep(Duration::from_millis(100));
    let (before, start) = (receiver.received_packets("up0")?, Instant::now());
    run(Duration::from_millis(800))?;
    let (packets, time) = (receiver.received_packets("up0")? - before, start.elapsed());
    Ok(packets as f64 * FRAME * 8.0 / time.as_secs_f64() / 1e6)
}

fn a_shaped_link_passes_its_rate() -> Result<()> {
    let network = Network::new(&["sender", "receiver"])?;
    network.link(("sender", "up0"), ("receiver", "up0"))?;
    network.address("sender", "up0", "192.0.2.1/24")?;
    network.address("receiver", "up0", "192.0.2.2/24")?;
    let free = rate(&network)?;
    network.shape_link(("sender", "up0"), ("receiver", "up0"), Shape::FAST_ETHERNET)?;
    // What a busy machine delays is lost to a bucket of one frame: not each time is it idle enough.
    let mut shaped = 0.0_f64;
    for _ in 0..8 {
        shaped = shaped.max(rate(&network)?);
        if shaped > 70.0 {
            break;
        }
    }
    network.unshape("sender", "up0")?;
    let again = rate(&network)?;
    assert!(free > 150.0 && again > 150.0, "{free:.0} and {again:.0} Mbit/s without a limit");
    assert!((70.0..102.0).contains(&shaped), "{shaped:.1} Mbit/s of 100");
    Ok(())
}
