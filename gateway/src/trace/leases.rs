//! Leases of 4over6 that a packet concerns: who has the address, and until when.

use super::offline::Offline;
use crate::config::{Config, HostLease, Surroundings};
use crate::show::plural;
use crate::view::LeaseRow;
use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_wire::Prefix4;
use std::net::Ipv4Addr;

/// What this host has leased, for an engine apart.
pub fn note_own(now: &mut Surroundings, rows: &[LeaseRow]) {
    let own = rows.iter().filter_map(|row| {
        let is_held = row.state == "held";
        let ipv4 = row.ipv4.parse().ok().filter(|_| is_held || row.state == "remembered")?;
        Some((row.mechanism.clone(), HostLease { ipv4, is_held }))
    });
    now.leases.extend(own);
}

impl Offline {
    /// Copies the leases of a running gateway's concentrators. Static ones are in the configuration.
    pub fn lend(&mut self, config: &Config, rows: &[LeaseRow]) {
        let sections = config.others.four_over_six.iter();
        let concentrators = sections.filter(|section| section.concentrator().is_some());
        for (section, built) in concentrators.zip(self.engine().four_over_six()) {
            let lent = rows.iter().filter(|row| row.mechanism == section.name && row.state == "leased");
            for row in lent {
                if let (Ok(ipv4), Ok(host)) = (row.ipv4.parse(), row.host.parse()) {
                    // What does not fit is not traced, as it would not be forwarded.
                    built.bind(Binding { ipv4: Prefix4::holding(ipv4, 32), host, local: 0 }).ok();
                }
            }
        }
    }
}

/// Who has an address; `None`: the address is not one of these leases.
pub fn holder(config: &Config, rows: &[LeaseRow], address: Ipv4Addr) -> Option<String> {
    let is_it = |row: &&LeaseRow| match row.ipv4.split_once('/') {
        None => row.ipv4.parse() == Ok(address),
        Some((first, length)) => match (first.parse(), length.parse()) {
            (Ok(first), Ok(length @ 0..=32)) => Prefix4::holding(first, length).contains(address),
            (_, _) => false,
        },
    };
    let Some(row) = rows.iter().find(is_it) else {
        let section = config.others.four_over_six.iter().find(|section| {
            let pools = section.concentrator().into_iter().flat_map(|it| it.pool.iter());
            pools.into_iter().any(|prefix| prefix.contains(address))
        })?;
        return Some(format!("{}: {address} is not leased", section.name));
    };
    let LeaseRow { mechanism, host, .. } = row;
    let left =
        row.ends_in_seconds.map_or_else(String::new, |left| format!(", {} more", plural(left, "second")));
    Some(match row.state.as_str() {
        "static" => format!("{mechanism}: {host} has {} permanently", row.ipv4),
        "leased" => format!("{mechanism}: {host} has {address}{left}"),
        "held" => format!("{mechanism}: this host has {address}{left}"),
        "remembered" => format!("{mechanism}: this host had {address}, and requests it at its next packet"),
        "offered" => format!("{mechanism}: {address} is offered to {host}, which has not taken it"),
        "declined" => format!("{mechanism}: {address} is not leased: {host} declined it{left}"),
        _ => format!("{mechanism}: {address} is not leased; {host} had it last"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Asked, Kind, described};

    const HUB: &str = "[gateway]\nipv4_address = \"192.0.2.254\"\n[four_over_six]\nrole = \"concentrator\"\naddresses = \"2001:db8:c::1\"\npool = \"198.51.100.16/28\"\nclients = \"2001:db8:b::/64\"\n";
    const HOST: &str = "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\nservers = \"2001:db8::547\"\n";

    fn row(ipv4: &str, state: &str, ends_in_seconds: Option<u64>) -> LeaseRow {
        LeaseRow {
            mechanism: "four_over_six".into(),
            ipv4: ipv4.into(),
            host: "2001:db8:b::1".into(),
            state: state.into(),
            ends_in_seconds,
        }
    }

    fn packet(from: &str, to: &str) -> Vec<u8> {
        let kind = Kind::Udp(4_000, 53);
        Asked { from: from.parse().unwrap(), to: to.parse().unwrap(), kind, size: 0 }.octets().unwrap()
    }

    #[test]
    fn a_packet_to_a_leased_address_goes_to_its_host_which_is_named_with_the_time_left() {
        let config = crate::sample::config(HUB);
        let rows = [row("198.51.100.17", "leased", Some(1_200)), row("198.51.100.18", "ended", None)];
        let mut offline = Offline::new(&config, &Surroundings::default()).unwrap();
        offline.lend(&config, &rows);
        let fate = offline.pass(&packet("203.0.113.2", "198.51.100.17"));
        assert_eq!(fate.destination(), "2001:db8:b::1".parse().ok(), "{fate:?}");
        let said = |address: &str| holder(&config, &rows, address.parse().unwrap());
        let named = "four_over_six: 2001:db8:b::1 has 198.51.100.17, 1,200 seconds more";
        assert_eq!(said("198.51.100.17").as_deref(), Some(named));
        let last = "four_over_six: 198.51.100.18 is not leased; 2001:db8:b::1 had it last";
        assert_eq!(said("198.51.100.18").as_deref(), Some(last));
        assert_eq!(said("198.51.100.19").as_deref(), Some("four_over_six: 198.51.100.19 is not leased"));
        assert_eq!(said("203.0.113.2"), None);
        let fate = offline.pass(&packet("203.0.113.2", "198.51.100.18"));
        assert_eq!(fate.dropped, Some(sixway_dataplane::DropReason::NoLease), "{fate:?}");
    }

    #[test]
    fn a_prefix_has_its_host_and_what_this_host_holds_is_traced_into_the_tunnel() {
        let config = crate::sample::config(HOST);
        let rows = [row("192.0.2.7", "held", Some(1)), row("192.0.2.16/29", "static", None)];
        let said = |address: &str| holder(&config, &rows, address.parse().unwrap());
        assert_eq!(
            said("192.0.2.7").as_deref(),
            Some("four_over_six: this host has 192.0.2.7, 1 second more")
        );
        let fixed = "four_over_six: 2001:db8:b::1 has 192.0.2.16/29 permanently";
        assert_eq!(said("192.0.2.23").as_deref(), Some(fixed));
        assert_eq!(said("192.0.2.24"), None);
        let mut now = Surroundings::default();
        note_own(&mut now, &rows);
        let mut offline = Offline::new(&config, &now).unwrap();
        let fate = offline.pass(&packet("192.0.2.7", "203.0.113.2"));
        assert_eq!(fate.destination(), "2001:db8:c::1".parse().ok(), "{fate:?} {}", described(&fate.sent[0]));
    }
}
