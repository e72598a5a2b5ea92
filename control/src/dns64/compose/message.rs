//! The frame of a message: header, question, counts, OPT record, truncation, padding.

use super::options::{LocalRecord, ResponseOptions};
use crate::dns64::answer::Part;
use crate::dns64::query::{HEADER, OPT, PADDING, Query, Unreadable};

/// Octets of a message on a stream (RFC 1035 §4.2.2).
const LARGEST: usize = 65_535;

/// RFC 8467 §4.1: answers are padded to a multiple of this.
const BLOCK: usize = 468;

/// RFC 8914 §2: the option's code.
const EXTENDED_ERROR: u16 = 15;

/// RFC 1035 §4.1.4: a pointer to the question's name.
pub(super) const QUESTION_NAME: [u8; 2] = [0xc0, HEADER as u8];

/// A message that is being written.
pub(super) struct MessageWriter<'a> {
    pub(super) out: &'a mut Vec<u8>,
    query: &'a Query<'a>,
    rcode: u16,
    options: &'a ResponseOptions<'a>,
    question_end: usize,
    /// Where the authority section begins, once it has begun.
    authority_at: Option<usize>,
    answers: u16,
    authorities: u16,
    /// The authority section may be left out to save the rest from truncation.
    spare_authority: bool,
}

impl<'a> MessageWriter<'a> {
    pub(super) fn begin(
        out: &'a mut Vec<u8>,
        query: &'a Query<'a>,
        rcode: u16,
        options: &'a ResponseOptions<'a>,
    ) -> Self {
        out.clear();
        let question_end = HEADER + query.name.len() + 4;
        out.extend_from_slice(&query.message[..question_end]);
        Self {
            out,
            query,
            rcode,
            options,
            question_end,
            authority_at: None,
            answers: 0,
            authorities: 0,
            spare_authority: false,
        }
    }

    /// Counts written records of a part.
    pub(super) fn count(&mut self, part: Part, records: u16) {
        match part {
            Part::Chain | Part::Data | Part::Signatures => self.answers += records,
            Part::Authority | Part::Proofs => self.authorities += records,
        }
    }

    /// What is written from here on belongs to the authority section, which may be left out if it is to `spare`.
    pub(super) fn begin_authority(&mut self, spare: bool) {
        self.authority_at = Some(self.out.len());
        self.spare_authority = spare;
    }

    /// The largest that the sections may become; what is synthesised stays below.
    pub(super) fn has_room(&self, octets: usize) -> bool {
        self.out.len() + octets <= LARGEST - 256
    }

    /// The message will be truncated, or this section omitted: nothing more needs to be written correctly.
    pub(super) fn is_too_large(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.out.len() > usize::from(limit))
    }

    pub(super) fn local(&mut self, record: &LocalRecord<'_>, part: Part) {
        self.out.extend_from_slice(record.owner.unwrap_or(&QUESTION_NAME));
        self.out.extend_from_slice(&record.rtype.to_be_bytes());
        let class = self.query.qclass;
        self.out.extend_from_slice(&class.to_be_bytes());
        self.out.extend_from_slice(&self.options.ttl.unwrap_or(record.ttl).to_be_bytes());
        self.out.extend_from_slice(&(record.data.len() as u16).to_be_bytes());
        self.out.extend_from_slice(record.data);
        self.count(part, 1);
    }

    /// Header, OPT record and padding; what is too large loses its authority section if it can be spared, else all its records.
    pub(super) fn finish(mut self) {
        let limit = self.options.limit.map_or(LARGEST, usize::from);
        let mut text = self.options.extended_error.map_or("", |(_, text)| text);
        let mut truncated = false;
        if self.out.len() + self.opt_length(text) > limit {
            text = "";
        }
        if let Some(at) = self.authority_at.filter(|_| self.spare_authority)
            && self.out.len() + self.opt_length(text) > limit
        {
            self.out.truncate(at);
            self.authorities = 0;
        }
        if self.out.len() + self.opt_length(text) > limit {
            self.out.truncate(self.question_end);
            (self.answers, self.authorities, truncated) = (0, 0, true);
        }
        self.write_header(truncated);
        self.write_opt(text, limit);
    }

    fn write_header(&mut self, truncated: bool) {
        let query = self.query;
        let header = [
            0x80 | u8::from(self.options.authoritative) << 2
                | u8::from(truncated) << 1
                | u8::from(query.recursion_desired),
            0x80 | u8::from(self.options.authentic) << 5
                | u8::from(query.checking_disabled) << 4
                | (self.rcode & 0xf) as u8,
        ];
        self.out[2..4].copy_from_slice(&header);
        let counts = [1, self.answers, self.authorities, u16::from(query.edns.is_some())];
        for (field, count) in self.out[4..HEADER].chunks_exact_mut(2).zip(counts) {
            field.copy_from_slice(&count.to_be_bytes());
        }
    }

    fn opt_length(&self, text: &str) -> usize {
        match (self.query.edns, self.options.extended_error) {
            (None, _) => 0,
            (Some(_), None) => 11,
            (Some(_), Some(_)) => 11 + 6 + text.len(),
        }
    }

    fn write_opt(&mut self, text: &str, limit: usize) {
        let Some(edns) = self.query.edns else { return };
        let [payload0, payload1] = self.options.udp_payload.to_be_bytes();
        let dnssec_ok = u8::from(edns.dnssec_ok) << 7;
        self.out.extend_from_slice(&[0, 0, OPT as u8, payload0, payload1]);
        self.out.extend_from_slice(&[(self.rcode >> 4) as u8, 0, dnssec_ok, 0, 0, 0]);
        let options_at = self.out.len();
        if let Some((code, _)) = self.options.extended_error {
            self.write_option(EXTENDED_ERROR, text.len() + 2);
            self.out.extend_from_slice(&code.to_be_bytes());
            self.out.extend_from_slice(text.as_bytes());
        }
        if self.options.pad && edns.padding {
            let padded = (self.out.len() + 4).next_multiple_of(BLOCK).min(limit);
            if let Some(octets) = padded.checked_sub(self.out.len() + 4) {
                self.write_option(PADDING, octets);
                self.out.resize(padded, 0);
            }
        }
        let length = (self.out.len() - options_at) as u16;
        self.out[options_at - 2..options_at].copy_from_slice(&length.to_be_bytes());
    }

    fn write_option(&mut self, code: u16, length: usize) {
        self.out.extend_from_slice(&code.to_be_bytes());
        self.out.extend_from_slice(&(length as u16).to_be_bytes());
    }
}

/// Answers with FORMERR, NOTIMP or BADVERS. Returns whether there is an answer.
pub(super) fn unreadable(out: &mut Vec<u8>, query: &[u8], why: Unreadable, udp_payload: u16) -> bool {
    out.clear();
    let Some(header) = query.first_chunk::<HEADER>() else { return false };
    let rcode = match why {
        Unreadable::Silent => return false,
        Unreadable::Malformed => 1,
        Unreadable::NotImplemented => 4,
        Unreadable::BadVersion => 0,
    };
    out.extend_from_slice(&[header[0], header[1], 0x80 | header[2] & 0x79, 0x80 | header[3] & 0x10 | rcode]);
    out.extend_from_slice(&[0; 8]);
    if why == Unreadable::BadVersion {
        let [payload0, payload1] = udp_payload.to_be_bytes();
        // BADVERS is 16; its upper eight bits are stored here (RFC 6891 §9).
        out.extend_from_slice(&[0, 0, OPT as u8, payload0, payload1, 1, 0, 0, 0, 0, 0]);
        out[HEADER - 1] = 1;
    }
    true
}
