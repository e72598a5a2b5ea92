//! What programs at a hook of the kernel do for Sixway is in its CPU time, on its core.

use super::scenes::{Scene, scene_of};
use crate::Interop;
use sixway_lab::device::{CpuReading, CpuSource, Place, Running, TaskKind, find};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::carried;
use sixway_lab::load::{Ends, Gaps, Load as _, Pace, Trip, UdpStream, Until};
use sixway_lab::measure::Cores;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("the_work_of_tc_is_in_the_cpu_time_of_its_device", &["sixway", "taskset"], at_tc),
    Interop::new(
        "the_work_of_xdp_is_in_the_cpu_time_of_its_device_also_after_a_restart",
        &["sixway", "ethtool", "taskset"],
        at_xdp,
    ),
];

/// Datagrams, each of which comes back; enough of them for several ticks of 10 ms.
const COUNT: u64 = 5_000;
const TICKED: u64 = 20_000;
/// A packet of the fast path costs more than this, though its CPU may be at another frequency.
const LEAST: Duration = Duration::from_nanos(100);

fn at_tc() -> Result<()> {
    let (scene, running) = start("sixway-tc")?;
    let spent = forwarded(&scene, running.as_ref(), TICKED)?;
    assert_eq!(spent.source, CpuSource::ProcessAndInterrupts);
    let each = spent.received / (2 * TICKED as u32);
    assert!(each > LEAST, "{each:?} for each packet");
    Ok(())
}

fn at_xdp() -> Result<()> {
    let (scene, mut running) = start("sixway-xdp")?;
    for when in ["at its start", "after a restart"] {
        if when != "at its start" {
            running.restart()?;
        }
        let spent = forwarded(&scene, running.as_ref(), COUNT)?;
        assert_eq!(spent.source, CpuSource::Process, "{when}");
        let each = spent.received / (2 * COUNT as u32);
        assert!(each > LEAST && each < Duration::from_micros(100), "{when}: {each:?} for each packet");
    }
    Ok(())
}

/// A NAT64 on a core of its own, and all links as experiments have them.
fn start(device: &str) -> Result<(Scene, Box<dyn Running>)> {
    let cores = Cores::of_this_machine(true);
    let (Some(own), Some(tester)) = (cores.device, cores.tester) else {
        return Err(Failure::Unexpected("there are not two CPUs".to_owned()));
    };
    let scene = scene_of(TaskKind::Nat64)?;
    let scene = Scene { place: Place { core: Some(own), ..scene.place.clone() }, ..scene };
    for (host, link, cpu) in [
        ("gateway", "in0", own),
        ("gateway", "out0", own),
        ("client", "up0", tester),
        ("server", "up0", tester),
    ] {
        scene.network.receive_on(host, link, cpu)?;
    }
    let device = find(device).ok_or_else(|| Failure::Unexpected(format!("there is no {device}")))?;
    let running = device.start(&scene.place, &scene.task)?;
    Ok((scene, running))
}

/// What it costs to forward the datagrams there and back by the fast path.
fn forwarded(scene: &Scene, running: &dyn Running, count: u64) -> Result<CpuReading> {
    let target = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0xcb00, 0x7102));
    let stream = UdpStream {
        ends: Ends {
            client: scene.network.host("client")?,
            server: scene.network.host("server")?,
            core: Cores::of_this_machine(true).tester,
        },
        source: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
        target: SocketAddr::new(target, 7_000),
        listens: SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 7_000),
        flows: 1,
        payload: 16,
        trip: Trip::Round,
    };
    let by_programs = carried(&scene.network)?;
    let before = running.cpu()?;
    let outcome = stream.run(Pace::Open { per_second: 10_000.0, gaps: Gaps::Even }, Until::Count(count))?;
    let spent = running.cpu()?.since(&before);
    assert_eq!(outcome.lost, 0);
    let by_programs = carried(&scene.network)?.saturating_sub(by_programs);
    assert!(by_programs > 2 * count * 9 / 10, "{by_programs} of {} packets", 2 * count);
    Ok(spent)
}
