//! What a gateway is started with.

use crate::config::Config;
use std::path::Path;

/// What a gateway is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Its configuration.
    pub config: &'a Config,
    /// The file that this was read from; SIGHUP reads it again.
    pub file: &'a Path,
    /// The directory of state files.
    pub directory: &'a Path,
    /// The process that runs this gateway is to make way.
    pub takeover: bool,
}
