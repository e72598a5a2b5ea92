//! Records of an answer, copied into a message: as they are if it is the answer to this very question, with names written out if not.

use super::message::{MessageWriter, QUESTION_NAME};
use super::options::ResponseOptions;
use crate::dns64::answer::{Answer, Part, RawRecord, rtype};
use crate::dns64::name::{LONGEST_NAME, Name, same};
use crate::dns64::query::Query;

/// An owner's name, the fields behind it, and two names written out: no type's data hold more that could have been compressed.
const LONGEST_BESIDE_DATA: usize = 3 * LONGEST_NAME + 10;

/// The handling of TTLs.
#[derive(Clone, Copy)]
pub(super) enum Ageing {
    Left { age: u32, longest: u32 },
    Fixed(u32),
}

impl Ageing {
    pub(super) fn of(answer: &Answer, options: &ResponseOptions<'_>) -> Self {
        let left = || Self::Left { age: answer.age(options.now), longest: answer.longest() };
        options.ttl.map_or_else(left, Self::Fixed)
    }

    pub(super) fn ttl(self, ttl: u32) -> u32 {
        match self {
            Self::Left { age, longest } => ttl.min(longest).saturating_sub(age),
            Self::Fixed(ttl) => ttl,
        }
    }
}

/// Copies one answer's parts into one message.
pub(super) struct Section<'s, 'm> {
    message: &'s mut MessageWriter<'m>,
    answer: &'s Answer,
    ageing: Ageing,
    /// It answers this very question name, at which its names may point, as they may at the chain's.
    is_own: bool,
}

impl<'s, 'm> Section<'s, 'm> {
    pub(super) fn of(
        message: &'s mut MessageWriter<'m>,
        query: &Query<'_>,
        answer: &'s Answer,
        options: &ResponseOptions<'_>,
    ) -> Self {
        let question = answer.question();
        let is_own = same(&question[..question.len() - 4], query.name);
        Self { message, answer, ageing: Ageing::of(answer, options), is_own }
    }

    /// As the section that [`with_part`](Self::with_part) says it of.
    pub(super) fn again(
        message: &'s mut MessageWriter<'m>,
        answer: &'s Answer,
        ageing: Ageing,
        is_own: bool,
    ) -> Self {
        Self { message, answer, ageing, is_own }
    }

    /// Copies all of a part; returns whether it answers this very question name.
    pub(super) fn with_part(mut self, part: Part) -> bool {
        self.part(part);
        self.is_own
    }

    /// The chain is not written, or not immediately: nothing may point at it.
    pub(super) fn without_chain(self) -> Self {
        let is_own = self.is_own && self.answer.count(Part::Chain) == 0;
        Self { is_own, ..self }
    }

    /// All of a part.
    pub(super) fn part(&mut self, part: Part) {
        if !self.is_own {
            return expanded(self.message, self.answer, part, self.ageing, None);
        }
        let (start, records) = (self.message.out.len(), self.answer.part(part));
        if records.is_empty() {
            return;
        }
        self.message.out.extend_from_slice(records);
        if !self.message.is_too_large() {
            age(&mut self.message.out[start..], self.ageing);
        }
        self.message.count(part, self.answer.count(part) as u16);
    }

    /// Those records of a part that are to be kept.
    pub(super) fn records(&mut self, part: Part, mut keep: impl FnMut(&RawRecord<'_>) -> bool) {
        debug_assert!(self.is_own, "names of another question's answer lead elsewhere");
        for record in self.answer.raw_records(part) {
            if keep(&record) {
                let start = self.message.out.len();
                self.message.out.extend_from_slice(self.answer.raw(&record));
                age(&mut self.message.out[start..], self.ageing);
                self.message.count(part, 1);
            }
        }
    }

    /// The authority section.
    pub(super) fn authority(&mut self, dnssec_ok: bool) {
        self.part(Part::Authority);
        if dnssec_ok {
            self.part(Part::Proofs);
        }
    }
}

/// Writes what is left of their TTLs into records.
fn age(records: &mut [u8], ageing: Ageing) {
    let mut at = 0;
    while let Some(record) = RawRecord::read(records, at) {
        let (ttl_at, end) = (record.end - record.data.len() - 6, record.end);
        let ttl = ageing.ttl(record.ttl);
        records[ttl_at..ttl_at + 4].copy_from_slice(&ttl.to_be_bytes());
        at = end;
    }
}

/// Copies a part with all names written out, for a message with another question; the owner is the question's name if that is given.
pub(super) fn expanded(
    message: &mut MessageWriter<'_>,
    answer: &Answer,
    part: Part,
    ageing: Ageing,
    owner: Option<&[u8]>,
) {
    for (written, record) in (0..).zip(answer.raw_records(part)) {
        let mut name = Name::new();
        let most = record.data.len() + LONGEST_BESIDE_DATA;
        if answer.expand_owner(&record, &mut name).is_none() {
            return;
        }
        if !message.has_room(most) {
            return message.cut_short(written, answer.count(part) as u32);
        }
        message.out.extend_from_slice(if owner.is_some() { &QUESTION_NAME } else { &name });
        message.out.extend_from_slice(&record.rtype.to_be_bytes());
        message.out.extend_from_slice(&record.class.to_be_bytes());
        message.out.extend_from_slice(&ageing.ttl(record.ttl).to_be_bytes());
        message.out.extend_from_slice(&[0, 0]);
        let start = message.out.len();
        if answer.expand_data(&record, message.out).is_none() {
            return;
        }
        let length = (message.out.len() - start) as u16;
        message.out[start - 2..start].copy_from_slice(&length.to_be_bytes());
        message.count(part, 1);
    }
}

impl RawRecord<'_> {
    /// Whether it signs records of this type.
    pub(super) fn covers(&self, covered: u16) -> bool {
        self.rtype == rtype::RRSIG && self.data.starts_with(&covered.to_be_bytes())
    }
}
