//! Trust anchors as an operator writes them: DS and DNSKEY records in presentation form (RFC 1035 §5.1, RFC 4034 §2.2 and §5.3).

use super::dnskey::Dnskey;
use crate::anchor::{Anchor, AnchorKey};
use crate::wire::Wire;
use domain::base::Name;
use domain::utils::{base16, base64};
use std::fmt;
use std::str::FromStr as _;

/// Why a text is not a list of trust anchors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line on which the record begins, from 1.
    pub line: usize,
    /// What is wrong, and how to mend it.
    pub what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Fault {}

/// Reads DS and DNSKEY records, one a line, or over several lines within parentheses; `;` begins a comment. TTL and class may be left out.
///
/// # Errors
/// At the first record that is not one of these, with its line.
pub fn read(text: &str) -> Result<Vec<Anchor>, Fault> {
    let mut anchors = Vec::new();
    let (mut words, mut begun, mut open) = (Vec::new(), 1, false);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split_once(';').map_or(line, |(line, _)| line);
        if words.is_empty() {
            begun = number;
        }
        let spaced = line.replace('(', " ( ").replace(')', " ) ");
        for word in spaced.split_ascii_whitespace() {
            match word {
                "(" => open = true,
                ")" => open = false,
                _ => words.push(word.to_owned()),
            }
        }
        if !open && !words.is_empty() {
            anchors.push(record(&words).map_err(|what| Fault { line: begun, what })?);
            words.clear();
        }
    }
    if open {
        return Err(Fault { line: begun, what: "a parenthesis is not closed" });
    }
    Ok(anchors)
}

fn record(words: &[String]) -> Result<Anchor, &'static str> {
    let mut words = words.iter().map(String::as_str);
    let zone = words.next().and_then(zone).ok_or("the record must begin with a zone's name")?;
    let is_filler = |word: &&str| word.eq_ignore_ascii_case("IN") || word.bytes().all(|b| b.is_ascii_digit());
    let rtype = words.by_ref().find(|word| !is_filler(word)).unwrap_or_default().to_ascii_uppercase();
    let key = match rtype.as_str() {
        "DS" => AnchorKey::Ds(ds(words).ok_or("write DS, key tag, algorithm, digest type and digest")?),
        "DNSKEY" => AnchorKey::Dnskey(dnskey(words).ok_or("write DNSKEY, flags, 3, algorithm and key")?),
        _ => return Err("the record must be a DS or DNSKEY record"),
    };
    match &key {
        AnchorKey::Dnskey(rdata) => usable(rdata)?,
        AnchorKey::Ds(_) => {}
    }
    Ok(Anchor { zone, key })
}

fn usable(rdata: &[u8]) -> Result<(), &'static str> {
    let key = Dnskey::new(rdata).ok_or("not a zone's key: flags must be 256 or 257")?;
    if key.is_revoked() { Err("the key is revoked (RFC 5011 §2.1); use another") } else { Ok(()) }
}

/// A name in lower-case wire form.
pub(super) fn zone(word: &str) -> Option<Wire> {
    let name = Name::<Vec<u8>>::from_str(word).ok()?;
    Some(Wire(name.as_slice().to_ascii_lowercase().into()))
}

/// The fields of a DS record's RDATA.
pub(super) fn ds<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Box<[u8]>> {
    let mut rdata = words.next()?.parse::<u16>().ok()?.to_be_bytes().to_vec();
    rdata.push(words.next()?.parse().ok()?);
    let digest_type: u8 = words.next()?.parse().ok()?;
    rdata.push(digest_type);
    let digest: Vec<u8> = base16::decode(&words.collect::<String>()).ok()?;
    // RFC 8624 §3.3: SHA-1, SHA-256, SHA-384.
    let right = matches!((digest_type, digest.len()), (1, 20) | (2, 32) | (4, 48));
    rdata.extend(digest);
    right.then(|| rdata.into())
}

/// The fields of a DNSKEY record's RDATA.
pub(super) fn dnskey<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Box<[u8]>> {
    let mut rdata = words.next()?.parse::<u16>().ok()?.to_be_bytes().to_vec();
    rdata.push(words.next()?.parse().ok()?);
    rdata.push(words.next()?.parse().ok()?);
    let key: Vec<u8> = base64::decode(&words.collect::<String>()).ok()?;
    rdata.extend(&key);
    (!key.is_empty()).then(|| rdata.into())
}
