//! A 6to4 relay with a site before it and a native host behind it.
//!
//! ```text
//! client ─────────────────────── gateway ─────────────────────── server
//! up0 192.0.2.8                   in0 192.0.2.1   out0 2001:db8:2::1     up0 2001:db8:2::2
//! 2002:c000:208::1                sixway: relay
//! ```
//!
//! This machine's kernel need not know 6to4: the client is a 6to4 host by a Sixway of its own, or makes its tunnel packets itself.

use crate::failure::Result;
use crate::gateway::run_sixway_on;
use crate::interrupt;
use crate::probe::ping;
use crate::topology::Network;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The native host.
pub const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2);
/// The site's IPv4 address, which its prefix embeds.
pub const SITE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
/// The relay's.
pub const RELAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

const CONFIGURATION: &str = r#"[tun]
name = "sixway0"
super_frames = SUPER_FRAMES

[tunnels]
steering = "STEERING"

[six_to_four]
role = "ROLE"
address = "ADDRESS"
mtu = 1480

[gateway]
workers = 1
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

/// What a relay may be started with.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions {
    /// `tun.super_frames`.
    pub gso: bool,
    /// `tunnels.steering`.
    pub steering: &'static str,
}

impl Default for RelayOptions {
    fn default() -> Self {
        Self { gso: true, steering: "auto" }
    }
}

/// A relay at work, and its network.
pub struct Relay {
    /// Its hosts.
    pub network: Network,
    /// The relay's process.
    pub process: u32,
}

impl Relay {
    /// Starts the relay on one core; the client has IPv4 only.
    pub fn start(ways: RelayOptions) -> Result<Self> {
        let network = Network::new(&["client", "gateway", "server"])?;
        network.link(("client", "up0"), ("gateway", "in0"))?;
        network.link(("gateway", "out0"), ("server", "up0"))?;
        network.address("client", "up0", &format!("{SITE}/24"))?;
        network.address("gateway", "in0", &format!("{RELAY}/24"))?;
        network.address("gateway", "out0", "2001:db8:2::1/64")?;
        network.address("server", "up0", &format!("{SERVER}/64"))?;
        network.route("server", "default via 2001:db8:2::1")?;
        network.forwards("gateway")?;
        let process = run_sixway_on(&network, "gateway", &configuration("relay", RELAY, ways))?;
        Ok(Self { network, process })
    }

    /// The same, the client being a 6to4 host, and waits until it has an answer from the server.
    pub fn start_with_site(ways: RelayOptions) -> Result<Self> {
        let relay = Self::start(ways)?;
        let host = configuration("host", SITE, RelayOptions::default())
            .replace("mtu =", &format!("relay = \"{RELAY}\"\nmtu ="));
        run_sixway_on(&relay.network, "client", &host)?;
        let (client, server) = (relay.network.host("client")?, SERVER.to_string());
        interrupt::wait_until(Duration::from_secs(5), "an answer through the relay", || {
            Ok(ping(client, &server, 1, 56, Duration::ZERO)?.answered == 1)
        })?;
        Ok(relay)
    }
}

fn configuration(role: &str, address: Ipv4Addr, ways: RelayOptions) -> String {
    CONFIGURATION
        .replace("SUPER_FRAMES", &ways.gso.to_string())
        .replace("STEERING", ways.steering)
        .replace("ROLE", role)
        .replace("ADDRESS", &address.to_string())
}
