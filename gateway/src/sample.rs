//! Configurations for tests.

use crate::config::{Config, HostFacts};

/// The configuration of a text, on a host of which nothing is known.
pub(crate) fn config(text: &str) -> Config {
    let mut none = |_: &std::path::Path| Ok(String::new());
    Config::parse("sixway.toml", text, &HostFacts::default(), &mut none).unwrap().0
}
