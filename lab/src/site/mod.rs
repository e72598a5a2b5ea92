//! A site behind `sixway up`: a host of each kind on the LAN, the box, and a server of each kind outside.
//!
//! ```text
//! four  IPv4 only ──┐                                                 ┌── server4  IPv4 only
//! six   IPv6 only ──┼── lan0  gateway  out0 ── up0  server  s4, s6 ──┤   1.2.3.4
//! dual  both      ──┘   192.168.1.1    203.0.113.1  (provider)        └── server6  IPv6 only
//!                       2001:db8:1::1                203.0.113.2           2001:db8:6::2
//! ```
//!
//! Hosts get their addresses from the box, by DHCP and by router advertisements. The provider has a DNS server.

mod lan_host;
mod network;
mod running;

pub use lan_host::{HOSTS, Kind, LanHost, join};
pub use network::{EMBEDDED4, INSIDE4, INSIDE6, OutsideServer, PROGRAMS, PUBLIC, SERVER4, SERVER6, network};
pub use running::Site;
