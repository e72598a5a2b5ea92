//! The dialogue of client and server: which commands and replies are changed (RFC 6384 §5 to §11; RFC 2577 §3).

use super::answer::Answer;
use super::line::{self, Announced};
use super::verb::{HEAD, verb};
use crate::alg::openings::{Opening, Openings};
use arrayvec::ArrayVec;
use core::net::{IpAddr, Ipv4Addr};
use sixway_wire::Endpoint4;

/// The port of FTP servers (RFC 959 §8, RFC 6384 §5).
pub(crate) const CONTROL_PORT: u16 = 21;

/// Commands that wait for their replies. If there are more, the oldest one is dropped.
const MOST_PENDING: usize = 8;
/// Ports below it are services' own: no client receives data there (RFC 2577 §3).
const LOWEST_PORT: u16 = 1_024;

/// The ends of the connection of a line.
pub(crate) struct Asked<'a> {
    /// The client's address.
    pub(crate) client: IpAddr,
    /// The server's.
    pub(crate) server: Ipv4Addr,
    /// Creates mappings.
    pub(crate) openings: &'a mut dyn Openings,
}

/// The expected reply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// Its reply stays as it is.
    Reply,
    /// The same, which has code 227.
    Passive,
    /// The reply 227 becomes 229: PASV was EPSV.
    Extended,
    /// Any reply becomes this one: the command was not for the server, and became NOOP.
    Instead(&'static str),
    /// Whether the connection is secured.
    Security,
}

/// How far lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They are.
    Reading,
    /// A client has sent AUTH: they are not, unless the server refuses.
    Securing,
    /// They are not (RFC 6384 §5), whatever follows.
    Transparent,
}

/// The state of a dialogue.
#[derive(Clone, Debug)]
pub(crate) struct Dialogue {
    mode: Mode,
    /// Whether the server has said 220: before, no client of FTP sends a command (RFC 959 §5.4).
    is_greeted: bool,
    /// Whether commands are translated; clients of NAT64 may set it (RFC 6384 §11).
    translates: bool,
    pending: ArrayVec<Pending, MOST_PENDING>,
    /// The code of a reply of several lines, of which the last has not come.
    lines_of: Option<[u8; 3]>,
}

impl Dialogue {
    pub(crate) const fn new() -> Self {
        let pending = ArrayVec::new_const();
        Self { mode: Mode::Reading, is_greeted: false, translates: true, pending, lines_of: None }
    }

    /// Whether lines are not looked at any more.
    pub(crate) fn is_transparent(&self) -> bool {
        self.mode == Mode::Transparent
    }

    /// Whether they are, and commands are translated.
    pub(crate) fn is_reading(&self) -> bool {
        self.mode == Mode::Reading
    }

    /// Lines are not looked at any more.
    pub(crate) const fn stop(&mut self) {
        self.mode = Mode::Transparent;
    }

    fn expect(&mut self, pending: Pending) {
        if self.pending.is_full() {
            self.pending.remove(0);
        }
        self.pending.push(pending);
    }

    /// The client has sent a line of which only the beginning is known. After one that is not a command, the client does not speak FTP: it may be a
    /// browser with a page whose text looks like commands.
    pub(crate) fn unread_command(&mut self, head: &[u8]) {
        let Some(verb) = verb(head) else { return self.stop() };
        if verb == *b"AUTH" && self.mode == Mode::Reading {
            self.mode = Mode::Securing;
            return self.expect(Pending::Security);
        }
        self.expect(Pending::Reply);
    }

    /// The client has sent a line.
    pub(crate) fn command(&mut self, text: &[u8], asked: &mut Asked<'_>) -> Answer {
        let verb = verb(text).filter(|verb| self.mode == Mode::Reading && verb != b"AUTH");
        let Some((verb, argument)) = verb.zip(line::argument(text)) else {
            self.unread_command(text.get(..HEAD).unwrap_or(text));
            return Answer::Keep;
        };
        let (pending, answer) = match (asked.client, &verb) {
            (_, b"PORT" | b"EPRT") if !self.is_greeted => (Pending::Reply, Answer::Refuse),
            _ if !self.is_greeted => (Pending::Reply, Answer::Keep),
            (IpAddr::V6(_), b"ALGS") => self.status(argument),
            (_, b"PASV") => (Pending::Passive, Answer::Keep),
            (IpAddr::V4(_), b"PORT") => (Pending::Reply, port(line::host_port(argument), asked)),
            (_, b"EPRT") if self.translates => (Pending::Reply, extended(line::extended(argument), asked)),
            (IpAddr::V6(_), b"EPSV") if self.translates => passive(argument),
            _ => (Pending::Reply, Answer::Keep),
        };
        self.expect(pending);
        answer
    }

    /// ALGS (RFC 6384 §11).
    fn status(&mut self, argument: &str) -> (Pending, Answer) {
        let known = match argument.to_ascii_uppercase().as_str() {
            "STATUS64" => true,
            "ENABLE64" => {
                self.translates = true;
                true
            }
            "DISABLE64" => {
                self.translates = false;
                true
            }
            _ => false,
        };
        let reply = match (known, self.translates) {
            (false, _) => "504 Command not implemented for that parameter",
            (true, true) => "216 EPSVEPRT",
            (true, false) => "216 NONE",
        };
        instead(reply)
    }

