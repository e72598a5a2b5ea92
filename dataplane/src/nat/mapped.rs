//! Rows, bindings and sessions as everything outside of the NAT knows them: an inside endpoint of any kind is an [`Endpoint6`] there
//! ([`InsideKey::mapped`]).

use super::inside_key::InsideKey;
use super::revival::SavedSession;
use super::rows::{BindingRow, Selection, SessionRow};
use super::sides::Inside;
use super::static_binding::StaticBinding;
use sixway_wire::Endpoint6;

impl Selection {
    /// The same selection of hosts of this kind. `None`: it selects none of them.
    pub(crate) fn of_kind<I: InsideKey>(&self) -> Option<Selection<I::Network>> {
        let inside = match self.inside {
            Some(network) => Some(I::network_of_mapped(network)?),
            None => None,
        };
        let Self { protocol, inside: _, inside_port, outside, outside_port, remote, remote_port } = *self;
        Some(Selection { protocol, inside, inside_port, outside, outside_port, remote, remote_port })
    }
}

impl<I: InsideKey> SessionRow<I> {
    /// The row.
    pub(crate) fn mapped(&self) -> SessionRow {
        SessionRow {
            protocol: self.protocol,
            inside: self.inside.and_then(|inside| inside.0.mapped()),
            outside: self.outside,
            remote: self.remote,
            state: self.state,
            idle: self.idle,
            ends_in: self.ends_in,
            packets_out: self.packets_out,
            packets_in: self.packets_in,
            octets_out: self.octets_out,
            octets_in: self.octets_in,
            offloaded: self.offloaded,
        }
    }
}

impl<I: InsideKey> BindingRow<I> {
    /// The row. `None`: its inside endpoint cannot be expressed.
    pub(crate) fn mapped(&self) -> Option<BindingRow> {
        Some(BindingRow {
            protocol: self.protocol,
            inside: self.inside.0.mapped()?,
            outside: self.outside,
            is_static: self.is_static,
            sessions: self.sessions,
        })
    }
}

impl StaticBinding {
    /// The same binding of a host of this kind. `None`: the inside endpoint is of another kind.
    pub(crate) fn of_kind<I: InsideKey>(&self) -> Option<StaticBinding<I>> {
        let inside = Inside(I::of_mapped(self.inside)?);
        Some(StaticBinding { protocol: self.protocol, inside, outside: self.outside })
    }
}

impl SavedSession {
    /// The same session of a host of this kind. `None`: the inside endpoint is of another kind.
    pub(crate) fn of_kind<I: InsideKey>(&self) -> Option<SavedSession<I>> {
        Some(with_inside(self, Inside(I::of_mapped(self.inside)?)))
    }
}

impl<I: InsideKey> SavedSession<I> {
    /// The session. `None`: its inside endpoint cannot be expressed.
    pub(crate) fn mapped(&self) -> Option<SavedSession> {
        let inside: Inside<Endpoint6> = self.inside.0.mapped()?;
        Some(with_inside(self, inside))
    }
}

fn with_inside<I, J>(saved: &SavedSession<I>, inside: Inside<J>) -> SavedSession<J> {
    SavedSession {
        protocol: saved.protocol,
        state: saved.state,
        inside,
        outside: saved.outside,
        remote: saved.remote,
        age: saved.age,
        idle: saved.idle,
        packets: saved.packets,
        octets: saved.octets,
        from_outside: saved.from_outside,
    }
}
