//! A host finds the prefix (RFC 7050) and uses it. Debian 12 packages no client that does it alone, so a test does it step by step, for each
//! length of prefix.

use super::{address, asker};
use crate::Interop;
use sixway_lab::dns64::{Asker, Flags};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::name_service::{DNS64, RESOLVER, serve};
use sixway_lab::probe::ping;
use sixway_lab::topology::client_gateway_server;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_host_finds_the_prefix_and_pings_through_it",
        &["sixway", "nsd", "taskset", "ping"],
        pings,
    ),
    Interop::new("a_host_finds_prefixes_of_each_length", &["sixway", "nsd", "taskset"], each_length),
    Interop::new("a_host_finds_all_of_several_prefixes", &["sixway", "nsd", "taskset"], several),
];

const NAME: &str = "ipv4only.arpa";
const KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// The position of the IPv4 address in addresses with such a prefix (RFC 6052 §2.2); octet 8 is left out.
const LENGTHS: [(u8, [usize; 4]); 6] = [
    (96, [12, 13, 14, 15]),
    (64, [9, 10, 11, 12]),
    (56, [7, 9, 10, 11]),
    (48, [6, 7, 9, 10]),
    (40, [5, 6, 7, 9]),
    (32, [4, 5, 6, 7]),
];

/// A prefix as a host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    prefix: Ipv6Addr,
    length: u8,
}

impl Found {
    /// RFC 7050 §3: the position of one of the two known addresses.
    fn within(synthesised: Ipv6Addr) -> Option<Self> {
        let octets = synthesised.octets();
        let known = |places: &[usize; 4]| KNOWN.contains(&places.map(|place| octets[place]).into());
        let (length, _) = LENGTHS.into_iter().find(|(_, places)| known(places))?;
        let mut prefix = octets;
        prefix[usize::from(length) / 8..].fill(0);
        Some(Self { prefix: prefix.into(), length })
    }

    /// The address behind this prefix.
    fn embed(self, address: Ipv4Addr) -> Ipv6Addr {
        let mut octets = self.prefix.octets();
        let places = LENGTHS.into_iter().find(|(length, _)| *length == self.length).map(|(_, places)| places);
        for (place, octet) in places.into_iter().flatten().zip(address.octets()) {
            octets[place] = octet;
        }
        octets.into()
    }
}

/// All steps of a host (RFC 7050 §3, §3.1, without validation).
fn discover(asker: &Asker) -> Result<Vec<Found>> {
    let reply = asker.ask(NAME, "AAAA", Flags::NONE)?;
    let synthesised: Vec<Ipv6Addr> = reply.data("AAAA").iter().filter_map(|data| data.parse().ok()).collect();
    let mut found = Vec::new();
    for one in &synthesised {
        let prefix = Found::within(*one)
            .ok_or_else(|| Failure::Unexpected(format!("{one} has neither of {KNOWN:?}")))?;
        let named = asker.ask(&reverse(*one), "PTR", Flags::NONE)?;
        assert_eq!(named.data("PTR"), [format!("{NAME}.")], "the PTR of {one}: {named:?}");
        found.push(prefix);
    }
    found.sort_unstable();
    let all: Vec<_> = found.chunks(2).flat_map(|pair| KNOWN.map(|known| pair[0].embed(known))).collect();
    assert!(
        all.len() == synthesised.len() && synthesised.iter().all(|one| all.contains(one)),
        "both known addresses behind each prefix: {synthesised:?}"
    );
    found.dedup();
    Ok(found)
}

fn reverse(address: Ipv6Addr) -> String {
    let nibbles = address.octets().into_iter().rev().flat_map(|octet| [octet & 15, octet >> 4]);
    nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa"
}

fn pings() -> Result<()> {
    let network = client_gateway_server()?;
    serve(&network, "")?;
    run_sixway(&network, &format!("{NAT64}{DNS64}"))?;
    let asker = asker(&network)?;
    let found = discover(&asker)?;
    assert_eq!(found, [Found { prefix: address("64:ff9b::"), length: 96 }]);
    let server = found[0].embed(Ipv4Addr::new(203, 0, 113, 2)).to_string();
    let trips = ping(network.host("client")?, &server, 3, 56, Duration::from_millis(5))?;
    assert_eq!(trips.answered, 3);
    // What the host does not need to ask for, but others do (RFC 8880 §7.1).
    assert_eq!(asker.ask(NAME, "A", Flags::NONE)?.data("A"), ["192.0.0.170", "192.0.0.171"]);
    assert_eq!(asker.ask(&format!("x.{NAME}"), "AAAA", Flags::NONE)?.rcode, "NXDOMAIN");
    let signed = Flags { dnssec_ok: true, checking_disabled: true, authentic: false };
    assert_eq!(asker.ask(NAME, "AAAA", signed)?.data("AAAA").len(), 2, "a host that validates");
    Ok(())
}

/// A DNS64 alone, before a translator that is elsewhere.
fn found_with(prefixes: &str) -> Result<Vec<Found>> {
    let network = client_gateway_server()?;
    let alone = DNS64.replace(
        "[dns64]\n",
        &format!("[gateway]\n[dns64]\nprefix = {prefixes}\ntranslated_elsewhere = true\n"),
    );
    run_sixway(&network, &alone)?;
    assert!(alone.contains(RESOLVER), "it listens where it is asked");
    discover(&asker(&network)?)
}

fn each_length() -> Result<()> {
    for (length, prefix) in [
        (32, "2001:db8::"),
        (40, "2001:db8:100::"),
        (48, "2001:db8:122::"),
        (56, "2001:db8:122:300::"),
        (64, "2001:db8:122:344::"),
        (96, "2001:db8:122:344::"),
    ] {
        let found = found_with(&format!("\"{prefix}/{length}\""))?;
        assert_eq!(found, [Found { prefix: address(prefix), length }]);
    }
    Ok(())
}

fn several() -> Result<()> {
    let found = found_with("[\"2001:db8:64::/96\", \"2001:db8:65::/96\"]")?;
    let each = ["2001:db8:64::", "2001:db8:65::"];
    assert_eq!(found, each.map(|prefix| Found { prefix: address(prefix), length: 96 }));
    Ok(())
}
