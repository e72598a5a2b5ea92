//! Names that the kernel gives interfaces.

/// What is said of a name that [no interface](is_interface_name) can have.
pub(crate) const NO_INTERFACE: &str =
    "is not a valid interface name (at most 15 characters); write one that `ip link` shows";

/// Whether the kernel could call an interface so (dev_valid_name).
pub(crate) fn is_interface_name(name: &str) -> bool {
    let allowed = |b: u8| !(b.is_ascii_whitespace() || b.is_ascii_control() || b"/:".contains(&b));
    name.len() <= INTERFACE_NAME && !matches!(name, "" | "." | "..") && name.bytes().all(allowed)
}

/// IFNAMSIZ without its terminating zero.
const INTERFACE_NAME: usize = 15;