    /// The server has sent a line of which only the beginning is known.
    pub(crate) fn unread_reply(&mut self, head: &[u8]) {
        self.completes(head);
    }

    /// The server has sent a line.
    pub(crate) fn reply(&mut self, text: &[u8]) -> Answer {
        match self.completes(text) {
            Some(Pending::Extended) if text.starts_with(b"227") => match line::in_reply(text) {
                // The address is ignored: servers behind NATs announce private ones (RFC 6384 §6).
                Some(Endpoint4 { port, .. }) if port != 0 => {
                    Answer::line(&format!("229 Entering Extended Passive Mode (|||{port}|)"))
                }
                Some(_) | None => Answer::line("425 Can't open data connection"),
            },
            Some(Pending::Instead(reply)) => Answer::line(reply),
            Some(Pending::Extended | Pending::Reply | Pending::Passive | Pending::Security) | None => {
                Answer::Keep
            }
        }
    }

    /// The command that a line of the server's is the last reply to, if it is one (RFC 959 §4.2).
    fn completes(&mut self, text: &[u8]) -> Option<Pending> {
        let (code, separator) = (text.first_chunk::<3>()?, text.get(3)?);
        let is_code = code.iter().all(u8::is_ascii_digit);
        match self.lines_of {
            Some(first) if first == *code && *separator == b' ' => self.lines_of = None,
            Some(_) => return None,
            None if !is_code => return None,
            None if *separator == b'-' => {
                self.lines_of = Some(*code);
                return None;
            }
            None => {}
        }
        if code[0] == b'1' {
            return None;
        }
        if !self.is_greeted {
            self.greet(code);
            return None;
        }
        let is_passive = |pending: &Pending| matches!(pending, Pending::Passive | Pending::Extended);
        // What the replies before it were to is not waited for.
        let before = if code == b"227" { self.pending.iter().position(is_passive)? } else { 0 };
        let pending = self.pending.drain(..).collect::<ArrayVec<_, MOST_PENDING>>();
        let mut rest = pending.into_iter().skip(before);
        let completed = rest.next();
        self.pending.extend(rest);
        if completed == Some(Pending::Security) && self.mode == Mode::Securing {
            let is_refused = matches!(code[0], b'4' | b'5');
            self.mode = if is_refused { Mode::Reading } else { Mode::Transparent };
        }
        completed
    }

    /// The first reply: 220 greets the client (RFC 959 §5.4). After another one there is nothing to translate.
    fn greet(&mut self, code: &[u8; 3]) {
        self.is_greeted = true;
        if code != b"220" {
            self.stop();
        }
    }
}

/// The server gets NOOP, and the client this reply (RFC 6384 §12).
fn instead(reply: &'static str) -> (Pending, Answer) {
    (Pending::Instead(reply), Answer::line("NOOP"))
}

/// EPSV of a client behind NAT64 (RFC 6384 §6).
fn passive(argument: &str) -> (Pending, Answer) {
    match argument {
        "" | "2" => (Pending::Extended, Answer::line("PASV")),
        all if all.eq_ignore_ascii_case("ALL") => instead("504 Command not implemented for that parameter"),
        other if line::decimal::<u32>(other).is_some() => instead("522 Network protocol not supported"),
        _ => (Pending::Reply, Answer::Keep),
    }
}

/// PORT of a client behind NAT44.
fn port(announced: Option<Endpoint4>, asked: &mut Asked<'_>) -> Answer {
    let Some(Endpoint4 { address, port }) = announced else { return Answer::Keep };
    open(Announced { address: address.into(), port }, asked, port_line)
}

/// EPRT: it becomes PORT for a client behind NAT64 (RFC 6384 §7.2).
fn extended(announced: Option<Announced>, asked: &mut Asked<'_>) -> Answer {
    let Some(announced) = announced else { return Answer::Keep };
    let line = match asked.client {
        IpAddr::V4(_) => |Endpoint4 { address, port }| Answer::line(&format!("EPRT |1|{address}|{port}|")),
        IpAddr::V6(_) => port_line,
    };
    open(announced, asked, line)
}

/// Makes the mapping of a client's own endpoint. Another host's would let the server reach whom the client chooses (RFC 2577 §2).
fn open(
    Announced { address, port }: Announced,
    asked: &mut Asked<'_>,
    line: fn(Endpoint4) -> Answer,
) -> Answer {
    if address != asked.client || port < LOWEST_PORT {
        return Answer::Refuse;
    }
    let outside = asked.openings.open(Opening { port, remote: asked.server });
    outside.map_or(Answer::Refuse, line)
}

fn port_line(Endpoint4 { address, port }: Endpoint4) -> Answer {
    let ([a, b, c, d], [high, low]) = (address.octets(), port.to_be_bytes());
    Answer::line(&format!("PORT {a},{b},{c},{d},{high},{low}"))
}

#[cfg(test)]
mod tests;
