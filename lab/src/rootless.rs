//! Without root: user, mount and network namespaces of our own, in which the lab is root.
//!
//! There it may create namespaces, veth pairs and TUN devices, routes, packet filters and shaped links, and open raw sockets. It may not load BPF
//! programs, put received packets on another CPU, or become another user: only one user exists.

use crate::failure::{Asking as _, Failure, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use std::fs::{create_dir_all, read_to_string, write};

/// Whether this process is in a user namespace: not all users exist.
pub fn is_inside() -> bool {
    let map = read_to_string("/proc/self/uid_map").unwrap_or_default();
    let all = ["0", "0", "4294967295"];
    !map.is_empty() && map.split_whitespace().ne(all)
}

/// Enters namespaces of our own, which end with this process. It has one thread.
///
/// # Errors
/// The kernel does not grant user namespaces to this user.
pub fn enter() -> Result<()> {
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).map_err(|error| {
        Failure::Unexpected(format!(
            "network namespaces need root, or user namespaces, which this kernel refuses here ({error}): run it with sudo"
        ))
    })?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        let path = format!("/proc/self/{file}");
        write(&path, text).asking(|| format!("writing {path}"))?;
    }
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .asking(|| "making mounts private".to_owned())?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)
        .asking(|| "mounting a /run of our own".to_owned())?;
    for folder in ["/run/netns", "/run/sixway"] {
        create_dir_all(folder).asking(|| format!("creating {folder}"))?;
    }
    Ok(())
}
