//! Sockets on addresses that a former socket may still have.

use std::io;
use std::time::{Duration, Instant};

/// Time between two attempts.
const TICK: Duration = Duration::from_millis(50);

/// Binds when the address is free: a child that another test is about to start has copies of a former socket until it executes its
/// program.
pub fn bound<T>(bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => {
                std::thread::sleep(TICK);
            }
            outcome => return outcome,
        }
    }
}
