//! Ways between subscribers and the server: what the device does, and how each end writes the other.

use crate::device::{Device, Forward, Host6to4, Nat44, Nat64, Router6to4, Task, TaskKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The series through a translator or a NAT.
pub const TRANSLATED: &str = "udp";
/// The series through a 6to4 tunnel.
pub const TUNNEL: &str = "tunnel";

/// The device's own address at the server's link.
pub const DEVICE4: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
/// The server's addresses.
pub const SERVER4: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 2);
pub const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 2);
/// Addresses of the server at which nobody listens: it drops what frames bring there immediately.
pub const NOBODY4: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 3);
pub const NOBODY6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 3);

const PREFIX: &str = "2001:2:0:6464::/96";
const POOL: &str = "198.19.1.1/32";
/// Both through NAT64.
const SERVER64: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x6464, 0, 0, 0xc613, 2);
const NOBODY64: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x6464, 0, 0, 0xc613, 3);
/// Both through 6to4: the outer destination is [`SERVER4`] and [`NOBODY4`].
const SERVER_6TO4: Ipv6Addr = Ipv6Addr::new(0x2002, 0xc613, 2, 0, 0, 0, 0, 1);
const NOBODY_6TO4: Ipv6Addr = Ipv6Addr::new(0x2002, 0xc613, 3, 0, 0, 0, 0, 1);
/// Sources of frames at the heavy subscriber: the last 16 bits are the program's.
const HEAVY4: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 0);
const HEAVY6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 1, 0);
const HEAVY_6TO4: Ipv6Addr = Ipv6Addr::new(0x2002, 0xc613, 1, 1, 0, 0, 1, 0);

/// What the device does between subscribers and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// NAT64.
    Nat64,
    /// NAT44.
    Nat44,
    /// 6to4: the device is the subscribers' router, and the server a 6to4 host.
    SixToFour,
    /// Native IPv6.
    Native,
}

impl Way {
    /// The first way of a series that the device can do.
    pub fn of(series: &str, device: &dyn Device) -> Option<Self> {
        let ways: &[Self] = match series {
            TUNNEL => &[Self::SixToFour, Self::Native],
            _ => &[Self::Nat64, Self::Nat44, Self::Native],
        };
        ways.iter().copied().find(|way| device.tasks().contains(&way.kind()))
    }

    const fn kind(self) -> TaskKind {
        match self {
            Self::Nat64 => TaskKind::Nat64,
            Self::Nat44 => TaskKind::Nat44,
            Self::SixToFour => TaskKind::Router6to4,
            Self::Native => TaskKind::Forward,
        }
    }

    /// What the device is started with.
    pub fn task(self, device: &dyn Device) -> Task {
        match self {
            Self::Nat64 => {
                let pool = if device.has_pool() { vec![POOL.to_owned()] } else { Vec::new() };
                Task::Nat64(Nat64 { prefix: PREFIX.to_owned(), pool, sessions: None })
            }
            Self::Nat44 => Task::Nat44(Nat44 {
                inside: vec!["198.18.0.0/16".to_owned()],
                pool: Vec::new(),
                tunnel_end: None,
            }),
            Self::SixToFour => Task::Router6to4(Router6to4 { address: DEVICE4, relay: SERVER4, nat: None }),
            Self::Native => Task::Forward(Forward),
        }
    }

    /// What the server does for it, if anything.
    pub fn at_server(self) -> Option<Host6to4> {
        let host = Host6to4 { address: SERVER4, relay: DEVICE4 };
        (self == Self::SixToFour).then_some(host)
    }

    /// The subscribers' IPv6 prefix, 48 bits long, without its last colons.
    pub const fn site(self) -> &'static str {
        match self {
            Self::SixToFour => "2002:c613:1",
            Self::Nat64 | Self::Nat44 | Self::Native => "2001:2:0",
        }
    }

    /// The server as subscribers write it.
    pub fn target(self) -> IpAddr {
        match self {
            Self::Nat64 => SERVER64.into(),
            Self::Nat44 => SERVER4.into(),
            Self::SixToFour => SERVER_6TO4.into(),
            Self::Native => SERVER6.into(),
        }
    }

    /// Source and destination of frames.
    pub fn frames(self) -> [IpAddr; 2] {
        match self {
            Self::Nat64 => [HEAVY6.into(), NOBODY64.into()],
            Self::Nat44 => [HEAVY4.into(), NOBODY4.into()],
            Self::SixToFour => [HEAVY_6TO4.into(), NOBODY_6TO4.into()],
            Self::Native => [HEAVY6.into(), NOBODY6.into()],
        }
    }

    /// Whether what arrives at the server is IPv6, after the tunnel's end.
    pub const fn arrives_as_six(self) -> bool {
        matches!(self, Self::SixToFour | Self::Native)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::find;
    use crate::packet::six_to_four;

    #[test]
    fn each_series_has_a_way_for_the_devices_that_can_do_it() {
        let of = |series: &str, name: &str| Way::of(series, find(name).unwrap());
        assert_eq!(of(TRANSLATED, "sixway"), Some(Way::Nat64));
        assert_eq!(of(TRANSLATED, "kernel-masquerade"), Some(Way::Nat44));
        assert_eq!(of(TRANSLATED, "kernel"), Some(Way::Native));
        assert_eq!(of(TRANSLATED, "linux-sit"), None);
        assert_eq!(of(TUNNEL, "sixway-xdp"), Some(Way::SixToFour));
        assert_eq!(of(TUNNEL, "linux-sit"), Some(Way::SixToFour));
        assert_eq!(of(TUNNEL, "guest-plain"), Some(Way::Native));
        assert_eq!((of(TUNNEL, "jool"), of(TUNNEL, "kernel-masquerade")), (None, None));
    }

    #[test]
    fn addresses_of_the_tunnel_contain_those_of_its_ends() {
        assert_eq!(SERVER_6TO4, six_to_four(SERVER4, 1));
        assert_eq!(NOBODY_6TO4, six_to_four(NOBODY4, 1));
        assert_eq!(HEAVY_6TO4.segments()[..3], six_to_four(DEVICE4, 1).segments()[..3]);
        assert!(HEAVY_6TO4.to_string().starts_with(Way::SixToFour.site()));
    }
}
