//! Proofs by NSEC3 records (RFC 5155 §8, RFC 9276).

use super::super::fault::Fault;
use super::super::limits::{self, Work};
use super::denied::{Denied, NoDs};
use super::type_bitmap::Types;
use crate::name;
use domain::crypto::common::{DigestBuilder, DigestType};

/// RFC 5155 §11: the hash algorithm SHA-1; its octets.
const SHA1: (u8, usize) = (1, 20);
/// RFC 5155 §3.1.2.1.
const OPT_OUT: u8 = 1;

/// The NSEC3 records of one zone, all with the same salt and iterations (RFC 5155 §8.2).
#[derive(Debug)]
pub(super) struct Nsec3s<'a> {
    zone: &'a [u8],
    iterations: u16,
    salt: &'a [u8],
    records: Vec<Nsec3<'a>>,
}

/// An NSEC3 record (RFC 5155 §3) that its zone has signed.
#[derive(Debug)]
struct Nsec3<'a> {
    hash: Hash,
    next: &'a [u8],
    opt_out: bool,
    types: Types<'a>,
}

type Hash = [u8; SHA1.1];

/// The nearest name above one that does not exist that does, and whether opt-out leaves room for a delegation between them.
struct Encloser<'n> {
    name: &'n [u8],
    opt_out: bool,
}

/// How a name that exists, or does not, was found.
enum Found<'r, 'a, 'n> {
    Itself(&'r Nsec3<'a>),
    Above(Encloser<'n>),
}

impl<'a> Nsec3s<'a> {
    /// Those of the zone; none yet.
    pub(super) fn of(zone: &'a [u8]) -> Self {
        Self { zone, iterations: 0, salt: &[], records: Vec::new() }
    }

    /// From RDATA. A record that is malformed, has another hash algorithm, unknown flags, or parameters that differ from the first is ignored
    /// (RFC 5155 §8.1 and 8.2).
    pub(super) fn admit(&mut self, owner: &'a [u8], rdata: &'a [u8]) {
        let Some((record, iterations, salt)) = read(self.zone, owner, rdata) else { return };
        if self.records.is_empty() {
            (self.iterations, self.salt) = (iterations, salt);
        }
        if (self.iterations, self.salt) == (iterations, salt) {
            self.records.push(record);
        }
    }

    /// RFC 5155 §8.4.
    pub(super) fn name_error(&self, name: &[u8], work: &mut Work) -> Result<Option<Denied>, Fault> {
        if self.is_costly() {
            return Ok(Some(Denied::Iterations));
        }
        let Some(Found::Above(encloser)) = self.find(name, work)? else { return Ok(None) };
        let Some(wildcard) = name::wildcard(encloser.name) else { return Ok(Some(encloser.denied())) };
        let covered = self.covering(&self.hash(&wildcard.0, work)?);
        Ok(covered.map(|_| encloser.denied()))
    }

    /// RFC 5155 §8.5 to 8.7. Opt-out may cover an empty name above unsigned delegations, too (erratum 3441).
    pub(super) fn no_data(&self, name: &[u8], qtype: u16, work: &mut Work) -> Result<Option<Denied>, Fault> {
        if self.is_costly() {
            return Ok(Some(Denied::Iterations));
        }
        let encloser = match self.find(name, work)? {
            Some(Found::Itself(record)) => return Ok(record.types.lack(qtype).then_some(Denied::Surely)),
            Some(Found::Above(encloser)) => encloser,
            None => return Ok(None),
        };
        if encloser.opt_out {
            return Ok(Some(Denied::OptOut));
        }
        let Some(wildcard) = name::wildcard(encloser.name) else { return Ok(None) };
        let matching = self.matching(&self.hash(&wildcard.0, work)?);
        Ok(matching.filter(|record| record.types.lack(qtype)).map(|_| Denied::Surely))
    }

