//! The tunnel with its sender, its receiver, or both on other machines (the paper's were computers with Windows), by their own programs.

use super::smoothing::{SMOOTHED, smoothed};
use super::stage::packets;
use crate::device::remote::{Host, HostRequest, RemoteHost};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, NATIVE4, NATIVE6, Terrain, Way};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::Outcome;
use crate::probe::serve_bulk;
use crate::results::{Cell, Unit};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Series with a sender or receiver on another machine, and what is measured in each.
pub const SERIES: [&str; 3] = ["hosts-rtt", "hosts-tcp", "hosts-udp"];

/// The link of each end.
const LINK: &str = "up0";
/// Routes of an end on another machine, which has its own default route.
const ROUTES: [(&str, &[&str]); 2] = [
    ("client", &["10.2.0.0/24,10.1.0.1", "2001:db8:c::/64,2001:db8:a::1", "2002::/16,2002:c000:201:1::1"]),
    ("server", &["10.1.0.0/24,10.2.0.1", "2001:db8:a::/64,2001:db8:c::1", "2002::/16,2002:c633:6401:1::1"]),
];
/// A stream's time at scale 1, in seconds.
const SECONDS: f64 = 10.0;
/// Round trips at most: `ping` sends one in two milliseconds.
const MOST: u16 = 2_000;
/// Between two clients iperf3 closes its socket for a moment, and resets who comes then.
const BETWEEN: Duration = Duration::from_secs(5);

/// How long a stream is; iperf3 takes whole seconds.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((SECONDS * scale).ceil().clamp(1.0, SECONDS))
}

/// The tunnel at work between these hosts.
pub struct BetweenHosts {
    // Dropped first: a host's cable comes back before its network ends.
    hosts: BTreeMap<String, RemoteHost>,
    at_work: AtWork,
    scale: f64,
}

impl BetweenHosts {
    /// Builds the network, starts the routers, and puts the other machines in the place of its ends.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let requests = line.asked.remote_hosts.iter().map(|text| HostRequest::parse(text));
        let requests = requests.collect::<Result<Vec<_>>>()?;
        let at_work = AtWork::build(Way::SixToFour, Terrain::DRAWN, line)?;
        let mut hosts = BTreeMap::new();
        for request in requests {
            let routes =
                ROUTES.iter().find(|(end, _)| *end == request.end).map_or(&[][..], |(_, routes)| routes);
            let end = (request.end.as_str(), LINK);
            let host = RemoteHost::start(&request, at_work.network(), end, routes)?;
            hosts.insert(request.end, host);
        }
        // The routers know the hosts of the network, whose places these have taken.
        for router in ["a", "c"] {
            at_work.network().host(router)?.ip("neigh flush all")?;
        }
        Ok(Self { hosts, at_work, scale: line.asked.scale })
    }

    /// The sender.
    fn client(&self) -> Host<'_> {
        self.hosts.get("client").map_or(Host::Here(self.at_work.network(), "client"), Host::There)
    }

    fn ping(&self, target: IpAddr, octets: usize, count: u16) -> Result<Pings> {
        let given =
            [("TARGET", target.to_string()), ("OCTETS", octets.to_string()), ("COUNT", count.to_string())];
        Pings::read(&self.client().run("round_trips", &given)?)
    }

    /// Waits for answers: the first requests find neighbours and the path's MTU.
    fn is_reached(&self, target: IpAddr, octets: usize) -> Result<()> {
        repeated(Duration::from_secs(20), &format!("answers from {target}"), || {
            let pings = self.ping(target, octets, 2)?;
            match pings.times.len() {
                2 => Ok(()),
                answers => Err(Failure::Unexpected(format!("{answers} of 2 requests were answered"))),
            }
        })
    }

    /// Bits of payload that arrived in a second.
    fn send(&self, target: IpAddr, transport: &str, octets: usize) -> Result<f64> {
        let given = [
            ("TARGET", target.to_string()),
            ("TRANSPORT", transport.to_owned()),
            ("OCTETS", octets.to_string()),
            ("DURATION", time(self.scale).as_secs().to_string()),
        ];
        repeated(BETWEEN, &format!("a stream to {target}"), || {
            number(&self.client().run("send", &given)?, "bits")
        })
    }

    /// Runs a load; the routers' cost is that of the tunnel.
    fn costed<T>(&self, is_tunnel: bool, sheet: &mut Sheet, load: impl FnOnce() -> Result<T>) -> Result<T> {
        if !is_tunnel {
            return load();
        }
        let mut done = None;
        self.at_work.measured(sheet, || {
            done = Some(load()?);
            Ok(Outcome::default())
        })?;
        done.ok_or_else(|| Failure::Unexpected("a load did not run".to_owned()))
    }

    fn round_trips(&self, ways: [(&str, IpAddr); 3], octets: usize, sheet: &mut Sheet) -> Result<()> {
        let count = packets(self.scale).min(MOST);
        let mut all = Vec::new();
        for (at, (_, target)) in ways.into_iter().enumerate() {
            all.push(self.costed(at == 0, sheet, || self.ping(target, octets, count))?);
        }
        for ((name, _), pings) in ways.into_iter().zip(&all) {
            sheet.value(name, pings.mean(), Unit::Milliseconds);
            sheet.keep(&format!("{name}.txt"), &pings.text())?;
        }
        let [tunnel, six, ..] = &all[..] else { return Ok(()) };
        sheet.value("overhead", tunnel.mean() - six.mean(), Unit::Milliseconds);
        sheet.value("loss", tunnel.loss(), Unit::Lost);
        for (of, a) in SMOOTHED {
            sheet.value(of, smoothed(&tunnel.times, a).unwrap_or(f64::NAN), Unit::Milliseconds);
        }
        Ok(())
    }

    fn rates(
        &self,
        ways: [(&str, IpAddr); 3],
        (transport, octets): (&str, usize),
        sheet: &mut Sheet,
    ) -> Result<()> {
        // A server on another machine has started with it.
        let network = self.at_work.network();
        let _server = match self.hosts.contains_key("server") {
            true => None,
            false => Some(serve_bulk(network, "server")?),
        };
        for (at, (name, target)) in ways.into_iter().enumerate() {
            let bits = self.costed(at == 0, sheet, || self.send(target, transport, octets))?;
            sheet.value(name, bits, Unit::BitsPerSecond);
        }
        Ok(())
    }
}

