//! What a Teredo client keeps for its next start: its port and its address. With both it has the same address behind the same mapping.

use sixway_wire::teredo::TeredoAddress;
use std::fs;
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// What is kept.
pub(super) struct Kept {
    path: PathBuf,
    /// The port; 0: none.
    pub(super) port: u16,
    /// The address.
    pub(super) address: Option<TeredoAddress>,
}

impl Kept {
    /// What a gateway of this name left; nothing, if there is no such file.
    pub(super) fn load(gateway: &str) -> Self {
        let path = PathBuf::from(format!("/var/lib/sixway/{gateway}.teredo"));
        let (port, address) = fs::read_to_string(&path).map_or((0, None), |text| parsed(&text));
        Self { path, port, address }
    }

    /// Writes it. A failure costs the address at the next start.
    pub(super) fn save(&self) {
        let address = self.address.map_or_else(|| "-".to_owned(), |own| own.address().to_string());
        let written = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let fresh = self.path.with_extension("teredo.new");
        let written = written.and_then(|()| fs::write(&fresh, format!("{} {address}\n", self.port)));
        let written = written.and_then(|()| fs::rename(&fresh, &self.path));
        if let Err(error) = written {
            tracing::warn!(
                "{}: {error}: the Teredo address is another one after a start",
                self.path.display()
            );
        }
    }
}

fn parsed(text: &str) -> (u16, Option<TeredoAddress>) {
    let mut words = text.split_whitespace();
    let port = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let address = words.next().and_then(|word| word.parse::<Ipv6Addr>().ok());
    (port, address.and_then(TeredoAddress::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_ours_keeps_nothing() {
        assert_eq!(parsed("40001 2001:0:c633:6401::1\n").0, 40_001);
        assert!(parsed("40001 2001:0:c633:6401::1\n").1.is_some());
        assert_eq!(parsed("40001 2001:db8::1"), (40_001, None));
        assert_eq!(parsed(""), (0, None));
        assert_eq!(parsed("70000 -"), (0, None));
    }
}
