//! Rows, bindings and sessions in the form that is used outside the NAT: an inside endpoint of any kind is an [`Endpoint6`] there, and
//! the remote end of the softwire that it is behind ([`InsideKey::named`]).

use super::inside_key::{InsideKey, Named};
use super::revival::SavedSession;
use super::rows::{BindingRow, Selection, SessionRow};
use super::sides::Inside;
use super::static_binding::StaticBinding;
use core::net::Ipv6Addr;

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
    pub(crate) fn mapped(&self, names: &I::Names) -> SessionRow {
        let named = self.inside.and_then(|inside| inside.0.named(names));
        SessionRow {
            protocol: self.protocol,
            softwire: named.and_then(|named| named.softwire),
            inside: named.map(|named| named.inside),
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
    /// The row. `None`: its inside endpoint has no name.
    pub(crate) fn mapped(&self, names: &I::Names) -> Option<BindingRow> {
        let Named { softwire, inside } = self.inside.0.named(names)?;
        Some(BindingRow {
            protocol: self.protocol,
            softwire,
            inside,
            outside: self.outside,
            is_static: self.is_static,
            is_explicit: self.is_explicit,
            sessions: self.sessions,
        })
    }
}

impl StaticBinding {
    /// The name of its inside endpoint.
    pub const fn named(&self) -> Named {
        Named { softwire: self.softwire, inside: self.inside }
    }

    /// The same binding of this inside endpoint.
    pub(crate) const fn of_kind<I: InsideKey>(&self, inside: I) -> StaticBinding<I> {
        let (protocol, outside) = (self.protocol, self.outside);
        StaticBinding { protocol, softwire: None, inside: Inside(inside), outside }
    }
}

impl SavedSession {
    /// The name of its inside endpoint.
    pub const fn named(&self) -> Named {
        Named { softwire: self.softwire, inside: self.inside }
    }

    /// The same session of this inside endpoint.
    pub(crate) const fn of_kind<I: InsideKey>(&self, inside: I) -> SavedSession<I> {
        with_inside(self, None, Inside(inside))
    }
}

impl<I: InsideKey> SavedSession<I> {
    /// The session. `None`: its inside endpoint has no name.
    pub(crate) fn mapped(&self, names: &I::Names) -> Option<SavedSession> {
        let Named { softwire, inside } = self.inside.0.named(names)?;
        Some(with_inside(self, softwire, inside))
    }
}

const fn with_inside<I: Copy, J: Copy>(
    saved: &SavedSession<I>,
    softwire: Option<Ipv6Addr>,
    inside: Inside<J>,
) -> SavedSession<J> {
    SavedSession {
        protocol: saved.protocol,
        state: saved.state,
        softwire,
        local: saved.local,
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
