//! Which boxes a site has, and who does what on them.

use crate::device::{Device, Forward, Nat44, Realm, Router6to4, SiteGateway, Task, TaskKind, find};
use std::net::Ipv4Addr;

/// The gateway's own address towards the IPv4 network.
pub const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The far site's router.
pub const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The NAT's outside address, which is routed to the gateway.
pub const NAT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
/// The gateway towards the site.
pub const LAN: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
/// The inner box towards the NAT.
pub const BETWEEN: Ipv4Addr = Ipv4Addr::new(192, 168, 2, 1);
/// A relay that does not exist: no packets are sent to native IPv6.
const NOBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 3);
/// IPv4 hosts of the site, the inner box included.
const INSIDE: &str = "192.168.0.0/16";

/// The boxes of a site. The number is its place on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 6to4 and NAT on one box; the tunnel's packets leave with the box's own address.
    CoLocated = 1,
    /// Two boxes: 6to4 behind a NAT that forwards protocol 41, both by the device.
    Decoupled,
    /// 6to4 and NAT on one box, and the tunnel's packets pass the NAT.
    CoLocatedThrough,
    /// Two boxes: the NAT is Linux', 6to4 the device's.
    LinuxNat,
    /// Two boxes: the NAT is the device's, 6to4 Linux', which takes a guest.
    LinuxSix,
}

/// What a box does.
pub struct Part {
    /// The host.
    pub host: &'static str,
    /// Who does it.
    pub device: &'static dyn Device,
    /// What.
    pub task: Task,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::CoLocated, Self::Decoupled, Self::CoLocatedThrough, Self::LinuxNat, Self::LinuxSix];

    /// The one with this number.
    pub fn of(number: f64) -> Option<Self> {
        Self::ALL.into_iter().find(|form| f64::from(*form as u8) == number)
    }

    /// Whether the site has a second box, behind the gateway.
    pub const fn has_two(self) -> bool {
        match self {
            Self::CoLocated | Self::CoLocatedThrough => false,
            Self::Decoupled | Self::LinuxNat | Self::LinuxSix => true,
        }
    }

    /// The outer address of the site's tunnel as others see it.
    pub const fn seen(self) -> Ipv4Addr {
        match self {
            Self::CoLocated => OWN,
            Self::Decoupled | Self::CoLocatedThrough | Self::LinuxNat | Self::LinuxSix => NAT,
        }
    }

    /// Whether IPv6 passes the boxes in a tunnel with this device; else only what needs none passes them. Of a device on another machine there is one, and
    /// another device has the tunnel in front of its NAT, or the NAT in front of its tunnel.
    pub fn has_tunnel(self, device: &dyn Device) -> bool {
        let with_another = match self {
            Self::Decoupled => plays(device, TaskKind::Nat44),
            Self::LinuxNat => plays(device, TaskKind::Router6to4),
            Self::CoLocated | Self::CoLocatedThrough | Self::LinuxSix => false,
        };
        plays(device, TaskKind::SiteGateway) || (is_remote(device) && with_another)
    }

    /// What a device does on the boxes and at the far site, in the order in which it is started; `None` if it cannot.
    pub fn parts(self, device: &'static dyn Device) -> Option<Vec<Part>> {
        if plays(device, TaskKind::Forward) {
            return self.plain(device);
        }
        let gateway = |device, task| Part { host: "gateway", device, task };
        if !self.has_tunnel(device) {
            let is_own = matches!(self, Self::CoLocated | Self::Decoupled);
            return (is_own && plays(device, TaskKind::Nat44)).then(|| vec![gateway(device, nat(None))]);
        }
        let nat = |device| gateway(device, nat(Some(BETWEEN)));
        let (six, linux_nat) = (router_of(device)?, linux(device, TaskKind::Nat44)?);
        let far = Part { host: "far", device: six, task: router(FAR, NOBODY, None) };
        let inner = |device| Part { host: "inner", device, task: router(BETWEEN, FAR, Some(NAT)) };
        let own_nat = plays(device, TaskKind::Nat44).then_some(device);
        let is_linux = device.card().name == LINUX;
        Some(match self {
            Self::CoLocated => vec![far, gateway(device, site(device, None)?)],
            Self::CoLocatedThrough => vec![far, gateway(device, site(device, Some(NAT))?)],
            Self::Decoupled => vec![far, nat(own_nat?), inner(six)],
            Self::LinuxNat if is_remote(device) => {
                let own_six = plays(device, TaskKind::Router6to4).then_some(device);
                vec![far, nat(linux_nat), inner(own_six?)]
            }
            Self::LinuxNat if !is_linux => vec![far, nat(linux_nat), inner(six)],
            Self::LinuxSix if !is_linux => {
                vec![far, nat(own_nat?), inner(linux(device, TaskKind::Router6to4)?)]
            }
            Self::LinuxNat | Self::LinuxSix => return None,
        })
    }

    /// Forwarding by one box or two.
    fn plain(self, device: &'static dyn Device) -> Option<Vec<Part>> {
        let hosts: &[&str] = match self {
            Self::CoLocated => &["far", "gateway"],
            Self::Decoupled => &["far", "gateway", "inner"],
            Self::CoLocatedThrough | Self::LinuxNat | Self::LinuxSix => return None,
        };
        let other = if is_remote(device) { find(PLAIN)? } else { device };
        let who = |host: &str| if host == "gateway" { device } else { other };
        Some(
            hosts.iter().map(|host| Part { host, device: who(host), task: Task::Forward(Forward) }).collect(),
        )
    }
}

