//! Records of this network, from a file like `/etc/hosts`: an address and its names in each line, `#` before a remark.
//!
//! ```text
//!   2001:db8::7   printer.home.example printer
//!   192.0.2.7     printer.home.example               A, AAAA and PTR records; AAAA records are synthesised from A records as usual
//! ```

use super::name::LONGEST_NAME;
use super::reverse::{in_addr_arpa, ip6_arpa};
use arrayvec::ArrayVec;
use foldhash::fast::FixedState;
use sixway_dnssec::Wire;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Records in all; those behind it are left out.
pub const MOST_HOSTS: usize = 100_000;
/// Addresses of one name and one version of IP, and names of one address: what an answer holds.
const MOST_OF_ONE: usize = 16;
/// Faults that are reported; a file of another kind has one in every line.
const MOST_FAULTS: usize = 10;

/// A line, or a part of it, that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsFault {
    /// From 1 on.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// The known data about one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) v4: Vec<Ipv4Addr>,
    pub(super) v6: Vec<Ipv6Addr>,
    /// Of an address's name: those that it leads to.
    pub(super) names: Vec<Wire>,
}

/// Names, and addresses' names, in lower-case wire form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts {
    hosts: HashMap<Box<[u8]>, Host, FixedState>,
    /// The same names with their last label first, sorted: those below a name follow it.
    reversed: Vec<Box<[u8]>>,
}

impl Eq for Hosts {}

impl Hosts {
    /// Reads a file. Unusable lines are ignored and reported.
    #[must_use]
    pub fn read(text: &str) -> (Self, Vec<HostsFault>) {
        let (mut hosts, mut faults, mut count) = (Self::default(), Vec::new(), 0);
        for (number, line) in (1..).zip(text.lines()) {
            let mut fault = |what| {
                if faults.len() < MOST_FAULTS {
                    faults.push(HostsFault { line: number, what });
                }
            };
            let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
            let Some(address) = words.next() else { continue };
            // An address of one link is of no use elsewhere.
            let Ok(address) = address.parse::<IpAddr>() else {
                fault("is not an address");
                continue;
            };
            for word in words {
                let Some(name) = wire(word) else {
                    fault("has an invalid name");
                    continue;
                };
                if count == MOST_HOSTS {
                    fault("is beyond the most records that are read");
                    hosts.sort();
                    return (hosts, faults);
                }
                count += 1;
                if !hosts.add(name, address) {
                    fault("is beyond the most records of one name or address");
                }
            }
        }
        hosts.sort();
        (hosts, faults)
    }

    fn sort(&mut self) {
        self.reversed = self.hosts.keys().map(|name| reversed(name)[..].into()).collect();
        self.reversed.sort_unstable();
    }

    fn add(&mut self, name: Box<[u8]>, address: IpAddr) -> bool {
        let host = self.hosts.entry(name.clone()).or_default();
        let (added, reverse) = match address {
            IpAddr::V4(address) => (push(&mut host.v4, address), in_addr_arpa(address).to_vec()),
            IpAddr::V6(address) => (push(&mut host.v6, address), ip6_arpa(address).to_vec()),
        };
        push(&mut self.hosts.entry(reverse.into()).or_default().names, Wire(name)) && added
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The names, and the names of addresses, in wire form.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.hosts.keys().map(|name| &**name)
    }

    /// The known data about a name, in lower-case wire form.
    pub(super) fn of(&self, name: &[u8]) -> Option<&Host> {
        if self.hosts.is_empty() {
            return None;
        }
        self.hosts.get(name)
    }

    /// Whether there are names below this one, in lower-case wire form: it exists then, though it may have no records (RFC 4592 §2.2.2, RFC 8020 §2).
    pub(super) fn has_names_below(&self, name: &[u8]) -> bool {
        if self.reversed.is_empty() {
            return false;
        }
        let name = reversed(name);
        let next = self.reversed.partition_point(|other| other[..] <= name[..]);
        self.reversed.get(next).is_some_and(|other| other.starts_with(&name))
    }
}

/// The labels of a name, each behind its length, the last one first, without the root's.
fn reversed(name: &[u8]) -> ArrayVec<u8, LONGEST_NAME> {
    let mut labels = ArrayVec::<&[u8], { LONGEST_NAME / 2 + 1 }>::new();
    let mut rest = name;
    while let Some((label, behind)) =
        rest.first().and_then(|length| rest.split_at_checked(1 + usize::from(*length)))
    {
        if label.len() == 1 || labels.try_push(label).is_err() {
            break;
        }
        rest = behind;
    }
    labels.into_iter().rev().flatten().copied().take(LONGEST_NAME).collect()
}

