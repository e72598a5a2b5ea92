//! Rules of a packet filter that each packet is compared with, so that the guest's own CPU is its limit, and not the emulation of its network cards.

/// Modules of Debian's kernel.
pub const MODULES: [&str; 1] = ["nf_tables"];

/// The script for this number of rules on forwarded IPv6 packets. None of them has an effect on a packet: the source address is for documentation.
pub fn script(count: usize) -> String {
    let rules: String = (1..=count).map(|i| format!("    ip6 saddr 2001:db8::{i:x} drop\n")).collect();
    format!(
        "nft -f - <<END\ntable ip6 slow {{\n  chain forward {{\n    type filter hook forward priority filter\n{rules}  }}\n}}\nEND\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_rule_has_an_address_of_its_own() {
        let script = super::script(17);
        assert_eq!(script.matches(" drop\n").count(), 17);
        assert!(script.contains("saddr 2001:db8::1 drop\n") && script.contains("saddr 2001:db8::11 drop\n"));
    }
}
