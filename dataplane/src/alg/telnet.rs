//! Telnet in a control connection (RFC 854, RFC 959 §5.3): attempts to negotiate an option are refused, and the other side does not receive them
//! (RFC 6384 §5).
//!
//! ```text
//!     the client sends      IAC DO 1 | USER a\r\n           the server receives              USER a\r\n
//!     the client receives   IAC WONT 1 | 331 name?\r\n      the server sends                 331 name?\r\n
//! ```
//!
//! RFC 1123 §4.1.2.12 allows no option, so no answer to an attempt is needed, and all four verbs are removed. Other commands of Telnet pass: a
//! client that interrupts a transfer sends IP and Synch (RFC 959 §4.1.3, ABOR).

use arrayvec::ArrayVec;

/// RFC 854, page 14.
pub(super) const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
/// The first octet that is a command behind IAC.
const SE: u8 = 240;
/// IAC passed before the next octet arrived: a verb that follows is replaced by a command without effect.
const NOP: &[u8] = &[241];

/// Refusals that wait to be sent. More attempts than these are not answered.
pub(super) const MOST_REFUSALS: usize = 4;

/// Refusals, as they are sent.
pub(super) type Refusals = ArrayVec<[u8; 3], MOST_REFUSALS>;

/// The incomplete command at the end of the previous octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Telnet {
    /// Nothing.
    #[default]
    Text,
    /// IAC, which passed.
    Command,
    /// IAC and a verb, of which the option has not come.
    Option(u8),
}

/// The first token of octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text, of one line at most.
    Text(&'a [u8]),
    /// Attempts to negotiate options: how many octets, what passes for them, and the answers.
    Negotiation { octets: usize, instead: &'static [u8], refusals: Refusals },
}

impl Telnet {
    /// The next token of octets, of which there are some. `is_read`: whether there may be Telnet among them.
    pub(super) fn next<'a>(&mut self, octets: &'a [u8], is_read: bool) -> Token<'a> {
        let before = core::mem::take(self);
        if !is_read {
            let end = octets.iter().position(|octet| *octet == b'\n').map_or(octets.len(), |at| at + 1);
            return Token::Text(&octets[..end]);
        }
        match (before, octets) {
            (Self::Option(verb), [option, ..]) => {
                let refusals = refusal(verb, *option).into_iter().collect();
                Token::Negotiation { octets: 1, instead: &[], refusals }
            }
            (Self::Command, [verb @ WILL..=DONT, option, ..]) => {
                let refusals = refusal(*verb, *option).into_iter().collect();
                Token::Negotiation { octets: 2, instead: NOP, refusals }
            }
            (Self::Command, [verb @ WILL..=DONT]) => {
                *self = Self::Option(*verb);
                Token::Negotiation { octets: 1, instead: NOP, refusals: Refusals::new() }
            }
            (Self::Command, _) => Token::Text(self.text(octets, 1)),
            (Self::Text | Self::Option(_), _) => self.attempts(octets),
        }
    }

    /// Attempts that follow each other; text, if there is none.
    fn attempts<'a>(&mut self, octets: &'a [u8]) -> Token<'a> {
        let (mut at, mut refusals) = (0, Refusals::new());
        loop {
            match octets.get(at..).unwrap_or_default() {
                [IAC, verb @ WILL..=DONT, option, ..] if !refusals.is_full() => {
                    refusals.extend(refusal(*verb, *option));
                    at += 3;
                }
                [IAC, verb @ WILL..=DONT] => {
                    *self = Self::Option(*verb);
                    at += 2;
                }
                _ if at == 0 => return Token::Text(self.text(octets, 0)),
                _ => return Token::Negotiation { octets: at, instead: &[], refusals },
            }
        }
    }

    /// Octets up to the end of a line, or to the next attempt. The first `at` of them are text in any case.
    fn text<'a>(&mut self, octets: &'a [u8], mut at: usize) -> &'a [u8] {
        loop {
            at += match octets.get(at..).unwrap_or_default() {
                [] => return octets,
                [b'\n', ..] => return &octets[..=at],
                [IAC, WILL..=DONT, ..] => return &octets[..at],
                [IAC] => {
                    *self = Self::Command;
                    return octets;
                }
                [IAC, SE..=IAC, ..] => 2,
                _ => 1,
            };
        }
    }
}

