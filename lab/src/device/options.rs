//! Settings of devices on the command line.

use super::guest::GuestKind;
use super::list::add_remote;
use crate::failure::Result;

/// Settings of devices.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DeviceOptions {
    /// The kind of guest for devices that need another kernel: uml, qemu or kvm
    #[arg(long, value_name = "KIND")]
    pub guest: Option<String>,
    /// A device on another machine (see docs/lab.md); may be repeated
    #[arg(long, value_name = "NAME=…")]
    pub remote: Vec<String>,
}

impl DeviceOptions {
    /// Makes them the process' own, before any device is examined.
    ///
    /// # Errors
    /// One is not written as it should be.
    pub fn apply(&self) -> Result<()> {
        if let Some(kind) = &self.guest {
            GuestKind::choose(kind)?;
        }
        if self.remote.is_empty() { Ok(()) } else { add_remote(&self.remote) }
    }
}
