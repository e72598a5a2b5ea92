//! A trust point: a zone, the keys that are known of it, and how they change (RFC 5011 §4).

use super::dnskey::Dnskey;
use super::event::{Change, Event, presentation};
use super::observation::Published;
use super::row::Row;
use super::state::{KnownKey, State};
use super::timers::{ADD_HOLD_DOWN, LONGEST_REFRESH, Lifetimes, REMOVE_HOLD_DOWN, refresh, retry};
use crate::anchor::{Anchor, AnchorKey};
use crate::wire::Wire;

/// Keys that are known at one trust point (RFC 5011 §2.4.3 asks for five); further ones are not noted.
pub(super) const MOST_KNOWN: usize = 32;

/// A zone with trust anchors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrustPoint {
    pub(super) zone: Wire,
    pub(super) keys: Vec<KnownKey>,
    /// RDATA of DS records that the operator wrote and whose key has not been seen yet; trusted as keys are.
    pub(super) digests: Vec<Box<[u8]>>,
    pub(super) lifetimes: Option<Lifetimes>,
    /// When the keys are to be asked for.
    pub(super) next: u64,
}

impl TrustPoint {
    /// A trust point as the operator wrote it.
    pub(super) fn new<'a>(zone: &Wire, anchors: impl Iterator<Item = &'a Anchor>, now: u64) -> Self {
        let mut point =
            Self { zone: zone.clone(), keys: Vec::new(), digests: Vec::new(), lifetimes: None, next: now };
        anchors.for_each(|anchor| point.configure(&anchor.key));
        point
    }

    /// Notes what the operator wrote. What was revoked stays so.
    pub(super) fn configure(&mut self, anchor: &AnchorKey) {
        match anchor {
            AnchorKey::Ds(ds) => {
                let zone = &self.zone;
                if let Some(known) = self.keys.iter_mut().find(|known| known.key.matches(zone, ds)) {
                    known.confirm();
                } else if !self.digests.contains(ds) {
                    self.digests.push(ds.clone());
                }
            }
            AnchorKey::Dnskey(rdata) => {
                let Some(key) = Dnskey::new(rdata).map(|key| key.unmarked()) else { return };
                self.digests.retain(|ds| !key.matches(&self.zone, ds));
                match self.keys.iter_mut().find(|known| known.key == key) {
                    Some(known) => known.confirm(),
                    None => drop(self.note(key, State::Valid, true)),
                }
            }
        }
    }

    /// Forgets what the operator wrote and has withdrawn: what is not in `written`. What was revoked stays so.
    pub(super) fn withdraw(&mut self, written: &Self) {
        self.digests.retain(|ds| written.knows(&AnchorKey::Ds(ds.clone())));
        for known in &mut self.keys {
            let is_written = written.knows(&AnchorKey::Dnskey(known.key.rdata().into()));
            known.configured &= is_written || !known.state.is_over();
        }
        self.keys.retain(|known| {
            let is_written = written.knows(&AnchorKey::Dnskey(known.key.rdata().into()));
            !known.configured || is_written
        });
    }

    /// Whether this is known already, in any state.
    pub(super) fn knows(&self, anchor: &AnchorKey) -> bool {
        match anchor {
            AnchorKey::Ds(ds) => {
                self.digests.contains(ds) || self.keys.iter().any(|known| known.key.matches(&self.zone, ds))
            }
            AnchorKey::Dnskey(rdata) => {
                let key = Dnskey::new(rdata).map(|key| key.unmarked());
                key.is_some_and(|key| {
                    self.keys.iter().any(|known| known.key == key)
                        || self.digests.iter().any(|ds| key.matches(&self.zone, ds))
                })
            }
        }
    }

    /// The trust anchors.
    pub(super) fn anchors(&self) -> impl Iterator<Item = Anchor> {
        let keys = self.keys.iter().filter(|known| known.state.is_believed());
        let keys = keys.map(|known| AnchorKey::Dnskey(known.key.rdata().into()));
        let digests = self.digests.iter().map(|ds| AnchorKey::Ds(ds.clone()));
        keys.chain(digests).map(|key| Anchor { zone: self.zone.clone(), key })
    }

    /// All keys and digests, to be shown.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let zone = presentation(&self.zone);
        let keys = self.keys.iter().map(|known| {
            let (tag, algorithm) = (known.key.tag(), known.key.algorithm());
            (tag, algorithm, known.state.name(), known.state.since(), known.configured)
        });
        let digests = self.digests.iter().filter_map(|ds| {
            let [high, low, algorithm, ..] = **ds else { return None };
            Some((u16::from_be_bytes([high, low]), algorithm, "unseen", None, true))
        });
        keys.chain(digests).map(move |(tag, algorithm, state, since, configured)| Row {
            zone: zone.clone(),
            tag,
            algorithm,
            state,
            since,
            configured,
        })
    }

    /// RFC 5011 §5: no anchor is left, so the point is treated as if it had not existed.
    pub(super) fn is_deleted(&self) -> bool {
        self.digests.is_empty() && !self.keys.iter().any(|known| known.state.is_believed())
    }

    /// Whether the keys are to be asked for. If so, that is noted: without a reply it is time again after a while.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        let is_due = !self.is_deleted() && (self.next <= now || self.next > now + LONGEST_REFRESH);
        if is_due {
            self.next = now + retry(self.lifetimes);
        }
        is_due
    }

    /// No usable reply came.
    pub(super) fn unanswered(&mut self, now: u64) -> Vec<Event> {
        self.next = now + retry(self.lifetimes);
        vec![self.event(0, Change::Unanswered)]
    }

    /// These keys are published at the zone (RFC 5011 §4).
    pub(super) fn observe(&mut self, now: u64, published: &[Published]) -> Vec<Event> {
        let mut events = Vec::new();
        if self.is_deleted() {
            return events;
        }
        self.revoke(now, published, &mut events);
        if self.is_deleted() {
            self.keys.retain(|known| known.state.is_over());
            events.push(self.event(0, Change::Deleted));
            return events;
        }
        let signers: Vec<_> = published.iter().filter(|one| self.believes(one)).cloned().collect();
        let Some(lifetimes) = lifetimes(&signers) else {
            self.next = now + retry(self.lifetimes);
            events.push(self.event(0, Change::Unverified));
            return events;
        };
        self.recognise(published);
        let signers = self.numbers(&signers);
        self.absent(now, published, &mut events);
        for one in published.iter().filter(|one| !one.key.is_revoked()) {
            self.present(now, &one.key, lifetimes.ttl, &signers, &mut events);
        }
        self.lifetimes = Some(lifetimes);
        self.next = now + refresh(lifetimes);
        events
    }

    /// RevBit: a key that has signed its own revocation is revoked immediately, whatever other keys have signed (§2.1).
    fn revoke(&mut self, now: u64, published: &[Published], events: &mut Vec<Event>) {
        for one in published.iter().filter(|one| one.key.is_revoked() && one.signed.is_some()) {
            let key = one.key.unmarked();
            self.recognise_one(&key);
            let Some(known) = self.keys.iter_mut().find(|known| known.key == key) else { continue };
            if known.state == State::Removed {
                continue;
            }
            let is_news = !known.state.is_over();
            known.state = State::Revoked { since: now };
            if is_news {
                events.push(self.event(key.tag(), Change::Revoked));
            }
        }
    }

    /// Whether the RRset is verified by this key: the key has signed it, is trusted, and is not being revoked.
    fn believes(&self, one: &Published) -> bool {
        let known = self.keys.iter().find(|known| known.key == one.key);
        let believed = match known {
            Some(known) => known.state.is_believed(),
            None => self.digests.iter().any(|ds| one.key.matches(&self.zone, ds)),
        };
        one.signed.is_some() && !one.key.is_revoked() && believed
    }

    /// Keys whose digest the operator wrote are his trust anchors.
    fn recognise(&mut self, published: &[Published]) {
        for one in published.iter().filter(|one| !one.key.is_revoked()) {
            self.recognise_one(&one.key);
        }
    }

    fn recognise_one(&mut self, key: &Dnskey) {
        if !self.digests.iter().any(|ds| key.matches(&self.zone, ds)) {
            return;
        }
        self.digests.retain(|ds| !key.matches(&self.zone, ds));
        match self.keys.iter_mut().find(|known| known.key == *key) {
            Some(known) => known.confirm(),
            None => drop(self.note(key.clone(), State::Valid, true)),
        }
    }

    fn numbers(&self, signers: &[Published]) -> Vec<u32> {
        let is_one = |known: &&KnownKey| signers.iter().any(|one| one.key == known.key);
        self.keys.iter().filter(is_one).map(|known| known.number).collect()
    }

    /// KeyRem and RemTime: what happens to the keys that are not in the verified RRset.
    fn absent(&mut self, now: u64, published: &[Published], events: &mut Vec<Event>) {
        let zone = self.zone.clone();
        let mut tell = |known: &KnownKey, change| {
            events.push(Event { zone: zone.clone(), tag: known.key.tag(), change });
        };
        self.keys.retain_mut(|known| {
            let is_there = published.iter().any(|one| one.key == known.key);
            match &mut known.state {
                State::Pending { .. } if !is_there => {
                    tell(known, Change::Forgotten);
                    return false;
                }
                State::Valid if !is_there => {
                    known.state = State::Missing { since: now };
                    tell(known, Change::Missing);
                }
                State::Revoked { since } => {
                    let is_shown = published.iter().any(|one| one.key.unmarked() == known.key);
                    if is_shown || *since > now {
                        *since = now;
                    } else if now - *since >= REMOVE_HOLD_DOWN {
                        known.state = State::Removed;
                        tell(known, Change::Removed);
                    }
                }
                State::Pending { .. } | State::Valid | State::Missing { .. } | State::Removed => {}
            }
            true
        });
    }

    /// NewKey, AddTime and KeyPres: what happens to a key in the verified RRset.
    fn present(&mut self, now: u64, key: &Dnskey, ttl: u64, signers: &[u32], events: &mut Vec<Event>) {
        let wait = ADD_HOLD_DOWN.max(ttl);
        let Some(at) = self.keys.iter().position(|known| known.key == *key) else {
            if key.is_secure_entry_point() {
                let state = State::Pending { since: now, wait, by: signers.to_vec() };
                let noted = self.note(key.clone(), state, false);
                let change = if noted { Change::Pending } else { Change::TableFull };
                events.push(self.event(key.tag(), change));
            }
            return;
        };
        let is_vouched = self.is_vouched(&self.keys[at].state);
        let state = &mut self.keys[at].state;
        let change = match state {
            State::Pending { .. } if !is_vouched => {
                *state = State::Pending { since: now, wait, by: signers.to_vec() };
                events.push(self.event(key.tag(), Change::WaitsAnew));
                return;
            }
            State::Pending { since, .. } if *since > now => {
                *since = now;
                return;
            }
            State::Pending { since, wait, .. } if now - *since < *wait => return,
            State::Pending { .. } => Change::Accepted,
            State::Missing { .. } => Change::Returned,
            State::Valid | State::Revoked { .. } | State::Removed => return,
        };
        *state = State::Valid;
        events.push(self.event(key.tag(), change));
    }

    /// Whether one of the keys that a waiting key was first seen with is not revoked (§2.2).
    fn is_vouched(&self, state: &State) -> bool {
        let State::Pending { by, .. } = state else { return true };
        let mut vouching = self.keys.iter().filter(|known| by.contains(&known.number));
        vouching.any(|known| !known.state.is_over())
    }

    /// Adds a key, if there is room; what was removed and is not the operator's makes room.
    fn note(&mut self, key: Dnskey, state: State, configured: bool) -> bool {
        if self.keys.len() >= MOST_KNOWN {
            let spare = |known: &KnownKey| known.state == State::Removed && !known.configured;
            let Some(at) = self.keys.iter().position(spare) else { return false };
            self.keys.remove(at);
        }
        let number = self.keys.iter().map(|known| known.number).max().unwrap_or(0) + 1;
        self.keys.push(KnownKey { number, key, state, configured });
        true
    }

    fn event(&self, tag: u16, change: Change) -> Event {
        Event { zone: self.zone.clone(), tag, change }
    }
}

/// The shortest of what the anchors' signatures say; `None`: none of them has signed.
fn lifetimes(signers: &[Published]) -> Option<Lifetimes> {
    let signed = || signers.iter().filter_map(|one| one.signed);
    let ttl = signed().map(|signed| u64::from(signed.ttl)).min()?;
    let expire = signed().map(|signed| u64::from(signed.expire)).min()?;
    Some(Lifetimes { ttl, expire })
}
