//! The host's side of ISATAP's neighbour discovery (RFC 5214 §8.3, §8.4): it finds its routers through the tunnel, forms addresses from
//! their advertisements, and stops using a router that no longer answers.
//!
//! An [`IsatapHost`] is one ISATAP interface. It is driven like a [`RouterAdvert`](crate::router_advert::RouterAdvert):
//!
//! - [`IsatapHost::handle_message`] with every neighbour discovery message that comes out of the tunnel;
//! - [`IsatapHost::note_traffic`] while packets go through the default router, every second or so;
//! - [`IsatapHost::poll_action`] after each call of anything, and when the time of [`IsatapHost::poll_timeout`] has come, until it returns
//!   `None`. What it returns is to be done immediately, in that order.
//!
//! ```
//! use sixway_control::Instant;
//! use sixway_control::isatap_host::{HostAction, HostSettings, IsatapHost};
//!
//! let mut now = Instant::from_secs(1);
//! let mut host = IsatapHost::new(HostSettings::new("192.0.2.7".parse()?), 42, now);
//! for _ in 0..4 {
//!     while let Some(action) = host.poll_action(now) {
//!         match action {
//!             // A name was given in the configuration: look it up, and say what it means and for how long.
//!             HostAction::LookUpRouters => host.set_potential_routers(now, &["192.0.2.1".parse()?], None),
//!             // Through a raw socket of protocol 41: the kernel puts the IPv4 header in front.
//!             HostAction::Transmit(sent) => println!("{:?}: {:02x?}", sent.outer_destination, sent.packet()),
//!             HostAction::SetAddress(address) => println!(
//!                 "ip -6 address replace {}/64 preferred_lft {} valid_lft {}",
//!                 address.address, address.preferred(now), address.valid(now),
//!             ),
//!             HostAction::RemoveAddress(address) => println!("ip -6 address del {address}/64"),
//!             HostAction::SetDefaultRoute(route) => println!("default by {} at {}", route.gateway, route.router),
//!             HostAction::RemoveDefaultRoute => println!("no default route"),
//!         }
//!     }
//!     // Wait until then, or until a message comes: host.handle_message(now, &Received::from_tunnel(packet)?)
//!     now = host.poll_timeout().unwrap_or(now);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
mod addresses;
mod host;
mod host_address;
mod reachability;
mod received;
mod routers;
mod solicitation;

pub use action::{DefaultRoute, HostAction, HostHeard, HostSettings, PotentialRouter};
pub use addresses::{MAX_ADDRESSES, TWO_HOURS};
pub use host::IsatapHost;
pub use host_address::HostAddress;
pub use reachability::{DELAY_FIRST_PROBE_TIME, MAX_UNICAST_SOLICIT, Reachability};
pub use routers::MAX_ROUTERS;
pub use solicitation::{
    MAX_RTR_SOLICITATION_DELAY, MAX_RTR_SOLICITATIONS, MAX_SOLICIT_INTERVAL, RTR_SOLICITATION_INTERVAL,
};
