//! Names that are known not to exist, so that names below them are not queried (RFC 8020).
//!
//! An answer is kept by name and type. This table has the type with which a name was denied, so that its answer is found for names below. A
//! full set of the table forgets its notes in turn; that costs a question.

use crate::dns64::key::Key;
use crate::dns64::name::labels;
use crate::dns64::query::IN;
use foldhash::quality::FixedState;
use std::hash::BuildHasher;

/// Room for 16,384 names, 16 octets each.
const WAYS: usize = 8;
const SETS: usize = 2_048;

#[derive(Clone, Copy, Debug, Default)]
struct Note {
    /// Zero: the place is free.
    name: u64,
    qtype: u16,
}

/// The names.
#[derive(Debug)]
pub struct NameErrors {
    hasher: FixedState,
    /// Empty as long as no name was noted.
    notes: Vec<Note>,
    turn: usize,
}

impl NameErrors {
    /// Without any. The seed must be secret.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), notes: Vec::new(), turn: 0 }
    }

    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name).max(1)
    }

    fn set(hash: u64) -> std::ops::Range<usize> {
        let first = (hash as usize % SETS) * WAYS;
        first..first + WAYS
    }

    /// A name does not exist, as the answer to this question says.
    pub fn note(&mut self, key: &Key) {
        if key.qclass() != IN || key.checking_disabled() {
            return;
        }
        if self.notes.is_empty() {
            self.notes = vec![Note::default(); WAYS * SETS];
        }
        let note = Note { name: self.hash(key.name()), qtype: key.qtype() };
        let set = &mut self.notes[Self::set(note.name)];
        let place = set.iter().position(|other| other.name == note.name || other.name == 0);
        self.turn = (self.turn + 1) % WAYS;
        set[place.unwrap_or(self.turn)] = note;
    }

    /// Under which questions the names above this question's may have been denied, the nearest first. The answers are to be examined.
    pub fn above<'k>(&'k self, key: &'k Key) -> impl Iterator<Item = Key> + 'k {
        let is_of_interest = !self.notes.is_empty() && key.qclass() == IN && !key.checking_disabled();
        let above = labels(key.name()).skip(1).filter(move |_| is_of_interest);
        above.filter_map(|start| {
            let name = &key.name()[start..];
            let hash = self.hash(name);
            let note = self.notes.get(Self::set(hash))?.iter().find(|note| note.name == hash)?;
            Some(Key::of(name, note.qtype, IN, false))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, qtype: u16) -> Key {
        let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
        Key::of(&labels.chain([0]).collect::<Vec<_>>(), qtype, IN, false)
    }

    #[test]
    fn a_name_is_found_from_below_and_with_the_type_it_was_denied_with() {
        let mut names = NameErrors::new(7);
        assert_eq!(names.above(&key("a.b.test", 1)).count(), 0);
        names.note(&key("b.test", 28));
        names.note(&key("b.test", 1));
        names.note(&Key::of(key("test", 1).name(), 1, IN, true));
        let above = |name: &str| names.above(&key(name, 16)).collect::<Vec<_>>();
        assert_eq!(above("x.a.b.test"), [key("b.test", 1)]);
        assert!(above("b.test").is_empty() && above("xb.test").is_empty() && above("test").is_empty());
        assert_eq!(names.above(&Key::of(key("a.b.test", 1).name(), 1, IN, true)).count(), 0, "CD=1");
    }

    #[test]
    fn no_more_than_the_bound_are_noted() {
        let mut names = NameErrors::new(7);
        (0..100_000).for_each(|number| names.note(&key(&format!("n{number}.test"), 1)));
        assert_eq!(names.notes.len(), WAYS * SETS);
        let found =
            (0..100_000).filter(|number| names.above(&key(&format!("x.n{number}.test"), 1)).count() > 0);
        assert!((14_000..=WAYS * SETS).contains(&found.count()));
    }
}
