//! Queries over UDP, and their replies in a form that tests can compare.

use super::expected::Expected;
use super::flags::Flags;
use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use domain::base::iana::Rtype;
use domain::base::message::RecordSection;
use domain::base::{Message, MessageBuilder, Name};
use domain::rdata::AllRecordData;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// How long an answer may take: the DNS64 may have to try its authority more than once.
const PATIENCE: Duration = Duration::from_secs(6);

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its owner, without the last dot, in lower case.
    pub owner: String,
    /// Seconds.
    pub ttl: u32,
    /// Its type's mnemonic.
    pub kind: String,
    /// Its data as in a zone file.
    pub data: String,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its mnemonic.
    pub rcode: String,
    /// AD: all of it was validated.
    pub authentic: bool,
    /// The answer section.
    pub answer: Vec<Row>,
    /// The authority section.
    pub authority: Vec<Row>,
}

impl Reply {
    /// Data of the answer's records of one type, in order.
    pub fn data(&self, kind: &str) -> Vec<&str> {
        let mut data: Vec<_> =
            self.answer.iter().filter(|row| row.kind == kind).map(|row| row.data.as_str()).collect();
        data.sort_unstable();
        data
    }

    /// What a client makes of it that asked for addresses of this type.
    pub fn addresses(&self, kind: &str) -> Result<Expected> {
        match self.rcode.as_str() {
            "NXDOMAIN" => Ok(Expected::NameError),
            "SERVFAIL" => Ok(Expected::Failure),
            "NOERROR" => {
                let addresses: Vec<_> = self.data(kind).iter().filter_map(|data| data.parse().ok()).collect();
                Ok(if addresses.is_empty() { Expected::Empty } else { Expected::Addresses(addresses) })
            }
            other => Err(Failure::Unexpected(format!("an answer with {other}"))),
        }
    }
}

impl Expected {
    /// Whether both are the same, in any order.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Addresses(ours), Self::Addresses(theirs)) => {
                ours.len() == theirs.len() && ours.iter().all(|address| theirs.contains(address))
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

/// A client of one server.
pub struct Asker {
    socket: UdpSocket,
    next: AtomicU16,
}

impl Asker {
    /// Opens a socket on a host.
    pub fn open(host: &Namespace, server: SocketAddr) -> Result<Self> {
        let socket =
            host.enter(|| UdpSocket::bind("[::]:0"))?.asking(|| "opening a UDP socket".to_owned())?;
        socket.connect(server).asking(|| format!("connecting to {server}"))?;
        Ok(Self { socket, next: AtomicU16::new(1) })
    }

    /// Sends a query once and waits for the answer.
    pub fn ask(&self, name: &str, kind: &str, flags: Flags) -> Result<Reply> {
        self.ask_within(name, kind, flags, PATIENCE)
    }

    /// The same, with another patience.
    pub fn ask_within(&self, name: &str, kind: &str, flags: Flags, patience: Duration) -> Result<Reply> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let question = question(id, name, kind, flags)?;
        self.socket.send(&question).asking(|| format!("querying {name} {kind}"))?;
        let start = Instant::now();
        let mut room = vec![0; 65_535];
        while let Some(left) = patience.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left)).asking(|| "setting a time to wait".to_owned())?;
            let Ok(length) = self.socket.recv(&mut room) else { continue };
            if room.get(..2) == Some(&id.to_be_bytes()) {
                return read(&room[..length]).ok_or_else(|| {
                    Failure::Unexpected(format!(
                        "no DNS message in answer to {name} {kind}: {:02x?}",
                        &room[..length]
                    ))
                });
            }
        }
        Err(Failure::TimedOut(format!("{name} {kind} was not answered within {patience:?}")))
    }
}

impl Asker {
    /// Asks for AAAA records of many names at the same time, 65,535 at most; how often each RCODE came within `patience`.
    pub fn ask_all(
        &self,
        names: impl ExactSizeIterator<Item = String>,
        patience: Duration,
    ) -> Result<BTreeMap<String, usize>> {
        setsockopt(&self.socket, RcvBufForce, &(16 << 20)).asking(|| "setting SO_RCVBUFFORCE".to_owned())?;
        let mut open = BTreeSet::new();
        for (id, name) in (1..).zip(names) {
            let question = question(id, &name, "AAAA", Flags::NONE)?;
            self.socket.send(&question).asking(|| format!("querying {name}"))?;
            open.insert(id);
            // So that the server's socket has room too.
            std::thread::sleep(Duration::from_micros(50));
        }
        let start = Instant::now();
        let (mut room, mut came) = (vec![0; 65_535], BTreeMap::new());
        while let Some(left) =
            patience.checked_sub(start.elapsed()).filter(|left| !left.is_zero() && !open.is_empty())
        {
            self.socket.set_read_timeout(Some(left)).asking(|| "setting a time to wait".to_owned())?;
            let Some(reply) = self.socket.recv(&mut room).ok().map(|length| &room[..length]) else {
                continue;
            };
            let id = reply.first_chunk().copied().map(u16::from_be_bytes);
            if let Some(said) = id.filter(|id| open.remove(id)).and_then(|_| read(reply)) {
                *came.entry(said.rcode).or_default() += 1;
            }
        }
        Ok(came)
    }
}

fn question(id: u16, name: &str, kind: &str, flags: Flags) -> Result<Vec<u8>> {
    let wrong = |what: &str| Failure::Unexpected(format!("{name} {kind} is not a valid question: {what}"));
    let owner = Name::<Vec<u8>>::from_str(name).map_err(|error| wrong(&error.to_string()))?;
    let kind = Rtype::from_str(kind).map_err(|_| wrong("no such type"))?;
    let mut builder = MessageBuilder::new_vec();
    let header = builder.header_mut();
    header.set_id(id);
    header.set_rd(true);
    header.set_cd(flags.checking_disabled);
    header.set_ad(flags.authentic);
    let mut builder = builder.question();
    builder.push((owner, kind)).map_err(|error| wrong(&error.to_string()))?;
    let mut builder = builder.additional();
    builder
        .opt(|opt| {
            opt.set_udp_payload_size(4_096);
            opt.set_dnssec_ok(flags.dnssec_ok);
            Ok(())
        })
        .map_err(|error| wrong(&error.to_string()))?;
    Ok(builder.finish())
}

fn read(octets: &[u8]) -> Option<Reply> {
    let message = Message::from_octets(octets).ok()?;
    let header = message.header();
    Some(Reply {
        rcode: header.rcode().to_string(),
        authentic: header.ad(),
        answer: rows(message.answer().ok()?)?,
        authority: rows(message.authority().ok()?)?,
    })
}

fn rows(section: RecordSection<'_, &[u8]>) -> Option<Vec<Row>> {
    section
        .limit_to::<AllRecordData<_, _>>()
        .map(|record| {
            let record = record.ok()?;
            Some(Row {
                owner: record.owner().to_string().trim_end_matches('.').to_lowercase(),
                ttl: record.ttl().as_secs(),
                kind: record.rtype().to_string(),
                data: record.data().to_string(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_back() {
        let flags = Flags { checking_disabled: true, dnssec_ok: true, authentic: false };
        let octets = question(7, "a.test", "AAAA", flags).unwrap();
        let reply = read(&octets).unwrap();
        assert_eq!((reply.rcode.as_str(), reply.answer.len()), ("NOERROR", 0));
        assert!(Message::from_octets(&octets).unwrap().header().cd());
    }
}
