//! Child processes that this process had started before it re-executed itself, such as a test of the packet filter. Each of them
//! stays in the process table as a zombie until the process waits for it.

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::fs;

/// Waits for them in a separate thread. Must be called before this process starts programs itself.
pub(super) fn reap_all() {
    let children = children();
    if children.is_empty() {
        return;
    }
    let wait = move || {
        for child in children {
            // Another thread may have waited for it.
            let _ = waitpid(child, None);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("reaper".into()).spawn(wait) {
        tracing::debug!("child processes of the previous program are not reaped: {error}");
    }
}

/// The children of this thread, as proc(5) lists them; none if the kernel does not.
fn children() -> Vec<Pid> {
    let text = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok().map(Pid::from_raw)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    #[expect(clippy::zombie_processes, reason = "the test checks that another thread waits for it")]
    fn a_child_process_of_the_previous_program_is_reaped() {
        let child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        assert!(children().contains(&Pid::from_raw(number as i32)));
        reap_all();
        let begun = Instant::now();
        while fs::metadata(format!("/proc/{number}")).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
