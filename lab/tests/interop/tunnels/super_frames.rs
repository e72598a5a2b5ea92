//! GSO packets of tunnel packets: the receiving device makes them (GRO), Sixway opens and makes them, and what they carry stays right.

use super::capture::Capture;
use super::carriage::{ethtool, gro};
use crate::Interop;
use crate::counters::{counter, wrong_checksums};
use crate::datagrams::pattern;
use sixway_lab::failure::Result;
use sixway_lab::fast_path::demanded;
use sixway_lab::packet;
use sixway_lab::probe::{fetch, serve_page};
use sixway_lab::six_to_four::{Relay, RelayOptions, SERVER, SITE};

pub const TESTS: &[Interop] = &[
    Interop::new("super_frames_of_tunnel_packets_arrive_whole_by_steering", NEEDS, || arrive_whole("on")),
    Interop::new("super_frames_of_tunnel_packets_arrive_whole_by_raw_sockets", NEEDS, || arrive_whole("off")),
];

const NEEDS: &[&str] = &["sixway", "nginx", "curl", "tcpdump", "ethtool", "ping"];

/// A 6to4 host and a native host fetch long pages from one another; at the relay, and at the site, GRO joins tunnel packets.
fn arrive_whole(steering: &'static str) -> Result<()> {
    let relay = Relay::start_with_site(RelayOptions { gso: true, steering })?;
    let network = &relay.network;
    // A veth makes GSO packets only of what comes from an end that has none to give.
    ethtool(network, "gateway", "in0", &["tx", "off", "tso", "off"])?;
    ethtool(network, "gateway", "out0", &["tx", "off"])?;
    ethtool(network, "client", "up0", &["tx", "off", "tso", "off"])?;
    ethtool(network, "server", "up0", &["rx", "off"])?;
    gro(network, "gateway", "in0", true)?;
    gro(network, "client", "up0", true)?;
    let page: String = pattern(8_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect();
    let site = packet::six_to_four(SITE, 1);
    serve_page(network, "server", &format!("[{SERVER}]"), &page)?;
    serve_page(network, "client", &format!("[{site}]"), &page)?;
    let large = Capture::start(network, "gateway", "in0", "ip proto 41 and greater 3000")?;
    assert!(fetch(network, "client", &format!("http://[{SERVER}]/"))?.body == page, "the server's page");
    assert!(fetch(network, "server", &format!("http://[{site}]/"))?.body == page, "the site's page");
    assert!(large.end()?.contains("192.0.2.8 > 192.0.2.1"), "GRO made no GSO packet of tunnel packets");
    // At tc ingress they need not be cut.
    let cut = counter(network, "segments.made")? > 1_000;
    assert!(cut || demanded().is_some(), "GSO packets of the server are cut");
    assert_eq!(wrong_checksums(network.host("server")?)?, 0);
    Ok(())
}
