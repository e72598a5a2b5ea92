//! An upstream's reply, taken apart: the records of its answer and authority sections with their names written out, and what its header and
//! OPT record contain. Only the form is checked here.

use super::extended_error::ExtendedError;
use super::record::{Record, expand_data, rtype};
use super::rejection::Rejection;

use crate::dns64::key::Key;
use crate::dns64::name::{Name, expand, same};
use crate::dns64::query::{HEADER, OPT};

/// RFC 8914 §2: the option's code.
const EXTENDED_ERROR: u16 = 15;

/// A longer text is cut: it is kept with the entry, and given to clients.
const LONGEST_TEXT: usize = 128;

pub(super) struct Reply {
    pub(super) rcode: u16,
    pub(super) authentic: bool,
    pub(super) extended_error: Option<ExtendedError>,
    pub(super) answer: Vec<Record>,
    pub(super) authority: Vec<Record>,
}

/// The place of a record's parts in a message.
struct RecordSpan {
    owner: Name,
    rtype: u16,
    class: u16,
    ttl: u32,
    data: (usize, usize),
}

impl Reply {
    pub(super) fn read(key: &Key, message: &[u8]) -> Result<Self, Rejection> {
        let header = message.first_chunk::<HEADER>().ok_or(Rejection::Malformed)?;
        if header[2] & 0xf8 != 0x80 {
            return Err(Rejection::Malformed);
        }
        if header[2] & 2 != 0 {
            return Err(Rejection::Truncated);
        }
        let [questions, answers, authorities, additionals] =
            [4, 6, 8, 10].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        let mut reply = Self {
            rcode: u16::from(header[3] & 0xf),
            authentic: header[3] & 0x20 != 0,
            extended_error: None,
            answer: Vec::new(),
            authority: Vec::new(),
        };
        let mut at = reply.read_question(key, message, questions)?;
        for _ in 0..answers {
            at = keep_record(key, message, at, &mut reply.answer).ok_or(Rejection::Malformed)?;
        }
        for _ in 0..authorities {
            at = keep_record(key, message, at, &mut reply.authority).ok_or(Rejection::Malformed)?;
        }
        for _ in 0..additionals {
            at = reply.read_additional(message, at).ok_or(Rejection::Malformed)?;
        }
        Ok(reply)
    }

    /// Some servers leave the question out of what is not an answer.
    fn read_question(&self, key: &Key, message: &[u8], questions: u16) -> Result<usize, Rejection> {
        if questions == 0 && self.rcode != 0 {
            return Ok(HEADER);
        }
        if questions != 1 {
            return Err(Rejection::Malformed);
        }
        let mut name = Name::new();
        let behind = expand(message, HEADER, &mut name).ok_or(Rejection::Malformed)?;
        let fields = message.get(behind..behind + 4).ok_or(Rejection::Malformed)?;
        let asked = [key.qtype().to_be_bytes(), key.qclass().to_be_bytes()].concat();
        if !same(&name, key.name()) || fields != asked {
            return Err(Rejection::OtherQuestion);
        }
        Ok(behind + 4)
    }

    fn read_additional(&mut self, message: &[u8], at: usize) -> Option<usize> {
        let place = read_span(message, at)?;
        if place.rtype == OPT {
            self.rcode |= (place.ttl >> 24 << 4) as u16;
            let mut options = &message[place.data.0..place.data.1];
            while let Some([c0, c1, l0, l1]) = options.first_chunk() {
                let (code, length) = (u16::from_be_bytes([*c0, *c1]), u16::from_be_bytes([*l0, *l1]));
                let value = options.get(4..4 + usize::from(length))?;
                if code == EXTENDED_ERROR && self.extended_error.is_none() {
                    self.extended_error = read_extended_error(value);
                }
                options = &options[4 + value.len()..];
            }
        }
        Some(place.data.1)
    }
}

fn read_extended_error(value: &[u8]) -> Option<ExtendedError> {
    let (code, text) = value.split_first_chunk()?;
    let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
    let text = text.trim_end_matches(['\0', char::REPLACEMENT_CHARACTER]);
    // Clients may show it.
    let text: String = text.chars().filter(|it| !it.is_control() && !reorders_or_hides(*it)).collect();
    Some(ExtendedError { code: u16::from_be_bytes(*code), text: text.into() })
}

/// Characters that are not seen and change how others are shown: marks, embeddings, overrides and isolates of directions (Unicode Standard Annex #9
/// §2), separators of lines and paragraphs, characters without width, and tags.
const fn reorders_or_hides(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

fn read_span(message: &[u8], at: usize) -> Option<RecordSpan> {
    let mut owner = Name::new();
    let at = expand(message, at, &mut owner)?;
    let fields = message.get(at..)?.first_chunk::<10>()?;
    let pair = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let data = (at + 10, at + 10 + usize::from(pair(8)));
    message.get(data.0..data.1)?;
    let ttl = u32::from(pair(4)) << 16 | u32::from(pair(6));
    Some(RecordSpan { owner, rtype: pair(0), class: pair(2), ttl, data })
}

/// A record of another class is passed by.
fn keep_record(key: &Key, message: &[u8], at: usize, records: &mut Vec<Record>) -> Option<usize> {
    let place = read_span(message, at)?;
    if place.class == key.qclass() && place.rtype != OPT && place.rtype != rtype::ANY {
        let mut data = Vec::with_capacity(place.data.1 - place.data.0);
        expand_data(message, 0, (place.rtype, place.data.0, place.data.1), &mut data)?;
        // RFC 2181 §8: a TTL with its top bit set is zero.
        let ttl = if place.ttl >> 31 == 0 { place.ttl } else { 0 };
        records.push(Record { owner: place.owner[..].into(), rtype: place.rtype, ttl, data: data.into() });
    }
    Some(place.data.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_characters_that_change_how_others_are_shown() {
        let text = "a\u{202e}b\u{2066}c\u{200f}d\u{feff}e\u{2028}f\u{e0041}g\u{7}h\u{ad}i é 中 🙂";
        let value = [&[0, 15][..], text.as_bytes()].concat();
        let error = read_extended_error(&value).unwrap();
        assert_eq!((error.code, &*error.text), (15, "abcdefghi é 中 🙂"));
    }
}
