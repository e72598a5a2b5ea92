//! A table whose entries are found by a number that is not used again.

/// The number is the place in the low 32 bits, and how often the place was taken before in the high ones.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

fn place_of(number: u64) -> (usize, u32) {
    (number as u32 as usize, (number >> 32) as u32)
}

impl<T> Numbered<T> {
    /// The number that the next entry gets.
    pub(super) fn next(&self) -> u64 {
        let place = self.free.last().copied().unwrap_or(self.places.len() as u32);
        let taken = self.places.get(place as usize).map_or(0, |(taken, _)| *taken);
        u64::from(taken) << 32 | u64::from(place)
    }

    pub(super) fn insert(&mut self, entry: T) -> u64 {
        let number = self.next();
        match self.free.pop() {
            Some(place) => self.places[place as usize].1 = Some(entry),
            None => self.places.push((0, Some(entry))),
        }
        number
    }

    /// Uses up a number without an entry.
    pub(super) fn skip(&mut self) -> u64 {
        let number = self.next();
        let (place, _) = place_of(number);
        match self.places.get_mut(place) {
            Some((taken, _)) => *taken = taken.wrapping_add(1),
            None => {
                self.places.push((1, None));
                self.free.push(place as u32);
            }
        }
        number
    }

    pub(super) fn find(&self, number: u64) -> Option<&T> {
        let (place, taken) = place_of(number);
        self.places.get(place).filter(|entry| entry.0 == taken).and_then(|(_, entry)| entry.as_ref())
    }

    pub(super) fn find_mut(&mut self, number: u64) -> Option<&mut T> {
        let (place, taken) = place_of(number);
        self.places.get_mut(place).filter(|entry| entry.0 == taken).and_then(|(_, entry)| entry.as_mut())
    }

    /// All entries and their numbers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(place, (taken, entry))| {
            let number = u64::from(*taken) << 32 | place as u64;
            entry.as_mut().map(|entry| (number, entry))
        })
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let (place, taken) = place_of(number);
        let (times, entry) = self.places.get_mut(place).filter(|entry| entry.0 == taken)?;
        let entry = entry.take()?;
        *times = times.wrapping_add(1);
        self.free.push(place as u32);
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_found_again_after_its_entry_has_gone() {
        let mut table = Numbered::default();
        let (a, b) = (table.insert('a'), table.insert('b'));
        assert_eq!((table.find(a), table.find(b), table.len()), (Some(&'a'), Some(&'b'), 2));
        assert_eq!(table.remove(a), Some('a'));
        assert!(table.remove(a).is_none() && table.find_mut(a).is_none() && table.len() == 1);
        let c = table.insert('c');
        assert!(c != a && table.find(a).is_none());
        assert_eq!(table.find(c), Some(&'c'));
    }

    #[test]
    fn a_skipped_number_is_nobodys() {
        let mut table = Numbered::default();
        let numbers = [table.skip(), table.skip(), table.insert('a'), table.skip(), table.insert('b')];
        let found: Vec<_> = numbers.iter().map(|number| table.find(*number).copied()).collect();
        assert_eq!(found, [None, None, Some('a'), None, Some('b')]);
        assert_eq!(table.len(), 2);
    }
}
