//! Programs that are loaded while another process still runs the gateway, for the one that takes over from it, or for the one that this
//! process is about to become: the kernel takes a second or two for them.

use crate::attach::xdp_demand;
use crate::error::FastPathError;
use crate::flows::FlowTable;
use crate::inherited::strange;
use crate::pins::Pins;
use crate::probe::complete;
use crate::programs::{Objects, Programs};
use crate::settings::Settings;
use crate::stamp::Stamp;

/// Programs on the maps of a gateway that runs; none hangs anywhere.
#[derive(Debug)]
pub struct Ahead {
    programs: Programs,
    stamp: Stamp,
    pins: Pins,
}

impl Ahead {
    /// Loads them. `None`: there are no maps yet, or none that could be gone on with. Nothing is changed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn load(settings: &Settings) -> Result<Option<Self>, FastPathError> {
        let pins = Pins::of(&settings.pin_path, &settings.gateway);
        let buckets = FlowTable::buckets_for(settings.capacity);
        if pins.is_empty() || strange(&pins, &settings.gateway, buckets)?.is_some() {
            return Ok(None);
        }
        let (rules, xdp_demand) =
            (complete(&settings.rules), xdp_demand(settings.mode, &settings.interfaces));
        // Asked before they are opened: what is found under these numbers later is what was opened.
        let stamp = Programs::stamp(&rules, xdp_demand, &pins);
        let programs = Objects::open(&rules, &pins, buckets, xdp_demand)?.load()?;
        Ok(Some(Self { programs, stamp, pins }))
    }

    /// Leaves them beside the maps, for the process that loads the fast path next: [`crate::Opened::load`] takes them if they are what it
    /// would load, and away in any case.
    ///
    /// # Errors
    /// The kernel's.
    pub fn leave(mut self) -> Result<(), FastPathError> {
        self.pins.forget_ahead();
        self.programs.pin(&self.pins, self.stamp)
    }

    /// The programs, if they are what would be loaded.
    pub(crate) fn programs(self, stamp: Stamp) -> Option<Programs> {
        (self.stamp == stamp).then_some(self.programs)
    }
}
