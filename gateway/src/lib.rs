//! The gateway: configuration, workers, the host's device and routes, the admin API, metrics and the command line.
//!
//! ```text
//!     command ─▶ daemon ─▶ host      device, addresses, routes, sysctls; restored at the end
//!        │          ├────▶ worker    one thread and one engine each
//!        │          ├────▶ dns64     resolvers, their sockets and streams
//!        │          ├────▶ admin     HTTP and JSON over a Unix socket
//!        ▼          └────▶ metrics   for Prometheus
//!      site                what `sixway up` makes of a LAN and a provider
//!      doctor              why it does not work on this host
//!      trace               what becomes of a packet
//!      reload              what another configuration would change
//!      show                tables of what admin returns
//!      config              TOML, checked: all faults together
//! ```

pub mod admin;
mod aftr;
pub mod command;
pub mod daemon;
pub mod doctor;
pub mod event_log;
pub mod fast_path;
pub mod host;
mod inside_endpoint;
mod lease_text;
pub mod metrics;
mod port_mappings;
mod quotas;
mod regular_file;
pub mod reload;
mod reload_pause;
#[cfg(test)]
mod sample;
pub mod show;
pub mod site;
mod teredo_secret;
pub mod trace;
pub mod view;
pub mod worker;

pub use sixway_config as config;
pub use sixway_dns64 as dns64;
