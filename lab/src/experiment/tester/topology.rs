//! The network: two hosts with a link of their own, and a box between them.

use crate::failure::Result;
use crate::measure::Cores;
use crate::topology::Network;

/// Drawn for the report.
pub const DRAWING: &str = "\
client 2001:db8:1::2 ──────────── box ──────────── 2001:db8:2::2 server
       2001:db8:3::1 ───────────────────────────── 2001:db8:3::2";

/// The server through the box.
pub const THROUGH: &str = "2001:db8:2::2";
/// The server by the bare link.
pub const BARE: &str = "2001:db8:3::2";
/// The box and its devices.
pub const BOX: (&str, [&str; 2]) = ("box", ["in0", "out0"]);

/// Builds it; what the box receives is taken by the device's core.
///
/// # Errors
/// The kernel refuses it.
pub fn network(cores: Cores) -> Result<Network> {
    let network = Network::new(&["client", "box", "server"])?;
    network.link(("client", "up0"), ("box", "in0"))?;
    network.link(("box", "out0"), ("server", "up0"))?;
    network.link(("client", "bare0"), ("server", "bare0"))?;
    for (host, device, address) in [
        ("client", "up0", "2001:db8:1::2/64"),
        ("box", "in0", "2001:db8:1::1/64"),
        ("box", "out0", "2001:db8:2::1/64"),
        ("server", "up0", "2001:db8:2::2/64"),
        ("client", "bare0", "2001:db8:3::1/64"),
        ("server", "bare0", "2001:db8:3::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 2001:db8:1::1")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards(BOX.0)?;
    if let Some(core) = cores.device {
        for device in BOX.1 {
            network.receive_on(BOX.0, device, core)?;
        }
    }
    if let Some(core) = cores.tester {
        for (host, device) in [("client", "up0"), ("server", "up0"), ("client", "bare0"), ("server", "bare0")]
        {
            network.receive_on(host, device, core)?;
        }
    }
    Ok(network)
}
