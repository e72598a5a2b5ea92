//! ICMP errors (RFC 6146 §3.4, §3.6.1; RFC 5508 §4): the five-tuple is that of the quoted packet with the roles swapped. They
//! change neither bindings nor sessions (RFC 6146 §3.5, RFC 5508 REQ-6).

use super::Engine;
use crate::drop_reason::DropReason;
use crate::nat::inside_key::InsideKey;
use crate::nat::protocol::NatProtocol;
use crate::nat::session_state::SessionState;
use crate::nat::sides::{Inside, Outside};
use sixway_wire::Endpoint4;

impl<I: InsideKey> Engine<I> {
    /// The outside endpoint of the session that a host inside reports an error about: the quoted packet went from `remote` to `inside`. A
    /// binding alone is not enough: another host inside knows its endpoint easily, and could end flows of its owner with any remote.
    ///
    /// # Errors
    /// No session has these endpoints.
    pub fn error_from_inside(
        &self,
        protocol: NatProtocol,
        inside: Inside<I>,
        remote: Endpoint4,
    ) -> Result<Outside<Endpoint4>, DropReason> {
        let sessions = &self.tables.sessions;
        let slot = sessions.find_inside(inside, remote, protocol).ok_or(DropReason::NoSessionForError)?;
        let session = sessions.get(slot);
        // The host inside has not seen a stored SYN.
        if session.state == SessionState::OutsideInitStored {
            return Err(DropReason::NoSessionForError);
        }
        Ok(session.outside)
    }

    /// The inside endpoint that an error from outside is for: the quoted packet went from `outside` to `remote`.
    ///
    /// # Errors
    /// No binding has this outside endpoint, or it does not admit this remote endpoint.
    pub fn error_from_outside(
        &self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
    ) -> Result<Inside<I>, DropReason> {
        let bindings = &self.tables.bindings;
        let binding = bindings.find_outside(protocol, outside).ok_or(DropReason::NoSessionForError)?;
        let bound = bindings.get(binding);
        let permits = &self.tables.permits;
        let is_admitted = self.tables.admits_explicitly(binding, remote) == Some(true)
            || if permits.are_sessions_alone() {
                let found = self.tables.sessions.find_outside(outside, remote, protocol);
                found.is_some_and(|slot| {
                    self.tables.sessions.get(slot).state != SessionState::OutsideInitStored
                })
            } else {
                permits.admits(protocol, outside, remote.address)
            };
        if is_admitted { Ok(bound.inside) } else { Err(DropReason::NoSessionForError) }
    }
}
