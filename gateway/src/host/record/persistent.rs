//! What outlives the process: the device and the fast path.

use crate::host::kernel;
use crate::host::links::tun_of;
use crate::host::realm_rules::RealmDevice;
use serde::{Deserialize, Serialize};
use sixway_link::interface;
use std::path::{Path, PathBuf};

/// What outlives the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Persistent {
    /// The device's name.
    pub device: String,
    /// Its index: a device of the same name created by another process has another.
    pub index: u32,
    /// The directory of pinned programs and maps; empty without a fast path.
    pub pins: PathBuf,
    /// The devices of realms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub realms: Vec<RealmDevice>,
}

/// The process that would continue with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Successor<'a> {
    /// Its device's name.
    pub device: &'a str,
    /// Its directory of pinned programs and maps.
    pub pins: &'a Path,
}

impl Persistent {
    /// Whether the device is still there.
    pub fn is_there(&self) -> bool {
        interface::index(&self.device).is_ok_and(|index| index == self.index)
    }

    /// Removes the device; its name if it was there. It may have been renamed; a device of another kind with this index is
    /// another program's, after a reboot.
    pub fn remove_device(&self) -> Option<String> {
        tun_of(self.index).filter(|_| kernel::remove_link(self.index).is_ok())
    }

    /// Removes programs, maps and the packet filter's table. Whether there was anything.
    pub fn remove_fast_path(&self, gateway: &str) -> bool {
        if self.pins.as_os_str().is_empty() {
            return false;
        }
        match sixway_fastpath::remove_all(&self.pins, gateway) {
            Ok(count) => count > 0,
            Err(error) => {
                tracing::error!(
                    "the fast path could not be removed: {error}; remove it with: sixway fastpath off"
                );
                false
            }
        }
    }
}
