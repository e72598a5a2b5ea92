//! Which stateful translator each slot of the programs' table of translators is for.
//!
//! Flows name their translator by its slot, and outlive the process that made them. So a slot belongs to the same translator from one
//! process to the next, whatever the order of the configuration; the table of that is in the control map.

use crate::layout::TRANSLATORS;
use sixway_dataplane::mechanism::identity::Identity;

/// The slots' owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots([Option<Identity>; TRANSLATORS]);

/// Where translators are put, in the order of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotAssignment {
    /// The slot of each stateful one; `None`: there was no room.
    pub stateful: Vec<Option<usize>>,
    /// The slots of the stateless ones, as far as there was room.
    pub stateless: Vec<usize>,
}

impl Slots {
    /// From the numbers in the control map; 0: no owner.
    pub(crate) fn from_numbers(numbers: [u64; TRANSLATORS]) -> Self {
        Self(numbers.map(Identity::from_number))
    }

    /// The numbers in the control map.
    pub(crate) fn numbers(&self) -> [u64; TRANSLATORS] {
        self.0.map(|owner| owner.map_or(0, Identity::number))
    }

    /// Whose a slot is.
    pub fn owner(&self, slot: u8) -> Option<Identity> {
        self.0.get(usize::from(slot)).copied().flatten()
    }

    /// The slot of a translator.
    pub fn slot(&self, of: Identity) -> Option<usize> {
        self.0.iter().position(|owner| *owner == Some(of))
    }

    /// Assigns slots. A known translator keeps its slot; a new one gets a slot without an owner, or else one whose owner is no longer
    /// configured. Stateless translators, which flows never name, get what is left.
    pub(crate) fn place(&self, stateful: &[Identity], stateless: usize) -> SlotAssignment {
        let mut taken = [false; TRANSLATORS];
        let mut placed: Vec<Option<usize>> = stateful.iter().map(|identity| self.slot(*identity)).collect();
        placed.iter().flatten().for_each(|slot| taken[*slot] = true);
        for place in placed.iter_mut().filter(|place| place.is_none()) {
            let free = || (0..TRANSLATORS).filter(|slot| !taken[*slot]);
            *place = free().find(|slot| self.0[*slot].is_none()).or_else(|| free().next());
            place.iter().for_each(|slot| taken[*slot] = true);
        }
        let left = (0..TRANSLATORS).filter(|slot| !taken[*slot]);
        SlotAssignment { stateful: placed, stateless: left.take(stateless).collect() }
    }
}

impl FromIterator<(usize, Identity)> for Slots {
    fn from_iter<I: IntoIterator<Item = (usize, Identity)>>(owners: I) -> Self {
        let mut slots = Self::default();
        for (slot, owner) in owners {
            slots.0[slot] = Some(owner);
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nat64(number: u16) -> Identity {
        Identity::of_nat64(format!("2001:db8:{number:x}::/96").parse().unwrap())
    }

    fn placed(before: &Slots, stateful: &[u16], stateless: usize) -> (Vec<Option<usize>>, Vec<usize>) {
        let identities: Vec<_> = stateful.iter().map(|number| nat64(*number)).collect();
        let SlotAssignment { stateful, stateless } = before.place(&identities, stateless);
        (stateful, stateless)
    }

    #[test]
    fn without_a_process_before_the_order_is_that_of_the_configuration() {
        let none = Slots::default();
        assert_eq!(placed(&none, &[1, 2], 3), (vec![Some(0), Some(1)], vec![2, 3, 4]));
        assert_eq!(placed(&none, &[], 9), (vec![], (0..TRANSLATORS).collect()));
    }

    #[test]
    fn who_was_there_stays_where_it_was_in_whatever_order() {
        let before: Slots = [(0, nat64(1)), (1, nat64(2)), (5, nat64(3))].into_iter().collect();
        assert_eq!(placed(&before, &[3, 2, 1], 2), (vec![Some(5), Some(1), Some(0)], vec![2, 3]));
        assert_eq!(placed(&before, &[2], 2), (vec![Some(1)], vec![0, 2]));
    }

    #[test]
    fn who_is_new_has_a_slot_of_nobodys_before_one_whose_owner_is_gone() {
        let before: Slots = [(0, nat64(1)), (1, nat64(2))].into_iter().collect();
        assert_eq!(placed(&before, &[9, 2], 1), (vec![Some(2), Some(1)], vec![0]));
        let full: Slots = (0..TRANSLATORS).map(|slot| (slot, nat64(slot as u16))).collect();
        assert_eq!(placed(&full, &[9, 1, 0], 1), (vec![Some(2), Some(1), Some(0)], vec![3]));
        let ten: Vec<u16> = (0..10).collect();
        let (stateful, stateless) = placed(&full, &ten, 1);
        assert_eq!((&stateful[8..], stateless), (&[None, None][..], vec![]));
    }
}
