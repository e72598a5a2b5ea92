//! The allocated ports, in a file that outlives a crash: one bit for each port of each address and protocol.
//!
//! ```text
//!     magic  version  networks   address length   address length  …   bits of the first address: TCP, UDP, ICMP   bits of the second …
//! ```

use sixway_dataplane::nat::{NatProtocol, Outside, PortLedger};
use sixway_link::SharedFile;
use sixway_wire::{Endpoint4, Prefix4};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// "6prt", then the version of what follows.
const MAGIC: u32 = 0x3670_7274;
const VERSION: u32 = 1;
const HEADER: usize = 3;
/// Words of a protocol's ports.
const PORTS: usize = 65_536 / 32;
const PROTOCOLS: [NatProtocol; 3] = [NatProtocol::Tcp, NatProtocol::Udp, NatProtocol::Icmp];
/// Words of an address.
const ADDRESS: usize = PORTS * PROTOCOLS.len();
/// Maximum addresses of a ledger, 24 KiB each; larger pools have no ledger.
pub(super) const MOST_ADDRESSES: u64 = 4_096;

/// The ledger, shared by all workers.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    file: Arc<SharedFile>,
    networks: Arc<[Network]>,
}

#[derive(Clone, Copy, Debug)]
struct Network {
    prefix: Prefix4,
    /// The place of its first address' bits.
    start: usize,
}

impl Ledger {
    /// Creates an empty ledger. `None`: too many addresses.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(super) fn create(path: &Path, prefixes: &[Prefix4]) -> io::Result<Option<Self>> {
        let mut prefixes = prefixes.to_vec();
        prefixes.sort_unstable();
        prefixes.dedup();
        let addresses: u64 = prefixes.iter().map(|prefix| count(*prefix)).sum();
        if addresses > MOST_ADDRESSES {
            return Ok(None);
        }
        let words = bits_at(prefixes.len()) + addresses as usize * ADDRESS;
        let file = SharedFile::create(path, words)?;
        let header = [MAGIC, VERSION, prefixes.len() as u32].into_iter();
        let list = prefixes.iter().flat_map(|prefix| [prefix.address().to_bits(), prefix.length().into()]);
        file.words().iter().zip(header.chain(list)).for_each(|(word, value)| word.store(value, Relaxed));
        Ok(Self::of(file))
    }

    /// Opens the ledger of the previous process. `None`: missing or unreadable.
    pub(super) fn open(path: &Path) -> Option<Self> {
        Self::of(SharedFile::open(path).ok()?)
    }

    fn of(file: SharedFile) -> Option<Self> {
        let words = file.words();
        let word = |at: usize| words.get(at).map(|word| word.load(Relaxed));
        if (word(0)?, word(1)?) != (MAGIC, VERSION) {
            return None;
        }
        let number = word(2)? as usize;
        let mut start = bits_at(number);
        let mut networks = Vec::new();
        for index in 0..number.min(words.len()) {
            let (address, length) = (word(HEADER + 2 * index)?, word(HEADER + 2 * index + 1)?);
            let length = u8::try_from(length).ok().filter(|length| *length <= 32)?;
            let prefix = Prefix4::holding(Ipv4Addr::from_bits(address), length);
            networks.push(Network { prefix, start });
            start += count(prefix) as usize * ADDRESS;
        }
        (start <= words.len()).then(|| Self { networks: networks.into(), file: Arc::new(file) })
    }

    /// Every port that is given.
    pub(super) fn each(&self, mut given: impl FnMut(NatProtocol, Outside<Endpoint4>)) {
        for network in self.networks.iter() {
            for number in 0..count(network.prefix) as usize {
                let address = Ipv4Addr::from_bits(network.prefix.address().to_bits() + number as u32);
                for (index, protocol) in PROTOCOLS.into_iter().enumerate() {
                    let start = network.start + number * ADDRESS + index * PORTS;
                    for port in ports(self.file.words().get(start..start + PORTS).unwrap_or_default()) {
                        given(protocol, Outside(Endpoint4::new(address, port)));
                    }
                }
            }
        }
    }

    /// The word and the bit of a port; `None`: it is of no pool.
    fn place(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> Option<(usize, u32)> {
        let Outside(Endpoint4 { address, port }) = outside;
        let behind = self.networks.partition_point(|network| network.prefix.address() <= address);
        let network = self.networks.get(behind.checked_sub(1)?)?;
        if !network.prefix.contains(address) {
            return None;
        }
        let number = (address.to_bits() - network.prefix.address().to_bits()) as usize;
        let index = PROTOCOLS.iter().position(|one| *one == protocol)?;
        let start = network.start + number * ADDRESS + index * PORTS;
        Some((start + usize::from(port) / 32, 1 << (port % 32)))
    }
}

