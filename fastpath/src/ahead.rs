//! Programs that are loaded while another process still runs the gateway, for the one that takes over from it: the kernel takes a second or
//! two for them.

use crate::attach::wish;
use crate::fast_path::{complete, strange};
use crate::fault::FastPathError;
use crate::flows::FlowTable;
use crate::pins::Pins;
use crate::programs::{Objects, Programs, Wish};
use crate::settings::{Rules, Settings};

/// Programs on the maps of a gateway that runs; none hangs anywhere.
#[derive(Debug)]
pub struct Ahead {
    programs: Programs,
    rules: Rules,
    wish: Wish,
    /// The kernel's numbers of the maps.
    maps: Vec<u32>,
}

impl Ahead {
    /// Loads them. `None`: there are no maps yet, or none that could be gone on with. Nothing is changed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn load(settings: &Settings) -> Result<Option<Self>, FastPathError> {
        let pins = Pins::of(&settings.pin_path, &settings.gateway);
        let buckets = FlowTable::buckets_for(settings.capacity);
        if pins.is_empty() || strange(&pins, settings, buckets)?.is_some() {
            return Ok(None);
        }
        // Asked before they are opened: what is found under these numbers later is what was opened.
        let maps = pins.numbers();
        let (rules, wish) = (complete(&settings.rules), wish(settings.mode, &settings.interfaces));
        let programs = Objects::open(&rules, &pins, buckets, wish)?.load()?;
        Ok(Some(Self { programs, rules, wish, maps }))
    }

    /// The programs, if they are what would be loaded.
    pub(crate) fn programs(self, rules: &Rules, wish: Wish, pins: &Pins) -> Option<Programs> {
        let same = self.rules.make_the_same(rules) && self.wish == wish && self.maps == pins.numbers();
        same.then_some(self.programs)
    }
}
