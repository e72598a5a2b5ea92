//! ICMP errors about tunnel paths that this worker accepted. The other workers learn from them too ([`Engine::learn_path_error`]), or they
//! would keep sending packets that are too large.

use alloc::vec::Vec;

/// At most this many wait; routers repeat errors.
const MOST: usize = 8;

/// Errors that wait for the other engines, whole.
#[derive(Debug, Default)]
pub(super) struct PathNews(Vec<Vec<u8>>);

impl PathNews {
    /// Keeps an error, if there is room.
    pub(super) fn keep(&mut self, error: &[u8]) {
        if self.0.len() < MOST {
            self.0.push(error.to_vec());
        }
    }

    /// The errors that wait.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.0)
    }
}
