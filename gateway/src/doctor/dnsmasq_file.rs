//! The dnsmasq of a site (`sixway up --dhcp`): what its configuration says of where it serves.

use std::net::Ipv4Addr;
use std::path::Path;

/// More octets are not read.
const MOST: u64 = 64 << 10;

/// Where it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dnsmasq {
    /// This host's addresses on the LANs.
    pub listen: Vec<Ipv4Addr>,
    /// Whether it answers DNS queries there.
    pub answers_dns: bool,
}

impl Dnsmasq {
    /// That of the gateway with this admin socket; `None`: it does not exist.
    pub fn of(admin_socket: &Path) -> Option<Self> {
        let octets =
            crate::lease_text::end_of(&admin_socket.with_extension("dnsmasq"), MOST as usize).ok()?;
        Some(Self::read(&String::from_utf8_lossy(&octets)))
    }

    fn read(text: &str) -> Self {
        let values = |key: &'static str| {
            text.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
        };
        Self {
            listen: values("listen-address").filter_map(|value| value.parse().ok()).collect(),
            // Without the line it does.
            answers_dns: values("port").all(|port| port != "0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_the_lans_and_the_port_of_dns_are_read() {
        let text = "bind-dynamic\nport=53\nlisten-address=192.168.1.1\ndhcp-range=192.168.1.64,192.168.1.254,12h\nlisten-address=10.0.0.1\n";
        let listen = vec![Ipv4Addr::new(192, 168, 1, 1), Ipv4Addr::new(10, 0, 0, 1)];
        assert_eq!(Dnsmasq::read(text), Dnsmasq { listen: listen.clone(), answers_dns: true });
        assert_eq!(Dnsmasq::read(&text.replace("port=53", "port=0")), Dnsmasq { listen, answers_dns: false });
        assert_eq!(Dnsmasq::of(Path::new("/nonexistent/site.sock")), None);
    }
}
