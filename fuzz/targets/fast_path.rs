//! Any frame at either hook of the fast path's programs, in any of some worlds: what is passed on is untouched, and what is forwarded is what
//! the engine sends, octet for octet. It needs root and the kernel's eBPF; elsewhere it says so.
//!
//! ```text
//!   input:  world (1) · what (1) · octets of an IP packet and of what is behind it
//!   what:   hook (1) · port that it comes in by (3) · checksums are made right first (1) · octets of padding (3)
//! ```

#[path = "checksum.rs"]
mod checksum;
#[path = "../../fastpath/tests/differential/proof/mod.rs"]
mod proof;

use proof::generator::Input;
use proof::rig::Hook;
use proof::room::Room;
use proof::scene::{Port, VLAN};
use proof::worlds;
use sixway_dataplane::parse;
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// Those that were entered, by number and hook.
    static ROOMS: RefCell<BTreeMap<(usize, Hook), Room>> = const { RefCell::new(BTreeMap::new()) };
}

pub fn run(octets: &[u8]) {
    let _ = is_forwarded(octets);
}

/// Whether the frame was forwarded. `None`: there is no frame.
pub fn is_forwarded(octets: &[u8]) -> Option<bool> {
    let [world, what, packet @ ..] = octets else { return None };
    let number = usize::from(*world) % worlds::TELLING.len();
    let hook = if what & 1 == 0 { Hook::Xdp } else { Hook::Tc };
    ROOMS.with_borrow_mut(|rooms| {
        let room = rooms.entry((number, hook)).or_insert_with(|| Room::new(worlds::telling(number), hook));
        Some(room.tries(&input(packet, *what)))
    })
}

fn input(packet: &[u8], what: u8) -> Input {
    let mut packet = packet.to_vec();
    packet.truncate(2_000);
    if what & 16 != 0 {
        seal(&mut packet);
    }
    packet.resize(packet.len() + usize::from(what >> 5), 0xee);
    let port = Port::ALL[usize::from(what >> 1 & 7) % Port::ALL.len()];
    let protocol = if packet.first().is_some_and(|octet| octet >> 4 == 4) { [8, 0] } else { [0x86, 0xdd] };
    let tag: &[u8] = if port == Port::Tagged { &[0x81, 0, 0, VLAN as u8] } else { &[] };
    let frame = [&port.mac()[..], &port.neighbour(), tag, &protocol, &packet].concat();
    let port = if port == Port::Tagged { Port::Trunk } else { port };
    Input { frame, port, counter: 0, is_plain: false, troubles: Vec::new() }
}

/// Makes the checksums right, in a tunnel those of the packet inside.
fn seal(packet: &mut [u8]) {
    checksum::seal_header(packet);
    let Ok(outer) = parse::parse(packet) else { return };
    let at = usize::from(outer.transport_at);
    if outer.protocol != 41 {
        checksum::seal_transport(packet, &outer, true);
    } else if let Some(Ok(inner)) = packet.get(at..outer.length as usize).map(parse::parse) {
        checksum::seal_transport(&mut packet[at..], &inner, true);
    }
}
