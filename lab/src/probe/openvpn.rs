//! OpenVPN over UDP with a shared key, between two hosts.

use super::ping::ping;
use crate::failure::Result;
use crate::interrupt;
use crate::namespace::command;
use crate::topology::Network;
use std::net::IpAddr;
use std::time::Duration;

/// The far end's address in the tunnel.
pub const VPN_FAR: &str = "172.31.255.1";
const VPN_NEAR: &str = "172.31.255.2";

/// Starts both ends, `near` towards an address of `far`, and waits for an answer through them. They run until the network goes.
///
/// # Errors
/// OpenVPN is not installed, or nothing comes back through it.
pub fn openvpn(network: &Network, near: &str, (far, address): (&str, IpAddr)) -> Result<()> {
    let key = network.folder().join("vpn.key");
    let mut make = command("openvpn")?;
    make.args(["--genkey", "secret"]).arg(&key);
    network.host(far)?.run(make, Duration::from_secs(10))?.succeeded()?;
    let protocol = if address.is_ipv6() { "udp6" } else { "udp4" };
    let start = |host: &str, words: &[&str]| {
        let mut openvpn = command("openvpn")?;
        openvpn.args(["--dev", "vpn0", "--dev-type", "tun", "--proto", protocol, "--cipher", "AES-256-CBC"]);
        openvpn.args(["--port", "1194", "--keepalive", "1", "60", "--secret"]).arg(&key).args(words);
        network.start(host, openvpn)
    };
    start(far, &["--ifconfig", VPN_FAR, VPN_NEAR])?;
    start(near, &["--ifconfig", VPN_NEAR, VPN_FAR, "--remote", &address.to_string(), "--nobind"])?;
    interrupt::wait_until(Duration::from_secs(20), "a ping through OpenVPN", || {
        let answers = ping(network.host(near)?, VPN_FAR, 1, 56, Duration::from_millis(100));
        Ok(answers.is_ok_and(|answers| answers.answered == 1))
    })
}
