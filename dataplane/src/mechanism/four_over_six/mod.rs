//! Public 4over6 (RFC 7040), the successor of DSTM: a public IPv4 address leased to a host over IPv6.
//!
//! ```text
//!     host ═══ 2001:db8:b::1 ══ IPv6 ══ 2001:db8:c::1 ═══ concentrator ─── IPv4
//!     192.0.2.7                                            192.0.2.7 ⇄ 2001:db8:b::1
//! ```
//!
//! The concentrator has a table of bindings, which control derives from leases; the host's end has one leased address.

mod binding_table;
mod concentrator;
mod host_end;
mod tunnel;

pub use binding_table::{Binding, BindingFault, BindingTable};
pub use concentrator::ConcentratorConfig;
pub use host_end::HostEndConfig;
pub use tunnel::{FourOverSix, FourOverSixConfig, Role};
