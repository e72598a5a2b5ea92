//! Network namespaces by the names that `/proc` gives them, such as `net:[4026531840]`.

use std::fs;
use std::io;
use std::path::Path;

/// The name of this process' network namespace; empty if `/proc` does not say.
pub fn own() -> String {
    fs::read_link("/proc/self/ns/net").map_or_else(|_| String::new(), |link| link.display().to_string())
}

/// Whether the network namespace of this name may still be there: a thread is in it, a file descriptor or a mount holds it, or
/// a process could not be examined.
pub fn may_exist(name: &str) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let numbers = processes.filter_map(Result::ok).filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.bytes().all(|octet| octet.is_ascii_digit()))
    });
    numbers
        .map(|process| holds(&process.path(), name))
        .any(|held| held.unwrap_or_else(|error| !ended(&error)))
}

/// Whether a process, given its directory in `/proc`, holds the namespace.
fn holds(process: &Path, name: &str) -> io::Result<bool> {
    let is_it = |link: &Path| match fs::read_link(link) {
        Ok(target) => Ok(target.as_os_str() == name),
        // This thread or descriptor is gone, the process may be there.
        Err(error) if ended(&error) => Ok(false),
        Err(error) => Err(error),
    };
    for thread in fs::read_dir(process.join("task"))? {
        if is_it(&thread?.path().join("ns/net"))? {
            return Ok(true);
        }
    }
    for descriptor in fs::read_dir(process.join("fd"))? {
        if is_it(&descriptor?.path())? {
            return Ok(true);
        }
    }
    // The fourth field of a mounted namespace is its name.
    let mounts = fs::read_to_string(process.join("mountinfo"))?;
    Ok(mounts.lines().any(|mount| mount.split(' ').nth(3) == Some(name)))
}

/// Whether the error says that the process has ended meanwhile.
fn ended(error: &io::Error) -> bool {
    // A zombie has no mounts left: EINVAL.
    error.kind() == io::ErrorKind::NotFound
        || [Some(nix::libc::ESRCH), Some(nix::libc::EINVAL)].contains(&error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_a_thread_is_in_or_a_descriptor_holds_is_there() {
        let this = Path::new("/proc/self");
        assert!(own().starts_with("net:["), "{}", own());
        assert!(may_exist(&own()) && holds(this, &own()).unwrap());
        // Not a network namespace, so nothing that a gateway holds.
        let link = Path::new("/proc/self/ns/uts");
        let name = fs::read_link(link).unwrap().display().to_string();
        assert!(!holds(this, &name).unwrap());
        let held = fs::File::open(link).unwrap();
        assert!(holds(this, &name).unwrap());
        drop(held);
        assert!(!holds(this, &name).unwrap());
    }
}
