//! What a host that pings many addresses sends.

use super::link::From;
use std::net::IpAddr;

/// What one host sends.
#[derive(Clone, Debug)]
pub struct EchoSweep {
    /// As which host.
    pub from: From,
    /// For each flow, the addresses that it visits, one after the other.
    pub flows: Vec<Vec<IpAddr>>,
    /// Echo requests to each address.
    pub each: u16,
    /// Octets of a request's IP packet, without a tunnel's header.
    pub octets: usize,
}

impl EchoSweep {
    /// The identifier of the visit that a flow makes. It repeats after 65,536 visits of all flows, if their number is a power of two.
    pub(super) fn identifier(&self, number: usize, visited: usize) -> u16 {
        (visited * self.flows.len() + number) as u16
    }

    /// The request of this number when flows take turns: its flow, its address and its identifier and sequence number. After the last address of a
    /// flow comes its first.
    pub(super) fn request(&self, number: usize) -> Option<(u16, IpAddr, [u16; 2])> {
        let flow = number % self.flows.len().max(1);
        let own = number / self.flows.len().max(1);
        let (visited, sequence) = (own / usize::from(self.each.max(1)), own % usize::from(self.each.max(1)));
        let targets = self.flows.get(flow)?;
        let target = targets.get(visited % targets.len().max(1))?;
        Some((flow as u16, *target, [self.identifier(flow, visited), sequence as u16 + 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_turns_and_each_visit_has_an_identifier() {
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let flows = vec![vec![address(1), address(2)], vec![address(3)]];
        let sweep = EchoSweep { from: From::Ipv4, flows, each: 2, octets: 84 };
        let requests: Vec<_> = (0..10).filter_map(|number| sweep.request(number)).collect();
        let expected = [(0, 1, 0, 1), (1, 3, 1, 1), (0, 1, 0, 2), (1, 3, 1, 2), (0, 2, 2, 1), (1, 3, 3, 1)];
        for (request, (flow, last, identifier, sequence)) in requests.iter().zip(expected) {
            assert_eq!(*request, (flow, address(last), [identifier, sequence]));
        }
        assert_eq!(requests[8], (0, address(1), [4, 1]), "the first address again");
        let nothing = EchoSweep { flows: Vec::new(), ..sweep };
        assert_eq!(nothing.request(0), None);
    }
}
