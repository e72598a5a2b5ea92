//! A router solicitation and the advertisement that answers it (RFC 4380 §5.2.1, §5.2.2).
//!
//! A server, and any host on the path to it, can send a false mapped address. Others cannot: an answer is accepted only while a solicitation is
//! outstanding, from the address that was asked, and with the nonce of the solicitation.

use super::action::{Action, Port};
use super::chance::Chance;
use super::refused::Refused;
use super::settings::{Local, Secret};
use crate::neighbour_discovery::{
    ALL_ROUTERS, HOP_LIMIT, Message, NdOption, Received, RouterAdvertisement, RouterSolicitation,
};
use crate::teredo_server::Protected;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::protocol::ICMPV6;
use sixway_wire::teredo::{
    Authentication, Origin, Prologue, TEREDO_PORT, TeredoInterface, is_global_unicast,
};
use sixway_wire::{Endpoint4, IPV6_HEADER, Ipv6Header, Prefix6};

/// RFC 4380 §5.2.1: the time-out T.
pub const TIMEOUT: Duration = Duration::from_secs(4);
/// RFC 4380 §5.2.1: N attempts (RFC 4861 §10: MAX_RTR_SOLICITATIONS).
pub const ATTEMPTS: u8 = 3;

/// What an exchange is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// Our port.
    pub(super) port: Port,
    /// The primary address of the server.
    pub(super) server: Ipv4Addr,
    /// Its address that is asked.
    pub(super) asked: Ipv4Addr,
    /// Its address that is to answer; with the cone bit it is the other one (RFC 4380 §5.3.2).
    pub(super) answering: Ipv4Addr,
    /// How often it is asked.
    pub(super) attempts: u8,
}

/// The content of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) mapped: Endpoint4,
    /// The confirmation byte: the secret is to be replaced.
    pub(super) key_expires: bool,
}

/// A solicitation that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    question: Question,
    link_local: Ipv6Addr,
    nonce: [u8; 8],
    sent: u8,
    due: Instant,
    /// Why the last datagram was not accepted as an answer.
    pub(super) refused: Option<Refused>,
}

/// The due actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Send(Action),
    /// No answer came.
    Over,
}

