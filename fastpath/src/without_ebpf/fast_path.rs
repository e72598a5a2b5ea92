//! The fast path without eBPF: it cannot be loaded.

use crate::control::Control;
use crate::counts::Counts;
use crate::error::FastPathError;
use crate::flows::FlowTable;
use crate::layout::Device;
use crate::next_hops::NextHops;
use crate::settings::{Attached, Found, LeftOut, Rules, Settings};
use crate::slots::Slots;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

/// The fast path, which cannot exist: built without eBPF.
#[derive(Debug)]
pub struct FastPath(Infallible);

/// What the previous process left; it cannot be opened.
#[derive(Debug)]
pub struct Opened(Infallible);

/// Programs, which cannot exist.
#[derive(Debug)]
pub struct Prepared(Infallible);

/// Programs, which cannot exist.
#[derive(Debug)]
pub struct Loaded(Infallible);

/// Programs, which cannot exist.
#[derive(Debug)]
pub struct Ahead(Infallible);

impl Ahead {
    /// Fails.
    ///
    /// # Errors
    /// [`FastPathError::NotBuilt`].
    pub fn load(_: &Settings) -> Result<Option<Self>, FastPathError> {
        Err(FastPathError::NotBuilt)
    }

    /// Leaves nothing.
    ///
    /// # Errors
    /// None.
    pub fn leave(self) -> Result<(), FastPathError> {
        match self.0 {}
    }
}

impl Opened {
    /// Takes nothing.
    pub fn with(self, _: Option<Ahead>) -> Self {
        match self.0 {}
    }

    /// The flow table of the previous process.
    pub fn table(&self) -> Option<&Arc<FlowTable>> {
        match self.0 {}
    }

    /// Loads nothing.
    ///
    /// # Errors
    /// None.
    pub fn load(self, _: &Settings) -> Result<FastPath, FastPathError> {
        match self.0 {}
    }
}

impl Prepared {
    /// Loads nothing.
    ///
    /// # Errors
    /// None.
    pub fn load(self) -> Result<Loaded, FastPathError> {
        match self.0 {}
    }
}

impl FastPath {
    /// Fails.
    ///
    /// # Errors
    /// [`FastPathError::NotBuilt`].
    pub fn load(_: &Settings) -> Result<Self, FastPathError> {
        Err(FastPathError::NotBuilt)
    }

    /// Fails.
    ///
    /// # Errors
    /// [`FastPathError::NotBuilt`].
    pub fn open(_: &Settings) -> Result<Opened, FastPathError> {
        Err(FastPathError::NotBuilt)
    }

    /// Attaches nothing.
    ///
    /// # Errors
    /// None.
    pub fn attach(&mut self, _: &[String]) -> Result<&[Attached], FastPathError> {
        match self.0 {}
    }

    /// Replaces nothing.
    ///
    /// # Errors
    /// None.
    pub fn replace(&mut self, _: &Rules, _: &[String]) -> Result<&[Attached], FastPathError> {
        match self.0 {}
    }

    /// Prepares nothing.
    ///
    /// # Errors
    /// None.
    pub fn prepare(&self, _: &Rules, _: &[String]) -> Result<Prepared, FastPathError> {
        match self.0 {}
    }

    /// Exchanges nothing.
    ///
    /// # Errors
    /// None.
    pub fn exchange(&mut self, _: Loaded, _: &[String]) -> Result<&[Attached], FastPathError> {
        match self.0 {}
    }

    /// Takes nothing away.
    ///
    /// # Errors
    /// None.
    pub fn end(self) -> Result<usize, FastPathError> {
        match self.0 {}
    }

    /// Where the programs are attached.
    pub fn attached(&self) -> &[Attached] {
        match self.0 {}
    }

    /// Interfaces where the programs could not be attached.
    pub fn left_out(&self) -> &[LeftOut] {
        match self.0 {}
    }

    /// What was found when the maps were opened.
    pub fn found(&self) -> &Found {
        match self.0 {}
    }

    /// The page that the programs read.
    pub fn control(&self) -> &Arc<Control> {
        match self.0 {}
    }

    /// The flow table.
    pub fn table(&self) -> &Arc<FlowTable> {
        match self.0 {}
    }

    /// The next hops.
    pub fn next_hops(&self) -> &Arc<NextHops> {
        match self.0 {}
    }

    /// The counters.
    ///
    /// # Errors
    /// None.
    pub fn counts(&self) -> Result<Counts, FastPathError> {
        match self.0 {}
    }

    /// Names no devices.
    ///
    /// # Errors
    /// None.
    pub fn set_devices(&mut self, _: &BTreeMap<u32, Device>) -> Result<(), FastPathError> {
        match self.0 {}
    }

    /// Names no paths.
    ///
    /// # Errors
    /// None.
    pub fn set_narrow_paths(&mut self, _: &[Ipv4Addr]) -> Result<(), FastPathError> {
        match self.0 {}
    }
}

/// Fails: this build cannot remove what another one left.
///
/// # Errors
/// [`FastPathError::NotBuilt`].
pub fn remove_all(_: &Path, _: &str) -> Result<usize, FastPathError> {
    Err(FastPathError::NotBuilt)
}

/// This build cannot reuse what another one left.
pub fn unusable(_: &Path, _: &str, _: u32) -> Option<String> {
    Some(FastPathError::NotBuilt.to_string())
}

/// No slot has an owner.
pub fn slots(_: &Path, _: &str) -> Slots {
    Slots::default()
}

/// None: what another build has left is not known to this one.
pub fn gateways(_: &Path) -> Vec<String> {
    Vec::new()
}
