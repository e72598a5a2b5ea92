//! The advertising interface: what comes in, what goes out, and when.

use super::answers::{Admission, Answers, Asker};
use super::contents::{AdvertisementKind, advertisements};
use super::prefixes::{Prefixes, StalePrefix};
use super::schedule::Schedule;
use crate::isatap;
use crate::neighbour_answer::{AnswerLimit, answer};
use crate::neighbour_discovery::{
    ALL_NODES, Malformed, Message, NeighbourSolicitation, Received, RouterAdvertisement, Transmission,
};
use crate::random::Random;
use core::net::Ipv6Addr;
use sixway_dataplane::Instant;
use std::collections::VecDeque;

use super::consistency::{Inconsistency, ReportLimit, compare};
use super::settings::{AdvertisedPrefix, Link, Setting, Settings, SettingsFault, Solicited};

/// The result of a received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A router solicitation, which will be answered.
    Solicitation,
    /// A neighbour solicitation for our own address over ISATAP, which is answered.
    Neighbour,
    /// Another router's advertisement, with inconsistencies to log that were not reported within the last hour.
    Router(Vec<Inconsistency>),
    /// More solicitations than are answered at a time.
    TooMany,
    /// A valid message that does not concern this router.
    NotForUs,
}

/// What has been sent and heard so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterAdvertCounters {
    /// Packets with advertisements to all nodes.
    pub multicast: u64,
    /// Packets with advertisements to a soliciting host.
    pub unicast: u64,
    /// Neighbour advertisements over ISATAP.
    pub neighbours: u64,
    /// Router solicitations that are answered.
    pub solicitations: u64,
    /// Solicitations ignored because too many answers were pending.
    pub too_many: u64,
    /// Messages that failed a check.
    pub malformed: u64,
    /// Inconsistencies of other routers that were reported.
    pub inconsistencies: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Advertisements with router lifetime 0 that are still to be sent.
    Leaving(u8),
    Over,
}

/// An advertising interface.
#[derive(Clone, Debug)]
pub struct RouterAdvert {
    link: Link,
    settings: Settings,
    prefixes: Prefixes,
    random: Random,
    phase: Phase,
    /// Of a LAN only.
    schedule: Option<Schedule>,
    /// The next packet of a multicast advertisement that has begun.
    part: usize,
    answers: Answers,
    limit: AnswerLimit,
    out: VecDeque<Transmission>,
    told: ReportLimit,
    counters: RouterAdvertCounters,
}

impl RouterAdvert {
    /// Begins to advertise. `seed` spreads the delays: give each interface one of its own.
    ///
    /// # Errors
    /// Everything that is wrong with the settings, see [`Settings::faults`].
    pub fn new(link: Link, settings: Settings, seed: u64, now: Instant) -> Result<Self, Vec<SettingsFault>> {
        let faults = settings.faults(&link);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut random = Random::new(seed);
        let schedule = match link {
            Link::Multicast { .. } => Some(Schedule::new(settings.intervals(), now, &mut random)),
            Link::Isatap { .. } => None,
        };
        Ok(Self {
            prefixes: Prefixes::new(&settings.prefixes),
            link,
            settings,
            random,
            phase: Phase::Running,
            schedule,
            part: 0,
            answers: Answers::default(),
            limit: AnswerLimit::default(),
            out: VecDeque::new(),
            told: ReportLimit::default(),
            counters: RouterAdvertCounters::default(),
        })
    }

    /// Takes a message that arrived on the link: a router solicitation is answered later, a neighbour solicitation over ISATAP immediately,
    /// another router's advertisement is compared with what is advertised here.
    ///
    /// # Errors
    /// Which check the message failed; it is silently discarded (RFC 4861 §6.1).
    pub fn handle_message(&mut self, now: Instant, received: &Received<'_>) -> Result<Heard, Malformed> {
        let message = Message::parse(received).inspect_err(|_| self.counters.malformed += 1)?;
        if self.phase != Phase::Running {
            return Ok(Heard::NotForUs);
        }
        let heard = match message {
            Message::RouterSolicitation(_) => self.solicited(now, received),
            Message::RouterAdvertisement(theirs) => self.compared(now, received.source, &theirs),
            Message::NeighbourSolicitation(solicitation) => self.neighbour(now, received, &solicitation),
            Message::NeighbourAdvertisement(_) => Heard::NotForUs,
        };
        match &heard {
            Heard::Solicitation => self.counters.solicitations += 1,
            Heard::Router(faults) => self.counters.inconsistencies += faults.len() as u64,
            Heard::TooMany => self.counters.too_many += 1,
            Heard::Neighbour | Heard::NotForUs => {}
        }
        Ok(heard)
    }

