//! The addresses of DHCP 4o6 servers in what a DHCPv6 client wrote of its lease (RFC 7341 §7.2, option 88).
//!
//! ```text
//! 2001:db8:99::1                                        a line with only addresses
//! new_dhcp6_dhcp4_o_dhcp6_server='2001:db8:99::1'       variables of a hook: dhclient, dhcpcd, odhcp6c (OPTION_88=…, in hexadecimal digits)
//! option dhcp6.dhcp4-o-dhcp6-server 2001:db8:99::1;     dhclient's lease file, in which the last lease is the newest
//! option dhcp6.dhcp4-o-dhcp6-server <error>;            an empty option, as dhclient 4.4 writes it
//! ```

use super::envelope::ALL_SERVERS;
use crate::dhcpv6_lease::{OptionNames, words};
use core::net::Ipv6Addr;

/// The most servers that are queried. Each query goes to all of them, and the author of the option chose their number.
const MOST: usize = 8;

const OPTION: OptionNames = OptionNames {
    line: "option dhcp6.dhcp4-o-dhcp6-server",
    variables: &["dhcp4_o_dhcp6_server", "dhcp4o6_servers", "dhcp4o6_server", "option_88"],
    is_list: true,
};

/// Whether this address is queried on one link, and from a link-local address (RFC 7341 §9, RFC 8415 §13.1).
pub const fn is_on_link(server: Ipv6Addr) -> bool {
    server.is_multicast() || server.is_unicast_link_local()
}

/// Whether a response to a query to these addresses may come from this one: from the same address, or after multicast from any on the link.
pub fn may_answer(servers: &[Ipv6Addr], source: Ipv6Addr) -> bool {
    let by_multicast = || servers.iter().any(Ipv6Addr::is_multicast);
    servers.contains(&source) || source.is_unicast_link_local() && by_multicast()
}

/// The addresses to query, without duplicates; `None`: the lease does not have the option, so that the client must not query.
pub fn servers_in(text: &str) -> Option<Vec<Ipv6Addr>> {
    OPTION.find(text, addresses)
}

/// The addresses of a value; `None`: it contains something else.
fn addresses(value: &str) -> Option<Vec<Ipv6Addr>> {
    if words(value).next().is_none_or(|first| first == "<error>") {
        return Some(vec![ALL_SERVERS]);
    }
    let mut all = Vec::new();
    for word in words(value) {
        let read = match word.parse() {
            Ok(address) => vec![address],
            Err(_) => in_digits(word)?,
        };
        for address in read {
            // RFC 7341 §12: any but the first instance is ignored.
            if all.len() < MOST && !all.contains(&address) && !address.is_unspecified() {
                all.push(address);
            }
        }
    }
    (!all.is_empty()).then_some(all)
}

/// The octets of the option, as odhcp6c writes them.
fn in_digits(word: &str) -> Option<Vec<Ipv6Addr>> {
    if !word.is_ascii() || !word.len().is_multiple_of(32) {
        return None;
    }
    let each = |place: usize| {
        let digits = word.get(place..place + 32)?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u128::from_str_radix(digits, 16).ok().filter(|_| are_digits).map(Ipv6Addr::from_bits)
    };
    (0..word.len()).step_by(32).map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn are(text: &str, expected: &[&str]) {
        let expected: Vec<Ipv6Addr> = expected.iter().map(|it| it.parse().unwrap()).collect();
        assert_eq!(servers_in(text), Some(expected), "{text}");
    }

    #[test]
    fn lines_variables_and_the_newest_lease_are_read() {
        are("2001:db8::1\n", &["2001:db8::1"]);
        are("# by a hook\n\n2001:db8::1, 2001:db8::2\n", &["2001:db8::1", "2001:db8::2"]);
        are("reason=BOUND6\nnew_dhcp6_dhcp4_o_dhcp6_server='2001:db8::1'\n", &["2001:db8::1"]);
        are("export dhcp6_dhcp4o6_servers=\"2001:db8::1 2001:db8::2\"\n", &["2001:db8::1", "2001:db8::2"]);
        are("OPTION_88=20010db8000000000000000000000001\n", &["2001:db8::1"]);
        let lease = |option: &str| format!("lease6 {{\n  interface \"eth0\";\n{option}}}\n");
        let old = lease("  option dhcp6.dhcp4-o-dhcp6-server 2001:db8::1;\n");
        let new = lease("  option dhcp6.dhcp4-o-dhcp6-server 2001:db8::2,2001:db8::3;\n");
        are(&format!("{old}{new}"), &["2001:db8::2", "2001:db8::3"]);
        assert_eq!(servers_in(&format!("{old}{}", lease(""))), None, "the provider withdrew the option");
    }

    #[test]
    fn duplicates_are_ignored_and_a_long_list_is_cut() {
        are("2001:db8::1 2001:db8::2 2001:db8::1 2001:db8::1\n", &["2001:db8::1", "2001:db8::2"]);
        are("ff05::1:3 :: 2001:db8::1\n", &["ff05::1:3", "2001:db8::1"]);
        let many: Vec<String> = (1..100).map(|number| format!("2001:db8::{number:x}")).collect();
        assert_eq!(servers_in(&many.join(" ")).map(|all| all.len()), Some(MOST));
    }

    #[test]
    fn an_empty_option_means_multicast_and_what_is_no_list_of_addresses_is_not_there() {
        are("new_dhcp6_dhcp4_o_dhcp6_server=''\n", &["ff02::1:2"]);
        are("OPTION_88=\n", &["ff02::1:2"]);
        are("lease6 {\n  option dhcp6.dhcp4-o-dhcp6-server <error>;\n}\n", &["ff02::1:2"]);
        for text in [
            "",
            "::\n",
            "aftr.example\n",
            "OPTION_88=20010db8\n",
            "OPTION_88=zz010db8000000000000000000000001\n",
        ] {
            assert_eq!(servers_in(text), None, "{text}");
        }
    }

    #[test]
    fn who_was_asked_may_answer_and_anybody_on_the_link_after_multicast() {
        let [global, link, other]: [Ipv6Addr; 3] =
            ["2001:db8::1", "fe80::1", "2001:db8::2"].map(|it| it.parse().unwrap());
        assert!(may_answer(&[global], global) && may_answer(&[other, link], link));
        assert!(!may_answer(&[global], other) && !may_answer(&[global], link) && !may_answer(&[], link));
        assert!(may_answer(&[ALL_SERVERS], link));
        assert!(!may_answer(&[ALL_SERVERS], global), "servers on the link answer from the link");
        assert!(is_on_link(ALL_SERVERS) && is_on_link(link) && !is_on_link(global));
    }

    #[test]
    fn a_file_cut_at_any_length_gives_few_addresses_or_nothing() {
        let text = "lease6 {\n option dhcp6.dhcp4-o-dhcp6-server 2001:db8::1;\n}\nOPTION_88=20010db8000000000000000000000001\n";
        for end in 0..=text.len() {
            assert!(servers_in(&text[..end]).is_none_or(|all| all.len() <= 1), "{end}");
        }
    }
}
