//! A reload, its trial, and the rollback to the previous configuration.
//!
//! ```text
//!     request.rs   what the admin API asks for: reload, keep, roll back
//!     previous.rs  the file with the previous configuration, while the new one is on trial
//!     trial.rs     when the trial of a new configuration ends, and how
//! ```

mod previous;
mod request;
mod trial;

pub use previous::Previous;
pub(super) use previous::{Before, PREVIOUS};
pub(super) use request::{ReloadRequest, ReloadRequests, Wanted};
pub(super) use trial::{Health, Trial, TrialEnd};
