//! What our client, server and relay send, taken out of UDP here and decoded by tcpdump.

use crate::Interop;
use crate::teredo_client::{has_address, passes};
use crate::tunnels::capture::checksums_are_right;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::teredo::{CLIENT, RELAY, SERVER, network};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] =
    &[Interop::new("tcpdump_decodes_the_packets_of_our_teredo_client_server_and_relay", PROGRAMS, decodes)];

const PROGRAMS: &[&str] = &["sixway", "nft", "ping", "nginx", "curl", "tcpdump", "ethtool"];

fn decodes() -> Result<()> {
    let network = network()?;
    // Each datagram as it is on a wire.
    for (host, device) in [("middle", "down0"), ("nat", "out0"), ("server", "up0"), ("gateway", "out0")] {
        let mut ethtool = command("ethtool")?;
        ethtool.args(["-K", device, "tx", "off", "gso", "off", "gro", "off"]);
        network.host(host)?.run(ethtool, Duration::from_secs(5))?.succeeded()?;
    }
    let file = network.folder().join("teredo.pcap");
    let mut tcpdump = command("tcpdump")?;
    tcpdump.args(["-i", "down0", "-U", "--immediate-mode", "-s", "0", "-w"]).arg(&file).arg("udp");
    let capture = network.start("middle", tcpdump)?;
    interrupt::wait_until(Duration::from_secs(5), "tcpdump listening", || {
        network.with_process(capture, |process| Ok(process.stderr().contains("listening on")))?
    })?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", CLIENT)?;
    let address = has_address(&network, "client", |_| true)?;
    passes(&network)?;
    interrupt::pause(Duration::from_millis(300))?;
    network.with_process(capture, |process| process.stop())?;
    let octets = std::fs::read(&file).asking(|| format!("reading {}", file.display()))?;
    let said = said_of(&network, &inner(&octets)?)?;
    for words in [
        "fe80::8000:f227:39cc:9bfe > fe80::",
        "router solicitation",
        "router advertisement",
        "prefix info option (3), length 32 (4): 2001:0:c633:6401::/64",
        "no next header",
        &*format!("{address} > 2001:db8:1::2: [icmp6 sum ok] ICMP6, echo request"),
        &*format!("2001:db8:1::2 > {address}: [icmp6 sum ok] ICMP6, echo reply"),
        "HTTP/1.1 200 OK",
    ] {
        assert!(said.contains(words), "{words}:\n{}", said.get(..4_000).unwrap_or(&said));
    }
    checksums_are_right(&said, 100)
}

/// A capture file of the IPv6 packets in the datagrams of another one, which has Ethernet frames.
fn inner(octets: &[u8]) -> Result<Vec<u8>> {
    let mut frames = octets.get(24..).unwrap_or_default();
    let head = octets.get(..20).unwrap_or_default();
    // LINKTYPE_RAW.
    let mut out = [head, &101_u32.to_le_bytes()].concat();
    while let Some((record, rest)) = frames.split_at_checked(16) {
        let length = u32::from_le_bytes([record[8], record[9], record[10], record[11]]) as usize;
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        frames = rest;
        let packet =
            packet_of(frame).ok_or_else(|| Failure::Unexpected(format!("no IPv6 packet in {frame:x?}")))?;
        let length = (packet.len() as u32).to_le_bytes();
        out.extend([&record[..8], &length, &length, packet].concat());
    }
    Ok(out)
}

/// Behind Ethernet, IPv4 without options and UDP, and behind authentication and origin (RFC 4380 §5.1.1); without trailers.
fn packet_of(frame: &[u8]) -> Option<&[u8]> {
    let mut rest = frame.get(14 + 20 + 8..)?;
    if let [0, 1, client, value, ..] = rest {
        rest = rest.get(13 + usize::from(*client) + usize::from(*value)..)?;
    }
    if let [0, 0, ..] = rest {
        rest = rest.get(8..)?;
    }
    let length = u16::from_be_bytes([*rest.get(4)?, *rest.get(5)?]);
    rest.get(..40 + usize::from(length))
}

fn said_of(network: &Network, capture: &[u8]) -> Result<String> {
    let file = network.folder().join("inner.pcap");
    std::fs::write(&file, capture).asking(|| format!("writing {}", file.display()))?;
    let mut tcpdump = command("tcpdump")?;
    tcpdump.args(["-nvv", "-r"]).arg(&file);
    Ok(network.host("middle")?.run(tcpdump, Duration::from_secs(20))?.succeeded()?.stdout)
}
