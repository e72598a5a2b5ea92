//! The query log: one line per query, if configured.

use domain::base::{Message, Rtype, ToName};
use sixway_control::dns64::{Asker, Outcome, Transport};
use std::fmt;

/// Writes a line about a query that was answered.
pub(super) fn note<T>(asker: &Asker<T>, answer: &[u8], outcome: Outcome) {
    let transport = match asker.transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
        Transport::Https => "https",
        // No client.
        Transport::Inside => return,
    };
    tracing::info!("query {} {transport} {} {}", asker.address, Question(answer), outcome.name());
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
}