/// The answer to an attempt: DONT to WILL, WONT to DO. Refusals have none (RFC 854, page 2).
const fn refusal(verb: u8, option: u8) -> Option<[u8; 3]> {
    match verb {
        WILL => Some([IAC, DONT, option]),
        DO => Some([IAC, WONT, option]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes, and the answers, of octets that come in these parts.
    fn passes(parts: &[&[u8]]) -> (Vec<u8>, Vec<[u8; 3]>) {
        let (mut telnet, mut passed, mut answers) = (Telnet::default(), Vec::new(), Vec::new());
        for part in parts {
            let mut at = 0;
            while at < part.len() {
                at += match telnet.next(&part[at..], true) {
                    Token::Text(text) => {
                        assert!(!text.is_empty());
                        passed.extend_from_slice(text);
                        text.len()
                    }
                    Token::Negotiation { octets, instead, refusals } => {
                        passed.extend_from_slice(instead);
                        answers.extend(refusals);
                        octets
                    }
                };
            }
        }
        (passed, answers)
    }

    #[test]
    fn attempts_are_cut_out_and_refused_and_refusals_have_no_answer() {
        let said = b"\xff\xfd\x0aUSER \xff\xfb\x01a\r\n\xff\xfe\x05\xff\xfc\x06PWD\r\n";
        let answers = vec![[IAC, WONT, 10], [IAC, DONT, 1]];
        assert_eq!(passes(&[said]), (b"USER a\r\nPWD\r\n".to_vec(), answers));
    }

    #[test]
    fn other_commands_and_the_octet_255_pass() {
        for kept in [
            &b"\xff\xf4\xff\xf2ABOR\r\n"[..],
            b"CWD \xff\xff\xfb\r\n",
            b"CWD \xff\r\n",
            b"\xff\xff\xfb\x01\n",
        ] {
            assert_eq!(passes(&[kept]), (kept.to_vec(), Vec::new()));
        }
        // 255 that is doubled is data; what follows is not a verb.
        let (passed, answers) = passes(&[b"\xff\xff\xff\xfb\x01a"]);
        assert_eq!((passed.as_slice(), answers.len()), (&b"\xff\xffa"[..], 1));
    }

    #[test]
    fn wherever_segments_end_the_option_is_refused_and_does_not_pass() {
        let said = b"a\xff\xfd\x01\xff\xf4b\xff\xff\r\n";
        for first in 0..said.len() {
            for second in first..said.len() {
                let (passed, answers) = passes(&[&said[..first], &said[first..second], &said[second..]]);
                assert_eq!(answers, [[IAC, WONT, 1]], "{first} {second}");
                let expected: &[u8] = b"a\xff\xf4b\xff\xff\r\n";
                // IAC that had passed is followed by NOP.
                let with_nop: &[u8] = b"a\xff\xf1\xff\xf4b\xff\xff\r\n";
                assert!(passed == expected || passed == with_nop, "{first} {second}: {passed:?}");
            }
        }
    }

    #[test]
    fn a_text_ends_with_its_line_and_one_that_is_not_read_has_no_telnet() {
        let mut telnet = Telnet::default();
        assert_eq!(telnet.next(b"a\nb", true), Token::Text(b"a\n"));
        assert_eq!(telnet.next(b"\xff\xfb\x01\nb", false), Token::Text(b"\xff\xfb\x01\n"));
    }

    #[test]
    fn more_attempts_than_may_wait_come_as_several_tokens() {
        let said = b"\xff\xfd\x01".repeat(6);
        assert_eq!(passes(&[&said]), (Vec::new(), vec![[IAC, WONT, 1]; 6]));
    }
}
