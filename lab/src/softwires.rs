//! Networks with DS-Lite, 4over6, NAT46 and Teredo. The other end of a tunnel is another Sixway at the client.

use crate::failure::Result;
use crate::gateway::{run_sixway, run_sixway_on};
use crate::interrupt;
use crate::probe::ping;
use crate::teredo;
use crate::topology::{Network, client_gateway_server};
use std::time::Duration;

const SERVER: &str = "203.0.113.2";
const GATEWAY: &str =
    "[gateway]\nworkers = 1\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n\n";
const END: &str = "[gateway]\nworkers = 1\n\n";

const AFTR: &str = r#"[[pool]]
name = "main"
addresses = ["198.51.100.0/28"]

[ds_lite]
role = "aftr"
addresses = ["2001:db8:a::1"]
clients = ["2001:db8:1::/48"]
pool = "main"
"#;

const B4: &str = "[ds_lite]\nrole = \"b4\"\ninterface = \"up0\"\naftr = \"2001:db8:a::1\"\n";

const CONCENTRATOR: &str = r#"[four_over_six]
role = "concentrator"
addresses = ["2001:db8:c::1"]
pool = ["198.51.100.16/29"]
clients = ["2001:db8:1::/48"]
"#;

const HOST: &str = r#"[four_over_six]
role = "host"
local = "2001:db8:1:b::1"
concentrator = "2001:db8:c::1"
servers = ["2001:db8:1::1"]
destinations = ["203.0.113.0/24"]
"#;

const NAT46: &str = r#"[nat46]
clients = ["10.1.0.0/16"]
pool = "192.168.46.0/24"
prefix = "2001:db8:46::/96"
static = [{ address = "192.168.46.80", server = "2001:db8:2::2" }]
"#;

/// A network at work.
pub struct Ready {
    /// What is at work.
    pub name: &'static str,
    /// The network.
    pub network: Network,
    /// Whom the client reaches.
    pub target: &'static str,
    /// The processes that carry the packets.
    pub processes: Vec<(&'static str, u32)>,
}

/// Waits until the target answers.
///
/// # Errors
/// It does not.
pub fn answers(one: &Ready) -> Result<()> {
    let client = one.network.host("client")?;
    interrupt::wait_until(Duration::from_secs(15), &format!("an answer by {}", one.name), || {
        let answers = ping(client, one.target, 1, 56, Duration::ZERO);
        Ok(answers.is_ok_and(|answers| answers.answered == 1))
    })
}

/// A B4 at the client, and an AFTR.
///
/// # Errors
/// The network cannot be made.
pub fn ds_lite() -> Result<Ready> {
    let network = client_gateway_server()?;
    let aftr = run_sixway(&network, &format!("{GATEWAY}{AFTR}"))?;
    let b4 = run_sixway_on(&network, "client", &format!("{END}{B4}"))?;
    let processes = vec![("AFTR", aftr), ("B4", b4)];
    Ok(Ready { name: "DS-Lite", network, target: SERVER, processes })
}

/// A host that takes a lease, and its concentrator.
///
/// # Errors
/// The network cannot be made.
pub fn four_over_six() -> Result<Ready> {
    let network = client_gateway_server()?;
    network.route("gateway", "2001:db8:1:b::1 via 2001:db8:1::2")?;
    let leases = |host: &str| format!("lease_file = {:?}\n", network.folder().join(format!("{host}.leases")));
    let hub = run_sixway(&network, &format!("{GATEWAY}{CONCENTRATOR}{}", leases("gateway")))?;
    let host = run_sixway_on(&network, "client", &format!("{END}{HOST}{}", leases("client")))?;
    let processes = vec![("4over6's concentrator", hub), ("4over6's host", host)];
    Ok(Ready { name: "4over6", network, target: SERVER, processes })
}

/// A client without IPv6, and a server without IPv4.
///
/// # Errors
/// The network cannot be made.
pub fn nat46() -> Result<Ready> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "10.1.0.2/24")?;
    network.address("gateway", "in0", "10.1.0.1/24")?;
    network.address("gateway", "out0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("client", "default via 10.1.0.1")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("gateway")?;
    let process = run_sixway(&network, &format!("{GATEWAY}{NAT46}"))?;
    Ok(Ready { name: "NAT46", network, target: "192.168.46.80", processes: vec![("NAT46", process)] })
}

/// A client behind a NAT, its server, and a relay to a native host.
///
/// # Errors
/// The network cannot be made.
pub fn teredo() -> Result<Ready> {
    let network = teredo::network()?;
    let relay = run_sixway(&network, teredo::RELAY)?;
    let server = run_sixway_on(&network, "server", teredo::SERVER)?;
    let client = run_sixway_on(&network, "client", teredo::CLIENT)?;
    let processes = vec![("Teredo's relay", relay), ("Teredo's server", server), ("Teredo's client", client)];
    Ok(Ready { name: "Teredo", network, target: teredo::HOST, processes })
}
