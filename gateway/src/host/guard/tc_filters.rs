//! The gateway's filters at tc, as notifications name them.

use crate::host::kernel::tc_filters;

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

impl TcFilters {
    /// Whether one is at each of the interfaces. What the kernel does not tell counts as there.
    pub fn are_there(&self) -> bool {
        let is_ours =
            |(priority, handle): &(u16, u32)| *priority == self.priority && self.handles.contains(handle);
        self.interfaces.iter().all(|interface| match tc_filters(*interface) {
            Ok(found) => found.iter().any(is_ours),
            Err(_) => true,
        })
    }
}
