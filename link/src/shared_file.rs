//! A file mapped to memory as numbers: written at the speed of memory, and kept when the process is killed.

use crate::syscall::{annotate, failed};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A mapped file.
#[derive(Debug)]
pub struct SharedFile {
    start: NonNull<AtomicU32>,
    words: usize,
}

// SAFETY: what is reached through it is atomic.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// Creates a file of this many numbers, all zero, replacing an existing one. Its memory is taken immediately, so that none is missing
    /// later.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed.
    pub fn create(path: &Path, words: usize) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let octets = libc::off_t::try_from(words * size_of::<AtomicU32>()).unwrap_or(libc::off_t::MAX);
        // SAFETY: posix_fallocate touches no memory of ours.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, octets) } {
            0 => Self::map(&file, words),
            error => Err(annotate(io::Error::from_raw_os_error(error), "posix_fallocate")),
        }
    }

    /// Maps an existing file, as many whole numbers as it has.
    ///
    /// # Errors
    /// It is not there, is empty, or the kernel refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let octets = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        Self::map(&file, octets / size_of::<AtomicU32>())
    }

    fn map(file: &File, words: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let octets = words * size_of::<AtomicU32>();
        // SAFETY: the kernel chooses a free place; the mapping is ours until it is dropped.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), octets, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(failed("mmap"));
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }

    /// Its numbers.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: a mapping begins at a page, every value is one of an atomic, and it lives as long as what is borrowed. The file lies
        // where only root writes, so it is never truncated.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no borrow of it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU32>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn what_was_written_is_there_when_the_file_is_opened_again() {
        let path = std::env::temp_dir().join(format!("sixway-shared-{}", std::process::id()));
        let file = SharedFile::create(&path, 3_000).unwrap();
        assert!(file.words().iter().all(|word| word.load(Relaxed) == 0));
        file.words()[2_999].store(7, Relaxed);
        drop(file);
        let file = SharedFile::open(&path).unwrap();
        assert_eq!((file.words().len(), file.words()[2_999].load(Relaxed)), (3_000, 7));
        let anew = SharedFile::create(&path, 1).unwrap();
        assert_eq!((anew.words()[0].load(Relaxed), file.words()[2_999].load(Relaxed)), (0, 7));
        std::fs::remove_file(&path).unwrap();
        assert!(SharedFile::open(&path).is_err());
    }
}
