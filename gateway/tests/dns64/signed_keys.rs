//! A zone's keys, signed by the first of them: Ed25519, whose signatures need no random number (RFC 8080).

use ring::signature::{Ed25519KeyPair, KeyPair};
use std::time::SystemTime;

/// The zone.
pub const ZONE: &[u8] = b"\x04test\0";

const TTL: [u8; 4] = [0, 0, 0x0e, 0x10];

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

/// RDATA of the DNSKEY record of a key that is made of a seed (RFC 4034 §2.1).
pub fn dnskey(seed: u8) -> Vec<u8> {
    [&[1, 1, 3, 15], pair(seed).public_key().as_ref()].concat()
}

/// The same, revoked (RFC 5011 §2.1).
fn revoked(seed: u8) -> Vec<u8> {
    let mut key = dnskey(seed);
    key[1] |= 0x80;
    key
}

/// RFC 4034 Appendix B.
pub fn tag(seed: u8) -> u16 {
    tag_of(&dnskey(seed))
}

fn tag_of(pairs: &[u8]) -> u16 {
    let sum: u32 = pairs.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    (sum + (sum >> 16)) as u16
}

/// The reply to a query for the zone's keys; without the signature if an attacker strips DNSSEC records.
pub fn reply(query: &[u8], seeds: &[u8], signed: bool) -> Vec<u8> {
    let mut keys: Vec<Vec<u8>> = seeds.iter().map(|seed| dnskey(*seed)).collect();
    keys.sort();
    let mut message = query[..12 + ZONE.len() + 4].to_vec();
    message[2..4].copy_from_slice(&[0x85, 0x10]);
    message[4..12].copy_from_slice(&[0, 1, 0, keys.len() as u8 + u8::from(signed), 0, 0, 0, 0]);
    for key in &keys {
        record(&mut message, 48, key);
    }
    if signed {
        record(&mut message, 46, &rrsig(&keys, seeds[0]));
    }
    message
}

fn record(message: &mut Vec<u8>, rtype: u8, data: &[u8]) {
    message.extend([0xc0, 12, 0, rtype, 0, 1]);
    message.extend(TTL);
    message.extend((data.len() as u16).to_be_bytes());
    message.extend(data);
}

/// RFC 4034 §3.1, from an hour ago to tomorrow.
fn rrsig(keys: &[Vec<u8>], signer: u8) -> Vec<u8> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as u32;
    let mut rdata = vec![0, 48, 15, 1];
    rdata.extend(TTL);
    rdata.extend((now + 86_400).to_be_bytes());
    rdata.extend((now - 3_600).to_be_bytes());
    rdata.extend(tag(signer).to_be_bytes());
    rdata.extend(ZONE);
    let mut signed = rdata.clone();
    for key in keys {
        signed.extend(ZONE);
        signed.extend([0, 48, 0, 1]);
        signed.extend(TTL);
        signed.extend((key.len() as u16).to_be_bytes());
        signed.extend(key);
    }
    rdata.extend(pair(signer).sign(&signed).as_ref());
    rdata
}

/// A zone at some time of its life.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    /// Its keys, by their seeds.
    pub keys: Vec<u8>,
    /// The one of them that is revoked.
    pub revoked: Option<u8>,
    /// The keys that sign the keys.
    pub signers: Vec<u8>,
    /// The key that signs everything else.
    pub signer: u8,
    /// The time there, in seconds since 1970.
    pub now: u32,
}

impl Zone {
    /// The reply to a query: the zone's keys, and 2001:db8::1 for `www.test`.
    pub fn reply(&self, query: &[u8]) -> Vec<u8> {
        const WWW: &[u8] = b"\x03www\x04test\0";
        let is = |name: &[u8], rtype: u8| {
            query[12..].to_ascii_lowercase().starts_with(name) && query[12 + name.len()..][..2] == [0, rtype]
        };
        if is(ZONE, 48) {
            let rdata = |seed: &u8| if self.revoked == Some(*seed) { revoked(*seed) } else { dnskey(*seed) };
            let mut keys: Vec<Vec<u8>> = self.keys.iter().map(rdata).collect();
            keys.sort();
            let signatures: Vec<_> =
                self.signers.iter().map(|seed| self.rrsig(ZONE, 48, &keys, *seed)).collect();
            return answered(query, ZONE.len(), 48, &keys, &signatures);
        }
        if is(WWW, 28) {
            let address = vec![0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            let signature = self.rrsig(WWW, 28, std::slice::from_ref(&address), self.signer);
            return answered(query, WWW.len(), 28, &[address], &[signature]);
        }
        let mut message = query[..12].to_vec();
        message[2..12].copy_from_slice(&[0x81, 0x82, 0, 0, 0, 0, 0, 0, 0, 0]);
        message
    }

    /// RFC 4034 §3.1, from an hour ago to tomorrow.
    fn rrsig(&self, owner: &[u8], rtype: u8, data: &[Vec<u8>], seed: u8) -> Vec<u8> {
        let key = if self.revoked == Some(seed) { revoked(seed) } else { dnskey(seed) };
        let labels = if owner == ZONE { 1 } else { 2 };
        let mut rdata = vec![0, rtype, 15, labels];
        rdata.extend(TTL);
        rdata.extend((self.now + 86_400).to_be_bytes());
        rdata.extend((self.now - 3_600).to_be_bytes());
        rdata.extend(tag_of(&key).to_be_bytes());
        rdata.extend(ZONE);
        let mut signed = rdata.clone();
        for data in data {
            signed.extend(owner);
            signed.extend([0, rtype, 0, 1]);
            signed.extend(TTL);
            signed.extend((data.len() as u16).to_be_bytes());
            signed.extend(data);
        }
        rdata.extend(pair(seed).sign(&signed).as_ref());
        rdata
    }
}

fn answered(query: &[u8], name: usize, rtype: u8, data: &[Vec<u8>], signatures: &[Vec<u8>]) -> Vec<u8> {
    let mut message = query[..12 + name + 4].to_vec();
    message[2..4].copy_from_slice(&[0x81, 0x90]);
    message[4..12].copy_from_slice(&[0, 1, 0, (data.len() + signatures.len()) as u8, 0, 0, 0, 0]);
    data.iter().for_each(|data| record(&mut message, rtype, data));
    signatures.iter().for_each(|data| record(&mut message, 46, data));
    message
}