    fn solicited(&mut self, now: Instant, received: &Received<'_>) -> Heard {
        let asker = Asker { address: received.source, outer: received.outer_source };
        let Some(schedule) = &mut self.schedule else { return self.solicited_through_tunnel(now, asker) };
        if self.settings.solicited == Solicited::Unicast && !asker.address.is_unspecified() {
            match self.answers.enter(now, asker, &mut self.random) {
                Admission::Waits => return Heard::Solicitation,
                // One advertisement for all of them.
                Admission::Full => {}
            }
        }
        schedule.solicit(now, &mut self.random);
        Heard::Solicitation
    }

    /// RFC 5214 §8.2: the answer goes to the soliciting node, whose address must be that of the tunnel packet's sender.
    fn solicited_through_tunnel(&mut self, now: Instant, asker: Asker) -> Heard {
        let locator = isatap::locator_of(asker.address);
        if locator.is_none() || locator != asker.outer {
            return Heard::NotForUs;
        }
        match self.answers.enter(now, asker, &mut self.random) {
            Admission::Waits => Heard::Solicitation,
            Admission::Full => Heard::TooMany,
        }
    }

    fn compared(&mut self, now: Instant, router: Ipv6Addr, theirs: &RouterAdvertisement) -> Heard {
        if router == self.source() {
            return Heard::NotForUs;
        }
        let found = compare(&self.settings, &self.prefixes, router, theirs, now);
        Heard::Router(self.told.untold(found, now))
    }

    fn neighbour(&mut self, now: Instant, received: &Received<'_>, asked: &NeighbourSolicitation) -> Heard {
        let Link::Isatap { local, .. } = self.link else { return Heard::NotForUs };
        let sender = isatap::locator_of(received.source);
        if sender.is_none() || sender != received.outer_source {
            return Heard::NotForUs;
        }
        let own = |address| {
            let mut prefixes =
                self.prefixes.live().map(|entry| entry.prefix).filter(|prefix| prefix.length() == 64);
            address == isatap::link_local(local)
                || prefixes.any(|prefix| isatap::address(prefix, local) == address)
        };
        let Some(answer) = answer(received, asked, own, true) else { return Heard::NotForUs };
        if !self.limit.admit(now) {
            return Heard::TooMany;
        }
        self.counters.neighbours += 1;
        self.out.push_back(answer);
        Heard::Neighbour
    }

