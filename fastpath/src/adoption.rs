//! Adoption of flows that the previous process left in the table: each is kept or retired.

use crate::flows::{AWAITS_ANSWER, FlowTable, plain};
use crate::layout::flow_state;
use crate::layout::{
    FLOW_ACTIVE, FLOW_ARMED, FLOW_BUSY, FLOW_FREE, FLOW_HALF_OPEN, FLOW_RESTING, Flow, TO_OUTSIDE,
};
use crate::slots::Slots;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside};
use sixway_dataplane::offload::{FlowHandle, OffloadedFlow};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::Ordering::{Acquire, Release};

/// The outcome of the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Flows that stay, both halves.
    pub kept: u32,
    /// Flows that were refused.
    pub refused: u32,
    /// Flows of translators that the configuration does not have any more.
    pub gone: u32,
    /// Halves without the other one, and entries that were not finished.
    pub strays: u32,
}

impl FlowTable {
    /// Walks the table once and offers to `keep` each flow whose halves are both active and match the translators of
    /// [`Self::expect_translators`], with its halves (to the outside first). Flows that `keep` refuses are retired, and so is every
    /// other entry, such as flows of translators that were removed from the configuration.
    ///
    /// The caller holds the gateway's exclusive lock. Meanwhile no worker arms, activates or removes flows; the programs may
    /// forward.
    pub fn adopt(&self, mut keep: impl FnMut(FlowHandle, &OffloadedFlow, &[Flow; 2]) -> bool) -> Adopted {
        let (mut adopted, owners) = (Adopted::default(), self.owners());
        for slot in 0..self.slots() {
            let half = self.read(slot);
            match flow_state(half.word) {
                FLOW_FREE | FLOW_RESTING => {}
                FLOW_BUSY => {
                    self.entry(slot).word.store(FLOW_FREE, Release);
                    adopted.strays += u32::from(half.word != AWAITS_ANSWER);
                }
                FLOW_ACTIVE if half.direction == TO_OUTSIDE => match self.pair(slot, &half, &owners) {
                    Some((into, flow, halves)) if keep(FlowHandle(slot as u32), &flow, &halves) => {
                        self.join(slot, into);
                        self.join(into, slot);
                        adopted.kept += 1;
                    }
                    Some((into, ..)) => {
                        self.rest(slot);
                        self.rest(into);
                        adopted.refused += 1;
                    }
                    None => {
                        self.rest(slot);
                        match self.has_gone(&half, &owners) {
                            true => adopted.gone += 1,
                            false => adopted.strays += 1,
                        }
                    }
                },
                // Halves to the inside come with the others; what remains of them is found below.
                FLOW_ACTIVE => {}
                // The new process has no session of it.
                FLOW_HALF_OPEN => self.rest(slot),
                _ => {
                    self.rest(slot);
                    adopted.strays += 1;
                }
            }
        }
        adopted.strays += self.rest_unpaired(&owners);
        self.begin_slots();
        self.set_used(adopted.kept);
        adopted
    }

    /// Every flow in the table that was armed or adopted by this process, with its halves as they are.
    pub fn entries(&self) -> impl Iterator<Item = (FlowHandle, OffloadedFlow, [Flow; 2])> {
        let owners = self.owners();
        (0..self.slots()).filter_map(move |slot| {
            let half = self.read(slot);
            let lives = matches!(flow_state(half.word), FLOW_ARMED | FLOW_ACTIVE);
            let flow = (lives && half.direction == TO_OUTSIDE).then(|| flow_of(&half, &owners)).flatten()?;
            let handle = FlowHandle(slot as u32);
            let into = self.read(self.halves_of(handle)[1]);
            let is_whole = into.direction != TO_OUTSIDE && flow_of(&into, &owners) == Some(flow);
            is_whole.then_some((handle, flow, [half, into]))
        })
    }

    /// The other half of one to the outside, if the two are a flow of the configuration.
    fn pair(&self, slot: usize, half: &Flow, owners: &Slots) -> Option<(usize, OffloadedFlow, [Flow; 2])> {
        let flow = flow_of(half, owners)?;
        let [out, into] = self.halves(&flow)?;
        let found = self.find(&into)?;
        // A second entry of the same flow has no owner.
        (plain(&out) == plain(half) && self.find(&out) == Some(slot))
            .then(|| (found, flow, [*half, self.read(found)]))
    }

    /// Whether a half is of a translator that is not in its slot any more.
    fn has_gone(&self, half: &Flow, owners: &Slots) -> bool {
        owners.owner(half.mechanism) != self.slots_to_be().owner(half.mechanism)
    }

