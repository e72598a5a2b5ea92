//! The gateway's filters at tc, as notifications name them.

/// Filters of clsact; without interfaces, there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcFilters {
    /// The indices of the interfaces that they are attached to.
    pub interfaces: Vec<u32>,
    /// Their priority.
    pub priority: u16,
    /// Their handles; one of them is in use.
    pub handles: [u32; 2],
}
