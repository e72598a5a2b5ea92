//! Whether the kernel's routes depend on the destination alone, so that a lookup can be cached by destination.

use super::octets::{attribute, number32};

/// `struct fib_rule_hdr`.
const HEADER: usize = 12;
const FRA_PRIORITY: u16 = 6;
const FR_ACT_TO_TBL: u8 = 1;

/// A policy rule in a few words; `None`: it is one of those that every host has.
pub(super) fn extra_rule(body: &[u8]) -> Option<String> {
    let octet = |at: usize| body.get(at).copied().unwrap_or_default();
    let family = i32::from(octet(0));
    // Multicast routing has rules of its own.
    if family != nix::libc::AF_INET && family != nix::libc::AF_INET6 {
        return None;
    }
    let rest = body.get(HEADER..).unwrap_or_default();
    let priority = attribute(rest, FRA_PRIORITY).and_then(|value| number32(value, 0)).unwrap_or(0);
    let (is_plain, table) =
        (octet(1) == 0 && octet(2) == 0 && octet(3) == 0 && octet(7) == FR_ACT_TO_TBL, octet(4));
    // local, main, default: linux/rtnetlink.h.
    let usual = matches!((priority, table), (0, 255) | (32_766, 254) | (32_767, 253));
    let family = if family == nix::libc::AF_INET6 { "-6 " } else { "" };
    (!(is_plain && usual)).then(|| format!("the policy rule of priority {priority} (ip {family}rule)"))
}

/// What is known of the routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routing {
    /// A policy rule in addition to the default ones.
    pub rule: Option<String>,
    /// A multipath route exists, or one that depends on more than the destination.
    pub several: bool,
}

impl Routing {
    /// Why answers may not be remembered by the destination.
    pub fn why_not(&self) -> Option<String> {
        let route = "a multipath route, or one that depends on more than the destination";
        self.rule.clone().or_else(|| self.several.then(|| route.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_path::octets::write_attribute;

    fn rule(family: u8, source_length: u8, table: u8, action: u8, priority: u32) -> Option<String> {
        let mut body = vec![family, 0, source_length, 0, table, 0, 0, action, 0, 0, 0, 0];
        write_attribute(FRA_PRIORITY, &priority.to_ne_bytes(), &mut body);
        extra_rule(&body)
    }

    #[test]
    fn the_usual_rules_are_plain_and_every_other_is_named() {
        for (family, table, priority) in
            [(2, 255, 0), (2, 254, 32_766), (2, 253, 32_767), (10, 255, 0), (10, 254, 32_766)]
        {
            assert_eq!(rule(family, 0, table, 1, priority), None);
        }
        let said = |priority: u32, family: &str| {
            Some(format!("the policy rule of priority {priority} (ip {family}rule)"))
        };
        assert_eq!(rule(2, 24, 254, 1, 32_766), said(32_766, ""));
        assert_eq!(rule(10, 0, 100, 1, 1_000), said(1_000, "-6 "));
        assert_eq!(rule(2, 0, 254, 1, 100), said(100, ""));
        assert_eq!(rule(2, 0, 254, 6, 32_766), said(32_766, ""), "unreachable");
        assert_eq!(rule(129, 0, 254, 1, 32_767), None, "multicast routing's");
        // The first one has no priority.
        assert_eq!(extra_rule(&[2, 0, 0, 0, 255, 0, 0, 1, 0, 0, 0, 0]), None);
    }
}
