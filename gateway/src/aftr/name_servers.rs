//! The host's name servers that are reachable without IPv4: a B4 resolves its AFTR's name over IPv6 (RFC 6333 §5.5).

use sixway_link::interface;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Where the host's name servers are listed.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The port of DNS.
const DNS: u16 = 53;

/// Those `written`, else those of the host.
pub(super) fn name_servers(written: &[Ipv6Addr]) -> Vec<SocketAddr> {
    if !written.is_empty() {
        return written.iter().map(|server| SocketAddr::new((*server).into(), DNS)).collect();
    }
    listed(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default())
}

/// Those of resolv.conf(5) that are IPv6 addresses, with a zone perhaps, or on this host.
fn listed(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    servers.filter_map(|server| server_at(server.trim())).collect()
}

fn server_at(text: &str) -> Option<SocketAddr> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    match address.parse().ok()? {
        IpAddr::V6(address) => {
            let scope = match zone {
                Some(zone) => zone.parse().ok().or_else(|| interface::index(zone).ok())?,
                None => 0,
            };
            Some(SocketAddrV6::new(address, DNS, 0, scope).into())
        }
        IpAddr::V4(address) => address.is_loopback().then(|| SocketAddr::new(address.into(), DNS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_behind_the_tunnel_are_left_out() {
        let text = "# by DHCP\nsearch example\nnameserver 192.0.2.53\nnameserver 2001:db8::53\nnameserver fe80::1%7\n\
                    nameserver 127.0.0.53\noptions edns0\n";
        let servers: Vec<String> = listed(text).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["[2001:db8::53]:53", "[fe80::1%7]:53", "127.0.0.53:53"]);
    }

    #[test]
    fn written_ones_have_precedence() {
        let servers = name_servers(&["2001:db8::1".parse().unwrap()]);
        assert_eq!(servers, ["[2001:db8::1]:53".parse().unwrap()]);
    }
}
