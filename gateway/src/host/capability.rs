//! Whether this process has a capability, checked before anything is changed.

/// Number of the capability to administer networks (capabilities(7)).
pub const CAP_NET_ADMIN: u8 = 12;

/// Whether this process has the capability; `true` when the kernel does not say.
pub fn has_capability(number: u8) -> bool {
    std::fs::read_to_string("/proc/self/status").map_or(true, |status| effective(&status, number))
}

fn effective(status: &str, number: u8) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_decides() {
        let status = |mask: &str| format!("Name:\tsixway\nCapPrm:\tffffffffffffffff\nCapEff:\t{mask}\n");
        assert!(effective(&status("000001ffffffffff"), CAP_NET_ADMIN));
        assert!(effective(&status("0000000000001000"), CAP_NET_ADMIN));
        assert!(!effective(&status("0000000000000000"), CAP_NET_ADMIN));
        assert!(!effective(&status("ffffffffffffefff"), CAP_NET_ADMIN));
        assert!(effective("Name:\tsixway\n", CAP_NET_ADMIN));
    }
}
