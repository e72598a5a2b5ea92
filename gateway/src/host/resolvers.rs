//! The host's DNS servers: `/etc/resolv.conf` (resolv.conf(5)).

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The file.
const FILE: &str = "/etc/resolv.conf";
/// DNS.
const PORT: u16 = 53;

/// Its text at the moment; empty if it cannot be read.
pub fn resolv_conf() -> String {
    std::fs::read_to_string(FILE).unwrap_or_default()
}

/// The servers in it.
pub(super) fn resolvers() -> Vec<SocketAddr> {
    servers(&resolv_conf())
}

/// The servers in a text, each once.
fn servers(text: &str) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let server = words.next().and_then(server);
        all.extend(server.filter(|server| !all.contains(server)));
    }
    all
}

fn server(text: &str) -> Option<SocketAddr> {
    match text.split_once('%') {
        None => Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, PORT)),
        Some((address, interface)) => {
            let address: Ipv6Addr = address.parse().ok()?;
            let named = || nix::net::if_::if_nametoindex(interface).ok();
            let number = interface.parse().ok().or_else(named)?;
            Some(SocketAddrV6::new(address, PORT, 0, number).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_and_what_is_not_understood_is_left_out() {
        let text = "# nameserver 192.0.2.9\nsearch example\nnameserver 192.0.2.53\n nameserver\t2001:db8::53 # x\n\
                    nameserver 192.0.2.53\nnameserver fe80::1%1\nnameserver dns.example\nnameserver\noptions edns0\n";
        let expected = ["192.0.2.53:53", "[2001:db8::53]:53", "[fe80::1%1]:53"];
        assert_eq!(servers(text), expected.map(|it| it.parse::<SocketAddr>().unwrap()));
        assert_eq!(servers(""), []);
    }
}
