//! The process that has a socket, from /proc.

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv6V6Only, ReuseAddr};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
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

    /// The tables of both families, and the state of a socket that is not connected.
    const fn tables(self) -> ([&'static str; 2], &'static str) {
        match self {
            Self::Tcp => (["tcp", "tcp6"], "0A"),
            Self::Udp => (["udp", "udp6"], "07"),
        }
    }
}

/// Where a socket is to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub transport: Transport,
    pub at: SocketAddr,
    /// Whether a socket at `::` is to receive IPv4 as well.
    pub is_dual: bool,
}

/// Whether the kernel refuses this address and port because another socket has it.
pub(super) fn is_taken(wanted: Place) -> bool {
    let (kind, is_tcp) = match wanted.transport {
        Transport::Tcp => (SockType::Stream, true),
        Transport::Udp => (SockType::Datagram, false),
    };
    let family = if wanted.at.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let bound = socket(family, kind, SockFlag::SOCK_CLOEXEC, None).and_then(|own| {
        if wanted.at.is_ipv6() {
            setsockopt(&own, Ipv6V6Only, &!wanted.is_dual)?;
        }
        // Connections that ended lately are not in the way.
        setsockopt(&own, ReuseAddr, &is_tcp)?;
        bind(own.as_raw_fd(), &SockaddrStorage::from(wanted.at))
    });
    bound == Err(Errno::EADDRINUSE)
}

/// How often the tables of sockets are read. The kernel gives them page by page: a row may be missing, or come twice, when other sockets are
/// opened or closed meanwhile.
const READINGS: usize = 4;

/// The inodes of sockets that may receive what is sent to this address and port.
pub(super) fn sockets_at(wanted: Place) -> Vec<u64> {
    sockets_in(|file| fs::read_to_string(format!("/proc/net/{file}")).ok(), wanted)
}

/// The same, in tables that may lack a row.
fn sockets_in(table: impl FnMut(&str) -> Option<String>, wanted: Place) -> Vec<u64> {
    let (files, state) = wanted.transport.tables();
    let readings = (0..READINGS).flat_map(|_| files);
    let rows = readings.filter_map(table).flat_map(|table| inodes(&table, state, wanted));
    rows.collect::<BTreeSet<_>>().into_iter().collect()
}

/// proc(5): the local address in the second column, the state in the fourth, the inode in the tenth.
fn inodes(table: &str, state: &str, wanted: Place) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let own = local(columns.get(1)?)?;
        let (at, of_other_family) = (wanted.at, own.is_ipv4() && wanted.at.is_ipv6() && !wanted.is_dual);
        let is_same =
            own.port() == at.port() && !of_other_family && (own.ip() == at.ip() || covers(own.ip(), at.ip()));
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
    // Other sockets may have paths that are no UTF-8.
    let Ok(table) = fs::read("/proc/net/unix") else { return Vec::new() };
    let table = String::from_utf8_lossy(&table);
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
    /// Its name, at most 15 octets of it, as it is shown.
    pub name: String,
}

/// The processes that have one of these sockets open; none if this user may not see them.
pub(super) fn holders(inodes: &[u64]) -> Vec<Process> {
    let mut all: Vec<Process> = holders_of_each(inodes).into_iter().flatten().collect();
    all.sort_by_key(|process| process.number);
    all.dedup();
    all
}

/// The processes that have each of these sockets open, by one walk through all descriptors of this host: a process may have a hundred thousand
/// sockets at one port.
pub(super) fn holders_of_each(inodes: &[u64]) -> Vec<Vec<Process>> {
    holders_among(inodes, processes)
}

/// The numbers of all processes.
fn processes() -> Vec<u32> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The same among these processes, which are asked for once.
fn holders_among(inodes: &[u64], processes: impl FnOnce() -> Vec<u32>) -> Vec<Vec<Process>> {
    let places: HashMap<String, usize> =
        inodes.iter().enumerate().map(|(place, inode)| (format!("socket:[{inode}]"), place)).collect();
    let mut all = vec![Vec::new(); inodes.len()];
    if places.is_empty() {
        return all;
    }
    for number in processes() {
        let open = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
        let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        let found: BTreeSet<usize> =
            targets.filter_map(|target| places.get(target.to_str()?).copied()).collect();
        if !found.is_empty() {
            let name = fs::read(format!("/proc/{number}/comm")).unwrap_or_default();
            let process = Process { number, name: shown(&name) };
            found.into_iter().for_each(|place| all[place].push(process.clone()));
        }
    }
    all
}

