//! The frame of a message: header, question, counts, OPT record, truncation, padding.

use super::options::{LocalRecord, ResponseOptions};
use crate::dns64::answer::{Part, rtype};
use crate::dns64::query::{COOKIE, Fault, HEADER, KEEPALIVE, OPT, PADDING, Query, Unreadable};
use arrayvec::ArrayString;
use std::fmt::Write as _;

/// Octets of a message on a stream (RFC 1035 §4.2.2).
const LARGEST: usize = 65_535;

/// RFC 8467 §4.1: answers are padded to a multiple of this.
const BLOCK: usize = 468;

/// RFC 8914 §2: the option's code.
const EXTENDED_ERROR: u16 = 15;

/// Maximum TTL in seconds of negative answers that follow from rules: the rules may change.
const OWN_NO: u32 = 60;

/// The mailbox of locally served zones (RFC 6303 §3).
const NOBODY_INVALID: &[u8] = b"\x06nobody\x07invalid\x00";

/// RFC 8914 §4.1: the code for errors without a specific code.
const OTHER: u16 = 0;

/// RFC 1035 §4.1.4: a pointer to the question's name.
pub(super) const QUESTION_NAME: [u8; 2] = [0xc0, HEADER as u8];

/// A message that is being written.
pub(super) struct MessageWriter<'a> {
    pub(super) out: &'a mut Vec<u8>,
    query: &'a Query<'a>,
    rcode: u16,
    options: &'a ResponseOptions<'a>,
    question_end: usize,
    answers: u16,
    authorities: u16,
    /// Records are missing.
    cut: bool,
    /// The number.
    said: ArrayString<40>,
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
            answers: 0,
            authorities: 0,
            cut: false,
            said: ArrayString::new(),
        }
    }

    /// Counts written records of a part.
    pub(super) fn count(&mut self, part: Part, records: u16) {
        match part {
            Part::Chain | Part::Data | Part::Signatures => self.answers += records,
            Part::Authority | Part::Proofs => self.authorities += records,
        }
    }

    /// The largest that the sections may become; what is synthesised stays below.
    pub(super) fn has_room(&self, octets: usize) -> bool {
        self.out.len() + octets <= LARGEST - 256
    }

    /// The message will be truncated: nothing more needs to be written correctly.
    pub(super) fn is_too_large(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.out.len() > usize::from(limit))
    }

    /// A SOA record with which a negative answer can be cached (RFC 2308 §5), for a short time. The name that has nothing is its owner, and
    /// so above itself.
    pub(super) fn own_soa(&mut self, owner: &[u8]) {
        let timers = [1, 3_600, 1_200, 604_800, OWN_NO].map(u32::to_be_bytes);
        let length = owner.len() + NOBODY_INVALID.len() + timers.as_flattened().len();
        self.out.extend_from_slice(owner);
        self.out.extend_from_slice(&rtype::SOA.to_be_bytes());
        self.out.extend_from_slice(&self.query.qclass.to_be_bytes());
        self.out.extend_from_slice(&self.options.ttl.unwrap_or(OWN_NO).to_be_bytes());
        self.out.extend_from_slice(&(length as u16).to_be_bytes());
        self.out.extend_from_slice(owner);
        self.out.extend_from_slice(NOBODY_INVALID);
        self.out.extend_from_slice(timers.as_flattened());
        self.count(Part::Authority, 1);
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

    /// Header, OPT record and padding; what is too large loses the texts of its errors, then all its records.
    pub(super) fn finish(mut self) {
        let limit = self.options.limit.map_or(LARGEST, usize::from);
        let said = self.said;
        let own = self.options.extended_error.or(self.cut.then_some((OTHER, said.as_str())));
        let mut errors = [own, self.options.upstream_error];
        if self.out.len() + self.opt_length(&errors) > limit {
            errors = errors.map(|error| error.map(|(code, _)| (code, "")));
        }
        let mut truncated = self.cut;
        if self.out.len() + self.opt_length(&errors) > limit {
            self.out.truncate(self.question_end);
            (self.answers, self.authorities, truncated) = (0, 0, true);
        }
        self.write_header(truncated);
        self.write_opt(&errors, limit);
    }

    /// Records are missing for which there was no room, though a stream takes the largest messages: TC says so (RFC 2181 §9).
    pub(super) fn cut_short(&mut self, written: u16, all: u32) {
        self.cut = true;
        self.said.clear();
        // The text is shorter than the room for it.
        let _ = write!(self.said, "only {written} of {all} records");
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

    fn opt_length(&self, errors: &[Option<(u16, &str)>]) -> usize {
        let errors = errors.iter().flatten().map(|(_, text)| 6 + text.len());
        let cookie = self.options.cookie.map_or(0, |cookie| 4 + cookie.len());
        let keepalive = self.keepalive().map_or(0, |_| 6);
        self.query.edns.map_or(0, |_| 11 + errors.sum::<usize>() + cookie + keepalive)
    }

    /// RFC 7828 §3.3.2: only for a client that asks.
    fn keepalive(&self) -> Option<u16> {
        self.options.keepalive.filter(|_| self.query.edns.is_some_and(|edns| edns.keepalive))
    }

    fn write_opt(&mut self, errors: &[Option<(u16, &str)>], limit: usize) {
        let Some(edns) = self.query.edns else { return };
        let [payload0, payload1] = self.options.udp_payload.to_be_bytes();
        let dnssec_ok = u8::from(edns.dnssec_ok) << 7;
        self.out.extend_from_slice(&[0, 0, OPT as u8, payload0, payload1]);
        self.out.extend_from_slice(&[(self.rcode >> 4) as u8, 0, dnssec_ok, 0, 0, 0]);
        let options_at = self.out.len();
        for (code, text) in errors.iter().flatten() {
            self.write_option(EXTENDED_ERROR, text.len() + 2);
            self.out.extend_from_slice(&code.to_be_bytes());
            self.out.extend_from_slice(text.as_bytes());
        }
        if let Some(cookie) = self.options.cookie {
            self.write_option(COOKIE, cookie.len());
            self.out.extend_from_slice(&cookie);
        }
        if let Some(idle) = self.keepalive() {
            self.write_option(KEEPALIVE, 2);
            self.out.extend_from_slice(&idle.to_be_bytes());
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

/// Answers with FORMERR, NOTIMP or BADVERS, with the question and with an OPT record if these could be read (RFC 6891 §6.1.1); DO is copied
/// (RFC 3225 §3). Returns whether there is an answer.
pub(super) fn unreadable(out: &mut Vec<u8>, query: &[u8], what: &Unreadable, udp_payload: u16) -> bool {
    out.clear();
    let Some(header) = query.first_chunk::<HEADER>() else { return false };
    // BADVERS is 16; its upper eight bits are in the OPT record (RFC 6891 §9).
    let (rcode, upper) = match what.why {
        Fault::Silent => return false,
        Fault::Malformed => (1, 0),
        Fault::NotImplemented => (4, 0),
        Fault::BadVersion => (0, 1),
    };
    out.extend_from_slice(&[header[0], header[1], 0x80 | header[2] & 0x79, 0x80 | header[3] & 0x10 | rcode]);
    out.extend_from_slice(&[0; 8]);
    if let Some(question) = query.get(HEADER..HEADER + what.question).filter(|it| !it.is_empty()) {
        out.extend_from_slice(question);
        out[5] = 1;
    }
    if let Some(edns) = what.edns {
        let [payload0, payload1] = udp_payload.to_be_bytes();
        let dnssec_ok = u8::from(edns.dnssec_ok) << 7;
        out.extend_from_slice(&[0, 0, OPT as u8, payload0, payload1, upper, 0, dnssec_ok, 0, 0, 0]);
        out[HEADER - 1] = 1;
    }
    true
}
