//! `sixway doctor`: why the gateway does not work on this host, and how to fix it. Nothing is changed.
//!
//! ```text
//!     examine.rs        all checks, one after the other
//!     facts.rs          what the host is, read once
//!     routes.rs         default routes, uplinks, routes into the device, pools on a link
//!     shared_pools.rs   addresses of shared pools, and the uplink
//!     aftrs.rs          where names of AFTRs lead, and whether an AFTR answers
//!     softwires.rs      tunnels of DS-Lite, of 4over6 and of IP in IP
//!     settings.rs       forwarding, reverse path filters
//!     mtu.rs            MTUs of the device, the links and the tunnels
//!     ports.rs          services at ports of a shared pool
//!     iptables_masquerade.rs  masquerading rules of iptables, next to a shared pool
//!     listeners.rs      other processes at the ports and sockets that the gateway listens at
//!     lease_servers.rs  DHCP 4o6 servers of a 4over6 host, and UDP port 546
//!     running.rs        what the running gateway says of leases
//!     dhcp_server.rs    whether the DHCP server of a site runs
//!     dnsmasq_file.rs   where the dnsmasq of a site serves
//!     holders.rs        which process has a socket
//!     event_log.rs      whether the event log's files can be written
//!     vrfs.rs           VRFs of realms
//!     teredo_client.rs  the servers of a Teredo client, native IPv6, and what the running client knows
//!     teredo_question.rs  whether a Teredo server answers
//!     upstreams.rs      whether the DNS64's upstreams answer
//!     packet_filter.rs  whether the packet filter lets the gateway's packets pass: by experiment, in a namespace of its own
//!     filter_paths.rs   the paths that the gateway's packets take, a packet for each, and the rules that open them
//!     trial_packets.rs  the packets
//!     probe.rs          the experiment's other half, in that namespace
//! ```

mod aftrs;
mod dhcp_server;
mod dnsmasq_file;
mod event_log;
mod examine;
mod exposed;
mod facts;
mod filter_paths;
mod finding;
mod holders;
mod iptables_masquerade;
mod lease_servers;
mod listeners;
mod mtu;
mod packet_filter;
mod ports;
pub mod probe;
mod program;
mod routes;
mod running;
mod settings;
mod shared_pools;
mod softwires;
mod teredo_client;
mod teredo_question;
mod trial_packets;
mod upstreams;
mod vrfs;

pub use examine::{examine, packet_filter_findings};
pub use finding::{Finding, Verdict};
pub use packet_filter::CHECK as PACKET_FILTER;
