//! Names that the sections of advertisements refer to.

use crate::host::HostFacts;

/// What the names in the section may mean.
pub(crate) struct Names<'r> {
    /// Mechanisms with a delegated prefix, and its length as far as it is known.
    pub delegated: &'r [(String, Option<u8>)],
    /// ISATAP routers.
    pub isatap: &'r [String],
    pub host: &'r HostFacts,
    /// The gateway's device.
    pub device: Option<&'r str>,
}