    /// RFC 5155 §8.8: the closest encloser is known from the wildcard's signature.
    pub(super) fn nothing_nearer(
        &self,
        name: &[u8],
        labels: usize,
        work: &mut Work,
    ) -> Result<Option<Denied>, Fault> {
        if self.is_costly() {
            return Ok(Some(Denied::Iterations));
        }
        if self.records.is_empty() {
            return Ok(None);
        }
        let next_closer = name::last(name, labels + 1);
        let covering = self.covering(&self.hash(next_closer, work)?);
        Ok(covering.map(|record| if record.opt_out { Denied::OptOut } else { Denied::Surely }))
    }

    /// RFC 5155 §8.6 and 8.9.
    pub(super) fn no_ds(&self, name: &[u8], work: &mut Work) -> Result<Option<NoDs>, Fault> {
        if self.is_costly() {
            return Ok(Some(NoDs::Iterations));
        }
        Ok(match self.find(name, work)? {
            Some(Found::Itself(record)) => record.types.without_ds(),
            Some(Found::Above(Encloser { opt_out: true, .. })) => Some(NoDs::OptOut),
            Some(Found::Above(_)) => Some(NoDs::Nothing),
            None => None,
        })
    }

    /// RFC 9276 §3.2: more is not computed, and the zone counts as unsigned. The signatures were verified before.
    fn is_costly(&self) -> bool {
        !self.records.is_empty() && self.iterations > limits::ITERATIONS
    }

    /// The name, or the proof that it does not exist: its closest encloser (RFC 5155 §8.3).
    fn find<'n>(&self, name: &'n [u8], work: &mut Work) -> Result<Option<Found<'_, 'a, 'n>>, Fault> {
        if self.records.is_empty() {
            return Ok(None);
        }
        let mut next_closer = None;
        for above in name::upwards(name).take_while(|above| name::is_within(above, self.zone)) {
            let hash = self.hash(above, work)?;
            if let Some(record) = self.matching(&hash) {
                let Some(hash) = next_closer else { return Ok(Some(Found::Itself(record))) };
                if record.types.hides_what_is_below() {
                    return Ok(None);
                }
                let covering = self.covering(&hash);
                let found = |record: &Nsec3<'_>| Encloser { name: above, opt_out: record.opt_out };
                return Ok(covering.map(|record| Found::Above(found(record))));
            }
            next_closer = Some(hash);
        }
        Ok(None)
    }

    fn matching(&self, hash: &Hash) -> Option<&Nsec3<'a>> {
        self.records.iter().find(|record| record.hash == *hash)
    }

    fn covering(&self, hash: &Hash) -> Option<&Nsec3<'a>> {
        self.records.iter().find(|record| record.covers(hash))
    }

    /// RFC 5155 §5.
    fn hash(&self, name: &[u8], work: &mut Work) -> Result<Hash, Fault> {
        work.hash()?;
        let mut hash: Hash = [0; SHA1.1];
        for round in 0..=self.iterations {
            let mut digest = DigestBuilder::new(DigestType::Sha1);
            digest.update(if round == 0 { name } else { &hash });
            digest.update(self.salt);
            hash.copy_from_slice(digest.finish().as_ref());
        }
        Ok(hash)
    }
}

impl Encloser<'_> {
    fn denied(&self) -> Denied {
        if self.opt_out { Denied::OptOut } else { Denied::Surely }
    }
}

impl Nsec3<'_> {
    fn covers(&self, hash: &Hash) -> bool {
        let (after, before) = (*hash > self.hash, hash[..] < *self.next);
        // The last one leads back to the first.
        let is_last = self.next <= &self.hash[..];
        if is_last { after || before } else { after && before }
    }
}

