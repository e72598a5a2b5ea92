//! The heavy subscriber: frames that the kernel makes, of which there can be ten times as many as most devices forward, or packets of sockets
//! where the kernel makes no frames.

use super::topology::Scene;
use crate::device::{Device, Realm, Running};
use crate::experiment::live::Live;
use crate::failure::Result;
use crate::interrupt;
use crate::load::{Ends, FrameEnds, Gaps, Load, Pace, Trip, UdpStream, Until};
use crate::programs;
use crate::results::Machine;
use std::net::SocketAddr;
use std::time::Duration;

/// Flows of the heavy subscriber.
const FLOWS: u16 = 16;
/// The server's port, and the subscriber's first one: a flow of the next row is the same one.
const PORTS: [u16; 2] = [7_000, 17_000];
/// How long the tester's own limit is measured.
const CALIBRATION: Duration = Duration::from_millis(200);

/// How the heavy subscriber sends.
pub struct Heavy {
    live: Option<Live>,
}

impl Heavy {
    /// For a device at work. Guests are reached by other links than their host's.
    pub fn prepare(scene: &Scene, device: &dyn Device) -> Result<Self> {
        let can =
            Machine::here().bpf && programs::find("clang").is_some() && programs::find("ethtool").is_some();
        if !can || device.card().realm != Realm::Here {
            return Ok(Self { live: None });
        }
        scene.expect_frames()?;
        let is_process = scene.running.cpu()?.is_process();
        let (ends, links) = ((("heavy", "up0"), ("server", "up0")), ("device", ["in0", "out0"]));
        Ok(Self { live: Some(Live::new(&scene.network, scene.cores, ends, links, is_process)?) })
    }

    /// Does something with the device, whose CPU time is also that of what receives for it.
    pub fn watched<T>(&self, running: &dyn Running, work: impl FnOnce(&dyn Running) -> T) -> T {
        match &self.live {
            Some(live) => work(&live.counting(running)),
            None => work(running),
        }
    }

    /// Does something with a load that is ready to be sent.
    pub fn with<T>(&self, scene: &Scene, work: impl FnOnce(&(dyn Load + Sync)) -> Result<T>) -> Result<T> {
        let Some(live) = &self.live else { return work(&packets(scene)?) };
        live.send_only(&Self::ends(scene, live), |stream| work(stream))
    }

    /// The most frames that the tester makes in a second; packets of sockets have no such limit that is known before.
    pub fn most(&self, scene: &Scene) -> Result<f64> {
        let Some(live) = &self.live else { return Ok(f64::INFINITY) };
        live.send_only(&Self::ends(scene, live), |stream| stream.ceiling(CALIBRATION))
    }

    fn ends(scene: &Scene, live: &Live) -> FrameEnds {
        let [source, destination] = scene.frames;
        FrameEnds { to: live.door(), source, destination, port: PORTS[0], flows: FLOWS.into(), octets: 0 }
    }

    /// Neighbours are found, and each flow is established.
    pub fn warm_up(&self, scene: &Scene) -> Result<()> {
        let few = Pace::Open { per_second: 1_000.0, gaps: Gaps::Even };
        let count = u64::from(2 * FLOWS);
        self.with(scene, |load| {
            interrupt::wait_until(Duration::from_secs(10), "a packet on every flow", || {
                let before = scene.forwarded()?;
                load.run(few, Until::Count(count))?;
                // The last ones are under way.
                std::thread::sleep(Duration::from_millis(20));
                Ok(scene.forwarded()? >= before + count)
            })
        })
    }
}

fn packets(scene: &Scene) -> Result<UdpStream<'_>> {
    let Scene { network, cores, target, listens, any, .. } = scene;
    let ends = Ends { client: network.host("heavy")?, server: network.host("server")?, core: cores.tester };
    Ok(UdpStream {
        ends,
        source: SocketAddr::new(*any, PORTS[1]),
        target: SocketAddr::new(*target, PORTS[0]),
        listens: SocketAddr::new(*listens, PORTS[0]),
        flows: FLOWS,
        payload: 16,
        trip: Trip::OneWay,
    })
}
