//! What a DNS thread waits for: one epoll instance (epoll(7)), level-triggered.

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Events that are heard at a time.
const EVENTS: usize = 128;
/// Maximum wait in milliseconds: the resolver gets the wall-clock time each second.
const LONGEST: u16 = 1_000;
/// Its tag is stored above the number.
const TAG: u32 = 32;

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Messages wait.
    Mailbox,
    /// Queries wait at a server, by its place.
    Server(u16),
    /// A reply waits, by the exchange's place.
    Exchange(u32),
}

impl Ready {
    fn word(self) -> u64 {
        match self {
            Self::Mailbox => 0,
            Self::Server(place) => 1 << TAG | u64::from(place),
            Self::Exchange(place) => 2 << TAG | u64::from(place),
        }
    }

    fn of(word: u64) -> Self {
        match word >> TAG {
            1 => Self::Server(word as u16),
            2 => Self::Exchange(word as u32),
            _ => Self::Mailbox,
        }
    }
}

/// The thread's epoll instance.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: Epoll,
    events: [EpollEvent; EVENTS],
    heard: usize,
}

impl Watch {
    /// # Errors
    /// The kernel has no file descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, events: [EpollEvent::empty(); EVENTS], heard: 0 })
    }

    /// Watches a descriptor until it is closed.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn add(&self, fd: impl AsFd, ready: Ready) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, ready.word()))?)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(fd)?)
    }

    /// Waits until something is ready or the time has passed.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn wait(&mut self, longest: Duration) -> io::Result<()> {
        // Rounded up: an alarm that is examined too early would be examined again and again.
        let milliseconds = longest.as_nanos().div_ceil(1_000_000).min(u128::from(LONGEST)) as u16;
        self.heard = match self.epoll.wait(&mut self.events, EpollTimeout::from(milliseconds)) {
            Ok(heard) => heard,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(io::Error::from(error)),
        };
        Ok(())
    }

    /// How many things became ready.
    pub(super) fn heard(&self) -> usize {
        self.heard
    }

    /// One of them. Its socket may be closed in the meantime, or be another one: a read then finds nothing.
    pub(super) fn ready(&self, place: usize) -> Ready {
        Ready::of(self.events[place].data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_link::Wake;

    #[test]
    fn what_is_ready_is_told_by_its_name() {
        for ready in [Ready::Mailbox, Ready::Server(65_535), Ready::Exchange(u32::MAX), Ready::Exchange(0)] {
            assert_eq!(Ready::of(ready.word()), ready);
        }
        let (mut watch, one, other) = (Watch::new().unwrap(), Wake::new().unwrap(), Wake::new().unwrap());
        watch.add(one.fd(), Ready::Server(7)).unwrap();
        watch.add(other.fd(), Ready::Mailbox).unwrap();
        watch.wait(Duration::ZERO).unwrap();
        assert_eq!(watch.heard(), 0);
        one.wake();
        watch.wait(Duration::from_secs(9)).unwrap();
        assert_eq!((watch.heard(), watch.ready(0)), (1, Ready::Server(7)));
        drop(one);
        watch.wait(Duration::ZERO).unwrap();
        assert_eq!(watch.heard(), 0);
    }
}