/// The name of Linux' whole gateway.
const LINUX: &str = "linux-site-gateway";

/// The 6to4 router of a device on another machine, of which there is one: at the far site, and behind its NAT.
const PARTNER: &str = "sixway";

/// The same for plain forwarding.
const PLAIN: &str = "kernel";

fn is_remote(device: &dyn Device) -> bool {
    device.card().realm == Realm::Remote
}

fn plays(device: &dyn Device, task: TaskKind) -> bool {
    device.tasks().contains(&task)
}

/// The 6to4 router for this device: itself, the tunnel of Linux' gateway, or the partner.
fn router_of(device: &'static dyn Device) -> Option<&'static dyn Device> {
    if is_remote(device) {
        return find(PARTNER);
    }
    if plays(device, TaskKind::Router6to4) { Some(device) } else { linux(device, TaskKind::Router6to4) }
}

/// The router on Linux in the realm of this device: this kernel has NAT, but no 6to4.
fn linux(device: &dyn Device, task: TaskKind) -> Option<&'static dyn Device> {
    let name = match (device.card().realm, task) {
        (Realm::Guest(_), TaskKind::Router6to4) => "linux-sit",
        (Realm::Guest(_), _) => LINUX,
        (Realm::Here | Realm::Remote | Realm::Published, TaskKind::Nat44) => "kernel-masquerade",
        (Realm::Here | Realm::Remote | Realm::Published, _) => return None,
    };
    find(name).filter(|found| plays(*found, task))
}

fn nat(tunnel_end: Option<Ipv4Addr>) -> Task {
    Task::Nat44(Nat44 { inside: vec![INSIDE.to_owned()], pool: vec![NAT.to_string()], tunnel_end })
}

fn router(address: Ipv4Addr, relay: Ipv4Addr, nat: Option<Ipv4Addr>) -> Task {
    Task::Router6to4(Router6to4 { address, relay, nat })
}

