//! State of a running gateway other than sessions and leases, for a separate engine: ends of tunnels, and mappings of NAT46.

use super::offline::Offline;
use crate::config::Surroundings;
use crate::view::{BindingRow, MechanismRow};
use sixway_wire::{Ipv6Header, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The ends of tunnels that are not in the configuration: AFTRs of B4s by name, and a Teredo client's own address.
pub fn note_ends(now: &mut Surroundings, mechanisms: &[MechanismRow], teredo: Option<Ipv6Addr>) {
    let aftrs =
        mechanisms.iter().filter_map(|row| Some((row.name.clone(), row.remote.as_ref()?.parse().ok()?)));
    now.aftrs.extend(aftrs);
    now.teredo = teredo.or(now.teredo);
}

/// A packet in the softwire of a B4.
pub fn in_softwire(b4: Ipv6Addr, aftr: Ipv6Addr, packet: &[u8]) -> Vec<u8> {
    [&Ipv6Header::new(b4, aftr, protocol::IPV4, packet.len()).octets()[..], packet].concat()
}

impl Offline {
    /// Copies the mappings of a running gateway's NAT46 that these addresses are of. Static ones are in the configuration. How many could be.
    pub fn map(&mut self, rows: &[BindingRow], from: IpAddr, to: IpAddr) -> usize {
        let now = self.now();
        let asking = match from {
            IpAddr::V4(client) => client,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let is_it = |row: &&BindingRow| row.outside == to.to_string() || row.server == Some(from.to_string());
        let live = rows.iter().filter(|row| row.kind == "dynamic").filter(is_it);
        let adopted = live.filter(|row| {
            let (client, server) =
                (row.inside.parse().ok(), row.server.as_ref().and_then(|it| it.parse().ok()));
            let (Ok(address), Some(server)) = (row.outside.parse(), server) else { return false };
            let mappings = self.engine().nat46().first().map(|nat46| nat46.mappings().clone());
            mappings.is_some_and(|mappings| mappings.adopt((client, asking), address, server, now))
        });
        adopted.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Asked, Kind, described};
    use sixway_dataplane::DropReason;

    fn packet(from: &str, to: &str) -> Vec<u8> {
        let kind = Kind::Udp(4_000, 53);
        Asked { from: from.parse().unwrap(), to: to.parse().unwrap(), kind, size: 0 }.octets().unwrap()
    }

    #[test]
    fn a_packet_enters_the_softwire_to_the_aftr_that_the_running_gateway_uses() {
        let text = "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:b4::1\"\naftr = \"aftr.example\"\n";
        let config = crate::sample::config(text);
        let asked = packet("192.168.1.2", "203.0.113.2");
        let mut now = Surroundings::default();
        let fate = Offline::new(&config, &now).unwrap().pass(&asked);
        assert_eq!(fate.dropped, Some(DropReason::NoRemote));
        let row = MechanismRow {
            name: "ds_lite".into(),
            remote: Some("2001:db8:a::1".into()),
            ..Default::default()
        };
        note_ends(&mut now, &[row], None);
        let fate = Offline::new(&config, &now).unwrap().pass(&asked);
        assert_eq!(fate.destination(), "2001:db8:a::1".parse().ok(), "{fate:?}");
    }

    #[test]
    fn a_mapping_of_the_running_nat46_leads_to_its_server() {
        let text = "[gateway]\nipv6_address = \"2001:db8::fe\"\n[nat46]\npool = \"10.46.0.0/24\"\nprefix = \"2001:db8:64::/96\"\nclients = \"10.1.0.0/16\"\n[dns64]\nlisten = [\"127.0.0.1:5353\"]\nallow = [\"10.1.0.0/16\"]\nupstream = [{ address = \"192.0.2.53\" }]\n";
        let config = crate::sample::config(text);
        let (from, to) = ("10.1.0.2", "10.46.0.9");
        let mut offline = Offline::new(&config, &Surroundings::default()).unwrap();
        let fate = offline.pass(&packet(from, to));
        assert_eq!(fate.dropped, Some(DropReason::NoBinding));
        let row = |kind: &str| BindingRow {
            inside: from.into(),
            outside: to.into(),
            kind: kind.into(),
            server: Some("2001:db9::80".into()),
            ..BindingRow::default()
        };
        let ends = (from.parse().unwrap(), to.parse().unwrap());
        assert_eq!(offline.map(&[row("resting")], ends.0, ends.1), 0);
        assert_eq!(offline.map(&[row("dynamic")], ends.0, ends.1), 1);
        let fate = offline.pass(&packet(from, to));
        assert_eq!(fate.destination(), "2001:db9::80".parse().ok(), "{fate:?}");
    }

    #[test]
    fn a_host_behind_a_b4_is_traced_through_the_aftr() {
        let text = "[gateway]\nipv4_address = \"192.0.2.254\"\n[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.1\"]\n[ds_lite]\nrole = \"aftr\"\npool = \"main\"\naddresses = [\"2001:db8:a::1\"]\nclients = [\"2001:db8:b4::/48\"]\n";
        let config = crate::sample::config(text);
        let mut offline = Offline::new(&config, &Surroundings::default()).unwrap();
        let ends = ["2001:db8:b4::1", "2001:db8:a::1"].map(|end| end.parse().unwrap());
        let fate = offline.pass(&in_softwire(ends[0], ends[1], &packet("192.168.1.2", "203.0.113.2")));
        assert!(described(&fate.sent[0]).contains("192.0.2.1:"), "{fate:?}");
        assert_eq!(fate.destination(), "203.0.113.2".parse().ok());
    }
}
