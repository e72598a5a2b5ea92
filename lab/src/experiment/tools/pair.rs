//! Each tool and the lab's own load of the same kind, both at one pace.

use crate::failure::{Failure, Result};
use crate::load::{
    Calls, EchoSweep, Ends, From, Gaps, HttpFetch, HttpServer, Load as _, Pace, Trip, UdpStream, Until,
};
use crate::measure::{Capture, exchanges};
use crate::probe::{
    DitgLoad, SIPP_PORT, Tool, VPN_FAR, ditg, fetch, mgen, openvpn, ping, serve_page, sipp, udp_by_iperf,
    wget,
};
use crate::topology::Network;
use sixway_wire::{ICMP_HEADER, IPV6_HEADER};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The hosts' addresses through the device.
pub const CLIENT6: &str = "2001:db8:1::2";
/// The server's.
pub const SERVER6: &str = "2001:db8:2::2";
/// The client's address of IPv4.
pub const CLIENT4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The server's.
pub const SERVER4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Octets of data of a packet.
const DATA: usize = 512;
/// Octets of a page.
const PAGE: usize = 12_800;

/// What a tool or a load has measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Mean of its times in milliseconds; of rates, none.
    pub milliseconds: Option<f64>,
    /// Packets, calls or pages that were answered or arrived.
    pub count: u64,
    /// Those that were sent.
    pub sent: u64,
}

/// How both are paced.
#[derive(Clone, Copy, Debug)]
pub struct Paced {
    /// In a second.
    pub per_second: f64,
    /// The number.
    pub count: u32,
}

impl Paced {
    fn time(self) -> Duration {
        Duration::from_secs_f64(f64::from(self.count) / self.per_second)
    }

    fn open(self) -> (Pace, Until) {
        let pace = Pace::Open { per_second: self.per_second, gaps: Gaps::Even };
        (pace, Until::Count(self.count.into()))
    }
}

fn address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| Failure::Unexpected(format!("{text} is not an address")))
}

