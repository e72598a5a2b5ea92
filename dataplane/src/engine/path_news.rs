//! ICMP errors from the paths of tunnels that came as packets and were believed: the engines of other workers learn from them too
//! ([`Engine::learn_path_error`]), or their packets would go on to be lost where the path is narrow.

use super::Engine;
use alloc::vec::Vec;

/// Errors that wait at most; there will be more.
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
}

impl Engine {
    /// The errors that this engine has believed since the last time, for the engines of the other workers.
    pub fn take_path_errors(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.path_news.0)
    }
}
