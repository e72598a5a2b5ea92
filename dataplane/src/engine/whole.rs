//! Fragments on their way to a stateful translator (RFC 6146 §3.4) or of tunnel packets (RFC 4213 §3.6): held until their packet is
//! complete, then walked as one. Tunnels have a table of their own, so that whoever floods the one does not fill the other.

use super::Engine;
use crate::classify::Owner;
use crate::drop_reason::DropReason;
use crate::fragment::{Admission, Refused};
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::nat64::Outcome;
use crate::parse::{self, Addresses, Packet};
use crate::rewrite::{Executed, Pass};
use crate::verdict::{Next, Outbox, Verdict};

impl Engine {
    /// Holds a fragment until its packet is complete, and then walks the whole packet, which leaves through the outbox.
    #[cold]
    pub(super) fn reassemble(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        if frame.offload.segments.is_some() {
            return Err(DropReason::BadSuperFrame);
        }
        let mut whole = match self.admit(frame, packet, owner, now) {
            Ok(Admission::Held) => return Ok(Verdict::Held),
            Ok(Admission::Whole(whole)) => whole,
            Err(refused) => {
                self.counters.held -= u64::from(refused.released);
                self.counters.dropped[refused.reason as usize] += u64::from(refused.released);
                return Err(refused.reason);
            }
        };
        // All fragments but the one at hand were held; from here on they share the fate of their packet.
        let held = u64::from(whole.fragments) - 1;
        self.counters.held -= held;
        self.counters.reassembled += 1;
        whole.frame.passes = frame.passes;
        let before = out.len();
        let parsed = parse::parse(whole.frame.bytes());
        let walked = match &parsed {
            Ok(packet) => self.walk_whole(&mut whole.frame, packet, now, out),
            Err(reason) => Err(*reason),
        };
        match walked {
            Ok(Verdict::Forward) => {
                let length = whole.frame.len();
                match out.push(length) {
                    Ok(leaving) => {
                        leaving.bytes_mut().copy_from_slice(whole.frame.bytes());
                        leaving.offload = whole.frame.offload;
                        self.conclude(Verdict::Forward, leaving);
                        self.counters.forwarded += held;
                    }
                    Err(reason) => self.counters.dropped[reason as usize] += held + 1,
                }
            }
            Ok(verdict) => {
                // Its own frame is spent; whoever gets it next needs the whole packet.
                if let Verdict::HandOver(_) | Verdict::Control | Verdict::Answered = verdict {
                    frame.adopt(whole.frame);
                    self.counters.merged += held;
                    return Ok(verdict);
                }
                self.conclude(verdict, &mut whole.frame);
                self.counters.merged += held;
            }
            Err(reason) => {
                self.refuse(reason, &mut whole.frame, parsed.as_ref().ok(), now, out);
                self.counters.dropped[reason as usize] += held;
            }
        }
        frame.pieces = out.since(before);
        Ok(Verdict::Merged)
    }

    /// To the table that holds an owner's fragments.
    fn admit(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
    ) -> Result<Admission, Refused> {
        match (owner, packet.addresses) {
            (Owner::Endpoint(endpoint), Addresses::V4 { source, .. })
                if self.tunnels.only_to(endpoint, source).is_some() =>
            {
                self.outer_reassembly.admit_of_peer(frame, packet, now)
            }
            (Owner::Endpoint(_), _) => self.outer_reassembly.admit(frame, packet, now),
            (Owner::Gateway | Owner::Nat64(_) | Owner::Siit(_) | Owner::Tunnel(_), _) => {
                self.reassembly.admit(frame, packet, now)
            }
        }
    }

    /// A reassembled packet's way. It may be cut again whatever its size.
    pub(super) fn walk_whole(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let Some(owner) = self.classify(packet, frame.passes)? else { return Ok(Verdict::Punted) };
        if let Some(worker) = self.elsewhere(frame, packet, owner) {
            return Ok(Verdict::HandOver(worker));
        }
        if let Owner::Endpoint(endpoint) = owner {
            return self.out_of_tunnel(frame, packet, endpoint, now);
        }
        let pass = Pass { decrement: frame.passes == 0, reassembled: true };
        let decision = match self.decide_later(frame, packet, owner, now)? {
            Outcome::Translate(decision) => decision,
            Outcome::Stored => return Ok(Verdict::Held),
        };
        if decision.next == Next::Again {
            return self.walk_again(frame, packet, owner, decision, pass, now, out);
        }
        match self.rewriter.execute(&decision, frame, packet, pass, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }
}
