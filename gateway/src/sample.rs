//! Configurations for tests.

use crate::config::{Config, HostFacts};

/// The configuration of a text, on an unknown host.
pub(crate) fn config(text: &str) -> Config {
    let mut none = |_: &std::path::Path| Ok(String::new());
    Config::parse("sixway.toml", text, &HostFacts::default(), &mut none).unwrap().0
}

/// An address that every host has, which a configuration refuses.
pub(crate) fn localhost(local: &mut crate::config::LocalAddress) {
    let here = std::net::Ipv4Addr::LOCALHOST;
    (local.source, local.found) = (crate::config::LocalSource::Address(here), Some(here));
}