    /// Retires halves to the inside whose other half was not kept.
    fn rest_unpaired(&self, owners: &Slots) -> u32 {
        let mut strays = 0;
        for slot in 0..self.slots() {
            let half = self.read(slot);
            if flow_state(half.word) != FLOW_ACTIVE || half.direction == TO_OUTSIDE {
                continue;
            }
            // One that stayed was joined with it, both ways, and every half to the outside that is active did stay.
            let [_, out] = self.halves_of(FlowHandle(slot as u32));
            let [_, back] = self.halves_of(FlowHandle(out as u32));
            // A half that was never joined points at slot 0, even if it is in slot 0 itself.
            if out == slot || back != slot || !self.is_active(out) {
                self.rest(slot);
                // The other half was counted.
                strays += u32::from(!self.has_gone(&half, owners));
            }
        }
        strays
    }

    /// Whether a half is active.
    pub fn is_active(&self, slot: usize) -> bool {
        flow_state(self.entry(slot).word.load(Acquire)) == FLOW_ACTIVE
    }
}

/// The flow that a half belongs to, by its own fields.
fn flow_of(half: &Flow, owners: &Slots) -> Option<OffloadedFlow> {
    let port = u16::from_be;
    let address = |octets: u32| Ipv4Addr::from(octets.to_ne_bytes());
    Some(OffloadedFlow {
        mechanism: owners.owner(half.mechanism)?,
        protocol: NatProtocol::of(half.protocol)?,
        inside: Inside(Endpoint6::new(Ipv6Addr::from(half.inside), port(half.inside_port))),
        outside: Outside(Endpoint4::new(address(half.outside), port(half.outside_port))),
        remote: Endpoint4::new(address(half.remote), port(half.remote_port)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Config, KIND_NAT64, flow_word};
    use sixway_dataplane::mechanism::identity::Identity;

    fn table() -> FlowTable {
        let table = FlowTable::anonymous(100).unwrap();
        let mut config = Config::zero();
        (config.translators[0].kind, config.translators[0].length) = (KIND_NAT64, 96);
        config.translators[0].prefix[..4].copy_from_slice(&[0, 0x64, 0xff, 0x9b]);
        config.translators[0].identity = nat64().number();
        table.set_translators(&config);
        table
    }

    fn nat64() -> Identity {
        Identity::of_nat64("64:ff9b::/96".parse().unwrap())
    }

    fn flow(port: u16) -> OffloadedFlow {
        OffloadedFlow {
            mechanism: nat64(),
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new(Ipv6Addr::LOCALHOST, port)),
            outside: Outside(Endpoint4::new(Ipv4Addr::LOCALHOST, port)),
            remote: Endpoint4::new(Ipv4Addr::BROADCAST, 53),
        }
    }

    /// An active flow.
    fn arm(table: &FlowTable, port: u16) -> [usize; 2] {
        let slots = table.halves_of(table.arm(&flow(port)).unwrap());
        for slot in slots {
            table.force(slot);
        }
        slots
    }

    #[test]
    fn what_a_killed_worker_was_writing_is_free_immediately() {
        let table = table();
        let whole = arm(&table, 1);
        let broken = arm(&table, 2);
        table.entry(broken[0]).word.store(flow_word(FLOW_BUSY, 0), Release);
        let adopted = table.adopt(|_, _, _| true);
        assert_eq!((adopted.kept, adopted.refused, adopted.strays), (1, 0, 2));
        assert!(whole.iter().all(|slot| table.is_active(*slot)));
        let state = |slot: usize| flow_state(table.read(slot).word);
        assert_eq!(broken.map(state), [FLOW_FREE, FLOW_RESTING]);
    }

    #[test]
    fn a_half_in_the_first_place_is_not_taken_for_its_own_other_half() {
        // Where halves lie is by chance.
        let first = (0..10_000).find_map(|_| {
            let table = table();
            let slots = arm(&table, 1);
            (slots[1] == 0).then_some((table, slots))
        });
        let (table, slots) = first.expect("one of a hundred lies there");
        table.entry(slots[0]).delta.store(7, Release);
        let adopted = table.adopt(|_, _, _| panic!("it is not whole"));
        assert_eq!((adopted.kept, adopted.strays), (0, 2));
        assert!(!slots.iter().any(|slot| table.is_active(*slot)));
    }

    #[test]
    fn a_half_that_says_something_else_than_the_other_is_not_adopted() {
        for change in 0..4 {
            let table = table();
            let [out, into] = arm(&table, 1);
            match change {
                0 => table.entry(out).delta.store(7, Release),
                1 => table.entry(into).delta.store(7, Release),
                2 => table.entry(into).outside_port.store(7, Release),
                _ => table.entry(out).mechanism.store(1, Release),
            }
            let adopted = table.adopt(|_, _, _| panic!("{change}"));
            assert_eq!((adopted.kept, adopted.strays), (0, 2), "{change}");
        }
    }

    #[test]
    fn what_was_not_adopted_yet_is_not_listed() {
        let table = table();
        let slots = [arm(&table, 1), arm(&table, 2)];
        table.join(slots[0][0], 0);
        assert_eq!(table.entries().filter(|(handle, ..)| handle.0 as usize == slots[0][0]).count(), 0);
        table.adopt(|_, _, _| true);
        assert_eq!(table.entries().count(), 2);
    }
}
