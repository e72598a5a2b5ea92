//! What every tunnel carries, whatever the mechanism: pings, TCP, large packets and fragments of both kinds, both ways; through steering and
//! through raw sockets, with GRO at the receiving device and without.
//!
//! ```text
//! peer (a Linux kernel) ─────── IPv4 ─────── gateway (Sixway) ─────── IPv6 ─────── server
//! up0 192.0.2.8                 out0 192.0.2.1      in0 2001:db8:2::1              up0 2001:db8:2::2
//! ```

use super::capture::{Capture, checksums_are_right};
use crate::counters::wrong_checksums;
use crate::datagrams::pattern;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::fast_path::{Hook, demanded};
use sixway_lab::gateway::run_sixway;
use sixway_lab::kernel_peer::KernelPeer;
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, fetch_from, ping, serve_page};
use sixway_lab::process::RunsCommands;
use sixway_lab::topology::Network;
use std::process::Command;
use std::time::Duration;

/// What these tests drive.
pub const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "ping", "nginx", "curl", "tcpdump", "ethtool"];

/// The server, natively in IPv6.
pub const SERVER: &str = "2001:db8:2::2";

/// The network above, with `more` hosts that are not linked yet.
pub fn network(more: &[&'static str]) -> Result<Network> {
    let network = Network::new(&[&["peer", "gateway", "server"], more].concat())?;
    network.link(("peer", "up0"), ("gateway", "out0"))?;
    network.link(("gateway", "in0"), ("server", "up0"))?;
    network.address("gateway", "out0", "192.0.2.1/24")?;
    network.address("gateway", "in0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("gateway")?;
    // Between two ends of a veth checksums are neither finished nor looked at unless one asks for it.
    ethtool(&network, "gateway", "in0", &["tx", "off"])?;
    ethtool(&network, "gateway", "out0", &["tx", "off"])?;
    ethtool(&network, "server", "up0", &["tx", "off", "rx", "off", "tso", "off", "gso", "off"])?;
    // And it makes GSO packets (GRO) only of what comes from an end that has none to give.
    ethtool(&network, "peer", "up0", &["tso", "off"])?;
    Ok(network)
}

/// Gives gateway and server addresses of a site's subnet in place of native ones: its first address, and its second.
pub fn number_site(network: &Network, subnet: &str) -> Result<()> {
    for (host, device, number) in [("gateway", "in0", 1), ("server", "up0", 2)] {
        network.host(host)?.ip(&format!("-6 address flush dev {device} scope global"))?;
        network.address(host, device, &format!("{subnet}:{number}/64"))?;
    }
    network.host("server")?.ip("-6 route flush default").ok();
    network.route("server", &format!("default via {subnet}:1"))
}

/// Changes a device's offloads.
pub fn ethtool(network: &Network, host: &str, device: &str, words: &[&str]) -> Result<()> {
    let mut ethtool = command("ethtool")?;
    ethtool.args(["-K", device]).args(words);
    network.host(host)?.run(ethtool, Duration::from_secs(5))?.succeeded().map(drop)
}

/// Switches GRO of a veth on or off. A virtual sender hands over one packet at a time, so the receiver must wait a little for more to join.
pub fn gro(network: &Network, host: &str, device: &str, on: bool) -> Result<()> {
    ethtool(network, host, device, &["gro", if on { "on" } else { "off" }])?;
    let wait = if on { 2_000_000 } else { 0 };
    let script = format!("echo {wait} >/sys/class/net/{device}/gro_flush_timeout");
    let mut write = command("ip")?;
    write.args(["netns", "exec", network.host(host)?.name(), "sh", "-c", &script]);
    network.host(host)?.run(write, Duration::from_secs(5))?.succeeded().map(drop)
}

/// Pings with this number of octets come back. The first ones may tell either host of the tunnel's MTU, or be lost while a device changes its
/// own, and do not count.
pub fn pings_come_back(from: &impl RunsCommands, to: &str, octets: u32) -> Result<()> {
    let pings = |count| ping(from, to, count, octets, Duration::from_millis(10));
    for _ in 0..4 {
        if pings(1)?.answered == 1 {
            break;
        }
    }
    match pings(3)?.answered {
        3 => Ok(()),
        few => Err(Failure::Unexpected(format!("{few} of 3 pings with {octets} octets came back from {to}"))),
    }
}

/// Two ends that speak through the tunnel: one on the IPv4 side, which is the guest or a host behind it, and the native server.
pub struct Ends<'a> {
    pub network: &'a Network,
    /// The guest at the tunnel's other end.
    pub peer: &'a KernelPeer<'a>,
    /// Where commands of the tunnel's side run.
    pub near: Near<'a>,
    /// The IPv6 address of the tunnel's side.
    pub address: &'a str,
    /// The address of the host "server".
    pub server: &'a str,
    /// The tunnel's device on the guest.
    pub device: &'a str,
}

/// Where the IPv6 host of the tunnel's side is.
#[derive(Clone, Copy)]
pub enum Near<'a> {
    /// The guest itself.
    Guest(&'a KernelPeer<'a>),
    /// A host behind the guest, by its role.
    Behind(&'static str),
}

impl Ends<'_> {
    /// Carries everything, in each way that Sixway can be reached; the configuration has the word STEERING where `tunnels.steering` is to stand.
    /// With a fast path the ways differ less: what it leaves is steered, and XDP is in front of GRO.
    pub fn everything(&self, configuration: &str) -> Result<()> {
        let (ways, gro_ways): (&[_], &[_]) = match demanded() {
            None => (&["on", "off"], &[false, true]),
            Some(Hook::Tc) => (&["on"], &[false, true]),
            Some(Hook::Xdp) => (&["on"], &[false]),
        };
        for steering in ways {
            let process = run_sixway(self.network, &configuration.replace("STEERING", steering))?;
            for with_gro in gro_ways.iter().copied() {
                let told = |failure: Failure| {
                    Failure::Unexpected(format!("steering {steering}, GRO {with_gro}: {failure}"))
                };
                gro(self.network, "gateway", "out0", with_gro)?;
                let joined = Capture::start(self.network, "gateway", "out0", "ip proto 41 and greater 2000")?;
                self.carried().map_err(told)?;
                if joined.end()?.contains("192.0.2.8 >") != with_gro {
                    return Err(told(Failure::Unexpected(
                        "GSO packets came without it, or none with it".to_owned(),
                    )));
                }
                self.fragments_are_carried().map_err(told)?;
            }
            self.network.with_process(process, |process| process.stop())?;
        }
        let wrong = wrong_checksums(self.peer)? + wrong_checksums(self.network.host("server")?)?;
        if wrong == 0 { Ok(()) } else { Err(Failure::Unexpected(format!("{wrong} checksums were wrong"))) }
    }

    /// Pings, TCP and large packets; tcpdump sees every packet between the tunnel's ends whole and right.
    pub fn carried(&self) -> Result<()> {
        let capture = Capture::start(self.network, "peer", "up0", "ip")?;
        for octets in [56, 1_400, 4_000] {
            self.pings(octets)?;
        }
        self.pages()?;
        let said = capture.end()?;
        if said.contains("protocol 41") && said.contains("unreachable") {
            return Err(Failure::Unexpected("the kernel said that nobody knows protocol 41".to_owned()));
        }
        checksums_are_right(&said, 100)
    }

    /// The IPv4 link carries but 1,000 octets, so the tunnel's packets are fragments, both ways.
    pub fn fragments_are_carried(&self) -> Result<()> {
        let narrow = |octets: u32, device_words: &str| {
            self.peer.sh(&format!(
                "ip link set eth0 mtu {octets}; ip tunnel change {} {device_words}",
                self.device
            ))?;
            self.network.host("gateway")?.ip(&format!("link set out0 mtu {octets}"))?;
            // The gateway looks at its host each second, and a packet that comes while it changes may be answered with an error.
            std::thread::sleep(Duration::from_millis(1_500));
            Ok::<_, Failure>(())
        };
        narrow(1_000, "ttl 0 nopmtudisc")?;
        let capture = Capture::start(self.network, "peer", "up0", "ip[6:2] & 0x3fff != 0")?;
        self.pings(1_400)?;
        self.pages()?;
        let said = capture.end()?;
        for from in ["192.0.2.8 >", "192.0.2.1 >"] {
            if !said.contains(from) {
                return Err(Failure::Unexpected(format!("no fragments from {from}")));
            }
        }
        narrow(1_500, "ttl 64 pmtudisc")
    }

    /// Pings come back, from each end.
    pub fn pings(&self, octets: u32) -> Result<()> {
        match self.near {
            Near::Guest(guest) => pings_come_back(guest, self.server, octets)?,
            Near::Behind(host) => pings_come_back(self.network.host(host)?, self.server, octets)?,
        }
        pings_come_back(self.network.host("server")?, self.address, octets)
    }

    /// A page is fetched by each end from the other, and is the page.
    pub fn pages(&self) -> Result<()> {
        let page: String = pattern(1_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect();
        self.serve(&page)?;
        let from_server = match self.near {
            Near::Guest(guest) => fetch_from(guest, self.network, &format!("http://[{}]/", self.server))?,
            Near::Behind(host) => fetch(self.network, host, &format!("http://[{}]/", self.server))?,
        };
        let from_tunnel = fetch(self.network, "server", &format!("http://[{}]:8080/", self.address))?;
        match from_server.body == page && from_tunnel.body == page {
            true => Ok(()),
            false => Err(Failure::Unexpected("another page arrived".to_owned())),
        }
    }

    /// Both ends serve the page, the first time it is requested.
    fn serve(&self, page: &str) -> Result<()> {
        if !self.network.folder().join("nginx-server").exists() {
            serve_page(self.network, "server", &format!("[{}]", self.server), page)?;
        }
        let folder = self.network.folder().join(format!("near-{}", self.address));
        if folder.exists() {
            return Ok(());
        }
        std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
        std::fs::write(folder.join("index.html"), page).asking(|| "writing the page".to_owned())?;
        let mut httpd = Command::new("busybox");
        httpd.args(["httpd", "-p", &format!("[{}]:8080", self.address), "-h"]).arg(folder);
        match self.near {
            Near::Guest(guest) => guest.run(httpd, Duration::from_secs(5))?.succeeded().map(drop),
            Near::Behind(host) => {
                httpd.arg("-f");
                self.network.start(host, httpd).map(drop)
            }
        }
    }
}
