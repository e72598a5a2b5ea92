//! Memory that is shared with the kernel's programs: an array map's elements, read and written without system calls.

use crate::layout;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// Numbers that others change at any time: atomics through and through, for which all octets zero are a value.
///
/// # Safety
/// Nothing but atomics and arrays of them.
pub(crate) unsafe trait Shared {}

/// Declares the atomic twin of a structure of [`layout`], field by field.
macro_rules! twin {
    ($(#[$about:meta])* $name:ident of $plain:ident { $($field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Debug)]
        pub(crate) struct $name {
            $(#[allow(dead_code, reason = "some are the programs' alone")] pub $field: $type,)+
        }

        // SAFETY: the fields are atomics.
        unsafe impl Shared for $name {}

        const _: () = {
            assert!(size_of::<$name>() == size_of::<layout::$plain>());
            $(assert!(core::mem::offset_of!($name, $field) == core::mem::offset_of!(layout::$plain, $field));)+
        };
    };
}

twin! {
    /// See [`layout::Flow`].
    SharedFlow of Flow {
        word: AtomicU32,
        next_hop: AtomicU32,
        packets: AtomicU64,
        octets: AtomicU64,
        inside: [AtomicU64; 2],
        last: AtomicU32,
        outside: AtomicU32,
        remote: AtomicU32,
        outside_port: AtomicU16,
        remote_port: AtomicU16,
        inside_port: AtomicU16,
        protocol: AtomicU8,
        direction: AtomicU8,
        mechanism: AtomicU8,
        ingress: AtomicU8,
        delta: AtomicU16,
    }
}

twin! {
    /// See [`layout::Control`].
    SharedControl of Control {
        magic: AtomicU32,
        version: AtomicU32,
        buckets: AtomicU32,
        generation: AtomicU32,
        heartbeat: AtomicU32,
        enabled: AtomicU32,
        keys: [AtomicU64; 4],
        gateway: [AtomicU8; 64],
        slots: [AtomicU64; layout::TRANSLATORS],
    }
}

twin! {
    /// See [`layout::NextHop`].
    SharedNextHop of NextHop {
        sequence: AtomicU32,
        ifindex: AtomicU32,
        port: AtomicU32,
        vlan: AtomicU16,
        mtu: AtomicU16,
        destination: [AtomicU8; 6],
        source: [AtomicU8; 6],
        used: AtomicU32,
        family: AtomicU32,
        neighbour: [AtomicU8; 16],
        xdp: AtomicU8,
        tc: AtomicU8,
        reserved0: AtomicU16,
        reserved: [AtomicU32; 2],
    }
}

// SAFETY: an atomic.
unsafe impl Shared for AtomicU32 {}

// The kernel rounds an array map's elements up to eight octets.
const _: () =
    assert!(size_of::<SharedFlow>().is_multiple_of(8) && size_of::<SharedNextHop>().is_multiple_of(8));

/// A mapping of shared memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    octets: usize,
}

// SAFETY: what is reached through it is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The elements of an array map created with BPF_F_MMAPABLE, `octets` in all.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_map(map: BorrowedFd<'_>, octets: usize) -> io::Result<Self> {
        Self::new(octets, libc::MAP_SHARED, map.as_raw_fd())
    }

    /// Memory of this process alone, zero; pages that are not touched cost nothing.
    ///
    /// # Errors
    /// The kernel's.
    pub fn anonymous(octets: usize) -> io::Result<Self> {
        Self::new(octets, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
    }

    fn new(octets: usize, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a free place; the mapping is ours until it is dropped.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), octets.max(1), access, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(start) = NonNull::new(start.cast()) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        Ok(Self { start, octets: octets.max(1) })
    }

    /// Its elements.
    pub fn elements<T: Shared>(&self) -> &[T] {
        // SAFETY: a mapping begins at a page, and every value of atomics is valid; it lives as long as what is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.octets / size_of::<T>()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no borrow of it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.octets) };
    }
}
