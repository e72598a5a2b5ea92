//! Mappings as text, for a file that the next server reads. An invalid or truncated line is ignored. Then the
//! Epoch Time begins again, so that its client renews the mapping (RFC 6887 §8.5).
//!
//! ```text
//!     sixway-pcp 2 SAVED EPOCH 192.0.2.0/30,192.0.2.9/32
//!     tcp 192.168.1.2 80 192.0.2.1:8080 1 NONCE 3599 192.168.1.2 40000 host any 198.51.100.0/24:0,203.0.113.7/32:53 eth1 192.168.1.1
//!     peer tcp 192.168.1.2 4000 198.51.100.9:443 192.0.2.1:9000 NONCE 240
//! ```

use super::filter::{Filter, MOST_FILTERS};
use super::mapping::{AskedAt, Internal, Mapping, Nonce, Transport};
use super::recovery::{Kept, KeptMapping, KeptPeer};
use core::fmt::Write as _;
use core::net::{IpAddr, SocketAddr, SocketAddrV4};
use sixway_dataplane::Instant;
use sixway_wire::{Endpoint4, Prefix4};

const TITLE: &str = "sixway-pcp";
const VERSION: &str = "2";
/// It has neither external addresses nor outbound mappings, and its mappings do not say where they were asked for.
const FIRST_VERSION: &str = "1";

/// The text: `saved` is in seconds of a clock that continues while the host is off.
pub fn write(saved: u64, kept: &Kept) -> String {
    let external = kept.external.iter().flatten().map(ToString::to_string);
    let external = or_dash(external.collect::<Vec<_>>().join(","));
    let mut text = format!("{TITLE} {VERSION} {saved} {} {external}\n", kept.epoch);
    for KeptMapping { mapping, remaining } in &kept.mappings {
        // A string takes everything.
        let _ = line(&mut text, mapping, *remaining);
    }
    for peer in &kept.peers {
        let _ = peer_line(&mut text, peer);
    }
    text
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

const fn transport_word(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
    }
}

fn peer_line(text: &mut String, peer: &KeptPeer) -> core::fmt::Result {
    let KeptPeer { internal, remote, external, remaining, .. } = peer;
    let transport = transport_word(peer.transport);
    write!(text, "peer {transport} {} {} {remote} {external} ", internal.address, internal.port)?;
    peer.nonce.0.iter().try_for_each(|octet| write!(text, "{octet:02x}"))?;
    writeln!(text, " {remaining}")
}

fn line(text: &mut String, mapping: &Mapping, remaining: u32) -> core::fmt::Result {
    let transport = transport_word(mapping.transport);
    let Internal { address, port } = mapping.internal;
    write!(text, "{transport} {address} {port} {} {} ", mapping.external, mapping.size)?;
    match mapping.nonce {
        Some(nonce) => nonce.0.iter().try_for_each(|octet| write!(text, "{octet:02x}"))?,
        None => text.push('-'),
    }
    let host = if mapping.is_third_party { "other" } else { "host" };
    let wants = if mapping.prefers_failure { "this" } else { "any" };
    let (client, client_port) = (mapping.client.ip(), mapping.client.port());
    write!(text, " {remaining} {client} {client_port} {host} {wants} ")?;
    if mapping.filters.is_empty() {
        text.push('-');
    }
    for (number, filter) in mapping.filters.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(text, "{comma}{}:{}", filter.remote, filter.port)?;
    }
    match &mapping.asked_at {
        Some(AskedAt { interface, address: Some(address) }) => writeln!(text, " {interface} {address}"),
        Some(AskedAt { interface, address: None }) => writeln!(text, " {interface} -"),
        None => writeln!(text, " - -"),
    }
}

/// What has not ended. `None`: the text is another one. `now` is of the same clock as `saved` was.
pub fn read(text: &str, now: u64) -> Option<Kept> {
    let (first, rest) = text.split_once('\n')?;
    let mut words = first.split(' ');
    let is_first_version = match (words.next()?, words.next()?) {
        (TITLE, VERSION) => false,
        (TITLE, FIRST_VERSION) => true,
        _ => return None,
    };
    let saved: u64 = words.next()?.parse().ok()?;
    let epoch: u32 = words.next()?.parse().ok()?;
    let external = if is_first_version { None } else { Some(external(words.next()?)?) };
    let passed = u32::try_from(now.saturating_sub(saved)).unwrap_or(u32::MAX);
    let (whole, cut_off) = rest.rsplit_once('\n').unwrap_or(("", rest));
    let mut kept = Kept { external, ..Kept::default() };
    let mut is_damaged = !cut_off.is_empty();
    for line in whole.lines() {
        match (line.strip_prefix("peer "), is_first_version) {
            (Some(line), false) => match parse_peer(line) {
                Some(peer) => kept.peers.push(peer),
                None => is_damaged = true,
            },
            (_, _) => match parse(line, is_first_version) {
                Some(mapping) => kept.mappings.push(mapping),
                None => is_damaged = true,
            },
        }
    }
    let left = |remaining: u32| remaining.checked_sub(passed).filter(|left| *left > 0);
    kept.mappings.retain_mut(|it| left(it.remaining).inspect(|left| it.remaining = *left).is_some());
    kept.peers.retain_mut(|it| left(it.remaining).inspect(|left| it.remaining = *left).is_some());
    kept.epoch = if is_damaged { 0 } else { epoch.saturating_add(passed) };
    Some(kept)
}

