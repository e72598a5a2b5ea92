//! A PCP client that is not ours: the crate crab_nat, which speaks MAP and PEER over IPv4 and IPv6, and NAT-PMP.

use crate::Interop;
use crab_nat::pcp::{BaseMapRequest, Failure as PcpFailure};
use crab_nat::{GatewayAddress, InternetProtocol, PortMapping, PortMappingOptions, TimeoutConfig};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::interrupt;
use sixway_lab::probe::{fetch, serve_page};
use sixway_lab::topology::Network;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "crab_nat_makes_renews_and_deletes_mappings_by_pcp_and_by_nat_pmp",
        &["sixway", "nginx", "curl"],
        nat44,
    ),
    Interop::new("crab_nat_makes_a_mapping_of_a_nat64_over_ipv6", &["sixway", "nginx", "curl"], nat64),
];

const OPTIONS: PortMappingOptions = PortMappingOptions {
    external_port: None,
    lifetime_seconds: Some(300),
    timeout_config: Some(TimeoutConfig {
        initial_timeout: Duration::from_secs(1),
        max_retries: 4,
        max_retry_timeout: Some(Duration::from_secs(2)),
    }),
};

fn failed(error: impl std::fmt::Debug) -> Failure {
    Failure::Unexpected(format!("crab_nat: {error:?}"))
}

fn port(number: u16) -> Result<NonZeroU16> {
    NonZeroU16::new(number).ok_or_else(|| failed("port 0"))
}

/// Runs this on the client.
fn on_client<T: Send>(network: &Network, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    network.host("client")?.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        runtime.map_err(failed)?.block_on(work)
    })?
}

fn nat44() -> Result<()> {
    let network = crate::nat44::network()?;
    run_sixway(&network, crate::pcp::SIXWAY)?;
    serve_page(&network, "client", "192.168.1.2", "from the client")?;
    let gateway = GatewayAddress::IpV4(Ipv4Addr::new(192, 168, 1, 1));
    let client = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 2));
    let base = |protocol, internal_port| BaseMapRequest::new(gateway, client, protocol, internal_port);
    let external = on_client(&network, async {
        let request = base(InternetProtocol::Tcp, port(80)?);
        let mut mapping =
            crab_nat::pcp::port_mapping(request, Some([1, 2, 3]), None, OPTIONS).await.map_err(failed)?;
        let external = mapping.external_port();
        assert_eq!(mapping.lifetime(), 300);
        mapping.renew().await.map_err(failed)?;
        assert_eq!(mapping.external_port(), external, "it is renewed");
        // Another nonce: the mapping is not this client's.
        let stolen = crab_nat::pcp::port_mapping(request, Some([9, 9, 9]), None, OPTIONS).await;
        assert!(matches!(stolen, Err(PcpFailure::NotAuthorized(1..=300))), "{stolen:?}");
        // Nothing keeps this one, so that it ends with its deletion.
        let idle = PortMapping::new(gateway, client, InternetProtocol::Udp, port(9_999)?, OPTIONS).await;
        let idle = idle.map_err(failed)?;
        assert!(matches!(idle.mapping_type(), crab_nat::PortMappingType::Pcp { .. }));
        idle.try_drop().await.map_err(failed)?;
        let remote = SocketAddr::from(([203, 0, 113, 2], 7));
        let request = base(InternetProtocol::Udp, port(4_000)?);
        let peer = crab_nat::pcp::peer_mapping(request, None, None, remote, OPTIONS).await.map_err(failed)?;
        assert_eq!(peer.external_ip(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        assert!(peer.lifetime_seconds() > 0);
        let address = crab_nat::natpmp::external_address(gateway, OPTIONS.timeout_config).await;
        assert_eq!(address.map_err(failed)?, Ipv4Addr::new(192, 0, 2, 1));
        let old = crab_nat::natpmp::port_mapping(gateway, InternetProtocol::Udp, port(5_000)?, OPTIONS).await;
        old.map_err(failed)?.try_drop().await.map_err(failed)?;
        Ok(external)
    })?;
    assert_eq!(fetch(&network, "server", &format!("http://192.0.2.1:{external}/"))?.body, "from the client");
    // What is shown is a second old at most.
    interrupt::wait_until(Duration::from_secs(5), "one mapping and one session by PEER", || {
        let shown = network.host("gateway")?.run(show(&network, &["pcp"])?, Duration::from_secs(5))?;
        let shown = shown.succeeded()?.stdout;
        Ok(shown.contains("192.168.1.2:80") && !shown.contains(":9999") && !shown.contains(":5000"))
    })
}

fn nat64() -> Result<()> {
    let network = crate::nat44::network()?;
    for (host, device, address) in
        [("client", "up0", "2001:db8:1:1::2/64"), ("gateway", "in0", "2001:db8:1:1::1/64")]
    {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 2001:db8:1:1::1")?;
    run_sixway(&network, crate::pcp::NAT64)?;
    serve_page(&network, "client", "[2001:db8:1:1::2]", "from the client")?;
    let host = |last| Ipv6Addr::new(0x2001, 0xdb8, 1, 1, 0, 0, 0, last);
    let external = on_client(&network, async {
        let (gateway, client) = (GatewayAddress::IpV6(host(1), None), IpAddr::V6(host(2)));
        let made = PortMapping::new(gateway, client, InternetProtocol::Tcp, port(80)?, OPTIONS).await;
        let mapping = made.map_err(failed)?;
        let crab_nat::PortMappingType::Pcp { external_ip, .. } = mapping.mapping_type() else {
            return Err(failed("not by PCP"));
        };
        assert_eq!(external_ip, IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        Ok(mapping.external_port())
    })?;
    assert_eq!(fetch(&network, "server", &format!("http://192.0.2.1:{external}/"))?.body, "from the client");
    Ok(())
}
