//! The site's table of the packet filter while the site runs. Other programs may remove it, as a reload of the packet filter does
//! (`flush ruleset`): it is made again. Without it everybody reaches the LAN, so the thread that looks does nothing else.

use super::plan::Site;
use super::standing::Standing;
use crate::host::RuleEvents;
use crate::host::nft::{self, NftError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the LAN may be open.
const STEP: Duration = Duration::from_millis(100);
/// Without notifications of the kernel, and after a failure, the table is looked at this often.
const LOOK: Duration = Duration::from_secs(10);
/// Against a program that removes it again and again.
const PAUSE: Duration = Duration::from_secs(1);

/// The table, for the thread that guards it and for the one that changes it.
pub(super) struct FilterTable {
    standing: Standing,
    /// As nft listed it when it was made. Who holds this is the only one to run nft.
    listing: Mutex<Option<String>>,
}

impl FilterTable {
    /// The table that this site has at the moment.
    pub(super) fn of(standing: Standing) -> Self {
        let listing = Mutex::new(standing.listing().ok());
        Self { standing, listing }
    }

    /// Makes another table. Meanwhile nobody makes the one before again.
    ///
    /// # Errors
    /// What could not be written, or nft's words.
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

    /// Whether it was made again.
    fn restore(&self) -> bool {
        let mut listing = self.lock();
        // Without commands there is to be none.
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
                    "the packet filter: the site's table was removed or changed, and was made again"
                );
                *listing = self.standing.listing().ok();
            }
            Err(error) => {
                tracing::error!("the packet filter: the site's table is missing and cannot be made: {error}");
            }
        }
        true
    }

    /// What a thread that panicked left is true: it is written last.
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
