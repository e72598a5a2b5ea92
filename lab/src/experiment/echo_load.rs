//! A 6to4 host as load: a number of flows of echo requests at a time through one relay, each flow sending its next request when the last one was
//! answered, as `ping -i 0` does; a request that has no answer within a second is lost.

use crate::failure::{Asking as _, Result};
use crate::interrupt;
use crate::load::tunnel_socket;
use crate::packet::{echo_request, six_to_four, tunnelled_echo_reply};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

/// How long an answer is waited for.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// How often is looked for what was lost.
const LOOK: Duration = Duration::from_millis(100);

/// What one host sends.
#[derive(Clone, Debug)]
pub struct EchoLoad {
    /// Its IPv4 address, which its IPv6 address embeds.
    pub host: Ipv4Addr,
    /// The relay's.
    pub relay: Ipv4Addr,
    /// For each flow, the addresses that it sends to, one after the other.
    pub flows: Vec<Vec<Ipv6Addr>>,
    /// Echo requests to each address.
    pub each: u16,
    /// Octets of a request with its ICMPv6 header.
    pub octets: usize,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Requests sent.
    pub sent: u64,
    /// Response times of those that were answered, in milliseconds.
    pub milliseconds: Vec<f64>,
}

struct Flow<'a> {
    targets: &'a [Ipv6Addr],
    /// How many requests were sent, and the time of the last one.
    sent: usize,
    at: Instant,
}

impl EchoLoad {
    /// Sends everything; to be called in the host's namespace.
    pub fn run(&self) -> Result<Answers> {
        let socket = tunnel_socket(self.relay)?;
        socket.set_read_timeout(Some(LOOK)).asking(|| "setting a time limit".to_owned())?;
        let mut answers = Answers::default();
        let mut flows = Vec::new();
        for targets in &self.flows {
            flows.push(Flow { targets, sent: 0, at: Instant::now() });
            let number = flows.len() - 1;
            self.send_next(&socket, number, &mut flows[number], &mut answers)?;
        }
        let mut octets = [0; 2_048];
        let mut looked = Instant::now();
        while flows.iter().any(|flow| !self.is_done(flow)) {
            if let Ok(length) = socket.recv(&mut octets) {
                let reply = tunnelled_echo_reply(&octets[..length]);
                if let Some([number, sequence]) = reply
                    && let Some(flow) = flows.get_mut(usize::from(number))
                    && flow.sent & 0xffff == usize::from(sequence)
                    && !self.is_done(flow)
                {
                    answers.milliseconds.push(flow.at.elapsed().as_secs_f64() * 1e3);
                    self.send_next(&socket, usize::from(number), flow, &mut answers)?;
                }
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                interrupt::check()?;
                for (number, flow) in flows.iter_mut().enumerate() {
                    if !self.is_done(flow) && flow.at.elapsed() > LOST_AFTER {
                        self.send_next(&socket, number, flow, &mut answers)?;
                    }
                }
            }
        }
        Ok(answers)
    }

    fn all(&self, flow: &Flow<'_>) -> usize {
        flow.targets.len() * usize::from(self.each)
    }

    /// One more than was sent says that the last request is answered or lost, too.
    fn is_done(&self, flow: &Flow<'_>) -> bool {
        flow.sent > self.all(flow)
    }

    fn send_next(
        &self,
        socket: &UdpSocket,
        number: usize,
        flow: &mut Flow<'_>,
        answers: &mut Answers,
    ) -> Result<()> {
        let target = flow.targets.get(flow.sent / usize::from(self.each).max(1));
        flow.sent += 1;
        let Some(target) = target else { return Ok(()) };
        let numbers = [number as u16, flow.sent as u16];
        let request = echo_request(six_to_four(self.host, 1), *target, numbers, self.octets);
        flow.at = Instant::now();
        answers.sent += 1;
        socket.send(&request).asking(|| format!("sending to {}", self.relay)).map(drop)
    }
}
