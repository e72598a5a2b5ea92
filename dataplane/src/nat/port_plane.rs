//! The ports of one outside address and protocol: which are free, by range and parity.
//!
//! RFC 6146 §3.5.1.1 and RFC 4787 §4.2 ask that a mapping keeps the range (0-1023 or 1024-65535) and the parity of the
//! inside port; RFC 6056 §3.1 that the port cannot be foretold. So even and odd ports have a [`FreeSet`] each, with port
//! `p` at bit `p / 2`, and a search begins at a random place in the range and goes round it once.

use super::free_set::FreeSet;
use super::keyed::scale;
use super::protocol::NatProtocol;

/// The two ranges of ports that RFC 4787 §4.2.1 keeps apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PortRange {
    /// 0 to 1023.
    WellKnown = 0,
    /// 1024 to 65535.
    High = 1,
}

impl PortRange {
    /// Both ranges.
    pub const ALL: [Self; 2] = [Self::WellKnown, Self::High];

    /// The range that holds the port.
    #[inline]
    pub const fn of(port: u16) -> Self {
        if port < 1_024 { Self::WellKnown } else { Self::High }
    }

    /// The bits of the range in either parity's set.
    const fn bits(self) -> (u32, u32) {
        match self {
            Self::WellKnown => (0, 512),
            Self::High => (512, 32_768),
        }
    }

    /// The ranges that an inside port may get an outside port from, best first. A high port never gets a well-known one:
    /// those mean privilege to some servers (RFC 4787 §4.2.1), and §3.5.1.1 only says MAY. An ICMP identifier has no
    /// ranges ("any available value", §3.5.3), and keeps to the larger one first.
    pub const fn preference(protocol: NatProtocol, port: u16) -> &'static [Self] {
        match protocol {
            NatProtocol::Icmp => &[Self::High, Self::WellKnown],
            NatProtocol::Tcp | NatProtocol::Udp => match Self::of(port) {
                Self::WellKnown => &[Self::WellKnown, Self::High],
                Self::High => &[Self::High],
            },
        }
    }
}

/// The free ports of one address and protocol.
#[derive(Clone, Debug)]
pub struct PortPlane {
    parity: [FreeSet; 2],
    free: [u32; 2],
}

impl PortPlane {
    /// A plane in which nothing is free.
    pub fn empty() -> Self {
        Self { parity: [FreeSet::new(32_768), FreeSet::new(32_768)], free: [0; 2] }
    }

    /// Number of free ports in a range.
    #[inline]
    pub const fn free(&self, range: PortRange) -> u32 {
        self.free[range as usize]
    }

    /// Whether the port is free.
    #[inline]
    pub fn is_free(&self, port: u16) -> bool {
        self.parity[usize::from(port & 1)].contains(u32::from(port >> 1))
    }

    /// Whether any port of a block of this size is free.
    pub fn has(&self, block: u16, size: u16) -> bool {
        let first = u32::from(block) * u32::from(size) / 2;
        let end = first + u32::from(size) / 2;
        self.parity.iter().any(|set| set.find(first, first, end, &mut 0).is_some())
    }

    /// Takes a free port of a block, of this parity if there is one, searching from where `random` points.
    pub fn draw_of(&mut self, block: u16, size: u16, parity: u16, random: u32) -> Option<u16> {
        let low = u32::from(block) * u32::from(size) / 2;
        let high = low + u32::from(size) / 2;
        let start = low + scale(random, high - low);
        for parity in [parity & 1, parity & 1 ^ 1] {
            if let Some(bit) = self.parity[usize::from(parity)].find(start, low, high, &mut 0) {
                let port = (bit << 1) as u16 | parity;
                self.take(port);
                return Some(port);
            }
        }
        None
    }

    /// Takes all ports of a block of this size.
    pub fn take_block(&mut self, block: u16, size: u16) {
        for range in PortRange::ALL {
            let (low, high) = bits_of(block, size, range);
            let taken: u32 = self.parity.iter_mut().map(|set| set.remove_range(low, high)).sum();
            self.free[range as usize] -= taken;
        }
    }

    /// Makes those ports of a block of this size free that are free in another plane.
    pub fn release_block(&mut self, block: u16, size: u16, other: &Self) {
        for range in PortRange::ALL {
            let (low, high) = bits_of(block, size, range);
            let both = self.parity.iter_mut().zip(&other.parity);
            let released: u32 = both.map(|(set, other)| set.insert_range(low, high, other)).sum();
            self.free[range as usize] += released;
        }
    }

    /// Makes a port free; whether it was not.
    pub fn release(&mut self, port: u16) -> bool {
        let changed = self.parity[usize::from(port & 1)].insert(u32::from(port >> 1));
        self.free[PortRange::of(port) as usize] += u32::from(changed);
        changed
    }

    /// Takes this very port; whether it was free.
    pub fn take(&mut self, port: u16) -> bool {
        let changed = self.parity[usize::from(port & 1)].remove(u32::from(port >> 1));
        self.free[PortRange::of(port) as usize] -= u32::from(changed);
        changed
    }

