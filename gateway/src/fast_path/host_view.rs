//! Reads the host's links, policy rules, routes and features, and derives facts from them.

use super::event;
use super::facts::{Attached, Facts, View};
use super::features::Asker;
use super::ipsec::Policies;
use super::link::Link;
use super::netlink::NetlinkSocket;
use super::plain::{PolicyRule, Routing};
use nix::sys::socket::SockProtocol;
use std::io;

const RTM_GETLINK: u16 = 18;
const RTM_GETROUTE: u16 = 26;
const RTM_GETRULE: u16 = 34;

/// The sockets for requests to the kernel.
pub(super) struct HostView {
    pub netlink: NetlinkSocket,
    features: Option<Asker>,
    policies: Policies,
}

impl HostView {
    /// If the kernel does not report features, none are assumed.
    ///
    /// # Errors
    /// Netlink is not available.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            netlink: NetlinkSocket::open(SockProtocol::NetlinkRoute)?,
            features: Asker::open().ok(),
            policies: Policies::default(),
        })
    }

    /// Whether a route is multipath or depends on more than the destination: reads all routes. What cannot be
    /// known is not relied upon.
    pub fn leads_several_ways(&mut self) -> bool {
        let mut several = false;
        let mut ask = |family: i32| {
            let mut body = [0; 12];
            body[0] = family as u8;
            self.netlink.dump(RTM_GETROUTE, &body, |route| several |= !event::is_plain_route(route))
        };
        let asked = ask(nix::libc::AF_INET).and_then(|()| ask(nix::libc::AF_INET6));
        if let Err(error) = &asked {
            tracing::debug!("routes: {error}");
        }
        several || asked.is_err()
    }

    /// The current facts; `tun` is the index of the gateway's device.
    ///
    /// # Errors
    /// The kernel's.
    pub fn facts(&mut self, tun: u32, attached: &[Attached], several: bool) -> io::Result<Facts> {
        let (mut links, mut routing) = (Vec::new(), Routing { several, ..Routing::default() });
        self.netlink.dump(RTM_GETLINK, &[0; 16], |body| links.extend(Link::read(body)))?;
        let device = links.iter().find(|link: &&Link| link.ifindex == tun).map_or("", |link| &link.name);
        self.netlink.dump(RTM_GETRULE, &[0; 12], |body| routing.note(PolicyRule::of(body, device)))?;
        let ethernet = links.iter().filter(|link| link.is_ethernet && link.up).map(|link| link.ifindex);
        let features = self.features.as_mut().map(|asker| asker.features(ethernet)).unwrap_or_default();
        let view = View { links: &links, features: &features, attached, tun, strict: &is_strict };
        Ok(Facts {
            devices: view.devices(),
            ports: view.ports(),
            interfaces: view.interfaces(),
            not_plain: routing.why_not(),
            sources4: routing.sources4,
            sources6: routing.sources6,
            ipsec: self.policies.in_the_way(),
        })
    }
}

/// The current state, for callers that attach no programs. Policies that the kernel does not show to unprivileged users are left out.
///
/// # Errors
/// The kernel's.
pub fn facts_now() -> io::Result<Facts> {
    let mut kernel = HostView::open()?;
    let several = kernel.leads_several_ways();
    let facts = kernel.facts(0, &[], several)?;
    Ok(Facts { ipsec: facts.ipsec.filter(|_| kernel.policies.are_known()), ..facts })
}

/// Whether strict reverse path filtering is in effect: the kernel takes the greater of `all` and an interface's own.
fn is_strict(interface: &str) -> bool {
    let value = |name: &str| -> u8 {
        let path = std::path::Path::new("/proc/sys/net/ipv4/conf").join(name).join("rp_filter");
        std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    };
    value("all").max(value(interface)) == 1
}
