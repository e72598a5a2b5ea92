//! Ends of tunnels to which less fits than the configuration says: packets to them are left to the engine for a while.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a destination is left to the engine after less was found to fit on its path (RFC 1191 §6.3).
const NARROW: Duration = Duration::from_secs(600);
/// Destinations that are known to be narrow at a time.
const NARROW_PATHS: usize = 4_096;

/// The destinations, with the time at which each was last found narrow.
#[derive(Debug, Default)]
pub(super) struct NarrowPaths {
    since: BTreeMap<Ipv4Addr, Instant>,
    /// The programs know others.
    untold: bool,
}

impl NarrowPaths {
    /// Notes these, and forgets those of long ago. Returns all, if the programs are to be told, until [`Self::told`].
    pub(super) fn note(
        &mut self,
        destinations: impl Iterator<Item = Ipv4Addr>,
        now: Instant,
    ) -> Option<Vec<Ipv4Addr>> {
        let before = self.since.len();
        self.since.retain(|_, since| now.duration_since(*since) < NARROW);
        self.untold |= self.since.len() != before;
        for destination in destinations {
            if self.since.len() < NARROW_PATHS || self.since.contains_key(&destination) {
                self.untold |= self.since.insert(destination, now).is_none();
            }
        }
        self.untold.then(|| self.since.keys().copied().collect())
    }

    /// The programs know all.
    pub(super) fn told(&mut self) {
        self.untold = false;
    }
}

/// Where packets did not fit that ICMPv4 errors quote: the ends of tunnels to which less fits than was thought.
pub(super) fn quoted(errors: &[Arc<[u8]>]) -> impl Iterator<Item = Ipv4Addr> {
    errors.iter().filter_map(|error| {
        let header = usize::from(error.first()? & 0xf) * 4;
        // Destination unreachable, fragmentation needed (RFC 792), and the header of what was sent.
        if error.get(header..header + 2)? != [3, 4] {
            return None;
        }
        let destination: [u8; 4] = error.get(header + 24..header + 28)?.try_into().ok()?;
        Some(destination.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_narrow_is_forgotten_after_ten_minutes_without_another_error() {
        let (mut paths, start) = (NarrowPaths::default(), Instant::now());
        let [one, other] = [Ipv4Addr::new(203, 0, 113, 9), Ipv4Addr::new(203, 0, 113, 10)];
        let nothing = std::iter::empty;
        assert_eq!(paths.note(nothing(), start), None);
        assert_eq!(paths.note([one, other].into_iter(), start), Some(vec![one, other]));
        assert_eq!(paths.note(nothing(), start), Some(vec![one, other]), "nobody was told");
        paths.told();
        assert_eq!(paths.note([one].into_iter(), start + NARROW / 2), None, "known");
        assert_eq!(paths.note(nothing(), start + NARROW), Some(vec![one]));
        paths.told();
        assert_eq!(paths.note(nothing(), start + NARROW + NARROW / 2), Some(vec![]));
    }

    #[test]
    fn the_end_of_a_tunnel_to_which_less_fits_is_the_destination_of_what_is_quoted() {
        let mut error = vec![0; 56];
        (error[0], error[20], error[21], error[28]) = (0x45, 3, 4, 0x45);
        error[28 + 16..28 + 20].copy_from_slice(&[203, 0, 113, 9]);
        let found = |error: &[u8]| quoted(&[Arc::from(error)]).collect::<Vec<_>>();
        assert_eq!(found(&error), [Ipv4Addr::new(203, 0, 113, 9)]);
        for length in 0..48 {
            assert_eq!(found(&error[..length]), [] as [Ipv4Addr; 0], "{length}");
        }
        error[21] = 1;
        assert_eq!(found(&error), [] as [Ipv4Addr; 0], "another error");
    }
}
