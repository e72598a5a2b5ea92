//! The query log: one line per query, if configured, at most [`LINES`] in a second, so that queries cannot fill the disk.

use super::ticket::Ticket;
use domain::base::{Message, Rtype, ToName};
use sixway_control::dns64::{Asker, Outcome, Transport};
use sixway_dataplane::Instant;
use std::fmt;

/// Lines of a thread in a second. The rest are counted.
const LINES: u32 = 1_000;

/// The log of a thread.
#[derive(Debug)]
pub(super) struct QueryLog {
    is_on: bool,
    /// Lines of this second.
    written: u32,
    /// Queries of this second without one.
    left_out: u64,
}

impl QueryLog {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, written: 0, left_out: 0 }
    }

    /// Writes lines from now on, or none.
    pub(super) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// A second has passed.
    pub(super) fn begin_second(&mut self) {
        if self.left_out > 0 {
            tracing::warn!("query log: {} more queries in the last second", self.left_out);
        }
        (self.written, self.left_out) = (0, 0);
    }

    /// Writes a line about a query that was answered.
    pub(super) fn note(&mut self, now: Instant, asker: &Asker<Ticket>, answer: &[u8], outcome: Outcome) {
        if let Some(line) = self.line(now, asker, answer, outcome) {
            tracing::info!("{line}");
        }
    }

    fn line(
        &mut self,
        now: Instant,
        asker: &Asker<Ticket>,
        answer: &[u8],
        outcome: Outcome,
    ) -> Option<String> {
        let transport = match asker.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
            Transport::Https => "https",
            // No client.
            Transport::Inside => return None,
        };
        if !self.is_on {
            return None;
        }
        if self.written >= LINES {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        let took = now.since(asker.ticket.since).as_secs_f64() * 1_000.0;
        let (question, outcome) = (Question(answer), outcome.name());
        let header = Header(answer);
        Some(format!("query {} {transport} {question} {outcome} {header} {took:.1} ms", asker.address))
    }
}

/// The RCODE and the flags of an answer. Codes above 15 are in its OPT record, and not shown.
struct Header<'m>(&'m [u8]);

impl fmt::Display for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(message) = Message::from_slice(self.0) else { return f.write_str("-") };
        let header = message.header();
        write!(f, "{}", header.rcode())?;
        for (is_set, name) in [
            (header.aa(), "aa"),
            (header.tc(), "tc"),
            (header.rd(), "rd"),
            (header.ra(), "ra"),
            (header.ad(), "ad"),
            (header.cd(), "cd"),
        ] {
            if is_set {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }
}

/// The question of a message, for people: octets that are not letters of host names are escaped.
struct Question<'m>(&'m [u8]);

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(message) = Message::from_slice(self.0) else { return f.write_str("-") };
        let Some(question) = message.first_question() else { return f.write_str("-") };
        let rtype: Rtype = question.qtype();
        write!(f, "{} {rtype}", question.qname().fmt_with_dot())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_shown_without_letting_its_octets_write_the_log() {
        let mut message = vec![0, 7, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend(b"\x03wWw\x07exam\nle\x00\x00\x1c\x00\x01");
        assert_eq!(Question(&message).to_string(), "wWw.exam\\010le. AAAA");
        message.truncate(15);
        assert_eq!(Question(&message).to_string(), "-");
        assert_eq!(Question(&[]).to_string(), "-");
    }

    fn asker(now: Instant) -> Asker<Ticket> {
        let way = crate::Way::Stream(0);
        let ticket = Ticket { since: now, way };
        Asker { address: "2001:db8::1".parse().unwrap(), transport: Transport::Tls, ticket }
    }

    #[test]
    fn a_line_has_the_rcode_the_flags_and_the_time() {
        let mut message = vec![0, 7, 0x83, 0xa2, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend(b"\x03www\x07example\x00\x00\x1c\x00\x01");
        let begun = Instant::default();
        let (mut log, now) = (QueryLog::new(true), begun + std::time::Duration::from_micros(12_340));
        let line = log.line(now, &asker(begun), &message, Outcome::NoData).unwrap();
        assert_eq!(line, "query 2001:db8::1 tls www.example. AAAA no_data SERVFAIL tc rd ra ad 12.3 ms");
        assert!(QueryLog::new(false).line(now, &asker(begun), &message, Outcome::NoData).is_none());
    }

    #[test]
    fn beyond_a_thousand_lines_in_a_second_queries_are_counted_only() {
        let mut log = QueryLog::new(true);
        let now = Instant::default();
        let write = |log: &mut QueryLog| log.line(now, &asker(now), &[0; 12], Outcome::Local).is_some();
        assert_eq!((0..5_000).filter(|_| write(&mut log)).count(), 1_000);
        assert_eq!(log.left_out, 4_000);
        log.begin_second();
        assert!(write(&mut log) && log.left_out == 0);
    }
}
