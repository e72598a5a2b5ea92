//! The site's table of the packet filter while the site runs. Other programs may remove it, as a reload of the packet filter does
//! (`flush ruleset`): it is created again. Without it any outside host can reach the LAN, so a separate thread watches it.

use super::plan::Site;
use super::standing::Standing;
use crate::host::RuleEvents;
use crate::host::nft::{self, NftError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time without the table.
const STEP: Duration = Duration::from_millis(100);
/// Without notifications of the kernel, and after a failure, the table is checked this often.
const LOOK: Duration = Duration::from_secs(10);
/// Minimum time between two restorations, if a program removes it repeatedly.
const PAUSE: Duration = Duration::from_secs(1);

/// The table, for the thread that guards it and for the one that changes it.
pub(super) struct FilterTable {
    standing: Standing,
    /// As nft listed it when it was created. Only the holder of this lock runs nft.
    listing: Mutex<Option<String>>,
}

impl FilterTable {
    /// The site's current table.
    pub(super) fn of(standing: Standing) -> Self {
        let listing = Mutex::new(standing.listing().ok());
        Self { standing, listing }
    }

    /// Replaces the table. Meanwhile the previous one is not restored.
    ///
    /// # Errors
    /// The error of the file, or of nft.
    pub(super) fn replace(&self, site: &Site) -> Result<(), String> {
        let mut listing = self.lock();
        self.standing.make_table(site)?;
        *listing = self.standing.listing().ok();
        Ok(())
    }

    /// Guards it until the end.
    pub(super) fn guard(&self, ends: &AtomicBool) {
        let mut events = RuleEvents::open().ok();
        let mut look_at = Instant::now();
        while !ends.load(Ordering::Relaxed) {
            let now = Instant::now();
            let changed = events.as_mut().is_some_and(RuleEvents::read);
            if changed || now >= look_at {
                look_at = now + LOOK;
                if self.restore() {
                    std::thread::sleep(PAUSE);
                }
            }
            std::thread::sleep(STEP);
        }
    }

    /// Returns whether it was created again.
    fn restore(&self) -> bool {
        let mut listing = self.lock();
        // Without commands there should be no table.
        let Some(script) = self.standing.script() else { return false };
        match self.standing.listing() {
            Ok(listed) if listing.as_ref() == Some(&listed) => return false,
            Ok(_) | Err(NftError::Refused(_)) => {}
            // It is not known.
            Err(NftError::Missing | NftError::Io(_)) => return false,
        }
        match nft::execute(&script) {
            Ok(()) => {
                tracing::warn!(
                    "the packet filter: another program removed or changed the site's table, which was restored"
                );
                // The commands are the same, and so is the table. What is listed now may have been changed by another program again.
                if listing.is_none() {
                    *listing = self.standing.listing().ok();
                }
            }
            Err(error) => {
                tracing::error!(
                    "the packet filter: the site's table is missing and cannot be created: {error}"
                );
            }
        }
        true
    }

    /// The value that a panicked thread left is valid: it is written last.
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
