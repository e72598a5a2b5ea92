//! The cache key of an answer: name, type, class, and whether checking was disabled.

use super::name::LONGEST_NAME;

/// Type and class, behind the name.
const BEHIND_NAME: usize = 4;

/// A question as the cache knows it: CD, the name in lower case, type and class, in one row of octets that needs no allocation.
///
/// Name, type and class are stored as in a message's question, so what was written to follow that can be kept behind the key. A name
/// ends with its root label, so no key's octets begin another's.
#[derive(Clone, Copy)]
pub struct Key {
    octets: [u8; 1 + LONGEST_NAME + BEHIND_NAME],
    length: u16,
}

impl Key {
    /// The key of a question. What is behind the 255th octet of a name is left out; [`measure`](super::name::measure) says whether it is a name.
    #[must_use]
    pub fn of(name: &[u8], qtype: u16, qclass: u16, checking_disabled: bool) -> Self {
        let name = &name[..name.len().min(LONGEST_NAME)];
        let mut octets = [0; 1 + LONGEST_NAME + BEHIND_NAME];
        let behind = 1 + name.len();
        octets[0] = u8::from(checking_disabled);
        octets[1..behind].copy_from_slice(name);
        octets[1..behind].make_ascii_lowercase();
        octets[behind..behind + 2].copy_from_slice(&qtype.to_be_bytes());
        octets[behind + 2..behind + 4].copy_from_slice(&qclass.to_be_bytes());
        Self { octets, length: (behind + BEHIND_NAME) as u16 }
    }

    /// The same question for another type.
    #[must_use]
    pub fn with_type(&self, qtype: u16) -> Self {
        let mut other = *self;
        let at = 1 + self.name().len();
        other.octets[at..at + 2].copy_from_slice(&qtype.to_be_bytes());
        other
    }

    /// The same question about another name.
    #[must_use]
    pub fn with_name(&self, name: &[u8]) -> Self {
        Self::of(name, self.qtype(), self.qclass(), self.checking_disabled())
    }

    /// The name in lower case, root label included.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let octets = self.octets();
        &octets[1..octets.len() - BEHIND_NAME]
    }

    /// QTYPE.
    #[must_use]
    pub fn qtype(&self) -> u16 {
        self.field(0)
    }

    /// QCLASS.
    #[must_use]
    pub fn qclass(&self) -> u16 {
        self.field(2)
    }

    /// Whether it was queried with CD=1.
    #[must_use]
    pub fn checking_disabled(&self) -> bool {
        self.octets[0] != 0
    }

    /// CD, name, type and class.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }

    fn field(&self, at: usize) -> u16 {
        let at = 1 + self.name().len() + at;
        u16::from_be_bytes([self.octets[at], self.octets[at + 1]])
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.octets() == other.octets()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.octets().cmp(other.octets())
    }
}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(self.octets());
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, qtype, qclass) = (self.name().escape_ascii(), self.qtype(), self.qclass());
        write!(f, "Key({name} type {qtype} class {qclass} CD {})", u8::from(self.checking_disabled()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ignores_case_and_nothing_else() {
        let key = Key::of(b"\x03WwW\x03org\0", 28, 1, false);
        assert_eq!(key, Key::of(b"\x03www\x03ORG\0", 28, 1, false));
        assert_eq!(key.name(), b"\x03www\x03org\0");
        assert_eq!((key.qtype(), key.qclass(), key.checking_disabled()), (28, 1, false));
        assert_ne!(key, Key::of(b"\x03www\x03org\0", 1, 1, false));
        assert_ne!(key, Key::of(b"\x03www\x03org\0", 28, 3, false));
        assert_ne!(key, Key::of(b"\x03www\x03org\0", 28, 1, true));
        assert_eq!(key.with_type(1), Key::of(b"\x03www\x03org\0", 1, 1, false));
        assert_eq!(key.with_name(b"\0").octets(), [0, 0, 0, 28, 0, 1]);
    }

    #[test]
    fn the_longest_name_has_a_key() {
        let name = [&[&[63][..], &[b'A'; 63]].concat().repeat(3)[..], &[61], &[b'B'; 61], &[0]].concat();
        let key = Key::of(&name, 1, 1, true);
        assert_eq!((key.name().len(), key.octets().len(), key.checking_disabled()), (255, 260, true));
        assert_eq!(key.name(), name.to_ascii_lowercase());
    }
}