impl PortLedger for Ledger {
    fn handle(&self) -> Box<dyn PortLedger> {
        Box::new(self.clone())
    }

    fn bound(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some((word, bit)) = self.place(protocol, outside) {
            self.file.words()[word].fetch_or(bit, Relaxed);
        }
    }

    fn released(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some((word, bit)) = self.place(protocol, outside) {
            self.file.words()[word].fetch_and(!bit, Relaxed);
        }
    }
}

fn count(prefix: Prefix4) -> u64 {
    1 << (32 - prefix.length())
}

/// Offset of the bits after this number of networks.
fn bits_at(networks: usize) -> usize {
    HEADER + 2 * networks
}

fn ports(words: &[std::sync::atomic::AtomicU32]) -> impl Iterator<Item = u16> {
    words.iter().zip(0u32..).flat_map(|(word, number)| {
        let word = word.load(Relaxed);
        let last = if word == 0 { 0 } else { 32 };
        (0..last).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (number * 32 + bit) as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ledger: &Ledger) -> Vec<String> {
        let mut found = Vec::new();
        ledger.each(|protocol, outside| found.push(format!("{} {}", protocol.name(), outside.0)));
        found
    }

    fn endpoint(text: &str) -> Outside<Endpoint4> {
        let socket: std::net::SocketAddrV4 = text.parse().unwrap();
        Outside(Endpoint4::new(*socket.ip(), socket.port()))
    }

    #[test]
    fn ports_that_were_given_at_a_sudden_end_are_read_from_the_file() {
        let path = std::env::temp_dir().join(format!("sixway-ledger-{}", std::process::id()));
        let prefixes = ["192.0.2.8/30".parse().unwrap(), "192.0.2.0/31".parse().unwrap()];
        let mut ledger = Ledger::create(&path, &prefixes).unwrap().unwrap();
        let mut other = ledger.clone();
        ledger.bound(NatProtocol::Tcp, endpoint("192.0.2.1:65535"));
        other.bound(NatProtocol::Udp, endpoint("192.0.2.11:1024"));
        other.bound(NatProtocol::Udp, endpoint("192.0.2.11:1025"));
        ledger.bound(NatProtocol::Icmp, endpoint("192.0.2.8:0"));
        ledger.bound(NatProtocol::Icmp, endpoint("192.0.2.12:0"));
        ledger.bound(NatProtocol::Icmp, endpoint("192.0.2.2:0"));
        ledger.released(NatProtocol::Udp, endpoint("192.0.2.11:1025"));
        ledger.released(NatProtocol::Udp, endpoint("192.0.2.11:1026"));
        drop((ledger, other));
        let given = ["tcp 192.0.2.1:65535", "icmp 192.0.2.8:0", "udp 192.0.2.11:1024"];
        assert_eq!(all(&Ledger::open(&path).unwrap()), given);
        let anew = Ledger::create(&path, &prefixes).unwrap().unwrap();
        assert_eq!(all(&anew), Vec::<String>::new());
        for octets in [0, 7, 100] {
            std::fs::write(&path, vec![0x36; octets]).unwrap();
            assert!(Ledger::open(&path).is_none(), "{octets} octets");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Ledger::open(&path).is_none());
        assert!(Ledger::create(&path, &["10.0.0.0/8".parse().unwrap()]).unwrap().is_none());
    }
}
