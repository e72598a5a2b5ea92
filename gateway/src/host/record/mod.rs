//! The state file of a running gateway: a lock, so that only one gateway of a name runs, and a record of its changes to the host, written
//! before each change. Kernel settings of a gateway that ends while others of its network namespace run
//! stay in its file: they may need them. The last to end restores all of them. What outlives its process, so that
//! forwarding continues without it, goes to the next process of the gateway ([`Successor`]).

mod contents;
mod directory;
mod error;
mod found_device;
mod leftovers;
mod listing;
mod lock;
mod persistent;
mod settings;
mod state_file;
#[cfg(test)]
mod tests;

pub use directory::{RunningGateway, added_addresses, clear_up, leftovers, pinned, running};
pub use error::RecordError;
pub(super) use found_device::FoundDevice;
pub use leftovers::Leftovers;
pub use persistent::Successor;
pub use state_file::Record;
