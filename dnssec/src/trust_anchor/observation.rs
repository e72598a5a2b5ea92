//! A DNSKEY RRset as it was published at some time, and which of its keys have signed it (RFC 4035 §5.3).

use super::dnskey::Dnskey;
use crate::wire::Wire;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::base::{Message, ParsedName, ToName};
use domain::rdata::{Rrsig, dnssec};

/// Keys in an RRset; one with more is not examined. RFC 5011 §2.4.3 asks for five.
const MOST_KEYS: usize = 32;

/// Signatures that are verified for one RRset, so that a hostile one costs little.
const MOST_VERIFICATIONS: usize = 16;

/// A key of the RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Published {
    /// As it is published, with the mark of its revocation.
    pub(super) key: Dnskey,
    /// Its signature over the RRset, if there is a good one.
    pub(super) signed: Option<Signed>,
}

/// A good signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// The RRset's original TTL, in seconds (RFC 4034 §3.1.4).
    pub(super) ttl: u32,
    /// The number of seconds for which it stays good.
    pub(super) expire: u32,
}

/// A signature to be verified.
struct Signature {
    tag: u16,
    algorithm: u8,
    signed: Signed,
    /// What was signed (RFC 4034 §3.1.8.1).
    data: Vec<u8>,
    signature: Vec<u8>,
}

/// The zone's keys from a reply to the query for them. `None`: there are none, or not in this form.
pub(super) fn read(zone: &Wire, reply: &[u8], now: u64) -> Option<Vec<Published>> {
    let message = Message::from_octets(reply).ok()?;
    if message.header().rcode() != Rcode::NOERROR || !message.header().qr() {
        return None;
    }
    let (mut keys, mut covering) = (Vec::new(), Vec::new());
    for record in message.answer().ok()? {
        let record = record.ok()?;
        if record.class() != Class::IN || !is(record.owner(), zone) {
            continue;
        }
        if let Ok(Some(key)) = record.to_record::<dnssec::Dnskey<_>>() {
            let key = key.data();
            let mut rdata = key.flags().to_be_bytes().to_vec();
            rdata.extend([key.protocol(), key.algorithm().to_int()]);
            rdata.extend_from_slice(key.public_key());
            keys.push(rdata);
        } else if let Ok(Some(signature)) = record.to_record::<Rrsig<_, _>>() {
            covering.push(signature.into_data());
        }
    }
    keys.sort_unstable();
    keys.dedup();
    let fits = !keys.is_empty() && keys.len() <= MOST_KEYS;
    let signatures = covering.iter().filter_map(|rrsig| signature(zone, &keys, rrsig, now));
    fits.then(|| verified(&keys, &signatures.collect::<Vec<_>>()))
}

fn is(name: impl ToName, zone: &Wire) -> bool {
    name.to_vec().as_slice().eq_ignore_ascii_case(&zone.0)
}

/// RFC 4035 §5.3.1: the signature is the zone's own over its keys, and in its time.
fn signature(
    zone: &Wire,
    keys: &[Vec<u8>],
    rrsig: &Rrsig<&[u8], ParsedName<&[u8]>>,
    now: u64,
) -> Option<Signature> {
    let (inception, expiration) = (rrsig.inception().into_int(), rrsig.expiration().into_int());
    // RFC 4034 §3.1.5: times are compared as serial numbers.
    let left = expiration.wrapping_sub(now as u32);
    let is_good = left < 1 << 31 && (now as u32).wrapping_sub(inception) < 1 << 31;
    let is_ours = rrsig.type_covered() == Rtype::DNSKEY && is(rrsig.signer_name(), zone);
    if !is_good || !is_ours || rrsig.labels() != labels(zone) {
        return None;
    }
    let ttl = rrsig.original_ttl().as_secs();
    let mut data = Rtype::DNSKEY.to_int().to_be_bytes().to_vec();
    data.extend([rrsig.algorithm().to_int(), rrsig.labels()]);
    for field in [ttl, expiration, inception] {
        data.extend(field.to_be_bytes());
    }
    data.extend(rrsig.key_tag().to_be_bytes());
    data.extend_from_slice(&zone.0);
    for key in keys {
        data.extend_from_slice(&zone.0);
        data.extend(Rtype::DNSKEY.to_int().to_be_bytes());
        data.extend(Class::IN.to_int().to_be_bytes());
        data.extend(ttl.to_be_bytes());
        data.extend(u16::try_from(key.len()).ok()?.to_be_bytes());
        data.extend_from_slice(key);
    }
    Some(Signature {
        tag: rrsig.key_tag(),
        algorithm: rrsig.algorithm().to_int(),
        signed: Signed { ttl, expire: left },
        data,
        signature: rrsig.signature().to_vec(),
    })
}

/// RFC 4034 §3.1.3: the root's label is not counted.
fn labels(zone: &Wire) -> u8 {
    let mut count = 0;
    let mut rest = &zone.0[..];
    while let [length @ 1..=63, more @ ..] = rest {
        (count, rest) = (count + 1, more.get(usize::from(*length)..).unwrap_or_default());
    }
    count
}

fn verified(keys: &[Vec<u8>], signatures: &[Signature]) -> Vec<Published> {
    let mut left = MOST_VERIFICATIONS;
    let keys = keys.iter().filter_map(|rdata| Dnskey::new(rdata));
    let published = keys.map(|key| {
        let (tag, algorithm) = (key.tag(), key.algorithm());
        let mut its = signatures.iter().filter(|one| (one.tag, one.algorithm) == (tag, algorithm));
        let good = its.find(|one| {
            let may = left > 0;
            left = left.saturating_sub(1);
            may && key.verifies(&one.data, &one.signature)
        });
        Published { signed: good.map(|one| one.signed), key }
    });
    published.collect()
}
