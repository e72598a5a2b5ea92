//! The way from a trust anchor down to a name (RFC 4035 §5, RFC 6840 §6): which signed zone is it in, if any?

use super::anchors::Anchors;
use super::cuts::{Cuts, KnownCut};
use super::delegation::{self, Cut, DNSKEY, DS, Found, Judge};
use super::fault::Fault;
use super::limits::Work;
use super::zone::Zone;
use crate::current_time::CurrentTime;
use crate::lookup::Lookup;
use crate::name;
use crate::reply::Reply;
use crate::wire::Wire;
use std::sync::Arc;
use std::time::Duration;

/// The position of a name.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// In this zone, or below one of its names.
    Signed(Arc<Zone>),
    /// In none that is signed, or under no trust anchor; the INFO-CODE says why.
    Insecure(Option<u16>),
}

/// Why a walk goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// This must be looked up first.
    Wants(Lookup),
    /// There is no way on: this was found in what was looked up.
    Fails(Fault, Option<Lookup>),
}

/// The findings of one validation, apart from the shared cache, which may evict them meanwhile. Bounded by the lookups that a
/// validation may make, and by the labels of its names.
pub(super) type Trail = Vec<(Wire, KnownCut)>;

/// What a walk is made with.
pub(super) struct WalkContext<'a> {
    pub(super) now: CurrentTime,
    pub(super) anchors: &'a Anchors,
    pub(super) cuts: &'a mut Cuts,
    /// The outcome of the lookup that was wanted.
    pub(super) found: Option<(&'a Lookup, Option<&'a Reply>)>,
}

/// A walker, as long as nothing has to be looked up.
pub(super) struct Walk<'a, 'b> {
    pub(super) around: &'a mut WalkContext<'b>,
    pub(super) trail: &'a mut Trail,
    pub(super) work: &'a mut Work,
}

impl Walk<'_, '_> {
    /// Goes to the zone that is said to have signed what is at `subject`; to the subject itself if nothing signed it.
    pub(super) fn to(&mut self, subject: &[u8], signer: Option<&[u8]>) -> Result<Standing, Stop> {
        let anchors = self.around.anchors;
        let Some(anchor) = anchors.nearest(subject) else { return Ok(Standing::Insecure(None)) };
        let target = signer.filter(|signer| name::is_within(signer, &anchor.0)).unwrap_or(subject);
        let mut zone = match self.apex(anchor)? {
            Cut::Signed(zone) => zone,
            Cut::Insecure(why) => return Ok(Standing::Insecure(why)),
            Cut::Delegated(_) | Cut::Inside | Cut::Nothing => return Ok(Standing::Insecure(None)),
        };
        let below: Vec<_> =
            name::upwards(target).take_while(|above| name::is_below(above, &anchor.0)).collect();
        for child in below.into_iter().rev() {
            match self.step(child, &zone)? {
                Cut::Signed(child) => zone = child,
                Cut::Insecure(why) => return Ok(Standing::Insecure(why)),
                Cut::Inside | Cut::Delegated(_) => {}
                Cut::Nothing => break,
            }
        }
        Ok(Standing::Signed(zone))
    }

    /// The keys of an anchored zone.
    fn apex(&mut self, anchor: &Wire) -> Result<Cut, Stop> {
        if let Some(known) = self.known(anchor) {
            return Ok(known.cut);
        }
        let meant = match self.around.anchors.of(&anchor.0) {
            Ok(meant) => meant,
            Err(why) => return Ok(Cut::Insecure(Some(why))),
        };
        let known = self
            .find(anchor, DNSKEY, None, |reply, judge| delegation::keys(reply, &anchor.0, &meant, judge))?;
        Ok(known.cut)
    }

    /// One label down from within `zone`.
    fn step(&mut self, child: &[u8], zone: &Zone) -> Result<Cut, Stop> {
        let child = Wire(child.into());
        let known = match self.known(&child) {
            Some(known) => known,
            None => self.find(&child, DS, None, |reply, judge| {
                delegation::delegation(reply, &child.0, zone, judge)
            })?,
        };
        let Cut::Delegated(meant) = known.cut else { return Ok(known.cut) };
        let keys = |reply: &Reply, judge: &mut Judge<'_>| delegation::keys(reply, &child.0, &meant, judge);
        Ok(self.find(&child, DNSKEY, Some(known.until), keys)?.cut)
    }

    fn known(&mut self, name: &Wire) -> Option<KnownCut> {
        if let Some((_, known)) = self.trail.iter().find(|(found, _)| found == name) {
            return Some(known.clone());
        }
        let known = self.around.cuts.lookup(self.around.now.monotonic, name)?;
        self.trail.push((name.clone(), known.clone()));
        Some(known)
    }

    /// Judges what came of the lookup, or says that it is wanted. What is found holds no longer than until `end`.
    fn find(
        &mut self,
        name: &Wire,
        qtype: u16,
        end: Option<Duration>,
        judge: impl FnOnce(&Reply, &mut Judge<'_>) -> Result<Found, Fault>,
    ) -> Result<KnownCut, Stop> {
        let wanted = Lookup { name: name.clone(), qtype };
        let Some((_, reply)) = self.around.found.filter(|(lookup, _)| **lookup == wanted) else {
            self.work.lookup().map_err(|fault| Stop::Fails(fault, None))?;
            return Err(Stop::Wants(wanted));
        };
        let mut with = Judge { wall: self.around.now.wall, work: self.work };
        let judged = reply.ok_or(Fault::Unanswered).and_then(|reply| judge(reply, &mut with));
        let (cut, seconds) = judged.map_err(|fault| Stop::Fails(fault, Some(wanted)))?;
        let known = KnownCut::for_seconds(cut, self.around.now.monotonic, seconds, end);
        self.around.cuts.admit(name, known.clone());
        self.trail.retain(|(found, _)| found != name);
        self.trail.push((name.clone(), known.clone()));
        Ok(known)
    }
}
