//! Our table in the host's packet filter: packets of flows that the fast path may carry are not tracked, so that a stateful firewall does
//! not treat the packets that it sees as invalid; and steered packets never reach the host's own stack.
//!
//! ```text
//!     table inet sixway-NAME
//!       prerouting, raw   to prefixes of NAT64s, from sources without a route back                    ▶ drop
//!       prerouting, raw   from and to dynamic pools                                                   ▶ accept
//!       prerouting, raw   IPv6 from the device, out of tunnels, if the fast path carries none of it    ▶ accept
//!       prerouting, raw   from the device · to what is routed into it · protocol 41 to our tunnel ends ▶ notrack
//!       prerouting, raw   from inside hosts of a NAT44, but for the site's own destinations            ▶ notrack
//!       output, raw       into the device · protocol 41 from our tunnel ends                          ▶ notrack
//!       input             from the device to a Teredo client's address, unless a connection asked for it         ▶ drop
//!       input             ports of shared addresses, which are steered before they come so far        ▶ drop
//! ```

use super::nft::{self, NftError};
use crate::config::{Untracked, UntrackedInside};
use sixway_wire::Prefix4;
use std::fmt::{Display, Write as _};
use std::net::Ipv6Addr;

/// How a device is named in rules.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Device<'a> {
    Name(&'a str),
    /// Of a name that nft cannot read.
    Index(u32),
}

impl<'a> Device<'a> {
    fn of(name: &'a str, index: u32) -> Self {
        // nft cannot quote a quotation mark, and an asterisk matches any suffix.
        let plain = |octet: u8| octet.is_ascii_graphic() && !b"\"\\*".contains(&octet);
        if name.bytes().all(plain) { Self::Name(name) } else { Self::Index(index) }
    }

    /// A comparison with the device that `key`, such as `iif`, says.
    fn is(&self, key: &str) -> String {
        match self {
            Self::Name(name) => format!("{key}name \"{name}\""),
            Self::Index(index) => format!("{key} {index}"),
        }
    }
}

/// The verdict for a packet of ours, after which the chain's other rules are skipped.
const UNTRACKED: &str = "notrack accept";

/// As many addresses are compared one after the other in less time than a set of intervals is searched.
const FEW: usize = 4;

/// The table's name. A gateway's name has letters, digits, `-`, `_` and `.` only, which nft reads as they are.
pub fn table_name(gateway: &str) -> String {
    format!("sixway-{gateway}")
}

/// Makes the table, replacing an existing one.
///
/// # Errors
/// nft is missing or failed; the previous table is unchanged.
pub(super) fn make(
    gateway: &str,
    (device, index): (&str, u32),
    untracked: &Untracked,
) -> Result<(), NftError> {
    nft::execute(&text(gateway, &Device::of(device, index), untracked))
}

/// The table as it is.
///
/// # Errors
/// nft is missing or failed: [`NftError::Refused`] if there is no such table.
pub fn listing(gateway: &str) -> Result<String, NftError> {
    nft::table(&table_name(gateway))
}

/// Removes the table. Whether it was there.
pub fn remove(gateway: &str) -> bool {
    nft::execute(&format!("delete table inet {}\n", table_name(gateway))).is_ok()
}

fn text(gateway: &str, device: &Device, untracked: &Untracked) -> String {
    let name = table_name(gateway);
    let mut text = format!("table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n");
    let mut chain = |name: &str, hook: &str, rules: &[String]| {
        let _ = writeln!(text, "\tchain {name} {{\n\t\ttype filter hook {hook}; policy accept;");
        for rule in rules {
            let _ = writeln!(text, "\t\t{rule}");
        }
        text.push_str("\t}\n");
    };
    chain("prerouting", "prerouting priority -300", &prerouting(device, untracked));
    if untracked.is_any {
        chain("output", "output priority -300", &output(device, untracked));
    }
    if let (Some(client), true) = (untracked.client, untracked.guards_client) {
        chain("client", "input priority 0", &unsolicited(device, client));
    }
    if !untracked.shared.is_empty() {
        chain("guard", "input priority -300", &guard(untracked));
    }
    text.push_str("}\n");
    text
}

/// The kernel routes packets to the device without a look at their source, and the gateway does not see by which interface they came.
fn reverse_path(untracked: &Untracked) -> impl Iterator<Item = String> {
    untracked.reverse_path.iter().map(|(prefix, is_strict)| {
        let by = if *is_strict { "saddr . iif" } else { "saddr" };
        format!("ip6 daddr {prefix} fib {by} oif missing counter drop")
    })
}

