//! The mechanisms, with what their ends do.

use super::timers::{Interval, Timers};
use crate::device::{
    Aftr, B4, Concentrator, Configured, Device, IsatapHost, IsatapRouter, LeasingHost, Nat46, Nat64,
    Router6to4, Task, TaskKind, TeredoClient, TeredoRelay, TeredoServer,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const C: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xaf, 0, 0, 0, 0, 1);
/// The leasing host's end of its tunnel, and the address of router c at which it asks for leases.
const LEASING: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 0xb);
const LEASES: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbc, 0, 0, 0, 0, 1);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 0, 0, 0, 0, 2);
const SERVER4: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
/// Addresses of a translator at router a that has some of its own.
pub const POOL: &str = "198.18.64.0/28";
/// The server of NAT46 as IPv4 hosts write it.
const SERVER46: Ipv4Addr = Ipv4Addr::new(192, 168, 46, 80);

/// The server as a client writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address.
    pub address: IpAddr,
    /// The server's own address at which packets arrive: another one behind a translator. The server has several, and answers from this one only if
    /// its socket is bound to it.
    pub arrives_at: IpAddr,
}

impl Target {
    /// Not translated.
    const fn own(address: IpAddr) -> Self {
        Self { address, arrives_at: address }
    }
}

/// All IPv4.
pub const NATIVE4: Target = Target::own(IpAddr::V4(SERVER4));
/// All IPv6.
pub const NATIVE6: Target = Target::own(IpAddr::V6(SERVER6));

/// The first address of the Teredo server, the relay's addresses, and the far host's, in a network of their own.
const TEREDO_SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const TEREDO_RELAY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 34);
const TEREDO_RELAY6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const TEREDO_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
/// The far host's IPv4 address there.
pub const TEREDO_HOST4: Ipv4Addr = Ipv4Addr::new(10, 5, 0, 2);

/// A mechanism between its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A configured tunnel of IPv6 in IPv4 between routers a and c.
    Configured,
    /// 6to4 between routers a and c.
    SixToFour,
    /// ISATAP between the client and router c.
    Isatap,
    /// NAT64 at router a.
    Nat64,
    /// NAT46 at router a.
    Nat46,
    /// DS-Lite: router a is the B4, and router c the AFTR.
    DsLite,
    /// Teredo: a client behind a NAT of IPv4, a server, and a relay in front of a native host, in a network of their own.
    Teredo,
    /// 4over6 between the client, which leases its IPv4 address, and router c.
    FourOverSix,
}

/// What the device does on a host.
pub struct Part {
    /// The host.
    pub host: &'static str,
    /// Its links to clients or tunnels, and those to the rest.
    pub links: (&'static [&'static str], &'static [&'static str]),
    /// What it does there.
    pub task: Task,
}

impl Way {
    /// Those of the paper.
    pub const ALL: [Self; 7] = [
        Self::Configured,
        Self::SixToFour,
        Self::Isatap,
        Self::Nat64,
        Self::Nat46,
        Self::DsLite,
        Self::Teredo,
    ];

    /// The same, and those of which only the control plane is measured. A mechanism's number is its place, from 1.
    pub const EVERY: [Self; 8] = [
        Self::Configured,
        Self::SixToFour,
        Self::Isatap,
        Self::Nat64,
        Self::Nat46,
        Self::DsLite,
        Self::Teredo,
        Self::FourOverSix,
    ];

