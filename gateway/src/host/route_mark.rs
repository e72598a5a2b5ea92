//! The protocol number of the gateway's routes and rules (`rtm_protocol`, see rtnetlink(7)): it distinguishes them from those
//! that an operator or another program added.

use rtnetlink::packet_route::route::RouteProtocol;
use serde::{Deserialize, Serialize};

/// The protocol of routes and rules. `ip route show proto 64` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RouteMark(u8);

impl RouteMark {
    /// That of records that name none: they were written when the gateway's routes were `static`.
    pub(super) fn of_old_records() -> Self {
        Self(RouteProtocol::Static.into())
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    pub(super) fn protocol(self) -> RouteProtocol {
        self.0.into()
    }
}

impl Default for RouteMark {
    /// Not assigned in rtnetlink.h, nor in iproute2's list of protocols.
    fn default() -> Self {
        Self(64)
    }
}
