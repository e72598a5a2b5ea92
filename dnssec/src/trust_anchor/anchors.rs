//! All trust points.

use super::event::{Change, Event};
use super::observation;
use super::point::TrustPoint;
use super::row::Row;
use super::text::{self, Damaged};
use crate::anchor::Anchor;
use crate::wire::Wire;

/// The trust anchors, and what is known of the keys that may come after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchors {
    pub(super) points: Vec<TrustPoint>,
}

impl TrustAnchors {
    /// A new start from what the operator wrote, or from [`root`](super::root()).
    #[must_use]
    pub fn new(configured: &[Anchor], now: u64) -> Self {
        let mut zones: Vec<&Wire> = configured.iter().map(|anchor| &anchor.zone).collect();
        zones.sort_unstable();
        zones.dedup();
        let of =
            |zone: &Wire| TrustPoint::new(zone, configured.iter().filter(|anchor| anchor.zone == *zone), now);
        Self { points: zones.into_iter().map(of).collect() }
    }

    /// Goes on from a [`text`](Self::text). What the operator has written since is added, what he has withdrawn is no longer trusted; what
    /// was revoked stays so. A zone of whose configured anchors the text knows none begins again, and one that is not configured is forgotten.
    ///
    /// # Errors
    /// When the text is damaged. The caller says so and takes [`TrustAnchors::new`].
    pub fn restored(configured: &[Anchor], text: &str, now: u64) -> Result<Self, Damaged> {
        let mut saved = text::read(text)?;
        let mut anchors = Self::new(configured, now);
        for point in &mut anchors.points {
            let its = || configured.iter().filter(|anchor| anchor.zone == point.zone);
            let kept = saved.iter().position(|saved| saved.zone == point.zone);
            let Some(mut kept) = kept.map(|at| saved.swap_remove(at)) else { continue };
            if its().any(|anchor| kept.knows(&anchor.key)) {
                kept.withdraw(point);
                its().for_each(|anchor| kept.configure(&anchor.key));
                *point = kept;
            }
        }
        Ok(anchors)
    }

    /// The trust anchors, to be given to a [validator](crate::Validate::set_anchors).
    #[must_use]
    pub fn anchors(&self) -> Vec<Anchor> {
        self.points.iter().flat_map(TrustPoint::anchors).collect()
    }

    /// A zone whose DNSKEY records are to be asked for, with DO and CD set, from an upstream and not from a cache.
    pub fn poll_lookup(&mut self, now: u64) -> Option<Wire> {
        self.points.iter_mut().find_map(|point| point.is_due(now).then(|| point.zone.clone()))
    }

    /// The outcome of a lookup: the whole reply; `None`: nothing. After this, if anything has happened, [`anchors`](Self::anchors) may have
    /// changed, and [`text`](Self::text) is to be kept in any case.
    pub fn handle_reply(&mut self, now: u64, zone: &Wire, reply: Option<&[u8]>) -> Vec<Event> {
        let Some(point) = self.points.iter_mut().find(|point| point.zone == *zone) else { return Vec::new() };
        match reply.and_then(|reply| observation::read(zone, reply, now)) {
            Some(published) => point.observe(now, &published),
            None => point.unanswered(now),
        }
    }

    /// When [`poll_lookup`](Self::poll_lookup) has something next, in Unix seconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let live = self.points.iter().filter(|point| !point.is_deleted());
        live.map(|point| point.next).min()
    }

    /// All that is to outlive the process.
    #[must_use]
    pub fn text(&self) -> String {
        text::write(&self.points)
    }

    /// All keys and digests.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.points.iter().flat_map(TrustPoint::rows)
    }
}

impl Event {
    /// Whether the trusted keys have changed.
    #[must_use]
    pub fn changes_anchors(&self) -> bool {
        match self.change {
            Change::Accepted | Change::Revoked | Change::Deleted => true,
            Change::Pending
            | Change::Forgotten
            | Change::WaitsAnew
            | Change::Missing
            | Change::Returned
            | Change::Removed
            | Change::Unverified
            | Change::Unanswered
            | Change::TableFull => false,
        }
    }
}
