//! The arguments that a gateway is started with.

use super::reload::Previous;
use crate::config::{Config, Sources};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The arguments that a gateway is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Its configuration.
    pub config: &'a Config,
    /// The file that this was read from; SIGHUP reads it again.
    pub file: &'a Path,
    /// The text that it was read from.
    pub sources: &'a Sources,
    /// After a reload: the previous configuration, and its file.
    pub previous: Option<&'a (PathBuf, Previous)>,
    /// The directory of state files.
    pub directory: &'a Path,
    /// The process that runs this gateway is to be replaced.
    pub takeover: bool,
    /// Set when the gateway is ready: until then a start that fails has changed nothing that is left.
    pub ready: &'a AtomicBool,
}
