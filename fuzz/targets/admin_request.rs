//! Each request to the admin API is accepted, or refused with the name of what is wrong. HTTP itself is axum's.
//!
//! Each line of the input is a parameter: inside, outside, remote, protocol.

use sixway::admin::{Named, Query};

pub fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let mut lines = text.lines().map(|line| (!line.is_empty()).then(|| line.to_owned()));
    let mut next = || lines.next().flatten();
    let (inside, outside, remote, protocol) = (next(), next(), next(), next());
    let named = Named {
        protocol: protocol.clone().unwrap_or_default(),
        inside: inside.clone(),
        outside: outside.clone(),
        remote: remote.clone(),
        ..Named::default()
    };
    if let Err(error) = named.binding() {
        assert!(["protocol", "inside", "outside"].iter().any(|name| error.starts_with(name)), "{error}");
    }
    if let Err(error) = named.remote() {
        assert!(error.starts_with("remote"), "{error}");
    }
    let query = Query { inside, outside, remote, protocol, ..Query::default() };
    if let Err(error) = query.filter() {
        assert!(error.to_string().contains(error.name), "{error}");
        assert!(["inside", "outside", "remote", "protocol"].contains(&error.name), "{error}");
    }
}
