//! One file or folder for each mechanism: an address policy, and calls of the shared modules. They do not import one another.

pub mod b4;
pub mod configured;
pub mod contract;
pub mod ds_lite;
pub mod four_over_six;
pub mod ip_in_ip;
pub mod isatap;
pub mod nat44;
pub mod nat46;
pub mod nat64;
pub mod npt66;
pub mod siit;
mod six_in_four;
pub mod six_rd;
pub mod six_to_four;
pub mod table;
pub mod teredo;

pub use crate::identity;
pub use table::MechanismConfig;
