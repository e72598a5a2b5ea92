//! The directory of running gateways' files.

/// The directory of admin sockets and state files, one of each per gateway, by name.
pub const RUN_DIRECTORY: &str = "/run/sixway";
