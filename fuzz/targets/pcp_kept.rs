//! Any text is a file of mappings or none, and what is read of it is written and read again as the same.

use sixway_control::pcp::kept;

pub fn run(octets: &[u8]) {
    let Ok(text) = core::str::from_utf8(octets) else { return };
    let Some((epoch, read)) = kept::read(text, 5_000) else { return };
    for one in &read {
        let last = u32::from(one.mapping.internal.port) + u32::from(one.mapping.size) - 1;
        assert!(
            one.remaining > 0
                && last <= 65_535
                && one.mapping.ports().count() == usize::from(one.mapping.size)
        );
    }
    let written = kept::write(5_000, epoch, &read);
    assert_eq!(kept::read(&written, 5_000), Some((epoch, read)));
}
