//! Names and what lies below them: the longest match, by one lookup for each length that occurs.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Values at names in lower-case wire form (RFC 1035 §3.1); each is valid for all names below too, until a longer one takes over.
#[derive(Clone, Debug)]
pub(in crate::dns64) struct Names<V> {
    values: HashMap<Box<[u8]>, V, FixedState>,
    /// Bit n: there is a name of n labels.
    lengths: u128,
}

impl<V> Default for Names<V> {
    fn default() -> Self {
        Self { values: HashMap::with_hasher(FixedState::default()), lengths: 0 }
    }
}

impl<V> Names<V> {
    /// Puts a value at a name; what was there before comes back.
    pub(in crate::dns64) fn insert(&mut self, name: &[u8], value: V) -> Option<V> {
        self.lengths |= 1 << labels(name);
        self.values.insert(name.into(), value)
    }

    /// The value at exactly this name.
    pub(in crate::dns64) fn at_mut(&mut self, name: &[u8]) -> Option<&mut V> {
        self.values.get_mut(name)
    }

    /// The value at the longest of the names that are this one or above it.
    pub(in crate::dns64) fn longest(&self, name: &[u8]) -> Option<&V> {
        self.above(name).next()
    }

    /// The values at this name and at those above it, the longest first.
    pub(in crate::dns64) fn above<'a, 'n>(
        &'a self,
        name: &'n [u8],
    ) -> impl Iterator<Item = &'a V> + use<'a, 'n, V> {
        let lengths = if self.values.is_empty() { 0 } else { self.lengths };
        let mut count = if lengths == 0 { 0 } else { labels(name) };
        let mut rest = (lengths != 0).then_some(name);
        std::iter::from_fn(move || {
            while let Some(suffix) = rest {
                let wanted = lengths & (1 << count) != 0;
                rest = parent(suffix);
                count = count.saturating_sub(1);
                if let Some(value) = wanted.then(|| self.values.get(suffix)).flatten() {
                    return Some(value);
                }
            }
            None
        })
    }
}

/// The name without its first label; `None` for the root.
pub(in crate::dns64) fn parent(name: &[u8]) -> Option<&[u8]> {
    match name.first() {
        None | Some(0) => None,
        Some(length) => name.get(usize::from(*length) + 1..).filter(|rest| !rest.is_empty()),
    }
}

/// How many labels the name has, the root's not counted; at most 127 (RFC 1035 §3.1).
fn labels(name: &[u8]) -> u32 {
    let mut count = 0;
    let mut rest = name;
    while let Some(above) = parent(rest) {
        (count, rest) = (count + 1, above);
    }
    count.min(127)
}

#[cfg(test)]
mod tests {
    use super::super::wire;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_name_wins_and_what_is_next_to_it_does_not_match() {
        let mut names = Names::default();
        for (value, name) in ["example", "corp.example", "b.corp.example"].into_iter().enumerate() {
            assert_eq!(names.insert(&wire(name), value), None);
        }
        assert_eq!(names.longest(&wire("a.b.corp.example")), Some(&2));
        assert_eq!(names.longest(&wire("corp.example")), Some(&1));
        assert_eq!(names.longest(&wire("xcorp.example")), Some(&0));
        assert_eq!(names.longest(&wire("test")), None);
        assert_eq!(names.above(&wire("b.corp.example")).copied().collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn the_root_is_above_all_names() {
        let mut names = Names::default();
        assert_eq!(names.longest(&wire("")), None::<&u8>);
        names.insert(&wire(""), 7);
        assert_eq!(names.longest(&wire("")), Some(&7));
        assert_eq!(names.longest(&wire("a.example")), Some(&7));
    }

    #[test]
    fn a_name_of_127_labels_is_looked_up() {
        let mut names = Names::default();
        names.insert(&wire("a"), 1);
        let longest = [[1, b'a']; 127].concat().into_iter().chain([0]).collect::<Vec<_>>();
        assert_eq!(names.longest(&longest), Some(&1));
        names.insert(&longest, 2);
        assert_eq!(names.longest(&longest), Some(&2));
    }

    proptest! {
        #[test]
        fn the_longest_match_is_what_a_look_at_each_name_finds(
            listed in prop::collection::vec("([ab]\\.){0,3}[ab]", 0..8), asked in "([ab]\\.){0,4}[ab]"
        ) {
            let mut names = Names::default();
            for name in &listed {
                names.insert(&wire(name), name.clone());
            }
            let slow = listed.iter().filter(|name| format!(".{asked}").ends_with(&format!(".{name}"))).max_by_key(|name| name.len());
            prop_assert_eq!(names.longest(&wire(&asked)), slow);
        }

        #[test]
        fn no_octets_lead_astray(name in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut names = Names::default();
            names.insert(&wire("a"), 1);
            let _ = names.longest(&name);
        }
    }
}
