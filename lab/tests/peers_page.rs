//! The table of DNS64 peers is what the code says; `BLESS=1 cargo test -p sixway-lab --test peers_page` writes it.

use std::path::Path;

#[test]
fn the_table_of_dns64_peers_is_made_from_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance/dns64-peers.md");
    let document = sixway_lab::dns64::document::document();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &document).expect("docs/conformance/dns64-peers.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == document,
        "docs/conformance/dns64-peers.md is not what the code says; BLESS=1 cargo test -p sixway-lab --test peers_page"
    );
}