fn mean(times: &[f64]) -> Option<f64> {
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

/// The tool's.
pub fn theirs(tool: Tool, network: &Network, paced: Paced) -> Result<Seen> {
    let (client, server) = (address(CLIENT6)?, address(SERVER6)?);
    let time = paced.time();
    match tool {
        Tool::Ping => {
            let gap = Duration::from_secs_f64(1.0 / paced.per_second);
            let trips = ping(network.host("client")?, SERVER6, paced.count, DATA as u32, gap)?;
            let milliseconds = mean(&trips.milliseconds);
            Ok(Seen { milliseconds, count: trips.answered.into(), sent: trips.sent.into() })
        }
        Tool::Ditg => {
            let load = DitgLoad { is_tcp: false, payload: DATA, per_second: paced.per_second, time };
            let report = ditg(network, ("client", "server"), server, load)?;
            let sent = report.packets + report.dropped;
            Ok(Seen { milliseconds: Some(report.mean), count: report.packets, sent })
        }
        Tool::Mgen => {
            let report = mgen(network, ("client", "server"), SERVER4, (DATA, paced.per_second, time))?;
            let milliseconds = mean(&report.milliseconds);
            Ok(Seen { milliseconds, count: report.arrived, sent: report.sent })
        }
        Tool::Sipp => {
            let capture = Capture::start(network, "client", "up0", "udp")?;
            let report =
                sipp(network, ("client", client), ("server", server), (paced.count, paced.per_second))?;
            let milliseconds = answers(capture, b"INVITE ", b"SIP/2.0 200")?;
            Ok(Seen { milliseconds, count: report.made, sent: report.made + report.failed })
        }
        Tool::Curl | Tool::Wget => {
            let capture = Capture::start(network, "client", "up0", "tcp port 80")?;
            serve_page(network, "server", &format!("[{SERVER6}]"), &"x".repeat(PAGE))?;
            let url = format!("http://[{SERVER6}]/");
            let octets = match tool {
                Tool::Wget => wget(network, "client", &url, paced.count as usize)?,
                _ => {
                    (0..paced.count).try_fold(0, |sum, _| Ok(sum + fetch(network, "client", &url)?.octets))?
                }
            };
            let milliseconds = answers(capture, b"GET ", b"HTTP/1.1 200")?;
            Ok(Seen { milliseconds, count: octets / PAGE as u64, sent: paced.count.into() })
        }
        Tool::Iperf => {
            let (sent, arrived) =
                udp_by_iperf(network, ("client", "server"), SERVER6, (DATA, paced.per_second, time))?;
            Ok(Seen { milliseconds: None, count: arrived, sent })
        }
        Tool::Openvpn => {
            openvpn(network, "client", ("server", server))?;
            let gap = Duration::from_secs_f64(1.0 / paced.per_second);
            let trips = ping(network.host("client")?, VPN_FAR, paced.count, DATA as u32, gap)?;
            let milliseconds = mean(&trips.milliseconds);
            Ok(Seen { milliseconds, count: trips.answered.into(), sent: trips.sent.into() })
        }
    }
}

/// The lab's own load of the same kind.
pub fn ours(tool: Tool, network: &Network, core: Option<usize>, paced: Paced) -> Result<Seen> {
    let ends = Ends { client: network.host("client")?, server: network.host("server")?, core };
    let (client, server) = (address(CLIENT6)?, address(SERVER6)?);
    let (pace, until) = paced.open();
    let datagrams = |target: SocketAddr, trip| UdpStream {
        ends,
        source: SocketAddr::new(if target.is_ipv4() { CLIENT4.into() } else { client }, 0),
        target,
        listens: target,
        flows: 1,
        payload: DATA,
        trip,
    };
    let outcome = match tool {
        Tool::Ping => {
            let octets = IPV6_HEADER + ICMP_HEADER + DATA;
            let sweep = EchoSweep { from: From::Native, flows: vec![vec![server]], each: 1_000, octets };
            ends.client.enter(|| sweep.run(pace, until))??
        }
        // OpenVPN carries the tunnel's packets: the difference is its cost.
        Tool::Ditg | Tool::Openvpn => {
            datagrams(SocketAddr::new(server, 9_501), Trip::Round).run(pace, until)?
        }
        Tool::Mgen => datagrams(SocketAddr::new(SERVER4.into(), 5_002), Trip::OneWay).run(pace, until)?,
        Tool::Iperf => datagrams(SocketAddr::new(server, 5_202), Trip::OneWay).run(pace, until)?,
        Tool::Sipp => {
            let capture = Capture::start(network, "client", "up0", "udp")?;
            let to = SocketAddr::new(server, SIPP_PORT + 10);
            let calls = Calls {
                ends,
                caller: client,
                target: to,
                callee: to,
                calls: paced.count,
                talk: Duration::ZERO,
            };
            let report = calls.run()?;
            let milliseconds = answers(capture, b"INVITE ", b"SIP/2.0 200")?;
            return Ok(Seen { milliseconds, count: report.made, sent: report.made + report.failed });
        }
        Tool::Curl | Tool::Wget => {
            let to = SocketAddr::new(server, 8_080);
            let _server = HttpServer::start(ends.server, to, 2, core)?;
            let targets = [to];
            let client = ends.client;
            let keep_alive = false;
            let fetch =
                HttpFetch { client, core, targets: &targets, objects: &[PAGE], keep_alive, workers: 1 };
            let capture = Capture::start(network, "client", "up0", "tcp port 8080")?;
            let outcome = fetch.run(pace, until)?;
            let milliseconds = answers(capture, b"GET ", b"HTTP/1.1 200")?;
            return Ok(Seen { milliseconds, count: outcome.answered, sent: outcome.sent });
        }
    };
    let milliseconds = (tool != Tool::Iperf).then(|| outcome.service.mean() / 1e6);
    Ok(Seen { milliseconds, count: outcome.answered, sent: outcome.sent })
}

/// The mean time from request to answer in a capture, in milliseconds.
fn answers(capture: Capture<'_>, request: &[u8], answer: &[u8]) -> Result<Option<f64>> {
    let times: Vec<f64> =
        exchanges(&capture.end()?, request, answer).iter().map(|time| time.as_secs_f64() * 1e3).collect();
    Ok(mean(&times))
}