/// RFC 5155 §3.2, with what must be the same in all: iterations and salt.
fn read<'a>(zone: &[u8], owner: &[u8], rdata: &'a [u8]) -> Option<(Nsec3<'a>, u16, &'a [u8])> {
    let (&[algorithm, flags, high, low, salt_length], rest) = rdata.split_first_chunk()?;
    let (salt, rest) = rest.split_at_checked(usize::from(salt_length))?;
    let (&[hash_length], rest) = rest.split_first_chunk()?;
    let (next, types) = rest.split_at_checked(usize::from(hash_length))?;
    if (algorithm, next.len()) != SHA1 || flags & !OPT_OUT != 0 || name::parent(owner)? != zone {
        return None;
    }
    let hash = base32hex(owner.get(1..=usize::from(owner[0]))?)?;
    let record = Nsec3 { hash, next, opt_out: flags & OPT_OUT != 0, types: Types(types) };
    Some((record, u16::from_be_bytes([high, low]), salt))
}

/// RFC 4648 §7, in lower case: 32 digits of five bits make 20 octets.
fn base32hex(digits: &[u8]) -> Option<Hash> {
    let mut hash: Hash = [0; SHA1.1];
    if digits.len() != 32 {
        return None;
    }
    for (eight, octets) in digits.chunks(8).zip(hash.chunks_mut(5)) {
        let mut bits = 0_u64;
        for digit in eight {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'v' => digit - b'a' + 10,
                _ => return None,
            };
            bits = bits << 5 | u64::from(value);
        }
        octets.copy_from_slice(&bits.to_be_bytes()[3..]);
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_in_appendix_a_of_rfc_5155() {
        let salt = [0xaa, 0xbb, 0xcc, 0xdd];
        let zone = Nsec3s { iterations: 12, salt: &salt, ..Nsec3s::of(b"\x07example\0") };
        let mut work = Work::default();
        let hashed = |name: &[u8], work: &mut Work| zone.hash(name, work).ok();
        assert_eq!(hashed(b"\x07example\0", &mut work), base32hex(b"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"));
        assert_eq!(hashed(b"\x01a\x07example\0", &mut work), base32hex(b"35mthgpgcu1qg68fab165klnsnk3dpvl"));
        assert_eq!(
            hashed(b"\x01*\x01w\x07example\0", &mut work),
            base32hex(b"r53bq7cc2uvmubfu5ocmm6pers9tk9en")
        );
    }

    #[test]
    fn the_last_record_covers_both_ends_and_a_lone_one_all_but_itself() {
        let record = |hash: u8, next: &'static [u8; 20]| Nsec3 {
            hash: [hash; 20],
            next,
            opt_out: false,
            types: Types(&[]),
        };
        let last = record(9, &[2; 20]);
        assert!(last.covers(&[10; 20]) && last.covers(&[1; 20]));
        assert!(!last.covers(&[9; 20]) && !last.covers(&[2; 20]) && !last.covers(&[5; 20]));
        let lone = record(2, &[2; 20]);
        assert!(lone.covers(&[1; 20]) && lone.covers(&[3; 20]) && !lone.covers(&[2; 20]));
    }

    #[test]
    fn records_that_are_not_understood_prove_nothing() {
        let owner = [&b"\x20"[..], &[b'0'; 32], b"\x04test\0"].concat();
        let rdata = |algorithm: u8, flags: u8, iterations: u8| {
            [&[algorithm, flags, 0, iterations, 0, 20][..], &[7; 20]].concat()
        };
        let good = rdata(1, 1, 2);
        for (other, admitted) in [
            (rdata(1, 0, 2), 2),
            (rdata(2, 0, 2), 1),
            (rdata(1, 2, 2), 1),
            (rdata(1, 0, 3), 1),
            (vec![1, 0, 0], 1),
        ] {
            let mut records = Nsec3s::of(b"\x04test\0");
            records.admit(&owner, &good);
            records.admit(&owner, &other);
            assert_eq!(records.records.len(), admitted, "{other:?}");
        }
        let mut elsewhere = Nsec3s::of(b"\x05other\0");
        elsewhere.admit(&owner, &good);
        assert!(elsewhere.records.is_empty(), "of another zone");
    }
}
