//! A site behind one box: what `sixway up` makes of an interface to the LAN and one to the provider.
//!
//! ```text
//!     options    what the operator wants
//!     facts      what the host is: addresses, MTUs, ports in use
//!     plan       both together, or everything that is missing
//!     configuration   the plan as a configuration file, which `sixway run` takes as well
//!     nat64      its part for IPv6-only hosts
//!     filter     the plan as a table of the packet filter
//!     dhcp       the plan as a configuration of dnsmasq
//!     dnsmasq    its process
//!     standing   the files and the table that are there while the site runs, and how they are removed
//!     watch      makes the table again if another program removes it
//!     summary    the plan for a reader
//! ```

mod configuration;
mod dhcp;
mod dnsmasq;
mod facts;
mod filter;
mod nat64;
mod options;
mod plan;
mod ports;
mod standing;
mod summary;
mod watch;

pub use facts::SiteFacts;
pub use nat64::{Dns64, Nat64};
pub use options::{Nat64Option, SiteOptions, SixRdDomain};
pub use plan::{Dhcp, Ipv6, Lan, Site};
pub use standing::{SiteFiles, Standing, TakenBack};
pub use watch::Watch;
