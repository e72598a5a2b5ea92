//! Mappings as text, for a file that the next server reads. A line that says nothing sensible is left out, and so is one that was cut off. Then the
//! Epoch Time begins again, so that its client renews the mapping (RFC 6887 §8.5).
//!
//! ```text
//!     sixway-pcp 1 SAVED EPOCH
//!     tcp 192.168.1.2 80 192.0.2.1:8080 1 NONCE 3599 192.168.1.2 40000 host any 198.51.100.0/24:0,203.0.113.7/32:53
//! ```

use super::filter::{Filter, MOST_FILTERS};
use super::mapping::{Internal, Mapping, Nonce, Transport};
use super::recovery::KeptMapping;
use core::fmt::Write as _;
use core::net::{IpAddr, SocketAddr, SocketAddrV4};
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;

const TITLE: &str = "sixway-pcp";
const VERSION: &str = "1";

/// The text: `saved` is in seconds of a clock that goes on while the host is off.
pub fn write(saved: u64, epoch: u32, kept: &[KeptMapping]) -> String {
    let mut text = format!("{TITLE} {VERSION} {saved} {epoch}\n");
    for KeptMapping { mapping, remaining } in kept {
        // A string takes everything.
        let _ = line(&mut text, mapping, *remaining);
    }
    text
}

fn line(text: &mut String, mapping: &Mapping, remaining: u32) -> core::fmt::Result {
    let transport = match mapping.transport {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
    };
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
    writeln!(text)
}

/// The Epoch Time, and mappings that have not ended. `None`: the text is another one. `now` is of the same clock as `saved` was.
pub fn read(text: &str, now: u64) -> Option<(u32, Vec<KeptMapping>)> {
    let (first, rest) = text.split_once('\n')?;
    let mut words = first.split(' ');
    if words.next() != Some(TITLE) || words.next() != Some(VERSION) {
        return None;
    }
    let saved: u64 = words.next()?.parse().ok()?;
    let epoch: u32 = words.next()?.parse().ok()?;
    let passed = u32::try_from(now.saturating_sub(saved)).unwrap_or(u32::MAX);
    let (whole, cut_off) = rest.rsplit_once('\n').unwrap_or(("", rest));
    let parsed: Vec<Option<KeptMapping>> = whole.lines().map(parse).collect();
    let is_damaged = !cut_off.is_empty() || parsed.iter().any(Option::is_none);
    let kept = parsed.into_iter().flatten().filter_map(|kept| {
        let remaining = kept.remaining.checked_sub(passed).filter(|left| *left > 0)?;
        Some(KeptMapping { remaining, ..kept })
    });
    let epoch = if is_damaged { 0 } else { epoch.saturating_add(passed) };
    Some((epoch, kept.collect()))
}

fn parse(line: &str) -> Option<KeptMapping> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let transport = match next()? {
        "tcp" => Transport::Tcp,
        "udp" => Transport::Udp,
        _ => return None,
    };
    let internal = Internal { address: next()?.parse().ok()?, port: next()?.parse().ok()? };
    let external: SocketAddrV4 = next()?.parse().ok()?;
    let size: u16 = next()?.parse().ok()?;
    let nonce = nonce(next()?)?;
    let remaining = next()?.parse().ok()?;
    let (client, client_port): (IpAddr, u16) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let is_third_party = word(next()?, "host", "other")?;
    let prefers_failure = word(next()?, "any", "this")?;
    let filters = filters(next()?)?;
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
        is_third_party,
        prefers_failure,
    };
    Some(KeptMapping { mapping, remaining })
}

fn word(word: &str, no: &str, yes: &str) -> Option<bool> {
    if word == yes { Some(true) } else { (word == no).then_some(false) }
}

/// `Some(None)`: there is none.
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
