//! The mechanisms over a narrower second link: which sizes pass, and after how many that find the path's MTU.

use super::stage::Kind;
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, Target, any};
use crate::failure::{Asking as _, Result};
use crate::load::{Outcome, Pmtu, path_mtu_discovery};
use crate::namespace::{Namespace, command};
use crate::probe::answered;
use crate::results::{Cell, Unit};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The MTU of the narrower link.
pub const NARROW: u32 = 1_400;
/// Requests that are counted.
const REQUESTS: u32 = 6;
/// Requests before them, one of which is to be answered: the first ones find the path's MTU, in each direction.
const FIRST: u32 = 8;
/// The port of the server for datagrams.
const PORT: u16 = 7_600;
/// How long a datagram may take to the server.
const ARRIVAL: Duration = Duration::from_millis(250);

/// Pings or datagrams that may be split on their way, or must not: how many were lost until one was answered, and how many of the next ones were answered.
pub fn narrow(at_work: &AtWork, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
    let octets = cell.at("octets") as u32;
    let is_whole = cell.at("df") > 0.0;
    let [target, native] = [at_work.way().target(), at_work.way().native()];
    let is_udp = cell.at("load") == f64::from(Kind::Udp as u8);
    let counted = |target: Target, sheet: &mut Sheet| match is_udp {
        true => datagrams(at_work, target, octets as usize, is_whole),
        false => pings(at_work, (target, octets, is_whole), sheet),
    };
    let mut through = (None, 0.0);
    let (_, cost, _) = at_work.metered(|| {
        through = counted(target, sheet)?;
        Ok(Outcome::default())
    })?;
    sheet.tester(cost);
    if let (Some(lost), _) = through {
        sheet.value("lost-before", f64::from(lost), Unit::Count);
    }
    sheet.value("sent", f64::from(REQUESTS), Unit::Count);
    sheet.value("answered", through.1, Unit::Count);
    let (_, natively) = counted(native, sheet)?;
    sheet.value("answered-natively", natively, Unit::Count);
    Ok(())
}

/// How many were lost before the first answer, if there was one, and how many of those after it were answered.
type Counted = (Option<u32>, f64);

/// By `ping`. It ends with all answers, with an error, or after three seconds, in which it sends more.
fn pings(
    at_work: &AtWork,
    (target, octets, is_whole): (Target, u32, bool),
    sheet: &mut Sheet,
) -> Result<Counted> {
    let discover = if is_whole { "do" } else { "dont" };
    let client = at_work.network().host("client")?;
    let ping = |words: [&str; 6]| {
        let mut ping = command("ping")?;
        ping.args(["-n", "-M", discover, "-s", &octets.to_string()])
            .args(words)
            .arg(target.address.to_string());
        client.run(ping, Duration::from_secs(20))
    };
    // Nothing passes if this host's own kernel refuses it.
    let mut lost = None;
    for before in 0..FIRST {
        let finished = ping(["-c", "1", "-i", "1", "-W", "1"])?;
        if answered(&finished.stdout).next().is_some() {
            lost = Some(before);
            break;
        }
        if finished.stderr.contains("message too long") {
            break;
        }
    }
    let finished = ping(["-c", &REQUESTS.to_string(), "-i", "0.05", "-w", "3"])?;
    let all = answered(&finished.stdout).filter(|number| *number <= REQUESTS).count();
    sheet.command(finished.typed);
    Ok((lost, all as f64))
}

/// By datagrams of UDP that arrive at the server.
fn datagrams(at_work: &AtWork, target: Target, octets: usize, is_whole: bool) -> Result<Counted> {
    let bind = |host: &Namespace, address: SocketAddr| -> Result<UdpSocket> {
        host.enter(|| UdpSocket::bind(address))?.asking(|| format!("binding {address}"))
    };
    let network = at_work.network();
    let listens = SocketAddr::new(target.arrives_at, PORT);
    let server = bind(network.host(at_work.way().server())?, listens)?;
    server.set_read_timeout(Some(ARRIVAL)).asking(|| "SO_RCVTIMEO".to_owned())?;
    let client = bind(network.host("client")?, SocketAddr::new(any(target.address.is_ipv6()), 0))?;
    path_mtu_discovery(&client, if is_whole { Pmtu::Set } else { Pmtu::Clear })?;
    client.connect((target.address, PORT)).asking(|| format!("connecting to {}", target.address))?;
    Ok(count(FIRST, REQUESTS, |number| send(&client, &server, octets.max(1), number)))
}

/// What became of a datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Arrived,
    Lost,
    /// The own kernel does not send it.
    Refused,
}

/// Sends a datagram with this number, and waits for it to arrive.
fn send(client: &UdpSocket, server: &UdpSocket, octets: usize, number: u8) -> Sent {
    let mut buffer = vec![0; 65_536];
    if let Err(error) = client.send(&vec![number; octets]) {
        return if error.raw_os_error() == Some(libc::EMSGSIZE) { Sent::Refused } else { Sent::Lost };
    }
    let until = Instant::now() + ARRIVAL;
    while Instant::now() < until {
        // It may be an older one.
        if server.recv(&mut buffer).is_ok_and(|length| length == octets && buffer[0] == number) {
            return Sent::Arrived;
        }
    }
    Sent::Lost
}

/// Sends until one arrives, and then a number of others.
fn count(first: u32, requests: u32, mut send: impl FnMut(u8) -> Sent) -> Counted {
    let mut lost = None;
    for before in 0..first {
        match send(before as u8) {
            Sent::Arrived => lost = Some(before),
            Sent::Lost => continue,
            Sent::Refused => {}
        }
        break;
    }
    let answered = (0..requests).filter(|number| send(100 + *number as u8) == Sent::Arrived).count();
    (lost, answered as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_find_the_mtu_are_counted_apart() {
        let run = |fates: &[Sent]| {
            let mut fates = fates.iter().copied();
            count(3, 2, |_| fates.next().unwrap_or(Sent::Lost))
        };
        assert_eq!(run(&[Sent::Lost, Sent::Arrived, Sent::Arrived, Sent::Lost]), (Some(1), 1.0));
        assert_eq!(run(&[Sent::Refused, Sent::Refused]), (None, 0.0), "it is not sent again");
        assert_eq!(run(&[Sent::Lost, Sent::Lost, Sent::Lost, Sent::Arrived]), (None, 1.0));
    }
}
