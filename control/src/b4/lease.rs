//! The AFTR's name in the lease file of a DHCPv6 client (RFC 6334, option 64).
//!
//! ```text
//! aftr.example                                        a line with only a name, or an address
//! new_dhcp6_aftr_name='aftr.example.'                 variables of a hook: dhclient, dhcpcd, odhcp6c (AFTR=…)
//! option dhcp6.aftr-name "aftr.example.";             dhclient's lease file, in which the last lease is the newest
//! ```
//!
//! Of several names the first counts (RFC 6334 §5).

use crate::dhcpv6_lease::{OptionNames, words};
use core::net::Ipv6Addr;
use domain::base::Name;

const OPTION: OptionNames = OptionNames {
    line: "option dhcp6.aftr-name ",
    variables: &["aftr_name", "aftr", "dslite_aftr", "dhcp6_option_64"],
    is_list: false,
};

/// The name, or the address; `None`: the lease has neither.
pub fn aftr_in(text: &str) -> Option<String> {
    OPTION.find(text, first_name)
}

/// The first of the names in a value. It is a domain name with a label at least (RFC 6334 §3), or an address.
fn first_name(value: &str) -> Option<String> {
    let word = words(value).next()?;
    if word.parse::<Ipv6Addr>().is_ok() {
        return Some(word.to_owned());
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_name = word.bytes().all(allowed) && word.bytes().any(|b| b.is_ascii_alphabetic());
    let name = Name::<Vec<u8>>::vec_from_str(word).ok().filter(|_| is_name)?;
    (!name.is_root()).then(|| word.trim_end_matches('.').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, expected: &str) {
        assert_eq!(aftr_in(text).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn a_name_alone_and_the_variables_of_hooks_are_read() {
        is("aftr.example\n", "aftr.example");
        is("# written by a hook\n\nAFTR.example.\n", "aftr.example");
        is("2001:db8:a::1\n", "2001:db8:a::1");
        is("reason=BOUND6\nnew_dhcp6_aftr_name='aftr.example.'\n", "aftr.example");
        is("dhcp6_aftr_name=aftr.example\n", "aftr.example");
        is("export AFTR=\"aftr.example\"\n", "aftr.example");
    }

    #[test]
    fn the_newest_lease_of_dhclient_counts() {
        let lease = |name: &str| {
            format!(
                "lease6 {{\n  interface \"eth0\";\n  option dhcp6.client-id 0:1;\n{name}  option dhcp6.name-servers 2001:db8::53;\n}}\n"
            )
        };
        let old = lease("  option dhcp6.aftr-name \"old.example.\";\n");
        let new = lease("  option dhcp6.aftr-name \"new.example.\";\n");
        is(&format!("default-duid \"\\000\";\n{old}{new}"), "new.example");
        // The provider withdrew the option.
        assert_eq!(aftr_in(&format!("{old}{}", lease(""))), None);
    }

    #[test]
    fn of_several_options_and_names_only_the_first_is_used() {
        is("aftr.example\nother.example\n", "aftr.example");
        is("AFTR=\"aftr.example other.example\"\n", "aftr.example");
        is("option dhcp6.aftr-name \"aftr.example.\", \"other.example.\";\n", "aftr.example");
    }

    #[test]
    fn what_is_no_name_is_not_taken() {
        let long = "a".repeat(64);
        for text in [
            "",
            ".",
            "192.0.2.1",
            "a..b",
            "$(reboot)",
            "AFTR=",
            "AFTR=''",
            &long,
            "a\u{0}b",
            "\u{fc}.example",
        ] {
            assert_eq!(aftr_in(text), None, "{text}");
        }
        assert_eq!(aftr_in(&format!("{}example", "a.".repeat(130))), None);
    }

    #[test]
    fn a_file_cut_at_any_length_gives_a_name_or_nothing() {
        let text = "lease6 {\n option dhcp6.aftr-name \"aftr.example.\";\n}\nAFTR='b.example'\n2001:db8::1\n";
        for end in 0..=text.len() {
            if let Some(name) = aftr_in(&text[..end]) {
                assert!(name.len() <= 255 && !name.contains(char::is_whitespace), "{name}");
            }
        }
    }
}
