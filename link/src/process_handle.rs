//! A process by a file descriptor: a signal reaches that process or none, even if its process ID has been reused.

use crate::syscall::failed;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// A process (pidfd_open(2)).
#[derive(Debug)]
pub struct ProcessHandle {
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// The process that has this number at the moment. Whose it is has to be checked after this call, not before.
    ///
    /// # Errors
    /// There is none (`ESRCH`), or no file descriptor is left.
    pub fn open(process: i32) -> io::Result<Self> {
        // SAFETY: pidfd_open takes two numbers, and touches no memory of ours.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let Some(descriptor) = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0) else {
            return Err(failed("pidfd_open"));
        };
        // SAFETY: the kernel has just opened it, closed on exec, and nothing else owns it.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It has ended (`ESRCH`), or this process may not.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let information = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: without information the kernel makes its own, as kill(2) does, and reads no memory of ours.
        match unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.descriptor.as_raw_fd(), signal, information, 0)
        } {
            -1 => Err(failed("pidfd_send_signal")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    #[test]
    fn a_signal_reaches_the_process_and_nobody_after_its_end() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let handle = ProcessHandle::open(i32::try_from(child.id()).unwrap()).unwrap();
        handle.signal(libc::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert!(handle.signal(libc::SIGTERM).is_err(), "it has ended");
        assert!(ProcessHandle::open(i32::MAX).is_err(), "there is no such process");
    }
}
