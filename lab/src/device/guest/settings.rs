//! A host's addresses and routes as a script that gives them to a guest.

use crate::device::place::Place;
use crate::failure::Result;
use std::fmt::Write as _;

/// What `ip route show` says of a route and `ip route add` need not know.
const SAID: [&str; 4] = ["proto", "pref", "metric", "error"];

/// Reads them from the host. In the guest eth0, eth1, … are the device's links, which get their names.
///
/// # Errors
/// `ip` fails.
pub fn settings(place: &Place) -> Result<String> {
    let host = place.network.host(place.host)?;
    let links: Vec<_> = place.links().collect();
    let mut script = "set -e\n".to_owned();
    for (number, link) in links.iter().enumerate() {
        writeln!(script, "ip link set eth{number} down\nip link set eth{number} name {link} up").ok();
    }
    for line in host.ip("-o address show scope global")?.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [_, link, family, address, ..] = words[..]
            && (links.contains(&link) || link == "lo")
        {
            let nodad = if family == "inet6" { " nodad" } else { "" };
            writeln!(script, "ip address add {address} dev {link}{nodad}").ok();
        }
    }
    for family in ["-4", "-6"] {
        for line in host.ip(&format!("{family} route show"))?.lines() {
            if let Some(route) = route(line) {
                writeln!(script, "ip {family} route add {route}").ok();
            }
        }
    }
    script += "echo 1 >/proc/sys/net/ipv4/ip_forward\necho 1 >/proc/sys/net/ipv6/conf/all/forwarding\n";
    Ok(script)
}

/// A route as it was added; `None` for those that follow from addresses.
fn route(line: &str) -> Option<String> {
    if line.contains("proto kernel") || line.starts_with("fe80:") {
        return None;
    }
    let mut words = line.split_whitespace().filter(|word| !["linkdown", "dead"].contains(word));
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match SAID.contains(&word) {
            true => drop(words.next()),
            false => kept.push(word),
        }
    }
    Some(kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_that_follow_from_addresses_are_left_out() {
        let of = |line: &str| route(line).unwrap_or_default();
        assert_eq!(of("203.0.113.0/24 dev out0 proto kernel scope link src 203.0.113.1"), "");
        assert_eq!(
            of("default via 2001:db8:2::2 dev out0 metric 1024 pref medium"),
            "default via 2001:db8:2::2 dev out0"
        );
        assert_eq!(of("10.0.0.0/16 via 192.0.2.8 dev in0 linkdown"), "10.0.0.0/16 via 192.0.2.8 dev in0");
    }
}
