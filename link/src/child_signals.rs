//! The signals that a program can receive: it starts with the mask of the thread that starts it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The program starts with no signal blocked. Daemons do not change their mask, and one that starts with SIGTERM blocked ends by
/// SIGKILL only.
pub fn with_no_signal_blocked(command: &mut Command) -> &mut Command {
    let unblock = || {
        // SAFETY: on Linux a set of signals is an array of words; zeroes are the empty set.
        let none = unsafe { std::mem::zeroed::<libc::sigset_t>() };
        // SAFETY: it reads this set, and changes the mask of the calling thread, the child's only one.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: between fork and exec the child calls pthread_sigmask, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(unblock) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask of a program that a thread with SIGTERM blocked starts.
    fn mask(prepare: impl FnOnce(&mut Command) -> &mut Command + Send + 'static) -> String {
        let thread = std::thread::spawn(|| {
            let mut blocked = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: sigemptyset initialises the set that the other two use.
            unsafe {
                libc::sigemptyset(blocked.as_mut_ptr());
                libc::sigaddset(blocked.as_mut_ptr(), libc::SIGTERM);
                libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), std::ptr::null_mut());
            }
            let mut command = Command::new("grep");
            let output = prepare(command.args(["SigBlk", "/proc/self/status"])).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_program_starts_with_no_signal_blocked() {
        let inherited = mask(|command| command);
        assert_eq!(inherited, "SigBlk:\t0000000000004000\n", "of the thread");
        assert_eq!(mask(with_no_signal_blocked), "SigBlk:\t0000000000000000\n");
    }
}
