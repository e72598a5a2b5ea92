//! Designated resolvers (RFC 9462 §4): a host that queries over UDP finds out where the same DNS64 is available over TLS or HTTPS.

use super::super::settings::{Designated, DesignatedTransport};

/// RFC 9460 §14.3: the parameters of a SVCB record that are written here, in their order.
const ALPN: u16 = 1;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;
/// RFC 9461 §5.
const DOH_PATH: u16 = 7;

/// RDATA of a SVCB record (RFC 9460 §2.2).
pub(super) fn service(designated: &Designated, priority: u16) -> Vec<u8> {
    let (alpn, usual, path) = match &designated.transport {
        DesignatedTransport::Tls => (&b"\x03dot"[..], 853, None),
        DesignatedTransport::Https(path) => (&b"\x02h2"[..], 443, Some(path.as_bytes())),
    };
    let mut data = priority.to_be_bytes().to_vec();
    data.extend(&designated.name.0);
    parameter(&mut data, ALPN, alpn);
    if designated.port != usual {
        parameter(&mut data, PORT, &designated.port.to_be_bytes());
    }
    let four: Vec<u8> = designated.v4.iter().flat_map(|address| address.octets()).collect();
    let six: Vec<u8> = designated.v6.iter().flat_map(|address| address.octets()).collect();
    parameter(&mut data, IPV4_HINT, &four);
    parameter(&mut data, IPV6_HINT, &six);
    parameter(&mut data, DOH_PATH, path.unwrap_or_default());
    data
}

/// An empty one is left out.
fn parameter(data: &mut Vec<u8>, key: u16, value: &[u8]) {
    if !value.is_empty() {
        data.extend(key.to_be_bytes());
        data.extend((value.len() as u16).to_be_bytes());
        data.extend(value);
    }
}
