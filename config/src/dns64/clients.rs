//! What clients learn about this server: cookies, and where it serves TLS and HTTPS.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;
use sixway_control::dns64::{CookieSecret, Designated, DesignatedTransport};

use super::context::Dns64Context;
use super::domain_name::Name;
use super::listening::Listening;
use crate::section::Reader;

/// The path of queries over HTTPS, as a template (RFC 9461 §5).
const DOH_PATH: &str = "/dns-query{?dns}";

/// Maximum number of secrets that are accepted at the same time.
const MOST_SECRETS: usize = 4;

/// What clients learn of this server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientSettings {
    /// The file with the secrets of cookies; `None`: a random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie_secret: Option<PathBuf>,
    /// What it holds, the newest first.
    #[serde(skip)]
    pub secrets: Vec<CookieSecret>,
    /// The name in the certificate; `None`: TLS and HTTPS are not announced to hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub designated_name: Option<Name>,
}

impl ClientSettings {
    pub(super) fn read(
        section: &Reader,
        listening: Option<&Listening>,
        context: &mut Dns64Context,
    ) -> Option<Self> {
        let designated_name = match section.value("designated_name", context.report) {
            None => None,
            Some(value) => {
                let is_secured =
                    listening.is_none_or(|it| !it.listen_tls.is_empty() || !it.listen_https.is_empty());
                if !is_secured {
                    let what = "has no effect without listen_tls or listen_https; remove it";
                    context.report.warn(&value.place, what);
                }
                Some(Name::read(&value, context.report)?)
            }
        };
        let (mut cookie_secret, mut secrets) = (None, Vec::new());
        if let Some(value) = section.value("cookie_secret", context.report) {
            let path = value.path(context.report)?;
            let text = match (context.read_file)(&path) {
                Ok(text) => text,
                Err(error) => {
                    context.report.fault(&value.place, format!("cannot be read: {error}"));
                    return None;
                }
            };
            let Some(read) = read_secrets(&text) else {
                let what = "has other lines than 1 to 4 secrets of 32 hexadecimal digits, the newest first; \
                            `openssl rand -hex 16` makes one";
                context.report.fault(&value.place, what);
                return None;
            };
            (cookie_secret, secrets) = (Some(path), read);
        }
        Some(Self { cookie_secret, secrets, designated_name })
    }

    /// The records of `_dns.resolver.arpa` (RFC 9462 §4).
    pub(super) fn designated(&self, listening: &Listening) -> Vec<Designated> {
        let Some(name) = &self.designated_name else { return Vec::new() };
        let https = DesignatedTransport::Https(DOH_PATH.into());
        [(&listening.listen_tls, DesignatedTransport::Tls), (&listening.listen_https, https)]
            .into_iter()
            .flat_map(|(sockets, transport)| by_port(sockets).map(move |it| (it, transport.clone())))
            .map(|((port, addresses), transport)| {
                let known = || addresses.iter().filter(|address| !address.is_unspecified());
                Designated {
                    name: name.wire(),
                    transport,
                    port,
                    v4: known()
                        .filter_map(|it| if let IpAddr::V4(it) = it { Some(*it) } else { None })
                        .collect(),
                    v6: known()
                        .filter_map(|it| if let IpAddr::V6(it) = it { Some(*it) } else { None })
                        .collect(),
                }
            })
            .collect()
    }
}

/// The addresses at each port.
fn by_port(sockets: &[SocketAddr]) -> impl Iterator<Item = (u16, Vec<IpAddr>)> + use<> {
    let mut ports: Vec<(u16, Vec<IpAddr>)> = Vec::new();
    for socket in sockets {
        match ports.iter_mut().find(|(port, _)| *port == socket.port()) {
            Some((_, addresses)) => addresses.push(socket.ip()),
            None => ports.push((socket.port(), vec![socket.ip()])),
        }
    }
    ports.into_iter()
}

fn read_secrets(text: &str) -> Option<Vec<CookieSecret>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let secrets: Option<Vec<CookieSecret>> = lines.map(secret).collect();
    secrets.filter(|secrets| !secrets.is_empty() && secrets.len() <= MOST_SECRETS)
}

fn secret(digits: &str) -> Option<CookieSecret> {
    let is_secret = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_secret.then(|| u128::from_str_radix(digits, 16).ok()).flatten().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_lines_of_hexadecimal_digits() {
        let one = "e5e973e5a6b2a43f48e7dc849e37bfcf";
        let two = format!("{one}\n\n  00000000000000000000000000000001\n");
        assert_eq!(read_secrets(&two).unwrap()[1][15], 1);
        assert_eq!(read_secrets(one).unwrap()[0][..2], [0xe5, 0xe9]);
        for bad in ["", "e5", &format!("{one}0"), &format!("+{}", &one[1..]), &format!("{one}\n").repeat(5)] {
            assert_eq!(read_secrets(bad), None, "{bad}");
        }
    }
}
