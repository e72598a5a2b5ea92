//! Any text is a file of mappings or none, and what is read of it is written and read again as the same.

use sixway_control::pcp::{Kept, kept};

pub fn run(octets: &[u8]) {
    let Ok(text) = core::str::from_utf8(octets) else { return };
    let Some(read) = kept::read(text, 5_000) else { return };
    for one in &read.mappings {
        let last = u32::from(one.mapping.internal.port) + u32::from(one.mapping.size) - 1;
        assert!(
            one.remaining > 0
                && last <= 65_535
                && one.mapping.ports().count() == usize::from(one.mapping.size)
        );
    }
    let written = kept::write(5_000, &read);
    // What the first version did not have is not known, and then empty.
    let read = Kept { external: Some(read.external.unwrap_or_default()), ..read };
    assert_eq!(kept::read(&written, 5_000), Some(read));
}
