//! Which remote hosts may open sessions to explicit bindings (RFC 6887 §13.3).

use super::explicit_binding::RemoteFilter;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// The filters of explicit bindings, by their slots. The number is bounded where bindings are requested.
#[derive(Clone, Debug, Default)]
pub(super) struct RemoteFilters(BTreeMap<u32, Box<[RemoteFilter]>>);

impl RemoteFilters {
    pub(super) fn set(&mut self, slot: u32, filters: &[RemoteFilter]) {
        if filters.is_empty() {
            self.0.remove(&slot);
        } else {
            self.0.insert(slot, filters.into());
        }
    }

    pub(super) fn forget(&mut self, slot: u32) {
        if !self.0.is_empty() {
            self.0.remove(&slot);
        }
    }

    /// Whether a remote endpoint may open a session; `None`: there is no filter.
    pub(super) fn admit(&self, slot: u32, remote: Endpoint4) -> Option<bool> {
        let filters = self.0.get(&slot)?;
        Some(filters.iter().any(|filter| filter.admits(remote)))
    }
}
