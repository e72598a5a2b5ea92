//! The sources in which the C library looks names up.

/// Names of hosts come from `/etc/hosts` and the DNS, names of groups from `/etc/group`, whatever `/etc/nsswitch.conf` says. For a program
/// that is linked statically: glibc has the code for these sources, and would load shared objects for any other, which are another
/// version's where the program was not built. To be called before there are other threads.
pub fn resolve_without_modules() {
    #[cfg(target_env = "gnu")]
    for (database, sources) in [(c"hosts", c"files dns"), (c"group", c"files"), (c"passwd", c"files")] {
        // SAFETY: both are C strings that live as long as the program, and there is no other thread that looks a name up.
        unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
    }
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// glibc's `nss.h`: replaces a line of `/etc/nsswitch.conf` for this process. -1: there is no such database.
    fn __nss_configure_lookup(database: *const libc::c_char, sources: *const libc::c_char) -> libc::c_int;
}
