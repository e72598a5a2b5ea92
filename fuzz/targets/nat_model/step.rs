//! What happens in a run, of any octets: few hosts, ports and remotes, so that they meet often.

use super::model::{POOL, SECOND};
use sixway_dataplane::nat::NatProtocol;
use sixway_dataplane::parse::{ACK, FIN, RST, SYN};
use sixway_wire::Endpoint4;
use std::net::Ipv4Addr;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Out {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        remote: u8,
        remote_port: u16,
        flags: u8,
    },
    In {
        protocol: NatProtocol,
        outside: u8,
        remote: u8,
        remote_port: u16,
        flags: u8,
    },
    ErrorFromOutside {
        protocol: NatProtocol,
        outside: u8,
        remote: u8,
        remote_port: u16,
    },
    ErrorFromInside {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        remote: u8,
        remote_port: u16,
    },
    /// One more packet of a session.
    Again {
        session: u8,
        from_inside: bool,
        flags: u8,
    },
    Wait(u64),
    EndSession(u8),
    EndBinding(u8),
    AddStatic {
        protocol: NatProtocol,
        host: u8,
        port: u16,
        outside: u8,
    },
    RemoveStatic(u8),
    /// New flows of a host from several ports.
    Burst {
        protocol: NatProtocol,
        host: u8,
        first: u16,
        count: u8,
    },
    /// An address of the pool is drained, or given again.
    Drain {
        address: u8,
        drains: bool,
    },
}

const PROTOCOLS: [NatProtocol; 7] = [
    NatProtocol::Tcp,
    NatProtocol::Tcp,
    NatProtocol::Tcp,
    NatProtocol::Tcp,
    NatProtocol::Udp,
    NatProtocol::Udp,
    NatProtocol::Icmp,
];

const FLAGS: [u8; 16] = [
    SYN,
    SYN,
    SYN,
    SYN,
    SYN | ACK,
    SYN | ACK,
    SYN | ACK,
    ACK,
    ACK,
    ACK,
    ACK,
    FIN | ACK,
    FIN | ACK,
    FIN | ACK,
    RST,
    RST,
];

const SECONDS: [u64; 8] = [6, 60, 240, 300, 7_200, 7_440, 1, 120];

/// Octets of a step.
pub(crate) const OCTETS: usize = 8;

/// An octet as one of these.
fn pick<T: Copy, const N: usize>(of: [T; N], octet: u8) -> T {
    of[usize::from(octet) % N]
}

impl Step {
    /// A step, of any octets. `in_blocks`: with bursts.
    pub(crate) fn of([what, a, b, c, d, e, f, g]: [u8; OCTETS], in_blocks: bool) -> Self {
        let protocol = pick(PROTOCOLS, a);
        let (host, port) = (b % 3, pick([80, 81, 5_000, 5_001], c));
        let (remote, remote_port) = (d % 4, pick([80, 80, 80, 1_024], e));
        let flags = if f < 16 { g } else { pick(FLAGS, g) };
        match what % 56 {
            0..10 => Self::Out { protocol, host, port, remote, remote_port, flags },
            10..20 => Self::In { protocol, outside: b, remote, remote_port, flags },
            20 => Self::ErrorFromOutside { protocol, outside: b, remote, remote_port },
            21 => Self::ErrorFromInside { protocol, host, port, remote, remote_port },
            22..40 => Self::Again { session: a, from_inside: b % 2 == 0, flags },
            40..46 => Self::Wait(Self::time(a, [b, c, d, e])),
            46 => Self::EndSession(a),
            47 => Self::EndBinding(a),
            48 => Self::AddStatic { protocol, host, port, outside: d },
            49 => Self::RemoveStatic(a),
            50 => Self::Drain { address: a, drains: b % 2 == 0 },
            _ if in_blocks => {
                Self::Burst { protocol, host, first: 10_000 + u16::from(c % 4) * 32, count: d % 70 }
            }
            _ => Self::Out { protocol, host, port, remote, remote_port, flags: SYN },
        }
    }

    fn time(kind: u8, octets: [u8; 4]) -> u64 {
        let any = u64::from(u32::from_be_bytes(octets));
        match kind % 7 {
            0..3 => pick(SECONDS, octets[0]) * SECOND,
            3 => any % 10_000 * SECOND,
            4 | 5 => any * 2 % (8 * SECOND),
            _ => SECOND - 1,
        }
    }
}

/// The third and fourth remote are the pool's own addresses: hairpins.
pub(crate) fn remote(number: u8, port: u16, protocol: NatProtocol) -> Endpoint4 {
    let address = match number {
        0 | 1 => Ipv4Addr::new(203, 0, 113, 1 + number),
        _ => POOL[usize::from(number - 2)],
    };
    Endpoint4::new(address, if protocol == NatProtocol::Icmp { 0 } else { port })
}
