//! OpenVPN over UDP with a shared key: tunnels of one host to others, each with processes, a port and addresses of its own.

use super::ping::ping;
use crate::failure::Result;
use crate::interrupt;
use crate::namespace::command;
use crate::topology::Network;
use std::net::IpAddr;
use std::time::Duration;

/// The far end's address in the first tunnel.
pub const VPN_FAR: &str = "172.31.0.1";
/// The port of its far end.
const PORT: u16 = 1_194;

/// The far end's address in a tunnel, and the near one's.
pub fn vpn_ends(tunnel: u8) -> [String; 2] {
    [1, 2].map(|end| format!("172.31.{tunnel}.{end}"))
}

/// Starts both ends of the first tunnel, `near` towards an address of `far`, and waits for an answer through them. They run until the network goes.
///
/// # Errors
/// OpenVPN is not installed, or nothing comes back through it.
pub fn openvpn(network: &Network, near: &str, far: (&str, IpAddr)) -> Result<()> {
    openvpns(network, &[near], far)
}

/// Starts both ends of a tunnel for each of `near`, all towards an address of `far`, and waits for an answer through each.
///
/// # Errors
/// OpenVPN is not installed, or nothing comes back through one.
pub fn openvpns(network: &Network, near: &[&str], (far, address): (&str, IpAddr)) -> Result<()> {
    let key = network.folder().join("vpn.key");
    let mut make = command("openvpn")?;
    make.args(["--genkey", "secret"]).arg(&key);
    network.host(far)?.run(make, Duration::from_secs(10))?.succeeded()?;
    let protocol = if address.is_ipv6() { "udp6" } else { "udp4" };
    let start = |tunnel: u8, host: &str, words: &[&str]| {
        let mut openvpn = command("openvpn")?;
        openvpn.args(["--dev", &format!("vpn{tunnel}"), "--dev-type", "tun", "--proto", protocol]);
        openvpn.args(["--cipher", "AES-256-CBC", "--keepalive", "1", "60", "--secret"]).arg(&key);
        openvpn.args(["--port", &(PORT + u16::from(tunnel)).to_string()]).args(words);
        network.start(host, openvpn)
    };
    for (tunnel, host) in (0..).zip(near) {
        let [there, here] = vpn_ends(tunnel);
        start(tunnel, far, &["--ifconfig", &there, &here])?;
        start(tunnel, host, &["--ifconfig", &here, &there, "--remote", &address.to_string(), "--nobind"])?;
    }
    for (tunnel, host) in (0..).zip(near) {
        let [there, _] = vpn_ends(tunnel);
        interrupt::wait_until(Duration::from_secs(20), "a ping through OpenVPN", || {
            let answers = ping(network.host(host)?, &there, 1, 56, Duration::from_millis(100));
            Ok(answers.is_ok_and(|answers| answers.answered == 1))
        })?;
    }
    Ok(())
}
