//! The properties by which two answers to the same question are compared.

use super::expected::Expected;
use super::query::Reply;

/// A side of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// Addresses, or why there are none.
    Addresses,
    /// CNAME and DNAME records.
    Chain,
    /// What signatures in the answer section cover.
    Signatures,
    /// Owners of NSEC and NSEC3 records in the authority section.
    Proof,
    /// AD.
    Authentic,
    /// The least TTL of the answer section, to the minute.
    Lifetime,
}

impl Facet {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Addresses, Self::Chain, Self::Signatures, Self::Proof, Self::Authentic, Self::Lifetime];

    /// As a table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::Chain => "chain",
            Self::Signatures => "RRSIG",
            Self::Proof => "proof",
            Self::Authentic => "AD",
            Self::Lifetime => "TTL",
        }
    }

    /// This part of the answer as text, equal for equal answers.
    pub fn of(self, reply: &Reply) -> String {
        let rows = |kinds: &[&str]| {
            let rows = reply.answer.iter().filter(|row| kinds.contains(&row.kind.as_str()));
            sorted(rows.map(|row| format!("{} {} {}", row.owner, row.kind, row.data.to_lowercase())))
        };
        match self {
            Self::Addresses => match reply.addresses("AAAA") {
                Ok(Expected::Addresses(all)) => sorted(all.iter().map(ToString::to_string)),
                Ok(other) => format!("{other:?}"),
                Err(failure) => failure.to_string(),
            },
            Self::Chain => rows(&["CNAME", "DNAME"]),
            Self::Signatures => {
                let rows = reply.answer.iter().filter(|row| row.kind == "RRSIG");
                sorted(
                    rows.map(|row| {
                        format!("{} {}", row.owner, row.data.split(' ').next().unwrap_or_default())
                    }),
                )
            }
            Self::Proof => {
                let rows =
                    reply.authority.iter().filter(|row| ["NSEC", "NSEC3"].contains(&row.kind.as_str()));
                sorted(rows.map(|row| row.owner.clone()))
            }
            Self::Authentic => reply.authentic.to_string(),
            Self::Lifetime => {
                let least = reply.answer.iter().map(|row| row.ttl).min();
                least.map_or_else(String::new, |ttl| ttl.next_multiple_of(60).to_string())
            }
        }
    }
}

fn sorted(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<_> = words.collect();
    words.sort_unstable();
    words.dedup();
    words.join(", ")
}