    /// The next message to send; call it until it returns `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmission> {
        self.prefixes.expire(now);
        if self.out.is_empty()
            && let Some(asker) = self.answers.take_due(now)
        {
            self.answer(now, asker);
        }
        self.out.pop_front().or_else(|| self.multicast(now))
    }

    /// When [`RouterAdvert::poll_transmit`] is to be called next; `None` if nothing is planned.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.out.is_empty() {
            return Some(Instant::default());
        }
        match (self.answers.due(), self.multicast_due()) {
            (Some(answer), Some(multicast)) => Some(answer.min(multicast)),
            (answer, multicast) => answer.or(multicast),
        }
    }

    fn multicast_due(&self) -> Option<Instant> {
        let schedule = self.schedule.as_ref()?;
        match self.phase {
            Phase::Running if self.part == 0 => Some(schedule.due()),
            Phase::Running | Phase::Leaving(_) => Some(schedule.allowed()),
            Phase::Over => None,
        }
    }

    /// All packets of an advertisement to a soliciting host, sent immediately: unicast has no rate limit.
    fn answer(&mut self, now: Instant, asker: Asker) {
        let (source, destination) = (self.source(), asker.address);
        for part in advertisements(&self.settings, &self.prefixes, &self.link, AdvertisementKind::Usual, now)
        {
            let message = Message::RouterAdvertisement(part).to_octets(source, destination);
            let outer_destination = asker.outer;
            self.out.push_back(Transmission { source, destination, outer_destination, message });
            self.counters.unicast += 1;
        }
        self.prefixes.mark_advertised(now);
    }

    fn multicast(&mut self, now: Instant) -> Option<Transmission> {
        if self.multicast_due()? > now {
            return None;
        }
        let tone = match self.phase {
            Phase::Running => AdvertisementKind::Usual,
            Phase::Leaving(_) | Phase::Over => AdvertisementKind::Goodbye,
        };
        let mut parts = advertisements(&self.settings, &self.prefixes, &self.link, tone, now);
        // Prefixes that have ended since may have made it shorter.
        let at = self.part.min(parts.len() - 1);
        let is_last = at + 1 == parts.len();
        let part = parts.swap_remove(at);
        self.part = if is_last { 0 } else { at + 1 };
        self.multicast_sent(now, is_last);
        let (source, destination) = (self.source(), ALL_NODES);
        let message = Message::RouterAdvertisement(part).to_octets(source, destination);
        self.counters.multicast += 1;
        Some(Transmission { source, destination, outer_destination: None, message })
    }

    fn multicast_sent(&mut self, now: Instant, is_last: bool) {
        let Some(schedule) = &mut self.schedule else { return };
        if !is_last {
            return schedule.part_sent(now);
        }
        schedule.sent(now, &mut self.random);
        match self.phase {
            Phase::Running => self.prefixes.mark_advertised(now),
            Phase::Leaving(left) if left > 1 => self.phase = Phase::Leaving(left - 1),
            Phase::Leaving(_) | Phase::Over => self.phase = Phase::Over,
        }
    }

    /// Replaces the prefixes. Those that go away are advertised with both lifetimes 0 for as long as they were valid (RFC 9096 §3.5), and
    /// three fast advertisements announce the change (RFC 4861 §6.2.4); the same list again changes nothing.
    ///
    /// # Errors
    /// Everything that is wrong; the old list then stays.
    pub fn set_prefixes(
        &mut self,
        now: Instant,
        prefixes: Vec<AdvertisedPrefix>,
    ) -> Result<(), Vec<SettingsFault>> {
        self.set_settings(now, Settings { prefixes, ..self.settings.clone() })
    }

    /// Replaces all settings, as [`RouterAdvert::set_prefixes`] does.
    ///
    /// # Errors
    /// Everything that is wrong; the old settings then stay.
    pub fn set_settings(&mut self, now: Instant, settings: Settings) -> Result<(), Vec<SettingsFault>> {
        let faults = settings.faults(&self.link);
        if !faults.is_empty() {
            return Err(faults);
        }
        if settings != self.settings {
            self.prefixes.replace(now, &settings.prefixes);
            self.settings = settings;
            self.changed(now);
        }
        Ok(())
    }

    /// The link has changed: another link-local address (RFC 4861 §6.2.8), MTU or local IPv4 address. The change is announced in fast
    /// advertisements from the new address; the kind of link stays what it was.
    ///
    /// # Errors
    /// Everything that is wrong with the settings on the new link, or that it is of the other kind; the old link then stays.
    pub fn set_link(&mut self, now: Instant, link: Link) -> Result<(), Vec<SettingsFault>> {
        let mut faults = self.settings.faults(&link);
        let (is, was) = (matches!(link, Link::Multicast { .. }), self.schedule.is_some());
        if is != was {
            let why = "a LAN does not become a tunnel, nor a tunnel a LAN".to_owned();
            faults.push(SettingsFault { setting: Setting::Link, entry: None, why });
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        if link != self.link {
            self.link = link;
            self.changed(now);
        }
        Ok(())
    }

    fn changed(&mut self, now: Instant) {
        self.part = 0;
        if let Some(schedule) = &mut self.schedule {
            schedule.restart(self.settings.intervals(), now, &mut self.random);
        }
    }

    /// Tells of prefixes that an earlier run advertised and this one does not, as kept from [`RouterAdvert::believed_prefixes`] (RFC 9096
    /// §3.5: after bootstrapping). Their `until` is in this run's time.
    pub fn add_stale_prefixes(&mut self, now: Instant, prefixes: impl IntoIterator<Item = StalePrefix>) {
        let before = self.prefixes.stale().len();
        for prefix in prefixes {
            self.prefixes.add_stale(now, prefix);
        }
        if self.prefixes.stale().len() != before {
            self.changed(now);
        }
    }

    /// The prefixes that hosts may use now, and until when. A caller stores them so that the next run can take
    /// back those that it does not advertise (RFC 9096 §3.5).
    pub fn believed_prefixes(&self, now: Instant) -> impl Iterator<Item = StalePrefix> {
        self.prefixes.believed(now)
    }

    /// Prefixes that are being deprecated.
    pub fn stale_prefixes(&self) -> &[StalePrefix] {
        self.prefixes.stale()
    }

    /// Ceases to advertise (RFC 4861 §6.2.5): [`Settings::goodbyes`] final advertisements with router lifetime 0 follow, 3 s apart and the first
    /// as soon as it may be sent. Tunnels get none, because advertisements there are only sent on solicitation.
    pub fn shut_down(&mut self) {
        self.answers.clear();
        self.out.clear();
        self.part = 0;
        let silent = self.schedule.is_none() || self.counters.multicast + self.counters.unicast == 0;
        self.phase = match self.settings.goodbyes {
            0 => Phase::Over,
            _ if silent || self.phase == Phase::Over => Phase::Over,
            goodbyes => Phase::Leaving(goodbyes),
        };
    }

    /// Whether all final advertisements were sent after [`RouterAdvert::shut_down`].
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The source of all advertisements.
    pub fn source(&self) -> Ipv6Addr {
        match self.link {
            Link::Multicast { address, .. } => address,
            Link::Isatap { local, .. } => isatap::link_local(local),
        }
    }

    /// What is advertised.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What has been sent and heard.
    pub fn counters(&self) -> RouterAdvertCounters {
        self.counters
    }
}
