//! From the kernel's links to the facts that the programs need.

use super::features::Features;
use super::link::Link;
use sixway_fastpath::layout::{Device, Port, SENDS, SENDS_FROM_TUNNELS};
use sixway_wire::{Prefix4, Prefix6};
use std::collections::BTreeMap;

/// An interface with attached programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its index.
    pub ifindex: u32,
    /// In the driver, too.
    pub xdp: bool,
}

/// An Ethernet interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub ifindex: u32,
    /// Its name.
    pub name: String,
    /// Why programs must not be attached to it, and how to resolve that; `None`: they may.
    pub refused: Option<String>,
}

/// Data about the host for the programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// For the map `devices`: those that packets may leave by.
    pub devices: BTreeMap<u32, Device>,
    /// For `config.ports`: where frames come in. Others are another program.
    pub ports: Vec<Port>,
    /// Why stateless rules must be passed on, for `config.plain_routing`; `None`: the kernel's routes depend on destination and ingress alone,
    /// but for these sources.
    pub not_plain: Option<String>,
    /// Sources that policy rules name: the kernel's routes for these may be others.
    pub sources4: Vec<Prefix4>,
    /// The same of IPv6.
    pub sources6: Vec<Prefix6>,
    /// Why the fast path is suspended: IPsec policies, which the programs would bypass.
    pub ipsec: Option<&'static str>,
    /// The Ethernet interfaces that are up or have the programs, but for the gateway's device.
    pub interfaces: Vec<Interface>,
}

/// What is examined.
pub(super) struct View<'v> {
    pub links: &'v [Link],
    pub features: &'v Features,
    pub attached: &'v [Attached],
    /// The gateway's device.
    pub tun: u32,
    /// Whether strict reverse path filtering is in effect at an interface of this name.
    pub strict: &'v dyn Fn(&str) -> bool,
}