/// The name of a process, which the process chooses: it must not contain line ends or control the terminal.
fn shown(name: &[u8]) -> String {
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    String::from_utf8_lossy(name).trim().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::net::{TcpListener, UdpSocket};
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_writes_no_lines_of_its_own_by_its_name() {
        assert_eq!(shown(b"systemd-network\n"), "systemd-network");
        assert_eq!(shown(b"x\x1b[2J\nfine\n"), "x\\u{1b}[2J\\nfine");
        assert_eq!(shown(b"\xff\n"), "\u{fffd}");
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn any_address_overlaps_with_another_of_its_family_alone() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = other.local_addr().unwrap().port();
        let place = |any: &str, is_dual| {
            let at = SocketAddr::new(any.parse().unwrap(), port);
            Place { transport: Transport::Udp, at, is_dual }
        };
        for (wanted, expected) in
            [(place("0.0.0.0", false), true), (place("::", true), true), (place("::", false), false)]
        {
            assert_eq!(
                (is_taken(wanted), !sockets_at(wanted).is_empty()),
                (expected, expected),
                "{wanted:?}"
            );
        }
    }

    #[test]
    fn the_process_that_has_a_port_is_named() {
        let place = |transport, at| Place { transport, at, is_dual: false };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let found = holders(&sockets_at(place(Transport::Tcp, at)));
        assert!(found.iter().any(|one| one.number == std::process::id()), "{found:?}");
        let udp = UdpSocket::bind("[::1]:0").unwrap();
        let at = udp.local_addr().unwrap();
        let found = holders(&sockets_at(place(Transport::Udp, at)));
        assert!(found.iter().any(|one| one.number == std::process::id()), "{found:?}");
        let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), at.port());
        assert_eq!(sockets_at(place(Transport::Udp, any)).len(), 1);
        drop(udp);
        // A process that another test starts has a copy of the socket until it executes its program.
        let begun = Instant::now();
        while !sockets_at(place(Transport::Udp, at)).is_empty() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(sockets_at(place(Transport::Udp, at)), [0_u64; 0]);
        assert_eq!(holders(&[]), []);
    }

    /// A walk for each of them would take hours on a host with many descriptors.
    #[test]
    fn many_sockets_at_a_port_are_found_by_one_walk() {
        let sockets: Vec<UdpSocket> = (0..300).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let inodes: Vec<u64> = sockets
            .iter()
            .flat_map(|socket| {
                let at = socket.local_addr().unwrap();
                sockets_at(Place { transport: Transport::Udp, at, is_dual: false })
            })
            .collect();
        assert_eq!(inodes.len(), 300);
        let begun = Instant::now();
        let each = holders_of_each(&inodes);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let is_own = |by: &Vec<Process>| by.iter().any(|one| one.number == std::process::id());
        assert!(each.len() == 300 && each.iter().all(is_own), "{each:?}");
        let all = holders(&inodes);
        assert_eq!(all.iter().filter(|one| one.number == std::process::id()).count(), 1, "named once");
    }

    #[test]
    fn a_path_that_is_no_utf_8_hides_no_other_socket() {
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::net::UnixListener;
        let folder = std::env::temp_dir().join(format!("sixway-holders-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let strange = UnixListener::bind(folder.join(std::ffi::OsStr::from_bytes(b"\xff"))).unwrap();
        let path = folder.join("admin");
        let own = UnixListener::bind(&path).unwrap();
        let found = unix_sockets_at(&path);
        drop((strange, own));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.len(), 1);
    }

    /// udp(7) tables are read in several calls, between which sockets come and go.
    #[test]
    fn a_row_that_one_reading_lacks_or_has_twice_is_one_socket() {
        let row = |inode: u64| {
            format!(
                "  1: 00000000:0043 00000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 {inode} 2 0 0\n"
            )
        };
        let at = "0.0.0.0:67".parse().unwrap();
        let wanted = Place { transport: Transport::Udp, at, is_dual: false };
        let reading = Cell::new(0);
        let found = sockets_in(
            |file| {
                assert!(["udp", "udp6"].contains(&file), "{file}");
                reading.set(reading.get() + 1);
                Some(match reading.get() {
                    1 | 2 => "head\n".to_owned(),
                    3 => format!("head\n{}{}{}", row(7), row(7), row(5)),
                    _ => format!("head\n{}", row(7)),
                })
            },
            wanted,
        );
        assert_eq!(found, [5, 7]);
        assert_eq!(reading.get(), 2 * READINGS);
        assert_eq!(sockets_in(|_| None, wanted), [0_u64; 0]);
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let word = u32::from_ne_bytes([192, 0, 2, 1]);
        assert_eq!(local(&format!("{word:08X}:0035")), "192.0.2.1:53".parse().ok());
        assert_eq!(local("00000000000000000000000000000000:0050"), "[::]:80".parse().ok());
        assert_eq!(local("x"), None);
    }
}
