//! How many tests run in parallel: most wait for programs and clocks, some keep a CPU busy or judge by the clock.

use std::sync::{Condvar, Mutex, PoisonError};

/// Room for tests, given in the order in which they ask, so that a large one does not wait for ever.
pub struct Room {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    /// Who has asked, and who is next.
    asked: u64,
    next: u64,
}

impl Room {
    pub fn new(size: usize) -> Self {
        Self { size, state: Mutex::new(State { free: size, asked: 0, next: 0 }), changed: Condvar::new() }
    }

    /// Waits until all others have left, and does this alone.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        self.with(self.size, work)
    }

    /// Waits for so much room, and does this in it.
    pub fn with<T>(&self, share: usize, work: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = state.asked;
        state.asked += 1;
        while state.next != mine || state.free < share {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.free -= share;
        state.next += 1;
        drop(state);
        self.changed.notify_all();
        let _taken = Taken { room: self, share };
        work()
    }
}

/// Gives the room back however the work ends.
struct Taken<'a> {
    room: &'a Room,
    share: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.room.state.lock().unwrap_or_else(PoisonError::into_inner).free += self.share;
        self.room.changed.notify_all();
    }
}
