//! Next hops that the programs have found in the kernel's tables: their neighbours, which are probed, and their removal.

use crate::control::Control;
use crate::layout::{NEXT_HOPS, NextHop};
use crate::memory::{Mapping, SharedNextHop};
use crate::ticks;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

/// How long a program may still use what it has read; handling a packet takes microseconds.
const GRACE: Duration = Duration::from_millis(100);

/// A next hop in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// The device of the route to it.
    pub ifindex: u32,
    /// Its Ethernet address, as the kernel had it.
    pub mac: [u8; 6],
    /// How long ago a packet was last sent to it by the programs.
    pub idle: Duration,
}

/// The table of next hops.
#[derive(Debug)]
pub struct NextHops {
    memory: Mapping,
    control: Arc<Control>,
}

impl NextHops {
    /// The map of the programs.
    ///
    /// # Errors
    /// The kernel does not map it.
    pub fn of_map(map: BorrowedFd<'_>, control: Arc<Control>) -> io::Result<Self> {
        Ok(Self { memory: Mapping::of_map(map, NEXT_HOPS * size_of::<NextHop>())?, control })
    }

    fn slots(&self) -> &[SharedNextHop] {
        &self.memory.elements()[..NEXT_HOPS]
    }

    /// Those in use, a thousand at the most; one neighbour may be there more than once.
    pub fn in_use(&self) -> Vec<Neighbour> {
        let now = ticks::now();
        self.slots().iter().filter_map(|slot| neighbour(slot, now)).collect()
    }

    /// Frees those that were not used for so long, and what a program that was never finished left behind. Takes 100 ms if there are
    /// any: to be called by a thread that has time, and by one alone. Returns how many.
    pub fn free(&self, idle: Duration) -> usize {
        let now = ticks::now();
        let limit = ticks::ticks(idle).min(u64::from(u32::MAX / 2)) as u32;
        let closed: Vec<_> =
            self.slots().iter().filter_map(|slot| Some((slot, close(slot, now, limit)?))).collect();
        if closed.is_empty() {
            return 0;
        }
        // A program that remembers one asks the kernel again from here on, and finds it closed.
        self.control.bump();
        std::thread::sleep(GRACE);
        closed.iter().filter(|(slot, sequence)| clear(slot, *sequence)).count()
    }
}

fn neighbour(slot: &SharedNextHop, now: u32) -> Option<Neighbour> {
    let sequence = slot.sequence.load(Acquire);
    let ifindex = slot.ifindex.load(Acquire);
    if sequence & 1 == 1 || ifindex == 0 {
        return None;
    }
    let octets: [u8; 16] = std::array::from_fn(|at| slot.neighbour[at].load(Relaxed));
    let address = if slot.family.load(Relaxed) == libc::AF_INET as u32 {
        IpAddr::from(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]))
    } else {
        IpAddr::from(Ipv6Addr::from(octets))
    };
    let mac = std::array::from_fn(|at| slot.destination[at].load(Relaxed));
    let idle = ticks::duration(ticks::since(now, slot.used.load(Relaxed)));
    // It was the same all the time.
    (slot.sequence.load(Acquire) == sequence).then_some(Neighbour { address, ifindex, mac, idle })
}

/// Closes a slot that was not used for so long: odd, it is left alone by the programs. Returns its sequence then. One that a program is
/// writing, or was never finished, is examined again after the grace.
fn close(slot: &SharedNextHop, now: u32, limit: u32) -> Option<u32> {
    let sequence = slot.sequence.load(Acquire);
    if sequence & 1 == 1 {
        return Some(sequence);
    }
    let is_idle = slot.ifindex.load(Acquire) != 0 && ticks::since(now, slot.used.load(Relaxed)) >= limit;
    let odd = sequence.wrapping_add(1);
    (is_idle && slot.sequence.compare_exchange(sequence, odd, AcqRel, Relaxed).is_ok()).then_some(odd)
}

/// Makes a closed slot free, if it is still as it was.
fn clear(slot: &SharedNextHop, sequence: u32) -> bool {
    if slot.sequence.load(Acquire) != sequence {
        return false;
    }
    slot.ifindex.store(0, Relaxed);
    slot.sequence.store(sequence.wrapping_add(1), Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hops() -> NextHops {
        let memory = Mapping::anonymous(NEXT_HOPS * size_of::<NextHop>()).unwrap();
        NextHops { memory, control: Arc::new(Control::anonymous(1).unwrap()) }
    }

    fn fill(slot: &SharedNextHop, last: u8, ago: Duration) {
        slot.family.store(libc::AF_INET as u32, Relaxed);
        [192, 0, 2, last]
            .into_iter()
            .zip(&slot.neighbour)
            .for_each(|(octet, place)| place.store(octet, Relaxed));
        slot.used.store(ticks::now().wrapping_sub(ticks::ticks(ago) as u32), Relaxed);
        slot.ifindex.store(7, Relaxed);
        slot.sequence.store(2, Release);
    }

    #[test]
    fn idle_ones_are_freed_and_others_stay() {
        let hops = hops();
        fill(&hops.slots()[3], 3, Duration::from_secs(70));
        fill(&hops.slots()[4], 4, Duration::from_secs(5));
        hops.slots()[5].sequence.store(9, Relaxed); // never finished
        let before = hops.control.generation();
        let used: Vec<_> = hops.in_use().iter().map(|hop| hop.address.to_string()).collect();
        assert_eq!(used, ["192.0.2.3", "192.0.2.4"]);
        assert_eq!(hops.free(Duration::from_secs(60)), 2);
        let used: Vec<_> = hops.in_use().iter().map(|hop| hop.address.to_string()).collect();
        assert_eq!(used, ["192.0.2.4"]);
        assert_eq!(hops.control.generation(), before + 1, "what was remembered is asked for again");
        assert_eq!(hops.free(Duration::from_secs(60)), 0);
        assert_eq!(hops.control.generation(), before + 1, "for nothing, nothing is bumped");
        assert!(hops.slots().iter().all(|slot| slot.sequence.load(Relaxed) & 1 == 0));
    }
}
