//! Zones that are signed here, so that they can be signed as only an attacker does.

use super::*;
use crate::anchor::{Anchor, AnchorKey};
use crate::wire::Wire;
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::collections::BTreeMap;

pub(super) const A: u16 = 1;
pub(super) const NS: u16 = 2;
pub(super) const CNAME: u16 = 5;
pub(super) const SOA: u16 = 6;
pub(super) const DNAME: u16 = 39;
pub(super) const DS: u16 = 43;
pub(super) const RRSIG: u16 = 46;
pub(super) const NSEC: u16 = 47;
pub(super) const DNSKEY: u16 = 48;
pub(super) const NSEC3: u16 = 50;

/// A record of a message that is being made.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) owner: Vec<u8>,
    pub(super) rtype: u16,
    pub(super) rdata: Vec<u8>,
}

pub(super) fn record(owner: &str, rtype: u16, rdata: &[u8]) -> Record {
    Record { owner: wire(owner), rtype, rdata: rdata.to_vec() }
}

/// A zone's only key, Ed25519.
pub(super) struct Signer {
    pub(super) zone: &'static str,
    pub(super) flags: u16,
    pair: Ed25519KeyPair,
}

/// What a signature says, beyond who made it.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) inception: u32,
    pub(super) expiration: u32,
    pub(super) ttl: u32,
    /// `None`: as many as the owner has.
    pub(super) labels: Option<u8>,
}

pub(super) const TERMS: Terms =
    Terms { inception: WALL as u32 - 3600, expiration: WALL as u32 + 3600, ttl: 300, labels: None };

impl Signer {
    pub(super) fn new(zone: &'static str, seed: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a seed");
        Self { zone, flags: 0x0101, pair }
    }

    pub(super) fn dnskey(&self) -> Vec<u8> {
        [&self.flags.to_be_bytes()[..], &[3, 15], self.pair.public_key().as_ref()].concat()
    }

    pub(super) fn tag(&self) -> u16 {
        crate::validator::zone::key_tag(&self.dnskey())
    }

    pub(super) fn ds(&self) -> Record {
        let digest = ring::digest::digest(&ring::digest::SHA256, &[wire(self.zone), self.dnskey()].concat());
        record(self.zone, DS, &[&self.tag().to_be_bytes()[..], &[15, 2], digest.as_ref()].concat())
    }

    pub(super) fn anchor(&self) -> Anchor {
        Anchor { zone: Wire(wire(self.zone).into()), key: AnchorKey::Dnskey(self.dnskey().into()) }
    }

    /// The set, and its signature.
    pub(super) fn sign(&self, set: &[Record]) -> Vec<Record> {
        self.sign_by(set, TERMS)
    }

    pub(super) fn sign_by(&self, set: &[Record], terms: Terms) -> Vec<Record> {
        let Record { owner, rtype, .. } = &set[0];
        let stars = usize::from(owner.starts_with(b"\x01*"));
        let labels = terms.labels.unwrap_or((crate::name::count(owner) - stars) as u8);
        let mut rdata = [&rtype.to_be_bytes()[..], &[15, labels], &terms.ttl.to_be_bytes()].concat();
        rdata.extend([terms.expiration.to_be_bytes(), terms.inception.to_be_bytes()].concat());
        rdata.extend(self.tag().to_be_bytes());
        rdata.extend(wire(self.zone));
        let mut data = rdata.clone();
        for Record { rdata, .. } in set {
            let signed = crate::name::last(owner, labels.into());
            let is_whole = signed.len() + 2 * stars == owner.len() || signed == &owner[..];
            data.extend(if is_whole { owner.clone() } else { [b"\x01*", signed].concat() });
            data.extend([&rtype.to_be_bytes()[..], &[0, 1], &terms.ttl.to_be_bytes()].concat());
            data.extend((rdata.len() as u16).to_be_bytes());
            data.extend(rdata);
        }
        rdata.extend(self.pair.sign(&data).as_ref());
        let signature = Record { owner: owner.clone(), rtype: RRSIG, rdata };
        set.iter().cloned().chain([signature]).collect()
    }

    /// An NSEC record at `owner`, signed.
    pub(super) fn nsec(&self, owner: &str, next: &str, types: &[u16]) -> Vec<Record> {
        self.sign(&[record(owner, NSEC, &[wire(next), bit_map(types)].concat())])
    }

    /// An NSEC3 record of this zone for the hash of `name`, signed. It has no salt and no further iterations.
    pub(super) fn nsec3(&self, name: &str, hashes: Hashes, types: &[u16]) -> Vec<Record> {
        self.sign(&[nsec3(self.zone, name, hashes, types)])
    }

    /// The zone's SOA record, signed.
    pub(super) fn soa(&self) -> Vec<Record> {
        self.sign(&[record(self.zone, SOA, &[&[0, 0][..], &[0; 18], &[1, 0]].concat())])
    }
}

/// What an NSEC3 record says of the hash of a name.
#[derive(Clone, Copy)]
pub(super) enum Hashes {
    /// It is the record's owner, and nothing is between it and the next number.
    Match,
    /// It is between the record's owner and the next hash.
    Cover,
}