impl Stage for BetweenHosts {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let octets = cell.at("octets") as usize;
        let ways = [
            ("tunnel", self.at_work.way().target().address),
            ("ipv6", NATIVE6.address),
            ("ipv4", NATIVE4.address),
        ];
        ways.iter().try_for_each(|(_, target)| self.is_reached(*target, octets))?;
        match cell.series.as_str() {
            "hosts-rtt" => self.round_trips(ways, octets, sheet)?,
            "hosts-tcp" => self.rates(ways, ("tcp", octets), sheet)?,
            _ => self.rates(ways, ("udp", octets), sheet)?,
        }
        for (end, host) in &self.hosts {
            sheet.command(host.text());
            if let Some(offset) = host.clock()? {
                sheet.clock(Some(end), &offset);
            }
        }
        self.at_work.describe(sheet)
    }
}

/// Tries until it succeeds; the failure names the last one if it does not.
fn repeated<T>(limit: Duration, what: &str, mut once: impl FnMut() -> Result<T>) -> Result<T> {
    let (mut done, mut last) = (None, String::new());
    let ended = interrupt::wait_until(limit, what, || {
        match once() {
            Ok(value) => done = Some(value),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => last = failure.to_string(),
        }
        Ok(done.is_some())
    });
    match (done, ended) {
        (Some(value), _) => Ok(value),
        (None, Err(Failure::TimedOut(what))) => Err(Failure::TimedOut(format!("{what}: {last}"))),
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => Err(Failure::Unexpected(last)),
    }
}

/// What a recipe says of pings.
struct Pings {
    sent: f64,
    /// In milliseconds, in their order.
    times: Vec<f64>,
}

impl Pings {
    fn read(said: &BTreeMap<String, String>) -> Result<Self> {
        let times = said.get("times").map(String::as_str).unwrap_or_default();
        let times = times.split_whitespace().map(|word| {
            word.parse()
                .map_err(|_| Failure::Unexpected(format!("the recipe's time {word:?} is not a number")))
        });
        Ok(Self { sent: number(said, "sent")?, times: times.collect::<Result<_>>()? })
    }

    fn mean(&self) -> f64 {
        self.times.iter().sum::<f64>() / self.times.len() as f64
    }

    /// Share without an answer, 0 to 1.
    fn loss(&self) -> f64 {
        1.0 - self.times.len() as f64 / self.sent.max(1.0)
    }

    /// For the raw data: a time on each line.
    fn text(&self) -> String {
        self.times.iter().map(|time| format!("{time}\n")).collect()
    }
}

fn number(said: &BTreeMap<String, String>, key: &str) -> Result<f64> {
    let value = said.get(key).and_then(|text| text.parse().ok());
    value.ok_or_else(|| Failure::Unexpected(format!("the recipe of a host does not say {key}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recipe_says_of_pings_is_read() {
        let said = |times: &str| {
            BTreeMap::from([("sent".to_owned(), "4".to_owned()), ("times".to_owned(), times.to_owned())])
        };
        let pings = Pings::read(&said("0.5 1.5 1")).unwrap();
        assert_eq!((pings.mean(), pings.loss()), (1.0, 0.25));
        assert_eq!(pings.text(), "0.5\n1.5\n1\n");
        assert!(Pings::read(&said("0.5 ms")).is_err());
        assert!(Pings::read(&BTreeMap::new()).is_err());
    }

    #[test]
    fn a_stream_has_whole_seconds() {
        assert_eq!([0.002, 0.15, 1.0].map(|scale| time(scale).as_secs()), [1, 2, 10]);
    }

    #[test]
    fn what_fails_at_first_is_tried_again_and_its_last_failure_is_told() {
        let mut left = 2;
        let third = repeated(Duration::from_secs(5), "it", || match left {
            0 => Ok(7),
            _ => {
                left -= 1;
                Err(Failure::Unexpected("refused".to_owned()))
            }
        });
        assert_eq!(third.unwrap(), 7);
        let never = repeated::<()>(Duration::ZERO, "it", || Err(Failure::Unexpected("refused".to_owned())));
        assert!(never.unwrap_err().to_string().ends_with(": refused"));
    }
}