impl View<'_> {
    fn usable(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.is_ethernet && link.up && link.ifindex != self.tun)
    }

    /// The interfaces that may have programs. One that goes down keeps them: it comes back as it was, and nothing waits for other programs,
    /// which know of it again.
    fn may_be_hooked(&self) -> impl Iterator<Item = &Link> {
        let hooked = |link: &Link| self.attached.iter().any(|one| one.ifindex == link.ifindex);
        let ethernet = self.links.iter().filter(|link| link.is_ethernet && link.ifindex != self.tun);
        ethernet.filter(move |link| link.up || hooked(link))
    }

    /// Devices that results may leave by.
    pub fn devices(&self) -> BTreeMap<u32, Device> {
        let device = |link: &Link| {
            // The XDP program adds the tag itself: the frame leaves by the interface below.
            let (port, vlan) = match link.vlan {
                Some((below, identifier)) if self.sends_xdp(below) => (below, identifier),
                Some(_) | None => (link.ifindex, 0),
            };
            let xdp = self.sends_xdp(port) && (link.kind != "vlan" || vlan != 0);
            let from_tunnels = if self.is_cut_before(link) { SENDS_FROM_TUNNELS } else { 0 };
            Device { port, vlan, xdp: xdp.into(), tc: SENDS | from_tunnels }
        };
        self.usable().map(|link| (link.ifindex, device(link))).collect()
    }

    /// Whether the kernel segments GSO packets marked as tunnelled before the network card gets them.
    fn is_cut_before(&self, link: &Link) -> bool {
        let mut lowest = link;
        // Frames bear two tags at most.
        for _ in 0..2 {
            let below = lowest.vlan.and_then(|(below, _)| self.links.iter().find(|one| one.ifindex == below));
            lowest = below.unwrap_or(lowest);
        }
        match &*lowest.kind {
            "veth" | "tun" | "dummy" => true,
            "vlan" => false,
            _ => self.features.cut_before.contains(&lowest.ifindex),
        }
    }

    /// Whether an XDP program's frames can be sent by a device: ours is in its driver, and the driver says so where the kernel asks it.
    fn sends_xdp(&self, ifindex: u32) -> bool {
        let ours = self.attached.iter().any(|one| one.ifindex == ifindex && one.xdp);
        let says = self.features.xdp_xmit.as_ref();
        ours && says.is_none_or(|says| says.get(&ifindex).copied().unwrap_or(false))
    }

    /// Interfaces on which frames arrive: those with attached programs, and for XDP the VLAN devices on them. In the order of their indices, not
    /// of the attachments: the same ports in another order would be other programs, which the kernel would verify again.
    pub fn ports(&self) -> Vec<Port> {
        let mut attached = self.attached.to_vec();
        attached.sort_unstable_by_key(|one| one.ifindex);
        let mut ports = Vec::new();
        for one in &attached {
            let Some(link) = self.links.iter().find(|link| link.ifindex == one.ifindex) else { continue };
            ports.push(self.port(link, link.ifindex, 0));
            // One that is a part of another is under its rules.
            let is_own = |link: &&Link| link.up && link.vlan.is_some() && link.master.is_none();
            let above = self.links.iter().filter(|link| one.xdp && is_own(link));
            for link in above.filter(|link| !attached.iter().any(|own| own.ifindex == link.ifindex)) {
                if let Some((_, identifier)) = link.vlan.filter(|(below, _)| *below == one.ifindex) {
                    ports.push(self.port(link, one.ifindex, identifier));
                }
            }
        }
        ports
    }

    fn port(&self, link: &Link, below: u32, vlan: u16) -> Port {
        let strict = u8::from((self.strict)(&link.name));
        // Programs are attached to both hooks of an interface; a VLAN device on it has neither.
        let tc = u8::from(vlan == 0);
        Port { ifindex: link.ifindex, below, mac: link.mac, vlan, strict, tc, ..Port::zero() }
    }

    /// The interfaces that programs may be attached to, and why others are excluded.
    pub fn interfaces(&self) -> Vec<Interface> {
        let refused = |link: &Link| {
            if let Some(master) = link.master {
                let name = self.links.iter().find(|one| one.ifindex == master).map(|one| &*one.name);
                let name = name.unwrap_or("another interface");
                return Some(format!(
                    "it belongs to {name}, whose rules would be bypassed; configure {name} instead"
                ));
            }
            let lists = self.features.gro_lists.contains(&link.ifindex);
            let mend = format!("ethtool -K {} rx-gro-list off", link.name);
            lists.then(|| {
                format!("its rx-gro-list feature builds packet lists, which cannot be translated; disable it: {mend}")
            })
        };
        let interface = |link: &Link| Interface {
            ifindex: link.ifindex,
            name: link.name.clone(),
            refused: refused(link),
        };
        self.may_be_hooked().map(interface).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(ifindex: u32, name: &str) -> Link {
        let mac = [2, 0, 0, 0, 0, ifindex as u8];
        Link { ifindex, name: name.into(), is_ethernet: true, up: true, mac, ..Link::default() }
    }

    fn vlan(ifindex: u32, below: u32, identifier: u16) -> Link {
        Link { vlan: Some((below, identifier)), kind: "vlan".into(), ..ethernet(ifindex, "vlan") }
    }

    /// tun 1, eth0 2 (XDP), eth1 3 (tc), VLANs 5 above each, a tunnel, one that is down, a bridge with a port, a VLAN of a provider.
    fn links() -> Vec<Link> {
        vec![
            ethernet(1, "sixway0"),
            ethernet(2, "eth0"),
            ethernet(3, "eth1"),
            vlan(4, 2, 5),
            vlan(5, 3, 5),
            Link { is_ethernet: false, ..ethernet(6, "ppp0") },
            Link { up: false, ..ethernet(7, "eth2") },
            ethernet(8, "br0"),
            Link { master: Some(8), ..ethernet(9, "eth3") },
            Link { vlan: None, ..vlan(10, 2, 5) },
        ]
    }

    const ATTACHED: [Attached; 2] = [Attached { ifindex: 2, xdp: true }, Attached { ifindex: 3, xdp: false }];

    fn with<T>(features: &Features, ask: impl FnOnce(&View) -> T) -> T {
        let links = links();
        ask(&View { links: &links, features, attached: &ATTACHED, tun: 1, strict: &|name| name == "eth1" })
    }

    fn xmit(devices: &[u32]) -> Features {
        let says = [2, 3].into_iter().map(|device| (device, devices.contains(&device))).collect();
        Features { xdp_xmit: Some(says), ..Features::default() }
    }

    #[test]
    fn results_leave_by_ethernet_devices_that_are_up_and_xdp_frames_where_the_driver_sends_them() {
        let of = |port: u32, vlan: u16, xdp: u8| Device { port, vlan, xdp, tc: SENDS };
        let expected = BTreeMap::from([
            (2, of(2, 0, 1)),
            (3, of(3, 0, 0)),
            (4, of(2, 5, 1)),
            (5, of(5, 0, 0)),
            (8, of(8, 0, 0)),
            (9, of(9, 0, 0)),
            (10, of(10, 0, 0)),
        ]);
        assert_eq!(with(&xmit(&[2, 3]), |view| view.devices()), expected);
        assert_eq!(with(&Features::default(), |view| view.devices()), expected, "an old kernel does not say");
        let without = with(&xmit(&[3]), |view| view.devices());
        assert_eq!((without[&2], without[&4]), (of(2, 0, 0), of(4, 0, 0)));
    }

    #[test]
    fn gso_packets_from_tunnels_leave_by_what_does_not_cut_them_itself() {
        let features = Features { cut_before: [2].into(), ..xmit(&[]) };
        let mut links = links();
        links.push(Link { kind: "veth".into(), ..ethernet(11, "veth0") });
        // A VLAN above one above eth0, which does not say whether it does what eth1 does not.
        links.extend([Link { vlan: None, ..vlan(12, 2, 6) }, vlan(13, 4, 6), vlan(14, 14, 6)]);
        let view = View { links: &links, features: &features, attached: &[], tun: 1, strict: &|_| false };
        let devices = view.devices();
        let may = |index: u32| devices[&index].tc == SENDS | SENDS_FROM_TUNNELS;
        let those: Vec<u32> = devices.keys().copied().filter(|index| may(*index)).collect();
        assert_eq!(those, [2, 4, 11, 13]);
    }

    #[test]
    fn frames_arrive_where_the_programs_are_attached_and_in_xdp_by_their_vlans() {
        let ports = with(&xmit(&[2]), |view| view.ports());
        let seen: Vec<_> = ports
            .iter()
            .map(|port| (port.ifindex, port.below, port.vlan, port.mac[5], port.strict, port.tc))
            .collect();
        assert_eq!(seen, [(2, 2, 0, 2, 0, 1), (4, 2, 5, 4, 0, 0), (3, 3, 0, 3, 1, 1)]);
    }

    /// At the start the order is the kernel's, and later that of the names: `in0` may have been created after `out0`.
    #[test]
    fn ports_do_not_depend_on_the_order_in_which_programs_were_attached() {
        let links = links();
        let features = xmit(&[2, 3]);
        let ports = |attached: &[Attached]| {
            View { links: &links, features: &features, attached, tun: 1, strict: &|_| false }.ports()
        };
        let [first, second] = ATTACHED;
        assert_eq!(ports(&[second, first]), ports(&ATTACHED));
        assert_eq!(ports(&ATTACHED).len(), 3);
    }

    #[test]
    fn no_frame_comes_in_by_a_vlan_that_is_a_part_of_another() {
        let mut links = links();
        links.iter_mut().filter(|link| link.ifindex == 4).for_each(|link| link.master = Some(8));
        let features = xmit(&[2]);
        let view =
            View { links: &links, features: &features, attached: &ATTACHED, tun: 1, strict: &|_| false };
        assert!(view.ports().iter().all(|port| port.ifindex != 4));
        let refused = view.interfaces().into_iter().find(|one| one.ifindex == 4).unwrap().refused;
        assert!(refused.is_some_and(|why| why.contains("belongs to br0")));
    }

    #[test]
    fn an_interface_that_goes_down_keeps_its_programs_though_nothing_leaves_by_it() {
        let mut links = links();
        links[1].up = false;
        let features = xmit(&[2, 3]);
        let view =
            View { links: &links, features: &features, attached: &ATTACHED, tun: 1, strict: &|_| false };
        assert!(!view.devices().contains_key(&2));
        assert!(view.ports().iter().any(|port| port.ifindex == 2));
        let names: Vec<_> = view.interfaces().into_iter().map(|one| one.name).collect();
        assert!(names.contains(&"eth0".into()), "{names:?}");
        assert!(!names.contains(&"eth2".into()), "it was never up: {names:?}");
    }

    #[test]
    fn parts_of_others_and_those_that_join_to_lists_are_refused_with_a_reason() {
        let features = Features { gro_lists: [3].into(), ..xmit(&[2]) };
        let interfaces = with(&features, |view| view.interfaces());
        let refused: Vec<_> =
            interfaces.iter().filter_map(|one| Some((&*one.name, one.refused.as_deref()?))).collect();
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(refused[0].0 == "eth1" && refused[0].1.contains("ethtool -K eth1 rx-gro-list off"));
        assert!(refused[1].0 == "eth3" && refused[1].1.contains("belongs to br0"));
        assert!(interfaces.iter().all(|one| one.ifindex != 1 && one.name != "ppp0"));
    }
}
