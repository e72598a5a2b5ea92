//! The refresh interval determination procedure (RFC 4380 §5.2.7): a second port measures how long the NAT keeps an unused mapping.
//!
//! ```text
//!     qualify ─▶ wait for the candidate ─▶ bubble to the second port, 4 × 2 s ─▶ it came: longer; it did not: shorter
//!                        ▲                                                                   │
//!                        └──────────── refresh the second port ◀── not concluded ────────────┘
//! ```

use super::action::{Action, Port};
use super::chance::Chance;
use super::exchange::{ATTEMPTS, Due, Exchange, Question};
use super::qualification::Qualification;
use super::refused::Refused;
use super::settings::{Local, Secret, ServerAddresses};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::teredo::{Prologue, TEREDO_PORT, TeredoAddress, TeredoInterface, bubble, is_bubble};
use sixway_wire::{Endpoint4, Ipv6Header};

/// RFC 4380 §5.2.7: 2 s for each bubble.
const BUBBLE_TIMEOUT: Duration = Duration::from_secs(2);
/// RFC 4380 §5.2.7: the first one, and three repetitions.
const BUBBLES: u8 = 4;
/// An interval that is longer by less than this is not tested: with successes alone, the procedure would never conclude.
const LEAST_GAIN: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
enum Step {
    Qualifying(Qualification),
    Waiting(Instant),
    Testing { sent: u8, due: Instant },
    Refreshing(Exchange),
}

/// The procedure in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learning {
    server: ServerAddresses,
    step: Step,
    secondary: Option<TeredoAddress>,
    interval: Duration,
    candidate: Duration,
    maximum: Duration,
    concluded: bool,
}

impl Learning {
    /// RFC 4380 §5.2.7: the maximum refresh interval, 120 s.
    pub(super) const MAXIMUM: Duration = Duration::from_secs(120);

    /// Begins, with the interval that is in use.
    pub(super) fn new(
        server: ServerAddresses,
        interval: Duration,
        chance: &mut Chance,
        now: Instant,
    ) -> Self {
        let step = Step::Qualifying(Qualification::new(Port::Secondary, server, chance, now));
        let (candidate, maximum) = ((interval * 2).min(Self::MAXIMUM), Self::MAXIMUM);
        Self { server, step, secondary: None, interval, candidate, maximum, concluded: false }
    }

    /// The interval in use.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) const fn has_concluded(&self) -> bool {
        self.concluded
    }

    pub(super) fn due(&self) -> Instant {
        match &self.step {
            Step::Qualifying(qualification) => qualification.due(),
            Step::Waiting(due) | Step::Testing { due, .. } => *due,
            Step::Refreshing(exchange) => exchange.due(),
        }
    }

    /// What is to be sent at this time. `own` is the address of the service port.
    pub(super) fn step(
        &mut self,
        own: TeredoAddress,
        secret: Option<&Secret>,
        chance: &mut Chance,
        now: Instant,
    ) -> Option<Action> {
        let due = match &mut self.step {
            Step::Qualifying(qualification) => qualification.step(secret, now),
            Step::Refreshing(exchange) => exchange.step(secret, now),
            Step::Waiting(due) if *due <= now => {
                self.step = Step::Testing { sent: 0, due: now };
                return self.test(own, chance, now);
            }
            Step::Testing { due, .. } if *due <= now => return self.test(own, chance, now),
            Step::Waiting(_) | Step::Testing { .. } => Due::Nothing,
        };
        match due {
            Due::Nothing => None,
            Due::Send(action) => Some(action),
            Due::Over => {
                // The secondary qualification failed: what is known stays in use.
                self.concluded = true;
                None
            }
        }
    }

    /// Sends the next bubble of a test, or ends the test.
    fn test(&mut self, own: TeredoAddress, chance: &mut Chance, now: Instant) -> Option<Action> {
        let Step::Testing { sent, due } = &mut self.step else { return None };
        if *sent >= BUBBLES {
            self.failed(chance, now);
            return None;
        }
        *sent += 1;
        *due = now + BUBBLE_TIMEOUT;
        let secondary = self.secondary?;
        let octets = bubble(own.address(), secondary.address(), 255).to_vec();
        Some(Action::Send {
            from: Port::Service,
            to: Endpoint4::new(self.server.primary, TEREDO_PORT),
            octets,
        })
    }

    /// RFC 4380 §5.2.7, 4.
    fn succeeded(&mut self, chance: &mut Chance, now: Instant) {
        self.interval = self.candidate;
        self.candidate = (self.interval * 2).min((self.interval + self.maximum) / 2);
        self.concluded = self.candidate < self.interval + LEAST_GAIN;
        self.refresh(chance, now);
    }

    /// RFC 4380 §5.2.7, 5.
    fn failed(&mut self, chance: &mut Chance, now: Instant) {
        self.maximum = self.candidate;
        self.concluded = self.interval * 4 >= self.maximum * 3;
        self.candidate = (self.interval + self.maximum) / 2;
        self.refresh(chance, now);
    }

    /// RFC 4380 §5.2.7, 6.
    fn refresh(&mut self, chance: &mut Chance, now: Instant) {
        let (port, asked) = (Port::Secondary, self.server.primary);
        let question = Question { port, server: asked, asked, answering: asked, attempts: ATTEMPTS };
        self.step = Step::Refreshing(Exchange::new(question, chance, now));
    }

    /// Takes a datagram that came to the secondary port.
    pub(super) fn receive(
        &mut self,
        datagram: (Endpoint4, &[u8]),
        own: TeredoAddress,
        (secret, local): (Option<&Secret>, &Local),
        chance: &mut Chance,
        now: Instant,
    ) -> Result<(), Refused> {
        let mapped = match &mut self.step {
            Step::Qualifying(qualification) => {
                match qualification.receive(datagram, secret, local, chance, now)? {
                    Some(qualified) => qualified.mapped,
                    None => return Ok(()),
                }
            }
            Step::Refreshing(exchange) => exchange.read(datagram, secret, local)?.mapped,
            Step::Testing { .. } => {
                self.read_bubble(datagram, own)?;
                self.succeeded(chance, now);
                return Ok(());
            }
            Step::Waiting(_) => return Err(Refused::NotAsked),
        };
        let flags = chance.bits() as u16 & TeredoInterface::RANDOM;
        let interface = TeredoInterface { flags, mapped };
        self.secondary = Some(TeredoAddress { server: self.server.primary, interface });
        self.step = Step::Waiting(now + self.candidate);
        Ok(())
    }

    /// Whether a datagram is the bubble that was sent.
    fn read_bubble(&self, (from, payload): (Endpoint4, &[u8]), own: TeredoAddress) -> Result<(), Refused> {
        if from != Endpoint4::new(self.server.primary, TEREDO_PORT) {
            return Err(Refused::WrongSource);
        }
        let (_, packet) = Prologue::split(payload).map_err(|_| Refused::Malformed)?;
        let header = Ipv6Header::read(packet).map_err(|_| Refused::Malformed)?;
        let ends = (header.source, Some(header.destination));
        if !is_bubble(packet) || ends != (own.address(), self.secondary.map(TeredoAddress::address)) {
            return Err(Refused::WrongDestination);
        }
        Ok(())
    }
}
