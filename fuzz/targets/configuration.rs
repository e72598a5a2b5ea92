//! Any text is a configuration or a list of faults, each with its place and with something to do about it.

use sixway::config::{Config, HostFacts};
use std::io;
use std::path::Path;

pub fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let mut nothing_there = |_: &Path| Err(io::ErrorKind::NotFound.into());
    if let Err(faults) = Config::parse("sixway.toml", &text, &HostFacts::default(), &mut nothing_there) {
        let said = faults.to_string();
        assert!(said.contains("sixway.toml"), "a fault without its file: {said}");
    }
}