/// Whether there was room, or it is there already.
fn push<T: PartialEq>(list: &mut Vec<T>, item: T) -> bool {
    if list.contains(&item) {
        return true;
    }
    let has_room = list.len() < MOST_OF_ONE;
    if has_room {
        list.push(item);
    }
    has_room
}

/// A name in lower-case wire form; `None`: it is not one (RFC 1035 §3.1). Any octets but spaces make labels (RFC 2181 §11).
fn wire(text: &str) -> Option<Box<[u8]>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut name = Vec::with_capacity(text.len() + 2);
    for label in text.split('.') {
        if label.is_empty() || label.len() > 63 || label.contains('\\') {
            return None;
        }
        name.push(label.len() as u8);
        name.extend(label.bytes().map(|octet| octet.to_ascii_lowercase()));
    }
    name.push(0);
    (name.len() <= LONGEST_NAME).then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Box<[u8]> {
        wire(text).unwrap()
    }

    #[test]
    fn a_hosts_file_is_read_with_its_remarks_and_its_faults() {
        let text = "# mine\n192.0.2.7 Printer.Home.Example. printer # old\n\n2001:db8::7\tprinter\nfe80::1%eth0 x\n\
                    192.0.2.8 a..b ok\nrubbish\n192.0.2.7 printer\n";
        let (hosts, faults) = Hosts::read(text);
        let printer = hosts.of(&name("printer")).unwrap();
        assert_eq!(printer.v4, [Ipv4Addr::new(192, 0, 2, 7)]);
        assert_eq!(printer.v6, ["2001:db8::7".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(hosts.of(&name("printer.home.example")).unwrap().v4.len(), 1);
        let reverse = hosts.of(&name("7.2.0.192.in-addr.arpa")).unwrap();
        assert_eq!(reverse.names, ["printer.home.example", "printer"].map(|text| Wire(name(text))));
        assert!(hosts.of(&name("ok")).is_some());
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [5, 6, 7]);
    }

    #[test]
    fn names_above_those_of_the_file_exist() {
        let (hosts, _) = Hosts::read("192.0.2.7 a.b.lan xb.lan\n2001:db8::7 c.a.b.lan other\n");
        for above in ["b.lan", "lan", "a.b.lan", "2.0.192.in-addr.arpa", "arpa"] {
            assert!(hosts.has_names_below(&name(above)), "{above}");
        }
        for not in
            ["c.a.b.lan", "xb.lan", "other", "an", "n", "b", "z.lan", "a.lan", "7.2.0.192.in-addr.arpa"]
        {
            assert!(!hosts.has_names_below(&name(not)), "{not}");
        }
        assert!(!Hosts::default().has_names_below(&name("lan")));
        assert!(hosts.has_names_below(&[0]), "the root");
    }

    #[test]
    fn a_hosts_file_of_any_size_is_read_within_its_bounds() {
        let many: String = (0..MOST_HOSTS + 5)
            .map(|n| format!("10.{}.{}.{} h{n}\n", n >> 16, n >> 8 & 255, n & 255))
            .collect();
        let (hosts, faults) = Hosts::read(&many);
        assert_eq!((hosts.hosts.len(), faults.len()), (2 * MOST_HOSTS, 1));
        let one: String = (0..40).map(|n| format!("192.0.2.{n} one\n")).collect();
        let (hosts, faults) = Hosts::read(&one);
        assert_eq!((hosts.of(&name("one")).unwrap().v4.len(), faults.len()), (MOST_OF_ONE, MOST_FAULTS));
    }

    proptest! {
        #[test]
        fn no_text_leads_astray(text in "(192\\.0\\.2\\.[0-9]|::[0-9]|[ -~]{0,5})( [a-z.\\\\#]{0,70}){0,3}\n?") {
            let (hosts, faults) = Hosts::read(&text);
            prop_assert!(faults.len() <= MOST_FAULTS);
            for (name, host) in &hosts.hosts {
                prop_assert!(name.len() <= 255 && name.last() == Some(&0));
                prop_assert!(!host.v4.is_empty() || !host.v6.is_empty() || !host.names.is_empty());
            }
        }
    }
}
