//! The record of a session of a protocol without ports: addresses, and the field that its packets have instead of ports.

use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_dataplane::nat::PortlessEvent;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Portless {
    /// The translator's name.
    pub(super) translator: Arc<str>,
    pub(super) protocol: PortlessProtocol,
    pub(super) inside: Ipv4Addr,
    pub(super) outside: Ipv4Addr,
    /// The remote host, if destinations are logged.
    pub(super) remote: Option<Ipv4Addr>,
    /// The SPI of ESP, the key of GRE or the call ID of PPTP in its first packet.
    pub(super) id: Option<u32>,
}

impl Portless {
    /// That of an event; `None`: its protocol has ports.
    pub(super) fn of(translator: &Arc<str>, event: &PortlessEvent, destinations: bool) -> Option<Self> {
        let PortlessEvent { protocol, inside, outside, remote, id } = *event;
        Some(Self {
            translator: Arc::clone(translator),
            protocol: PortlessProtocol::of(protocol)?,
            inside: inside.0,
            outside: outside.0,
            remote: destinations.then_some(remote),
            id,
        })
    }

    /// Its fields: each name, the value, and whether it is a number.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, String, bool)> {
        let text = |name, value: &dyn fmt::Display| Some((name, value.to_string(), false));
        let fields = [
            text("translator", &self.translator),
            text("protocol", &self.protocol),
            text("inside", &self.inside),
            text("outside", &self.outside),
            self.remote.and_then(|remote| text("remote", &remote)),
            self.id.map(|id| ("id", id.to_string(), true)),
        ];
        fields.into_iter().flatten()
    }

    /// That of a line's fields; `None`: one is missing or cannot be read. `addresses`: inside and outside.
    pub(super) fn read(
        (translator, protocol): (&str, &str),
        addresses: (&str, &str),
        remote: Option<&str>,
        id: Option<u32>,
    ) -> Option<Self> {
        let remote = match remote {
            Some(text) => Some(text.parse().ok()?),
            None => None,
        };
        Some(Self {
            translator: translator.into(),
            protocol: PortlessProtocol::ALL.into_iter().find(|it| it.name() == protocol)?,
            inside: addresses.0.parse().ok()?,
            outside: addresses.1.parse().ok()?,
            remote,
            id,
        })
    }
}

impl fmt::Display for Portless {
    /// For people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} as {}", self.protocol, self.inside, self.outside)?;
        self.remote.map_or(Ok(()), |remote| write!(f, " to {remote}"))
    }
}
