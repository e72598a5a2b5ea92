//! Programs that this process had started before it executed itself again, such as a test of the packet filter. They are still its
//! children: each stays in the process table until the process waits for it.

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::fs;

/// Waits for them in a thread of its own. To be called before this process starts programs itself.
pub(super) fn await_all() {
    let children = children();
    if children.is_empty() {
        return;
    }
    let wait = move || {
        for child in children {
            // It may be gone already.
            let _ = waitpid(child, None);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("orphans".into()).spawn(wait) {
        tracing::debug!("programs of the previous process are not waited for: {error}");
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
    #[expect(clippy::zombie_processes, reason = "that it is waited for elsewhere is what is tested")]
    fn a_program_that_nobody_knows_is_waited_for() {
        let child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        assert!(children().contains(&Pid::from_raw(number as i32)));
        await_all();
        let begun = Instant::now();
        while fs::metadata(format!("/proc/{number}")).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
