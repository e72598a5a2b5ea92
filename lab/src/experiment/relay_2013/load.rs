//! What a host sends: eleven requests to each of 10.i.b.c and 10.(i+128).b.c under the /104, b from 0 to 255, c from 0 to 255, four steps at
//! a time: eight flows.

use crate::failure::{Failure, Result};
use crate::load::{EchoSweep, From, Load as _, Outcome, Pace, Until};
use crate::measure::Cores;
use crate::probe::cpu::pin_thread;
use crate::topology::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hosts' roles in the network.
pub const HOSTS: [&str; 10] =
    ["host1", "host2", "host3", "host4", "host5", "host6", "host7", "host8", "host9", "host10"];
/// The relay's address.
pub const RELAY: Ipv4Addr = Ipv4Addr::new(80, 64, 79, 254);
/// Echo requests to each address.
pub const EACH: u16 = 11;
/// Octets of a request's IPv6 packet: 40 of IPv6, 8 of ICMPv6, and the 56 that `ping6` sends.
pub const OCTETS: usize = 104;
/// Flows of one host.
pub const FLOWS: usize = 8;
/// Flows of one host to one responder.
const STEPS: usize = FLOWS / 2;
/// Addresses that a flow visits at scale 1.
const ADDRESSES: usize = 256 * 256 / STEPS;

/// The address of a host, counted from 1.
pub fn host_address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(80, 64, 79, host as u8)
}

/// 10.x.b.c under the /104.
fn target(x: usize, b: usize, c: usize) -> IpAddr {
    let pair = |high: usize, low: usize| (high << 8 | low) as u16;
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x738, 0x2c01, 0x8001, 0xffff, 0, pair(10, x), pair(b, c)))
}

/// What host `i` sends at a scale: each flow visits this share of its addresses, but one at least.
pub fn sweep(i: usize, native: bool, octets: usize, scale: f64) -> EchoSweep {
    let count = ((ADDRESSES as f64 * scale).round() as usize).clamp(1, ADDRESSES);
    let flow = |half: usize, step: usize| {
        let all = (0..256).flat_map(move |b| (step..256).step_by(STEPS).map(move |c| target(i + half, b, c)));
        all.take(count).collect()
    };
    let flows = [0, 128].into_iter().flat_map(|half| (0..STEPS).map(move |step| flow(half, step))).collect();
    let from = match native {
        true => From::Native,
        false => From::SixToFour { host: host_address(i), relay: RELAY },
    };
    EchoSweep { from, flows, each: EACH, octets }
}

/// Runs the sweeps of hosts 1, 2, … at the same time, each in a thread on the tester's core.
pub fn run(
    network: &Network,
    sweeps: &[EchoSweep],
    cores: Cores,
    pace: Pace,
    until: Until,
) -> Result<Outcome> {
    let one = |host: &'static str, sweep: &EchoSweep| {
        // Threads inherit the CPU, and the namespace is entered by a thread.
        cores.tester.map_or(Ok(()), pin_thread)?;
        network.host(host)?.enter(|| sweep.run(pace, until))?
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> =
            HOSTS.iter().zip(sweeps).map(|(host, sweep)| scope.spawn(move || one(host, sweep))).collect();
        let mut all = Outcome::default();
        for host in running {
            let panicked = |_| Err(Failure::Unexpected("a host of the load panicked".to_owned()));
            all.add(&host.join().unwrap_or_else(panicked)?);
        }
        Ok(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_visits_as_many_addresses_as_the_papers() {
        let whole = sweep(10, false, OCTETS, 1.0);
        assert_eq!(whole.flows.len(), FLOWS);
        let mut targets = whole.flows.concat();
        assert_eq!(targets.len() * usize::from(EACH), 1_441_792);
        assert!(targets.contains(&"2001:738:2c01:8001:ffff:0:a8a:fffc".parse().unwrap()));
        targets.sort_unstable();
        targets.dedup();
        assert_eq!(targets.len(), 131_072);
    }

    #[test]
    fn a_small_scale_visits_a_share_of_them_and_one_at_least() {
        let addresses = |scale| sweep(1, true, OCTETS, scale).flows.concat().len();
        assert_eq!(addresses(0.001), 16 * FLOWS);
        assert_eq!(addresses(0.000_000_1), FLOWS);
    }
}