/// An NSEC3 record in `zone` for the hash of `name`.
pub(super) fn nsec3(zone: &str, name: &str, hashes: Hashes, types: &[u16]) -> Record {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &wire(name));
    let mut from: [u8; 20] = digest.as_ref().try_into().expect("20 octets");
    let mut next = from;
    // Next to the hash, if it ends in neither 0 nor 255, as none here does.
    next[19] += 1;
    match hashes {
        Hashes::Match => {}
        Hashes::Cover => from[19] -= 1,
    }
    let rdata = [&[1, 0, 0, 0, 0, 20][..], &next, &bit_map(types)].concat();
    record(&format!("{}.{zone}", base32hex(&from)), NSEC3, &rdata)
}

/// RFC 4648 §7, in lower case.
fn base32hex(octets: &[u8; 20]) -> String {
    let five = |octets: &[u8]| octets.iter().fold(0_u64, |bits, octet| bits << 8 | u64::from(*octet));
    let digit = |bits: u64, place: u32| {
        char::from(b"0123456789abcdefghijklmnopqrstuv"[(bits >> (35 - 5 * place)) as usize & 31])
    };
    octets.chunks(5).flat_map(|part| (0..8).map(move |place| digit(five(part), place))).collect()
}

/// A type bit map, of types below 256.
fn bit_map(types: &[u16]) -> Vec<u8> {
    let mut map = vec![0, 32];
    map.resize(34, 0);
    for rtype in types {
        map[2 + usize::from(rtype / 8)] |= 0x80 >> (rtype % 8);
    }
    map
}

/// A message with these records.
pub(super) fn message(rcode: u8, answer: &[Record], authority: &[Record]) -> Vec<u8> {
    let counts = [answer.len() as u16, authority.len() as u16].map(u16::to_be_bytes).concat();
    let mut message = [&[0, 0, 0x81, 0x80 | rcode, 0, 0][..], &counts, &[0, 0]].concat();
    for Record { owner, rtype, rdata } in answer.iter().chain(authority) {
        message.extend([&owner[..], &rtype.to_be_bytes(), &[0, 1], &300_u32.to_be_bytes()].concat());
        message.extend((rdata.len() as u16).to_be_bytes());
        message.extend(rdata);
    }
    message
}

pub(super) fn reply(rcode: u8, answer: &[Record], authority: &[Record]) -> Reply {
    Reply::read(&message(rcode, answer, authority)).expect("it can be read")
}

/// What lookups find.
#[derive(Default)]
pub(super) struct World {
    pub(super) lookups: BTreeMap<(Vec<u8>, u16), Reply>,
    pub(super) asked: usize,
}

impl Upstream for World {
    fn answer(&mut self, lookup: &Lookup) -> Option<Reply> {
        self.asked += 1;
        self.lookups.get(&(lookup.name.0.to_vec(), lookup.qtype)).cloned()
    }
}

impl World {
    pub(super) fn tell(&mut self, name: &str, qtype: u16, reply: Reply) {
        self.lookups.insert((wire(name), qtype), reply);
    }

    /// The keys of a zone, and, if it is below another, its DS record.
    pub(super) fn add(&mut self, child: &Signer, parent: Option<&Signer>) {
        self.tell(
            child.zone,
            DNSKEY,
            reply(0, &child.sign(&[record(child.zone, DNSKEY, &child.dnskey())]), &[]),
        );
        if let Some(parent) = parent {
            self.tell(child.zone, DS, reply(0, &parent.sign(&[child.ds()]), &[]));
        }
    }
}

/// An anchored zone, `test`, with two signed zones below it, `good.test` and `evil.test`.
pub(super) struct Tree {
    pub(super) root: Signer,
    pub(super) good: Signer,
    pub(super) evil: Signer,
    pub(super) world: World,
}

impl Tree {
    pub(super) fn new() -> Self {
        let (root, good, evil) =
            (Signer::new("test", 1), Signer::new("good.test", 2), Signer::new("evil.test", 3));
        let mut world = World::default();
        world.add(&root, None);
        world.add(&good, Some(&root));
        world.add(&evil, Some(&root));
        for (name, next) in [("insecure.test", "j.test"), ("www.test", "x.test")] {
            let types: &[u16] = if name == "insecure.test" { &[NS, RRSIG, NSEC] } else { &[A, RRSIG, NSEC] };
            let authority = [root.soa(), root.nsec(name, next, types)].concat();
            world.tell(name, DS, reply(0, &[], &authority));
        }
        for (name, next) in [("www.good.test", "x.good.test"), ("a.good.test", "b.good.test")] {
            world.tell(name, DS, reply(0, &[], &good.nsec(name, next, &[A, RRSIG, NSEC])));
        }
        Self { root, good, evil, world }
    }

    /// What becomes of an answer about a name.
    pub(super) fn verdict(&mut self, name: &str, qtype: u16, reply: Reply) -> Verdict {
        let mut validator = Validator::new(vec![self.root.anchor()], Vec::new());
        validate_at(&mut validator, &mut self.world, WALL, (name, qtype), reply)
    }

    /// The same, if it is bogus: why.
    pub(super) fn bogus(&mut self, name: &str, qtype: u16, reply: Reply) -> Option<u16> {
        let verdict = self.verdict(name, qtype, reply);
        verdict.extended_error.filter(|_| verdict.security == Security::Bogus)
    }
}
