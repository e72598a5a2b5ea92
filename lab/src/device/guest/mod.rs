//! Devices in a guest: an emulated machine with a Linux kernel of its own, in the place of a host. Its figures are compared with plain
//! forwarding in the same kind of guest, and with nothing else.

mod esp;
mod hosted;
mod ip6tnl;
mod isatapd;
mod jool;
mod kind;
mod plain;
mod rules;
mod settings;
mod sit;
mod sit_ticking;
mod site_gateway;
mod sixway_inside;

pub use hosted::{GUEST_CPU, GUEST_TICKS};
pub use ip6tnl::GuestIp6tnl;
pub use isatapd::GuestIsatapd;
pub use jool::GuestJool;
pub use kind::Kind as GuestKind;
pub use plain::GuestForwarding;
pub use sit::GuestSit;
pub use sit_ticking::GuestSitTicking;
pub use site_gateway::GuestSiteGateway;
pub use sixway_inside::{AT_TC_IN_GUEST, IN_GUEST};
