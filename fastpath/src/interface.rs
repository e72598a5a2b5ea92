//! Network interfaces of this network namespace: their names and indices.

use std::ffi::{CStr, CString};

/// An interface's index; `None`: no interface has this name.
pub(crate) fn index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a C string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// The names of all interfaces.
pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: no argument; what it returns is freed below.
    let first = unsafe { libc::if_nameindex() };
    let mut next = first;
    // SAFETY: the list ends with an entry without a name; each name is a C string until it is freed.
    while let Some(entry) = unsafe { next.as_ref() }.filter(|entry| !entry.if_name.is_null()) {
        // SAFETY: as above.
        names.push(unsafe { CStr::from_ptr(entry.if_name) }.to_string_lossy().into_owned());
        // SAFETY: there is one more, at least the last.
        next = unsafe { next.add(1) };
    }
    if !first.is_null() {
        // SAFETY: it came from if_nameindex.
        unsafe { libc::if_freenameindex(first) };
    }
    names
}
