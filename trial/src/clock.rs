//! How long tests take, reported to `sixway-tally`.

use std::io::Write as _;
use std::time::Instant;

/// Names the file that takes the times.
const VARIABLE: &str = "SIXWAY_TIMES";

/// Runs a test, and tells the tally how long it took, if there is one. The time is reported however the test ends.
pub fn timed<T>(name: &str, test: impl FnOnce() -> T) -> T {
    let _told = Told { name, start: Instant::now() };
    test()
}

struct Told<'a> {
    name: &'a str,
    start: Instant,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        let Some(path) = std::env::var_os(VARIABLE) else { return };
        let line = format!("{:.3} {}\n", self.start.elapsed().as_secs_f64(), self.name);
        // One write appends the line whole. A time that cannot be told is missing in a report, and no more.
        let file = std::fs::OpenOptions::new().append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