    /// Its name in series.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::SixToFour => "6to4",
            Self::Isatap => "isatap",
            Self::Nat64 => "nat64",
            Self::Nat46 => "nat46",
            Self::DsLite => "ds-lite",
            Self::Teredo => "teredo",
            Self::FourOverSix => "4over6",
        }
    }

    /// The tasks of a device.
    pub const fn kinds(self) -> &'static [TaskKind] {
        match self {
            Self::Configured => &[TaskKind::Configured],
            Self::SixToFour => &[TaskKind::Router6to4],
            Self::Isatap => &[TaskKind::IsatapRouter, TaskKind::IsatapHost],
            Self::Nat64 => &[TaskKind::Nat64],
            Self::Nat46 => &[TaskKind::Nat46],
            Self::DsLite => &[TaskKind::Aftr, TaskKind::B4],
            Self::Teredo => &[TaskKind::TeredoServer, TaskKind::TeredoRelay, TaskKind::TeredoClient],
            Self::FourOverSix => &[TaskKind::Concentrator, TaskKind::LeasingHost],
        }
    }

    /// The task that Sixway does next to a device that knows only the others.
    pub const fn partners(self) -> Option<TaskKind> {
        match self {
            Self::Isatap => Some(TaskKind::IsatapHost),
            Self::DsLite => Some(TaskKind::Aftr),
            Self::Configured
            | Self::SixToFour
            | Self::Nat64
            | Self::Nat46
            | Self::Teredo
            | Self::FourOverSix => None,
        }
    }

    /// Whether a device does all that this mechanism takes, or all but what its partner does.
    pub fn is_known_to(self, device: &dyn Device) -> bool {
        let mut others = self.kinds().iter().filter(|kind| Some(**kind) != self.partners());
        others.all(|kind| device.tasks().contains(kind))
    }

    /// The server by this mechanism.
    pub const fn target(self) -> Target {
        match self {
            Self::Configured | Self::Isatap => {
                Target::own(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x1c, 0, 0, 0, 0, 2)))
            }
            Self::SixToFour => Target::own(IpAddr::V6(Ipv6Addr::new(0x2002, 0xc633, 0x6401, 1, 0, 0, 0, 2))),
            Self::Nat64 => Target {
                address: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0x0a02, 2)),
                arrives_at: IpAddr::V4(SERVER4),
            },
            Self::Nat46 => Target { address: IpAddr::V4(SERVER46), arrives_at: IpAddr::V6(SERVER6) },
            Self::DsLite | Self::FourOverSix => Target::own(IpAddr::V4(Ipv4Addr::new(10, 3, 0, 2))),
            Self::Teredo => Target::own(IpAddr::V6(TEREDO_HOST)),
        }
    }

    /// The same server by the client's own version of IP, without the mechanism. A client of Teredo has IPv4 only, through the NAT.
    pub const fn native(self) -> Target {
        match (self, self.target().address) {
            (Self::Teredo, _) => Target::own(IpAddr::V4(TEREDO_HOST4)),
            (_, IpAddr::V4(_)) => NATIVE4,
            (_, IpAddr::V6(_)) => NATIVE6,
        }
    }

    /// The host that loads end at.
    pub const fn server(self) -> &'static str {
        if matches!(self, Self::Teredo) { "host" } else { "server" }
    }

    /// Routes of hosts to it, and back, that the network does not have. ISATAP advertises one.
    pub const fn routes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Configured => &[("client", "2001:db8:1c::/64 via 2001:db8:1a::1")],
            Self::FourOverSix => &[
                ("client", "2001:db8:af::/64 via 2001:db8:a::1"),
                ("client", "2001:db8:bc::/64 via 2001:db8:a::1 src 2001:db8:a::2"),
                ("a", "2001:db8:a::b via 2001:db8:a::2"),
            ],
            Self::SixToFour | Self::Isatap | Self::Nat64 | Self::Nat46 | Self::DsLite | Self::Teredo => &[],
        }
    }

    /// What IPsec protects, at each of its parts (see [`crate::device::Change`], `esp`): what the mechanism sends from router a to c and back, and native
    /// IPv6 of the sites. `None`: its ends are others.
    pub fn protection(self) -> Option<[String; 2]> {
        let ends = |[own, other]: [Ipv4Addr; 2], [own6, other6]: [&str; 2], [near, far]: [&str; 2]| {
            format!("{own} {other} {own}/32 {other}/32 {own6} {other6} {near} {far}")
        };
        let (routers, sites) = (["2001:db8:ab::1", "2001:db8:bc::1"], ["2001:db8:a::/64", "2001:db8:c::/64"]);
        let turned = |[near, far]: [&'static str; 2]| [far, near];
        match self {
            Self::Configured | Self::SixToFour => {
                Some([ends([A, C], routers, sites), ends([C, A], turned(routers), turned(sites))])
            }
            Self::Isatap | Self::Nat64 | Self::Nat46 | Self::DsLite | Self::Teredo | Self::FourOverSix => {
                None
            }
        }
    }

    /// How often an idle end sends; `None`: never.
    pub fn interval(self) -> Option<Interval> {
        match self {
            Self::Isatap => Some(Interval::of_solicitations()),
            Self::Teredo => Some(Interval::of_refreshes()),
            Self::FourOverSix => Some(Interval::of_leases()),
            Self::Configured | Self::SixToFour | Self::Nat64 | Self::Nat46 | Self::DsLite => None,
        }
    }

    /// What the device does, in the order in which it is started.
    pub fn parts(self, timers: Timers) -> Vec<Part> {
        let a = |task| Part { host: "a", links: (&["in0"], &["out0"]), task };
        let c = |task| Part { host: "c", links: (&["in0"], &["out0"]), task };
        let c_backwards = |task| Part { host: "c", links: (&["out0"], &["in0"]), task };
        match self {
            Self::Configured => {
                let end = |local, remote, prefix: &str| {
                    Task::Configured(Configured { local, remote, prefixes: vec![prefix.to_owned()] })
                };
                vec![a(end(A, C, "2001:db8:1c::/64")), c(end(C, A, "2001:db8:1a::/64"))]
            }
            Self::SixToFour => {
                let end = |address, relay| Task::Router6to4(Router6to4 { address, relay, nat: None });
                let (near, far) = (Ipv4Addr::new(192, 0, 2, 2), Ipv4Addr::new(198, 51, 100, 2));
                vec![a(end(A, near)), c(end(C, far))]
            }
            Self::Isatap => {
                let router = IsatapRouter {
                    address: C,
                    prefix: "2001:db8:5::/64".to_owned(),
                    lifetime: timers.lifetime(),
                };
                let host = Task::IsatapHost(IsatapHost {
                    address: CLIENT,
                    router: C,
                    is_eager: timers == Timers::Short,
                });
                vec![
                    c_backwards(Task::IsatapRouter(router)),
                    Part { host: "client", links: (&[], &["up0"]), task: host },
                ]
            }
            Self::Nat64 => {
                vec![a(Task::Nat64(Nat64 {
                    prefix: "2001:db8:64::/96".to_owned(),
                    pool: vec![POOL.to_owned()],
                    sessions: None,
                }))]
            }
            Self::Nat46 => vec![a(Task::Nat46(Nat46 {
                clients: "10.1.0.0/24".to_owned(),
                pool: "192.168.46.0/24".to_owned(),
                prefix: "2001:db8:46::/96".to_owned(),
                servers: vec![(SERVER46, SERVER6)],
            }))],
            Self::DsLite => {
                let aftr = Aftr {
                    address: AFTR,
                    clients: "2001:db8:ab::/48".to_owned(),
                    pool: vec!["198.18.0.0/28".to_owned()],
                };
                vec![c_backwards(Task::Aftr(aftr)), a(Task::B4(B4 { aftr: AFTR }))]
            }
            Self::FourOverSix => {
                let concentrator = Concentrator {
                    address: AFTR,
                    clients: "2001:db8:a::/48".to_owned(),
                    pool: vec!["198.18.0.16/29".to_owned()],
                    lease: timers.lease(),
                };
                let host = LeasingHost {
                    local: LEASING,
                    concentrator: AFTR,
                    server: LEASES,
                    destinations: vec!["10.3.0.0/24".to_owned()],
                };
                let links: (&[&str], &[&str]) = (&[], &["up0"]);
                vec![
                    c_backwards(Task::Concentrator(concentrator)),
                    Part { host: "client", links, task: Task::LeasingHost(host) },
                ]
            }
            Self::Teredo => {
                let relay = TeredoRelay { address: TEREDO_RELAY, address6: TEREDO_RELAY6 };
                let server = TeredoServer { address: TEREDO_SERVER };
                let client = TeredoClient { server: TEREDO_SERVER, interval: timers.refresh() };
                let up: &[&str] = &["up0"];
                vec![
                    Part { host: "gateway", links: (&["in0"], &["out0"]), task: Task::TeredoRelay(relay) },
                    Part { host: "server", links: (&[], up), task: Task::TeredoServer(server) },
                    Part { host: "client", links: (&[], up), task: Task::TeredoClient(client) },
                ]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parts_do_is_what_a_device_must_be_able_to_do() {
        assert_eq!(Way::EVERY[..Way::ALL.len()], Way::ALL);
        let known = |name: &str| -> Vec<Way> {
            let device = crate::device::find(name).unwrap();
            Way::ALL.into_iter().filter(|way| way.is_known_to(device)).collect()
        };
        assert_eq!(known("sixway"), Way::ALL);
        assert_eq!(known("linux-sit"), [Way::Configured, Way::SixToFour, Way::Isatap]);
        assert_eq!(known("linux-ip6tnl"), [Way::DsLite]);
        assert_eq!((known("jool"), known("miredo")), (vec![Way::Nat64], vec![Way::Teredo]));
        assert_eq!(known("isatapd"), [], "in a guest it would be the load's own host");
        for (place, way) in Way::EVERY.into_iter().enumerate() {
            assert_eq!(way as usize, place, "{way:?} has another number");
            for part in way.parts(Timers::Usual) {
                assert!(way.kinds().contains(&part.task.kind()), "{way:?}");
            }
            assert_ne!(way.target(), way.native(), "{way:?}");
            let is_translated = matches!(way, Way::Nat64 | Way::Nat46);
            let target = way.target();
            assert_eq!(target.address != target.arrives_at, is_translated, "{way:?}");
            assert_eq!(target.address.is_ipv6() != target.arrives_at.is_ipv6(), is_translated, "{way:?}");
            let is_same = way.target().address.is_ipv6() == way.native().address.is_ipv6();
            assert_eq!(is_same, way != Way::Teredo, "{way:?}: a client of Teredo has no native IPv6");
        }
    }
}
