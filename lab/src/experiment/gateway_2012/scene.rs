//! A site's boxes at work, with links of a rate.

use super::form::Form;
use super::topology::{Path, bare, links, network, through};
use crate::device::{Device, Place, Running};
use crate::experiment::contract::Line;
use crate::experiment::several::Several;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Background, Ends, Trip, UdpStream};
use crate::measure::Cores;
use crate::namespace::command;
use crate::topology::{Network, Shape};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The port of background traffic.
const BACKGROUND: u16 = 9_000;
/// How long the boxes may take until they forward packets.
const AT_WORK: Duration = Duration::from_secs(20);

/// A rate of links in Mbit/s that means no limit.
pub const UNSHAPED: f64 = 0.0;

/// Background traffic: Mbit/s of IP packets, and octets of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Mbit/s of IP packets before they enter a tunnel.
    pub megabits: f64,
    /// Octets of an IP packet.
    pub octets: usize,
}

/// A site's boxes at work.
pub struct Scene {
    // Dropped first: a device needs its network. The far site's router is not one of the boxes.
    boxes: Vec<Box<dyn Running>>,
    far: Vec<Box<dyn Running>>,
    network: Arc<Network>,
    form: Form,
    has_tunnel: bool,
    cores: Cores,
    /// Mbit/s of the links.
    rate: f64,
}

impl Scene {
    /// Builds the network and starts all programs.
    pub fn build(form: Form, device: &'static dyn Device, line: &Line<'_>) -> Result<Self> {
        let parts = form
            .parts(device)
            .ok_or_else(|| Failure::Unexpected(format!("{} has no part in {form:?}", device.card().name)))?;
        let has_tunnel = form.has_tunnel(device);
        let network = Arc::new(network(form, device.is_plain(), line.cores)?);
        let (mut boxes, mut far) = (Vec::new(), Vec::new());
        for part in parts {
            let is_far = part.host == "far";
            // The far router has its clients outside.
            let (inside, outside) = if is_far { ("out0", "in0") } else { ("in0", "out0") };
            let place = Place {
                network: Arc::clone(&network),
                host: part.host,
                inside: vec![inside],
                outside: vec![outside],
                core: if is_far { line.cores.tester } else { line.cores.device },
            };
            let running = part.device.start(&place, &part.task)?;
            if is_far { far.push(running) } else { boxes.push(running) }
        }
        let rate = Shape::FAST_ETHERNET.megabits;
        let scene = Self { boxes, far, network, form, has_tunnel, cores: line.cores, rate };
        scene.is_reached(&scene.path(true))?;
        scene.is_reached(&scene.path(false))?;
        scene.is_reached(&bare(true))?;
        Ok(scene)
    }

    /// The boxes of the site.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The CPUs.
    pub const fn cores(&self) -> Cores {
        self.cores
    }

    /// Whether IPv6 passes the boxes in a tunnel.
    pub const fn has_tunnel(&self) -> bool {
        self.has_tunnel
    }

    /// The way through the boxes.
    pub fn path(&self, is_six: bool) -> Path {
        through(self.form, is_six, self.has_tunnel)
    }

    /// Limits all links to a rate in Mbit/s, or lets them be.
    pub fn limit(&mut self, megabits: f64) -> Result<()> {
        if megabits == self.rate {
            return Ok(());
        }
        for (one, other) in links(self.form) {
            for (host, link) in [one, other] {
                if megabits > UNSHAPED {
                    self.network.shape(host, link, Shape { megabits, ..Shape::FAST_ETHERNET })?;
                } else {
                    self.network.unshape(host, link)?;
                }
            }
        }
        self.rate = megabits;
        Ok(())
    }

    /// The site's boxes, to be measured as one.
    pub fn boxes(&self) -> Several<'_> {
        Several(&self.boxes)
    }

    /// Command lines and configurations.
    pub fn commands(&self) -> Vec<String> {
        self.boxes.iter().chain(&self.far).flat_map(|running| running.commands()).collect()
    }

    /// The two hosts of loads.
    pub fn ends(&self) -> Result<Ends<'_>> {
        let core = self.cores.tester;
        Ok(Ends { client: self.network.host("client")?, server: self.network.host("server")?, core })
    }

    /// Begins background traffic from client to server over IPv6, if any is offered.
    pub fn background(&self, path: &Path, offered: Offered) -> Result<Option<Background>> {
        if offered.megabits <= 0.0 {
            return Ok(None);
        }
        let stream = UdpStream {
            ends: self.ends()?,
            source: SocketAddr::new(path.client, 0),
            target: SocketAddr::new(path.server, BACKGROUND),
            listens: SocketAddr::new(any(path.server), BACKGROUND),
            flows: 1,
            payload: 16,
            trip: Trip::OneWay,
        };
        Background::start(&stream, offered.octets, offered.megabits * 1e6).map(Some)
    }

    fn is_reached(&self, path: &Path) -> Result<()> {
        let client = self.network.host("client")?;
        let (from, to) = (path.client.to_string(), path.server.to_string());
        interrupt::wait_until(AT_WORK, &format!("an answer from {to}"), || {
            let mut ping = command("ping")?;
            ping.args(["-n", "-c", "1", "-W", "0.3", "-I", &from, &to]);
            Ok(client.run(ping, Duration::from_secs(5))?.status.success())
        })
    }
}

/// The unspecified address of the same family.
pub const fn any(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}