fn prerouting(device: &Device, untracked: &Untracked) -> Vec<String> {
    if !untracked.is_any {
        return reverse_path(untracked).collect();
    }
    // From such a pool and, behind the host's own address translation, to it.
    let from = any_of("ip saddr", &untracked.tracked).into_iter();
    let tracked = from
        .map(|these| format!("{} {these}", device.is("iif")))
        .chain(any_of("ip daddr", &untracked.tracked));
    let client = untracked.client.map(|client| format!("{} ip6 daddr {client}", device.is("iif")));
    let tracked = tracked.chain(client).chain(of_tunnels(device, "iif", "saddr", untracked));
    let tracked: Vec<String> = tracked.map(|these| format!("{these} accept")).collect();
    let mut matches = vec![device.is("iif")];
    let into = |family: &str| format!("meta nfproto {family} fib daddr {}", device.is("oif"));
    matches.extend(any_of("ip daddr", &untracked.v4));
    matches.extend(any_of("ip6 daddr", &untracked.v6));
    matches.extend(untracked.routed4.then(|| into("ipv4")));
    matches.extend(untracked.routed6.then(|| into("ipv6")));
    let ends = any_of("ip daddr", &untracked.ends);
    matches.extend(ends.into_iter().map(|these| format!("{these} ip protocol 41")));
    matches.extend(ports(untracked));
    matches.extend(untracked.inside4.iter().flat_map(from_inside));
    let untracked_ones = matches.into_iter().map(|these| format!("{these} {UNTRACKED}"));
    reverse_path(untracked).chain(tracked).chain(untracked_ones).collect()
}

/// IPv6 packets out of tunnels or into them: what no other mechanism has.
fn of_tunnels(device: &Device, interface: &str, address: &str, untracked: &Untracked) -> Option<String> {
    let others = untracked.v6.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let but = match others.is_empty() {
        true => String::new(),
        false => format!(" ip6 {address} != {{ {others} }}"),
    };
    untracked.tracks_tunnels.then(|| format!("{} meta nfproto ipv6{but}", device.is(interface)))
}

/// What rules by source route into the device: neither to this host, nor to destinations that are excepted.
fn from_inside(inside: &UntrackedInside) -> Vec<String> {
    let plain = |name: &&String| matches!(Device::of(name, 0), Device::Name(_));
    let interfaces: Vec<String> =
        inside.interfaces.iter().filter(plain).map(|name| format!("\"{name}\"")).collect();
    let by = match interfaces.len() {
        0 => String::new(),
        _ => format!("iifname {{ {} }} ", interfaces.join(", ")),
    };
    let list = |prefixes: &[Prefix4]| prefixes.iter().map(Prefix4::to_string).collect::<Vec<_>>().join(", ");
    let (sources, except) = (list(&inside.sources), list(&inside.except));
    vec![format!("{by}ip saddr {{ {sources} }} ip daddr != {{ {except} }} fib daddr type unicast")]
}

fn output(device: &Device, untracked: &Untracked) -> Vec<String> {
    let ends = any_of("ip saddr", &untracked.ends);
    let ends = ends.into_iter().map(|these| format!("{these} ip protocol 41 {UNTRACKED}"));
    let client = untracked.client.map(|client| format!("{} ip6 saddr {client} accept", device.is("oif")));
    let tunnels = of_tunnels(device, "oif", "daddr", untracked).map(|these| format!("{these} accept"));
    let all = format!("{} {UNTRACKED}", device.is("oif"));
    client.into_iter().chain(tunnels).chain([all]).chain(ends).collect()
}

/// To a Teredo client's address comes what a connection of this host asked for, and errors that must arrive (RFC 4890 §4.4.1).
fn unsolicited(device: &Device, client: Ipv6Addr) -> Vec<String> {
    let to = format!("{} ip6 daddr {client}", device.is("iif"));
    let errors = "destination-unreachable, packet-too-big, time-exceeded, parameter-problem";
    vec![
        format!("{to} ct state established,related accept"),
        format!("{to} icmpv6 type {{ {errors} }} accept"),
        format!("{to} counter drop"),
    ]
}

/// What this host sends to itself stays its own.
fn guard(untracked: &Untracked) -> Vec<String> {
    ports(untracked).map(|these| format!("iifname != \"lo\" {these} drop")).collect()
}

/// TCP and UDP to the ports that are shared, as comparisons.
fn ports(untracked: &Untracked) -> impl Iterator<Item = String> {
    untracked.shared.iter().map(|(address, ports)| {
        let ports = ports.to_string().replace(',', ", ");
        format!("ip daddr {address} meta l4proto {{ 6, 17 }} th dport {{ {ports} }}")
    })
}

/// Comparisons with each of a few, or one with a set of many; none with an empty one, which would be a fault.
fn any_of(key: &str, these: &[impl Display]) -> Vec<String> {
    let these: Vec<String> = these.iter().map(ToString::to_string).collect();
    match these.len() {
        0..=FEW => these.iter().map(|this| format!("{key} {this}")).collect(),
        _ => vec![format!("{key} {{ {} }}", these.join(", "))],
    }
}

#[cfg(test)]
mod tests;
