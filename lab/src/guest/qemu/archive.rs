//! An archive as the kernel unpacks it: cpio in the format "newc" (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! ```text
//! "070701", then 13 numbers of eight hexadecimal digits: inode, mode, owner, group, links, time, length of the content,
//! device (2), its own device (2), length of the name, checksum (0); the name with a zero; the content; both filled up to four octets.
//! ```

/// An archive that grows.
#[derive(Default)]
pub struct Archive {
    octets: Vec<u8>,
    entries: u32,
}

/// Kinds of files, with permissions.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// Adds a folder.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    /// Adds an executable file.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// The archive, with its last entry.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.octets
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        self.octets.extend(b"070701");
        let (length, named) = (content.len() as u32, name.len() as u32 + 1);
        for field in [self.entries, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, named, 0] {
            self.octets.extend(format!("{field:08x}").bytes());
        }
        self.octets.extend(name.bytes().chain([0]));
        self.fill();
        self.octets.extend(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_what_cpio_writes() {
        let mut archive = Archive::default();
        archive.folder("d");
        archive.file("d/f", b"hello");
        let octets = archive.finish();
        let text = String::from_utf8_lossy(&octets);
        assert!(text.starts_with("07070100000001000041ed"), "{text}");
        // 110 octets of header, and "d" with its zero: 112.
        assert_eq!(octets.get(110..118), Some(&b"d\x00070701"[..]));
        assert!(text.contains("d/f\0\0\0hello\0\0\x00070701"));
        assert_eq!(octets.len() % 4, 0);
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }
}