fn site(device: &dyn Device, nat: Option<Ipv4Addr>) -> Option<Task> {
    let address = if nat.is_some() { LAN } else { OWN };
    let task = SiteGateway { address, relay: FAR, inside: vec![INSIDE.to_owned()], nat };
    plays(device, TaskKind::SiteGateway).then_some(Task::SiteGateway(task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Card, Needs, Place, Running};
    use crate::failure::{Failure, Result};

    fn hosts(device: &str, form: Form) -> Vec<(&'static str, &'static str)> {
        let parts = find(device).and_then(|device| form.parts(device)).unwrap_or_default();
        parts.iter().map(|part| (part.host, part.device.card().name)).collect()
    }

    /// A device on another machine.
    struct Elsewhere(&'static [TaskKind]);

    static CARD: Card =
        Card { name: "elsewhere", what: "a device", realm: Realm::Remote, needs: Needs::NAMESPACE };

    impl Device for Elsewhere {
        fn card(&self) -> &Card {
            &CARD
        }

        fn tasks(&self) -> &[TaskKind] {
            self.0
        }

        fn version(&self) -> Result<String> {
            Ok(String::new())
        }

        fn start(&self, _place: &Place, _task: &Task) -> Result<Box<dyn Running>> {
            Err(Failure::Unexpected("it does not exist".to_owned()))
        }
    }

    #[test]
    fn a_device_on_another_machine_is_one_box_and_sixway_the_others() {
        static NAT44: Elsewhere = Elsewhere(&[TaskKind::Nat44]);
        static ROUTER: Elsewhere = Elsewhere(&[TaskKind::Router6to4]);
        static SITE: Elsewhere = Elsewhere(&[TaskKind::Nat44, TaskKind::Router6to4, TaskKind::SiteGateway]);
        static FORWARDING: Elsewhere = Elsewhere(&[TaskKind::Forward]);
        let boxes = |device: &'static Elsewhere| {
            Form::ALL.map(|form| {
                let parts = form.parts(device).unwrap_or_default();
                let names: Vec<_> = parts.iter().map(|part| part.device.card().name).collect();
                let has_tunnel = names.contains(&PARTNER);
                assert!(names.is_empty() || form.has_tunnel(device) == has_tunnel, "{form:?}: {names:?}");
                names.join(" ")
            })
        };
        assert_eq!(boxes(&FORWARDING), ["kernel elsewhere", "kernel elsewhere kernel", "", "", ""]);
        let (two, linux_nat) = ("sixway elsewhere sixway", "sixway kernel-masquerade elsewhere");
        assert_eq!(boxes(&NAT44), ["elsewhere", two, "", "", ""]);
        assert_eq!(boxes(&ROUTER), ["", "", "", linux_nat, ""]);
        let one = "sixway elsewhere";
        assert_eq!(boxes(&SITE), [one, two, one, linux_nat, ""]);
    }

    #[test]
    fn a_nat_knows_the_end_of_the_tunnel_behind_it() {
        let ends = |device: &str, form: Form| -> Vec<_> {
            let parts = find(device).and_then(|device| form.parts(device)).unwrap_or_default();
            parts.iter().filter_map(|part| part.task.nat44(device).ok()?.tunnel_end).collect()
        };
        assert_eq!(ends("sixway", Form::Decoupled), [BETWEEN]);
        assert_eq!(ends("sixway", Form::LinuxNat), [BETWEEN]);
        assert_eq!(ends("kernel-masquerade", Form::Decoupled), [Ipv4Addr::UNSPECIFIED; 0]);
    }

    #[test]
    fn each_part_is_a_task_that_its_device_can_do() {
        for device in crate::device::all() {
            for part in Form::ALL.iter().filter_map(|form| form.parts(device)).flatten() {
                assert!(plays(part.device, part.task.kind()), "{}", device.card().name);
            }
        }
    }

    #[test]
    fn pairings_that_need_linux_6to4_run_wholly_in_guests() {
        assert_eq!(hosts("sixway", Form::CoLocated), [("far", "sixway"), ("gateway", "sixway")]);
        let masqueraded = [("far", "sixway"), ("gateway", "kernel-masquerade"), ("inner", "sixway")];
        assert_eq!(hosts("sixway", Form::LinuxNat), masqueraded);
        assert_eq!(hosts("sixway", Form::LinuxSix), []);
        let guests = [("far", "sixway-in-guest"), ("gateway", "sixway-in-guest"), ("inner", "linux-sit")];
        assert_eq!(hosts("sixway-in-guest", Form::LinuxSix), guests);
        let linux = [("far", "linux-sit"), ("gateway", LINUX), ("inner", "linux-sit")];
        assert_eq!(hosts(LINUX, Form::Decoupled), linux);
        assert_eq!(hosts("kernel-masquerade", Form::CoLocated), [("gateway", "kernel-masquerade")]);
        assert_eq!(hosts("kernel", Form::Decoupled).len(), 3);
    }
}
