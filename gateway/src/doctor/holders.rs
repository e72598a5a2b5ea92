//! Which process has a socket, as /proc tells.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

/// Transport protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }

    /// The tables of both families, and the state of a socket that receives from anybody.
    const fn tables(self) -> ([&'static str; 2], &'static str) {
        match self {
            Self::Tcp => (["tcp", "tcp6"], "0A"),
            Self::Udp => (["udp", "udp6"], "07"),
        }
    }
}

/// Whether the kernel refuses this address and port because another socket has it.
pub(super) fn is_taken(transport: Transport, wanted: SocketAddr) -> bool {
    let bound = match transport {
        Transport::Tcp => TcpListener::bind(wanted).map(drop),
        Transport::Udp => UdpSocket::bind(wanted).map(drop),
    };
    bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
}

/// The inodes of sockets that may receive what is sent to this address and port.
pub(super) fn sockets_at(transport: Transport, wanted: SocketAddr) -> Vec<u64> {
    let (files, state) = transport.tables();
    let tables = files.iter().filter_map(|file| fs::read_to_string(format!("/proc/net/{file}")).ok());
    tables.flat_map(|table| inodes(&table, state, wanted)).collect()
}

/// proc(5): the local address in the second column, the state in the fourth, the inode in the tenth.
fn inodes(table: &str, state: &str, wanted: SocketAddr) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let own = local(columns.get(1)?)?;
        let is_same =
            own.port() == wanted.port() && (own.ip() == wanted.ip() || covers(own.ip(), wanted.ip()));
        (*columns.get(3)? == state && is_same).then(|| columns.get(9)?.parse().ok())?
    });
    rows.collect()
}

/// Whether a socket of one address receives for the other as well, or the other for it.
fn covers(one: IpAddr, other: IpAddr) -> bool {
    let any6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let same_family = one.is_ipv4() == other.is_ipv4();
    // A socket at `::` may receive IPv4 as well.
    one == any6 || other == any6 || same_family && (one.is_unspecified() || other.is_unspecified())
}

/// An address and port as /proc/net writes them: words in the machine's order, and the port in hexadecimal.
pub(super) fn local(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.rsplit_once(':')?;
    let words: Option<Vec<u32>> = (0..address.len() / 8)
        .map(|place| u32::from_str_radix(address.get(8 * place..8 * place + 8)?, 16).ok())
        .collect();
    let octets: Vec<u8> = words?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let address = match <[u8; 4]>::try_from(&*octets) {
        Ok(octets) => IpAddr::V4(Ipv4Addr::from(octets)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&*octets).ok()?)).to_canonical(),
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// The inodes of Unix sockets with this path.
pub(super) fn unix_sockets_at(path: &Path) -> Vec<u64> {
    let Ok(table) = fs::read_to_string("/proc/net/unix") else { return Vec::new() };
    let rows = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_same = columns.get(7).is_some_and(|name| Path::new(name) == path);
        is_same.then(|| columns.get(6)?.parse().ok())?
    });
    rows.collect()
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number.
    pub number: u32,
    /// Its name, at most 15 octets of it.
    pub name: String,
}

/// The processes that have one of these sockets open; none if they are not this user's to look at.
pub(super) fn holders(inodes: &[u64]) -> Vec<Process> {
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let has = |number: &u32| {
        let open = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target.to_str().is_some_and(|target| wanted.iter().any(|one| one == target)))
    };
    let process = |number| {
        let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        Process { number, name: name.trim().to_owned() }
    };
    numbers.into_iter().filter(has).map(process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_has_a_port_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let found = holders(&sockets_at(Transport::Tcp, at));
        assert!(found.iter().any(|one| one.number == std::process::id()), "{found:?}");
        let udp = UdpSocket::bind("[::1]:0").unwrap();
        let at = udp.local_addr().unwrap();
        let found = holders(&sockets_at(Transport::Udp, at));
        assert!(found.iter().any(|one| one.number == std::process::id()), "{found:?}");
        let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), at.port());
        assert_eq!(sockets_at(Transport::Udp, any).len(), 1);
        drop(udp);
        assert_eq!(sockets_at(Transport::Udp, at), [0_u64; 0]);
        assert_eq!(holders(&[]), []);
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let word = u32::from_ne_bytes([192, 0, 2, 1]);
        assert_eq!(local(&format!("{word:08X}:0035")), "192.0.2.1:53".parse().ok());
        assert_eq!(local("00000000000000000000000000000000:0050"), "[::]:80".parse().ok());
        assert_eq!(local("x"), None);
    }
}
