//! The neighbours that the programs send to: which events about them matter, and which to probe.

use super::event::Neighbour;
use super::used_hop::UsedHop;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// Whether a neighbour that is sent to can no longer be reached as it was.
pub(super) fn matters(neighbour: &Neighbour, used: &[UsedHop]) -> bool {
    let mut same =
        used.iter().filter(|hop| hop.ifindex == neighbour.ifindex && hop.address == neighbour.address);
    same.any(|hop| neighbour.mac != Some(hop.mac))
}

/// The neighbours to probe: those used within a span, unless a probe is pending or not needed.
pub(super) fn to_probe(used: &[UsedHop], known: &[Neighbour], span: Duration) -> BTreeSet<(u32, IpAddr)> {
    let recent = used.iter().filter(|hop| hop.idle <= span);
    let mut wanted: BTreeSet<(u32, IpAddr)> = recent.map(|hop| (hop.ifindex, hop.address)).collect();
    // Do not probe addresses that are not neighbours: the probe would create an entry.
    wanted.retain(|key| {
        known.iter().any(|one| (one.ifindex, one.address) == *key && one.mac.is_some() && !one.settled)
    });
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn hop(ifindex: u32, last: u8, idle: u64) -> UsedHop {
        let address = IpAddr::from([192, 0, 2, last]);
        UsedHop { ifindex, address, mac: MAC, idle: Duration::from_millis(idle) }
    }

    fn neighbour(ifindex: u32, last: u8, mac: Option<[u8; 6]>, settled: bool) -> Neighbour {
        Neighbour { ifindex, address: IpAddr::from([192, 0, 2, last]), mac, settled }
    }

    #[test]
    fn only_another_or_no_address_of_one_that_is_sent_to_matters() {
        let used = [hop(3, 1, 0), hop(3, 2, 0)];
        assert!(!matters(&neighbour(3, 1, Some(MAC), false), &used), "it was asked, and is still there");
        assert!(matters(&neighbour(3, 1, Some([2, 0, 0, 0, 0, 2]), false), &used));
        assert!(matters(&neighbour(3, 2, None, false), &used));
        assert!(!matters(&neighbour(3, 9, None, false), &used), "nobody sends to it");
        assert!(!matters(&neighbour(4, 1, None, false), &used), "it is on another link");
    }

    #[test]
    fn those_in_use_are_asked_once_unless_they_are_being_asked_or_never_change() {
        let used =
            [hop(3, 1, 100), hop(3, 1, 100), hop(3, 2, 5_000), hop(3, 3, 100), hop(3, 4, 0), hop(3, 5, 0)];
        let known = [
            neighbour(3, 1, Some(MAC), false),
            neighbour(3, 2, Some(MAC), false),
            neighbour(3, 3, Some(MAC), true),
            neighbour(3, 4, None, false),
        ];
        let asked = to_probe(&used, &known, Duration::from_secs(2));
        assert_eq!(asked, BTreeSet::from([(3, IpAddr::from([192, 0, 2, 1]))]));
    }
}
