//! The addresses at which clients find any PCP server (RFC 7723), which the gateway gives its host and takes back.

use crate::Interop;
use crate::pcp::{SHORT, exchange, exchange_from, map, read};
use sixway_lab::failure::Result;
use sixway_lab::gateway::run_sixway;
use sixway_lab::process::Process;
use sixway_lab::topology::Network;

pub const TESTS: &[Interop] = &[Interop::new(
    "a_pcp_client_asks_at_the_anycast_addresses_which_are_there_while_the_gateway_runs",
    &["sixway"],
    anycast,
)];

const SIXWAY: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
ipv6_address = "2001:db8:1::64"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.1"]

[[pool]]
name = "public6"
addresses = ["192.0.2.2"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"

[nat64]
prefix = "2001:db8:64::/96"
pool = "public6"

[pcp]
interfaces = ["in0", "in1"]
"#;
/// RFC 7723 §4.1 and §4.2.
const ADDRESSES: [&str; 2] = ["192.0.0.9", "2001:1::1"];

/// Which of them the host has.
fn present(network: &Network) -> Result<Vec<&'static str>> {
    let listed = network.host("gateway")?.ip("address show dev lo")?;
    Ok(ADDRESSES.into_iter().filter(|address| listed.contains(&format!(" {address}/"))).collect())
}

fn anycast() -> Result<()> {
    let network = crate::nat44::network()?;
    for (host, device, address) in
        [("client", "up0", "2001:db8:1:1::2/64"), ("gateway", "in0", "2001:db8:1:1::1/64")]
    {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 2001:db8:1:1::1")?;
    network.route("server", "192.0.0.9/32 via 203.0.113.1")?;
    let (gateway, client, server) =
        (network.host("gateway")?, network.host("client")?, network.host("server")?);
    let id = run_sixway(&network, SIXWAY)?;
    assert_eq!(present(&network)?, ADDRESSES);
    // Answers come from where the client asked.
    for (address, host) in [(ADDRESSES[0], "192.168.1.2"), (ADDRESSES[1], "2001:db8:1:1::2")] {
        let (result, _, port) = read(client.enter(|| exchange(address, &map(host, 0)))?)?;
        assert_eq!((result, port > 0), (0, true), "{address}");
    }
    // Outside hosts get no answer there.
    let from_outside = |request: &[u8]| exchange_from("203.0.113.2", ADDRESSES[0], request, SHORT);
    assert_eq!(server.enter(|| from_outside(&map("203.0.113.2", 0)))?, None);
    // What the host begins itself has another source, also on devices without addresses.
    for words in ["-4 route get 203.0.113.2", "-4 route get 192.0.2.1", "-6 route get 2001:db8:64::1"] {
        let way = gateway.ip(words)?;
        assert!(!ADDRESSES.iter().any(|address| way.contains(address)), "{way}");
    }
    network.with_process(id, Process::stop)?;
    assert!(present(&network)?.is_empty(), "{:?}", present(&network)?);

    // What the operator gave the host is the operator's. What a gateway left that was killed is removed by the next one.
    network.address("gateway", "lo", "192.0.0.9/32")?;
    let killed = run_sixway(&network, SIXWAY)?;
    network.with_process(killed, Process::kill)?;
    assert_eq!(present(&network)?, ADDRESSES);
    let next = run_sixway(&network, SIXWAY)?;
    network.with_process(next, Process::stop)?;
    assert_eq!(present(&network)?, [ADDRESSES[0]]);
    gateway.ip("address del 192.0.0.9/32 dev lo")?;

    run_sixway(&network, &SIXWAY.replace("[pcp]\n", "[pcp]\nanycast = false\n"))?;
    assert!(present(&network)?.is_empty(), "{:?}", present(&network)?);
    Ok(())
}