impl Exchange {
    /// Begins with a solicitation that is sent immediately. All repetitions have the same nonce, so that a late answer is accepted.
    pub(super) fn new(question: Question, chance: &mut Chance, now: Instant) -> Self {
        let bits = chance.bits();
        let mapped = Endpoint4::new(Ipv4Addr::from_bits(bits as u32), (bits >> 32) as u16);
        let interface = TeredoInterface { flags: (bits >> 48) as u16 & TeredoInterface::RANDOM, mapped };
        let link_local = interface.with_cone(question.asked != question.answering).link_local();
        Self { question, link_local, nonce: chance.bits().to_be_bytes(), sent: 0, due: now, refused: None }
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    pub(super) const fn question(&self) -> Question {
        self.question
    }

    /// The actions to take at this time.
    pub(super) fn step(&mut self, secret: Option<&Secret>, now: Instant) -> Due {
        if now < self.due {
            return Due::Nothing;
        }
        if self.sent >= self.question.attempts {
            return Due::Over;
        }
        self.sent += 1;
        self.due = now + TIMEOUT;
        let Question { port: from, asked, .. } = self.question;
        Due::Send(Action::Send { from, to: Endpoint4::new(asked, TEREDO_PORT), octets: self.octets(secret) })
    }

    /// The solicitation, behind its authentication.
    fn octets(&self, secret: Option<&Secret>) -> Vec<u8> {
        let message = RouterSolicitation::default();
        let message = Message::RouterSolicitation(message).to_octets(self.link_local, ALL_ROUTERS);
        let header = Ipv6Header {
            hop_limit: HOP_LIMIT,
            ..Ipv6Header::new(self.link_local, ALL_ROUTERS, ICMPV6, message.len())
        };
        let packet = [&header.octets()[..], &message].concat();
        let protected = Protected { nonce: self.nonce, confirmation: 0, origin: None, packet: &packet };
        let value = secret.map(|secret| secret.key.value(protected));
        let authentication = Authentication {
            client: secret.map_or(&[][..], |secret| &secret.client),
            value: value.as_ref().map_or(&[][..], |value| &value[..]),
            nonce: self.nonce,
            confirmation: 0,
        };
        let mut octets = vec![0; authentication.len()];
        let length = authentication.write(&mut octets).unwrap_or(0);
        octets.truncate(length);
        octets.extend(packet);
        octets
    }

    /// Reads an answer.
    pub(super) fn read(
        &mut self,
        (from, payload): (Endpoint4, &[u8]),
        secret: Option<&Secret>,
        local: &Local,
    ) -> Result<Answer, Refused> {
        if from != Endpoint4::new(self.question.answering, TEREDO_PORT) {
            return Err(Refused::WrongSource);
        }
        let answer = if self.sent == 0 { Err(Refused::NotAsked) } else { self.check(payload, secret, local) };
        if let Err(refused) = answer {
            self.refused = Some(refused);
        }
        answer
    }

    fn check(&self, payload: &[u8], secret: Option<&Secret>, local: &Local) -> Result<Answer, Refused> {
        let (prologue, octets) = Prologue::split(payload).map_err(|_| Refused::Malformed)?;
        let header = Ipv6Header::read(octets).map_err(|_| Refused::Malformed)?;
        let length = IPV6_HEADER + usize::from(header.payload_length);
        let packet = octets.get(..length).ok_or(Refused::Malformed)?;
        let received = Received::from_packet(packet).map_err(|_| Refused::NotAdvertisement)?;
        let Ok(Message::RouterAdvertisement(advertisement)) = Message::parse(&received) else {
            return Err(Refused::NotAdvertisement);
        };
        let authentication = prologue.authentication.filter(|found| found.nonce == self.nonce);
        let authentication = authentication.ok_or(Refused::WrongNonce)?;
        let (nonce, confirmation, origin) = (self.nonce, authentication.confirmation, prologue.origin);
        let protected = Protected { nonce, confirmation, origin, packet };
        if secret.is_some_and(|secret| !secret.key.verifies(protected, authentication.value)) {
            return Err(Refused::NotAuthentic);
        }
        if header.destination != self.link_local {
            return Err(Refused::WrongDestination);
        }
        if !is_prefix_of(self.question.server, &advertisement) {
            return Err(Refused::WrongPrefix);
        }
        let Origin(mapped) = origin.ok_or(Refused::NoOrigin)?;
        if !self.may_be_ours(mapped, local) {
            return Err(Refused::MappedNotGlobal);
        }
        Ok(Answer { mapped, key_expires: confirmation != 0 })
    }

    /// Whether others could reach us at an endpoint (RFC 4380 §4: it must be global unicast).
    fn may_be_ours(&self, mapped: Endpoint4, local: &Local) -> bool {
        let Question { server, asked, answering, .. } = self.question;
        is_global_unicast(mapped.address)
            && mapped.port != 0
            && ![server, asked, answering].contains(&mapped.address)
            && !local.is_broadcast(mapped.address)
    }
}

/// Whether an advertisement has exactly one prefix, that of the server (RFC 4380 §5.2.1).
fn is_prefix_of(server: Ipv4Addr, advertisement: &RouterAdvertisement) -> bool {
    let network = Ipv6Addr::from_bits(0x2001_0000_u128 << 96 | u128::from(server.to_bits()) << 64);
    let mut prefixes = advertisement.options.iter().filter_map(|option| match option {
        NdOption::Prefix(prefix) => Some(prefix.prefix),
        _ => None,
    });
    prefixes.next() == Some(Prefix6::holding(network, 64)) && prefixes.next().is_none()
}