fn external(text: &str) -> Option<Vec<Prefix4>> {
    if text == "-" {
        return Some(Vec::new());
    }
    text.split(',').map(|prefix| prefix.parse().ok()).collect()
}

fn transport(word: &str) -> Option<Transport> {
    Transport::ALL.into_iter().find(|transport| transport_word(*transport) == word)
}

fn endpoint(word: &str) -> Option<Endpoint4> {
    let address: SocketAddrV4 = word.parse().ok()?;
    (address.port() != 0).then(|| Endpoint4::new(*address.ip(), address.port()))
}

fn parse_peer(line: &str) -> Option<KeptPeer> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let peer = KeptPeer {
        transport: transport(next()?)?,
        internal: Internal { address: next()?.parse().ok()?, port: next()?.parse().ok()? },
        remote: endpoint(next()?)?,
        external: endpoint(next()?)?,
        nonce: nonce(next()?)??,
        remaining: next()?.parse().ok()?,
    };
    (next().is_none() && peer.internal.port != 0).then_some(peer)
}

fn parse(line: &str, is_first_version: bool) -> Option<KeptMapping> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let transport = transport(next()?)?;
    let internal = Internal { address: next()?.parse().ok()?, port: next()?.parse().ok()? };
    let external: SocketAddrV4 = next()?.parse().ok()?;
    let size: u16 = next()?.parse().ok()?;
    let nonce = nonce(next()?)?;
    let remaining = next()?.parse().ok()?;
    let (client, client_port): (IpAddr, u16) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let is_third_party = word(next()?, "host", "other")?;
    let prefers_failure = word(next()?, "any", "this")?;
    let filters = filters(next()?)?;
    let asked_at = if is_first_version { None } else { asked_at(next()?, next()?)? };
    let is_range = |first: u16| first != 0 && size > 0 && first.checked_add(size - 1).is_some();
    if next().is_some() || !is_range(internal.port) || !is_range(external.port()) {
        return None;
    }
    let mapping = Mapping {
        transport,
        internal,
        external: Endpoint4::new(*external.ip(), external.port()),
        size,
        nonce,
        expires: Instant::default(),
        filters,
        client: SocketAddr::new(client, client_port),
        asked_at,
        is_third_party,
        prefers_failure,
    };
    Some(KeptMapping { mapping, remaining })
}

/// `Some(None)`: it is not known.
fn asked_at(interface: &str, address: &str) -> Option<Option<AskedAt>> {
    let address = if address == "-" { None } else { Some(address.parse().ok()?) };
    match (interface, address) {
        ("", _) | ("-", Some(_)) => None,
        ("-", None) => Some(None),
        (_, _) => Some(Some(AskedAt { interface: interface.into(), address })),
    }
}

fn word(word: &str, no: &str, yes: &str) -> Option<bool> {
    if word == yes { Some(true) } else { (word == no).then_some(false) }
}

/// `Some(None)`: it does not exist.
fn nonce(text: &str) -> Option<Option<Nonce>> {
    if text == "-" {
        return Some(None);
    }
    let mut octets = [0; 12];
    if text.len() != 2 * octets.len() || !text.is_ascii() {
        return None;
    }
    for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(Some(Nonce(octets)))
}

fn filters(text: &str) -> Option<Vec<Filter>> {
    if text == "-" {
        return Some(Vec::new());
    }
    let filter = |text: &str| {
        let (remote, port) = text.split_once(':')?;
        Some(Filter { remote: remote.parse().ok()?, port: port.parse().ok()? })
    };
    let filters: Vec<Filter> = text.split(',').map(filter).collect::<Option<_>>()?;
    (filters.len() <= MOST_FILTERS).then_some(filters)
}
