//! The qualification procedure of one port (RFC 4380 §5.2.1, without its first phase as RFC 5991 §3 says):
//!
//! ```text
//!     ask the server ──answer──▶ ask its second address ──answer──▶ same mapped endpoint? yes: cone of some kind; no: symmetric
//!          └────── no answer in 3 × 4 s ──────┴──▶ failed
//! ```

use super::action::Port;
use super::chance::Chance;
use super::exchange::{ATTEMPTS, Answer, Due, Exchange, Question};
use super::refused::Refused;
use super::settings::{Local, Secret, ServerAddresses};
use super::status::{NatKind, PortChoice};
use super::why::Why;
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;

/// RFC 6081 §5.5: a sequential NAT's next port is higher by one, or by two if another host takes one meanwhile.
const SEQUENTIAL: u16 = 2;

/// A qualification in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Qualification {
    port: Port,
    server: ServerAddresses,
    exchange: Exchange,
    first: Option<Endpoint4>,
    key_expires: bool,
}

/// A qualification that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qualified {
    /// As the server's primary address sees us.
    pub(super) mapped: Endpoint4,
    pub(super) nat: NatKind,
    pub(super) ports: PortChoice,
    pub(super) key_expires: bool,
}

impl Qualification {
    pub(super) fn new(port: Port, server: ServerAddresses, chance: &mut Chance, now: Instant) -> Self {
        let secondary = server.secondary.filter(|address| *address != server.primary);
        let server = ServerAddresses { secondary, ..server };
        let exchange = Exchange::new(question(port, server, server.primary), chance, now);
        Self { port, server, exchange, first: None, key_expires: false }
    }

    pub(super) const fn server(&self) -> ServerAddresses {
        self.server
    }

    /// Whether the first address has answered.
    pub(super) const fn is_comparing(&self) -> bool {
        self.first.is_some()
    }

    pub(super) const fn due(&self) -> Instant {
        self.exchange.due()
    }

    pub(super) fn step(&mut self, secret: Option<&Secret>, now: Instant) -> Due {
        self.exchange.step(secret, now)
    }

    /// Why it failed.
    pub(super) fn why(&self) -> Why {
        match (self.exchange.refused, self.first) {
            (Some(refused), _) => Why::BadAnswer(refused),
            (None, None) => Why::NoAnswer(self.server.primary),
            (None, Some(_)) => Why::NoSecondAnswer(self.exchange.question().asked),
        }
    }

    /// Takes a datagram; `None`: an answer, and there is more to ask.
    pub(super) fn receive(
        &mut self,
        datagram: (Endpoint4, &[u8]),
        secret: Option<&Secret>,
        local: &Local,
        chance: &mut Chance,
        now: Instant,
    ) -> Result<Option<Qualified>, Refused> {
        let Answer { mapped, key_expires } = self.exchange.read(datagram, secret, local)?;
        self.key_expires |= key_expires;
        if let (None, Some(secondary)) = (self.first, self.server.secondary) {
            self.first = Some(mapped);
            self.exchange = Exchange::new(question(self.port, self.server, secondary), chance, now);
            return Ok(None);
        }
        Ok(Some(self.judge(mapped, local)))
    }

    fn judge(&self, last: Endpoint4, local: &Local) -> Qualified {
        let mapped = self.first.unwrap_or(last);
        let nat = match self.first {
            Some(first) if first != last => NatKind::Symmetric,
            _ if mapped == local.endpoint => NatKind::Absent,
            Some(_) => NatKind::Restricted,
            None => NatKind::Unknown,
        };
        let step = last.port.wrapping_sub(mapped.port);
        let ports = if mapped.port == local.endpoint.port {
            PortChoice::Preserved
        } else if nat == NatKind::Symmetric && (1..=SEQUENTIAL).contains(&step) {
            PortChoice::Sequential
        } else {
            PortChoice::Other
        };
        Qualified { mapped, nat, ports, key_expires: self.key_expires }
    }
}

const fn question(port: Port, server: ServerAddresses, asked: core::net::Ipv4Addr) -> Question {
    Question { port, server: server.primary, asked, answering: asked, attempts: ATTEMPTS }
}
