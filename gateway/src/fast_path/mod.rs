//! Data about the host for the fast path's programs, kept up to date by a thread.
//!
//! ```text
//!     netlink ─▶ event ─▶ relevance ─▶ pace ─▶ a new generation: entries found in the kernel's tables are looked up again
//!        │                                └──▶ a look: links, rules, features, IPsec ─▶ facts ─▶ the daemon: devices, ports
//!        └◀── probes of the neighbours in use, each two seconds
//! ```

mod event;
mod facts;
mod features;
mod host_view;
mod ipsec;
mod keeper;
mod link;
mod neighbours;
mod netlink;
mod octets;
mod pace;
mod plain;
mod used_hop;
mod watch;

pub use facts::{Attached, Facts, Interface};
pub use host_view::facts_now;
pub use keeper::{Keeper, Maps, ProgramMaps};
pub use used_hop::UsedHop;
