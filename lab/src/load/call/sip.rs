//! The messages of a call: SIP (RFC 3261) over UDP, with the addresses for audio in SDP (RFC 4566). Only what a call between two telephones needs.

use std::net::{IpAddr, SocketAddr};

/// A call's names and the place of one of its telephones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialog {
    /// Distinguishes calls.
    pub number: u32,
    /// The telephone that calls, as it knows itself.
    pub caller: SocketAddr,
    /// The one that is called, as the caller writes it.
    pub callee: SocketAddr,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Invite,
    Ack,
    Bye,
    /// With its status and the method that it answers: true for INVITE.
    Answer(u16, bool),
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub kind: Kind,
    /// The call's number.
    pub number: u32,
    /// Where audio is to be sent to.
    pub audio: Option<SocketAddr>,
}

impl Dialog {
    /// A request of the caller.
    pub(super) fn request(&self, kind: Kind, audio: Option<SocketAddr>) -> String {
        let (method, sequence) = match kind {
            Kind::Invite => ("INVITE", 1),
            Kind::Ack => ("ACK", 1),
            Kind::Bye | Kind::Answer(..) => ("BYE", 2),
        };
        let Self { number, caller, callee } = self;
        let tag = if kind == Kind::Invite { String::new() } else { format!(";tag=b{number}") };
        let head = format!(
            "{method} sip:b@{callee} SIP/2.0\r\nVia: SIP/2.0/UDP {caller};branch=z9hG4bK{number}-{method};rport\r\n\
             Max-Forwards: 70\r\nFrom: <sip:a@{caller}>;tag=a{number}\r\nTo: <sip:b@{callee}>{tag}\r\n\
             Call-ID: {number}@lab\r\nCSeq: {sequence} {method}\r\nContact: <sip:a@{caller}>\r\n"
        );
        with_body(head, *number, audio)
    }
}

/// An answer to a request, whose headers it repeats (RFC 3261 §8.2.6).
pub(super) fn answer(request: &str, status: (u16, &str), audio: Option<SocketAddr>) -> String {
    let mut head = format!("SIP/2.0 {} {}\r\n", status.0, status.1);
    for name in ["Via", "From", "To", "Call-ID", "CSeq"] {
        let Some(value) = header(request, name) else { continue };
        let tag = if name == "To" && !value.contains(";tag=") {
            format!(";tag=b{}", number(request).unwrap_or(0))
        } else {
            String::new()
        };
        head += &format!("{name}: {value}{tag}\r\n");
    }
    with_body(head, number(request).unwrap_or(0), audio)
}

fn with_body(head: String, number: u32, audio: Option<SocketAddr>) -> String {
    let body = audio.map_or_else(String::new, |audio| {
        let (family, address) = (if audio.is_ipv6() { "IP6" } else { "IP4" }, audio.ip());
        format!(
            "v=0\r\no=- {number} 1 IN {family} {address}\r\ns=-\r\nc=IN {family} {address}\r\nt=0 0\r\n\
             m=audio {} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n",
            audio.port()
        )
    });
    let kind = if body.is_empty() { "" } else { "Content-Type: application/sdp\r\n" };
    format!("{head}{kind}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Reads a message; `None` if it is not one of these.
pub(super) fn read(text: &str) -> Option<Message> {
    let kind = match text.split_whitespace().next()? {
        "INVITE" => Kind::Invite,
        "ACK" => Kind::Ack,
        "BYE" => Kind::Bye,
        "SIP/2.0" => Kind::Answer(
            text.split_whitespace().nth(1)?.parse().ok()?,
            header(text, "CSeq")?.ends_with("INVITE"),
        ),
        _ => return None,
    };
    Some(Message { kind, number: number(text)?, audio: audio(text) })
}

fn number(text: &str) -> Option<u32> {
    header(text, "Call-ID")?.split('@').next()?.parse().ok()
}

fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let head = text.split("\r\n\r\n").next()?;
    head.split("\r\n").find_map(|line| {
        let (of, value) = line.split_once(':')?;
        of.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn audio(text: &str) -> Option<SocketAddr> {
    let body = text.split_once("\r\n\r\n")?.1;
    let line = |start: &str| body.split("\r\n").find_map(|line| line.strip_prefix(start));
    let address: IpAddr = line("c=IN IP")?.split_once(' ')?.1.parse().ok()?;
    let port = line("m=audio ")?.split(' ').next()?.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_read_as_it_was_written() {
        let place = |text: &str| text.parse::<SocketAddr>().unwrap();
        let dialog =
            Dialog { number: 7, caller: place("[2001:db8::1]:5060"), callee: place("192.0.2.1:5060") };
        let audio = Some(place("[2001:db8::1]:4000"));
        let invite = dialog.request(Kind::Invite, audio);
        assert_eq!(read(&invite), Some(Message { kind: Kind::Invite, number: 7, audio }));
        assert!(invite.contains("CSeq: 1 INVITE\r\n") && invite.contains("c=IN IP6 2001:db8::1\r\n"));
        let theirs = Some(place("192.0.2.1:4002"));
        let answer = answer(&invite, (200, "OK"), theirs);
        assert_eq!(read(&answer), Some(Message { kind: Kind::Answer(200, true), number: 7, audio: theirs }));
        assert!(answer.contains("To: <sip:b@192.0.2.1:5060>;tag=b7\r\n"));
        for kind in [Kind::Ack, Kind::Bye] {
            let request = dialog.request(kind, None);
            assert_eq!(read(&request), Some(Message { kind, number: 7, audio: None }));
            assert!(request.ends_with("Content-Length: 0\r\n\r\n"));
        }
        assert_eq!(read("OPTIONS sip:x SIP/2.0\r\n\r\n"), None);
        assert_eq!(read(""), None);
        let length = |text: &str| header(text, "content-length").map(str::to_owned);
        assert_eq!(length(&invite), Some(invite.split_once("\r\n\r\n").unwrap().1.len().to_string()));
    }
}