    /// Takes a free port of the range, of this parity if there is one, searching from where `random` points.
    /// `steps` grows by the words looked at: at most 24.
    pub fn draw(&mut self, range: PortRange, parity: u16, random: u32, steps: &mut u32) -> Option<u16> {
        if self.free(range) == 0 {
            return None;
        }
        let (low, high) = range.bits();
        let start = low + scale(random, high - low);
        for parity in [parity & 1, parity & 1 ^ 1] {
            if let Some(bit) = self.parity[usize::from(parity)].find(start, low, high, steps) {
                let port = (bit << 1) as u16 | parity;
                self.take(port);
                return Some(port);
            }
        }
        None
    }

    /// Memory in octets.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.parity.iter().map(FreeSet::memory).sum::<usize>()
    }
}

/// The bits in either parity's set of a block's ports that are in a range: the first one, and the one behind the last.
fn bits_of(block: u16, size: u16, range: PortRange) -> (u32, u32) {
    let (low, high) = range.bits();
    let first = u32::from(block) * u32::from(size) / 2;
    (first.max(low), (first + u32::from(size) / 2).min(high))
}

#[cfg(test)]
mod tests {
    use super::super::keyed::{Purpose, Unpredictable};
    use super::*;
    use std::collections::BTreeSet;

    fn full() -> PortPlane {
        let mut plane = PortPlane::empty();
        for port in 1..=u16::MAX {
            assert!(plane.release(port));
        }
        plane
    }

    #[test]
    fn a_block_is_taken_and_released_as_port_by_port_whatever_its_size() {
        for (block, size) in
            [(0u16, 64u16), (15, 64), (16, 64), (3, 256), (0, 2_048), (1, 1_024), (3, 16_384)]
        {
            let (mut plane, mut slow, mut given) = (full(), full(), PortPlane::empty());
            let ports = || (u32::from(block) * u32::from(size)..).take(size.into()).map(|port| port as u16);
            ports().filter(|port| port % 3 == 0 && *port > 0).for_each(|port| assert!(given.release(port)));
            // Ports of other blocks are free there, too, and stay as they are here.
            for port in [1, 1_023, 1_024, 65_535] {
                given.release(port);
            }
            plane.take(7);
            slow.take(7);
            plane.take_block(block, size);
            for port in ports() {
                slow.take(port);
            }
            let free = |plane: &PortPlane| {
                let ports = (0..=u16::MAX).filter(|port| plane.is_free(*port)).collect::<Vec<_>>();
                (ports, PortRange::ALL.map(|range| plane.free(range)))
            };
            assert_eq!(free(&plane), free(&slow), "{block} {size}");
            plane.release_block(block, size, &given);
            for port in ports().filter(|port| given.is_free(*port)) {
                slow.release(port);
            }
            assert_eq!(free(&plane), free(&slow), "{block} {size}");
        }
    }

    #[test]
    fn every_port_is_drawn_once_with_its_range_kept_and_its_parity_as_long_as_it_lasts() {
        let mut plane = full();
        let mut random = Unpredictable::new([1, 2], Purpose::Ports, 0);
        let mut seen = BTreeSet::new();
        for drawn in 0..64_512 {
            let port = plane.draw(PortRange::High, 1, random.draw() as u32, &mut 0).unwrap();
            assert!(port >= 1_024 && seen.insert(port));
            assert_eq!(port & 1 == 1, drawn < 32_256, "odd ports first");
        }
        assert_eq!(plane.draw(PortRange::High, 1, 0, &mut 0), None);
        assert_eq!(plane.free(PortRange::WellKnown), 1_023);
        let port = plane.draw(PortRange::WellKnown, 0, random.draw() as u32, &mut 0).unwrap();
        assert!(port < 1_024 && port.is_multiple_of(2));
    }

    #[test]
    fn a_draw_takes_a_bounded_number_of_steps_when_one_port_in_a_thousand_is_left() {
        let mut random = Unpredictable::new([3, 4], Purpose::Ports, 0);
        let mut plane = full();
        let mut held: Vec<u16> = (0..64_448)
            .map(|_| plane.draw(PortRange::High, 0, random.draw() as u32, &mut 0).unwrap())
            .collect();
        for round in 0..20_000usize {
            let mut steps = 0;
            let port = plane.draw(PortRange::High, round as u16, random.draw() as u32, &mut steps).unwrap();
            assert!(steps <= 24, "{steps} steps");
            let given_back = random.draw() as usize % held.len();
            plane.release(std::mem::replace(&mut held[given_back], port));
        }
    }

    #[test]
    fn drawn_ports_neither_rise_nor_stay_near_one_another() {
        let mut plane = full();
        let mut random = Unpredictable::new([5, 6], Purpose::Ports, 0);
        let ports: Vec<i32> = (0..1_000)
            .map(|_| i32::from(plane.draw(PortRange::High, 0, random.draw() as u32, &mut 0).unwrap()))
            .collect();
        let rises = ports.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let near = ports.windows(2).filter(|pair| (pair[1] - pair[0]).abs() < 64).count();
        assert!((420..580).contains(&rises), "{rises} of 999 rise");
        assert!(near < 12, "{near} of 999 are near the one before");
    }
}
