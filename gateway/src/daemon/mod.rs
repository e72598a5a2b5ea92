//! The running gateway: what it is made of, from start to end.

mod advertiser;
mod anchors;
mod backend;
mod carried;
mod discovery;
mod dns64;
mod dns64_plan;
mod edits;
mod engines;
mod handover_file;
mod inheritance;
mod log;
mod narrow_paths;
mod offload;
mod packet_filter;
mod path_errors;
mod pool_file;
mod pool_keeper;
mod port_ledger;
mod promises;
mod rates;
mod readable;
mod remote_names;
mod run;
mod serve;
mod setup;
mod takeover;
mod threads;
mod tunnel_view;
mod tunnels;
mod words;

pub use backend::{Facts, Gateway, Mechanism, MechanismKind};
pub use dns64::Dns64View;
pub use run::{RunError, Start, run};
pub use tunnel_view::TunnelView;
