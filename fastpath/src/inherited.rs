//! Pinned objects of a previous process: whether this one can use them, and opening them.

use crate::control::Control;
use crate::error::FastPathError;
use crate::flows::FlowTable;
use crate::pins::Pins;
use crate::settings::{Found, Rules, Settings};
use crate::slots::Slots;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

/// Inspects what is pinned, and removes it if it cannot be reused.
pub(crate) fn look(settings: &Settings, buckets: u32) -> Result<(Pins, Found), FastPathError> {
    let pins = Pins::open(&settings.pin_path, &settings.gateway)?;
    if pins.is_empty() {
        return Ok((pins, Found::Nothing));
    }
    let Some(why) = strange(&pins, &settings.gateway, buckets)? else { return Ok((pins, Found::Kept)) };
    pins.remove_all()?;
    Ok((Pins::open(&settings.pin_path, &settings.gateway)?, Found::Replaced(why)))
}

/// Why what is pinned cannot be reused; `None`: it can.
pub(crate) fn strange(pins: &Pins, gateway: &str, buckets: u32) -> Result<Option<String>, FastPathError> {
    if let Some(version) = layout_of(pins)? {
        return Ok(Some(version));
    }
    match pins.strange(buckets) {
        Some(why) => Ok(Some(why)),
        None => Ok(open_control(pins)?.strange(gateway, buckets)),
    }
}

/// The layout version if it differs; `None`: it is ours, or cannot be read.
fn layout_of(pins: &Pins) -> Result<Option<String>, FastPathError> {
    if !pins.has_version() {
        return Ok(None);
    }
    Ok(open_control(pins)?.strange_version())
}

/// Why what a gateway of this name has pinned cannot be reused with a table of this capacity; `None`: it can, or there is nothing.
pub fn unusable(pin_path: &Path, gateway: &str, capacity: u32) -> Option<String> {
    let pins = Pins::of(pin_path, gateway);
    if pins.is_empty() {
        return None;
    }
    strange(&pins, gateway, FlowTable::buckets_for(capacity)).unwrap_or_else(|error| Some(error.to_string()))
}

/// The slots of the translators whose flows a gateway of this name has pinned.
pub fn slots(pin_path: &Path, gateway: &str) -> Slots {
    let pins = Pins::of(pin_path, gateway);
    let is_ours = pins.has_version() && matches!(layout_of(&pins), Ok(None));
    // Without maps of this version no slot has an owner.
    let control = is_ours.then(|| open_control(&pins).ok()).flatten();
    control.map_or_else(Slots::default, |control| control.slots())
}

pub(crate) fn open_control(pins: &Pins) -> Result<Control, FastPathError> {
    let map = pins.map("control")?;
    Control::of_map(map.fd().as_fd()).map_err(FastPathError::when("map the control page"))
}

pub(crate) fn open_table(
    pins: &Pins,
    control: Control,
    capacity: u32,
    rules: &Rules,
) -> Result<(Arc<Control>, Arc<FlowTable>), FastPathError> {
    let (control, flows) = (Arc::new(control), pins.map("flows")?);
    let table = FlowTable::of_map(flows.fd().as_fd(), control.clone(), capacity);
    let table = table.map_err(FastPathError::when("map the flow table"))?;
    table.expect_translators(&rules.config);
    Ok((control, Arc::new(table)))
}
