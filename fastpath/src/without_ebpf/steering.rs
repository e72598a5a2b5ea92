//! Steering without eBPF: it cannot be attached.

use crate::steering::{Hook, InsideHosts, OwnAddress, SteeringError, Taken};
use std::convert::Infallible;

/// Steering, which cannot exist: built without eBPF.
#[derive(Debug)]
pub struct Steering(Infallible);

impl Steering {
    /// Fails.
    ///
    /// # Errors
    /// [`SteeringError::NotBuilt`].
    pub fn attach(
        _: &str,
        _: &[&str],
        _: &str,
        _: &[OwnAddress],
        _: &InsideHosts,
    ) -> Result<Self, SteeringError> {
        Err(SteeringError::NotBuilt)
    }

    /// Fails.
    ///
    /// # Errors
    /// [`SteeringError::NotBuilt`].
    pub fn attach_by(
        _: Hook,
        _: &str,
        _: &[&str],
        _: &str,
        _: &[OwnAddress],
        _: &InsideHosts,
    ) -> Result<Self, SteeringError> {
        Err(SteeringError::NotBuilt)
    }

    /// Adds nothing.
    ///
    /// # Errors
    /// None.
    pub fn add_interface(&mut self, _: &str) -> Result<(), SteeringError> {
        match self.0 {}
    }

    /// None.
    pub fn filters(&self) -> (u16, [u32; 2]) {
        match self.0 {}
    }

    /// How the program is attached to the interfaces.
    pub fn hook(&self) -> Hook {
        match self.0 {}
    }

    /// Replaces the local addresses.
    ///
    /// # Errors
    /// None.
    pub fn set_addresses(&mut self, _: &[OwnAddress]) -> Result<(), SteeringError> {
        match self.0 {}
    }

    /// Replaces the interfaces that lead to inside hosts.
    ///
    /// # Errors
    /// None.
    pub fn set_inner_interfaces(&mut self, _: &[String]) -> Result<(), SteeringError> {
        match self.0 {}
    }

    /// What was taken.
    pub fn counters(&self) -> Taken {
        match self.0 {}
    }

    /// Leaves nothing.
    pub fn leave(self) {
        match self.0 {}
    }

    /// Removes nothing.
    pub fn remove_leftovers(_: &str, _: &str) -> bool {
        false
    }
}
