//! A site behind one box: `sixway up` derives it from the interfaces to the LAN and to the provider.
//!
//! ```text
//!     options    the options of the command
//!     facts      the host's state: addresses, MTUs, ports in use
//!     plan       derived from both, or everything that is missing
//!     configuration   the plan as a configuration file, which `sixway run` can run as well
//!     sockets    where other programs of the host listen
//!     lan        an interface to inside hosts
//!     ipv6       its part for IPv6
//!     lease      6rd domains in the leases of DHCP clients
//!     nat64      its part for IPv6-only hosts
//!     dns64_bounds   limits of their DNS64
//!     filter     the plan as a table of the packet filter
//!     dhcp       the plan as a configuration of dnsmasq
//!     kea        the plan as a configuration of Kea
//!     kea_process    its start
//!     kea_leases     its leases in dnsmasq's format
//!     dhcp_program   either program
//!     dhcp_server    its process
//!     standing   the files and the table that exist while the site runs, and their removal
//!     watch      follows the host's addresses, prefixes and routes
//!     filter_guard   restores the table if another program removes it
//!     summary    the plan in some lines, for the operator
//!     printed    the plan for `--print-config`
//! ```

mod configuration;
mod dhcp;
mod dhcp_program;
mod dhcp_server;
mod dns64_bounds;
mod facts;
mod filter;
mod filter_guard;
mod ipv6;
mod kea;
mod kea_leases;
mod kea_process;
mod lan;
mod lease;
mod nat64;
mod options;
mod plan;
mod ports;
mod printed;
mod sockets;
mod standing;
mod summary;
mod watch;
mod whole_file;

pub use dhcp_program::DhcpProgram;
pub use facts::SiteFacts;
pub use ipv6::Ipv6;
pub use lan::Lan;
pub use lease::LeasedSixRd;
pub use nat64::{Dns64, Nat64};
pub use options::{Nat64Option, SiteOptions, SixRdDomain, SixRdOption};
pub use plan::{Dhcp, DhcpDns, Site};
pub use standing::{SiteFiles, Standing, TakenBack};
pub use watch::Watch;
