//! Programs that are loaded ahead, while another process still runs the gateway or before this process takes over: verifying them takes the
//! kernel a second or two.

use crate::attach::xdp_demand;
use crate::error::FastPathError;
use crate::flows::FlowTable;
use crate::inherited::strange;
use crate::pins::Pins;
use crate::probe::complete;
use crate::programs::{Objects, Programs};
use crate::settings::Settings;
use crate::stamp::Stamp;

/// Programs on the maps of a running gateway, not attached to any interface.
#[derive(Debug)]
pub struct Ahead {
    programs: Programs,
    stamp: Stamp,
    pins: Pins,
}

impl Ahead {
    /// Loads them. `None`: there are no maps yet, or they cannot be reused. Changes nothing.
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
        // Computed before the maps are opened, so that the same map ids later prove that these are the same maps.
        let stamp = Programs::stamp(&rules, xdp_demand, &pins);
        let programs = Objects::open(&rules, &pins, buckets, xdp_demand)?.load()?;
        Ok(Some(Self { programs, stamp, pins }))
    }

    /// Pins them next to the maps for the next process: [`crate::Opened::load`] uses them if they are what it would load, and removes them in
    /// any case.
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
