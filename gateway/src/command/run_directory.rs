//! Where running gateways keep their files.

/// Where a running gateway keeps its socket and what it must put back: a file of each for every gateway, by name.
pub const RUN_DIRECTORY: &str = "/run/sixway";
