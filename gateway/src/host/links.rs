//! The kernel's tunnel devices before setup, by netlink.

use super::kernel::ask;
use crate::config::KernelTunnel;
use futures_util::TryStreamExt;
use rtnetlink::packet_core::Nla as _;
use rtnetlink::packet_route::link::{
    InfoData, InfoIpTunnel, InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use std::net::IpAddr;

/// The tunnel devices of the kernel that take protocol 41; none if the kernel does not say.
pub fn kernel_tunnels() -> Vec<KernelTunnel> {
    let links = ask(|handle| async move { handle.link().get().execute().try_collect::<Vec<_>>().await });
    links.ok().and_then(Result::ok).unwrap_or_default().iter().filter_map(kernel_tunnel).collect()
}

/// A TUN device, as the kernel describes it (`IFLA_TUN_*` of linux/if_link.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TunState {
    /// It stays without a process that has it open.
    pub persists: bool,
    /// Queues that processes have open; 0 of a device with a single queue, which opening it tells.
    pub queues: u32,
}

/// The TUN device of this index; `None` if there is none.
pub(super) fn tun_state(index: u32) -> Option<TunState> {
    const PERSIST: u16 = 6;
    const QUEUES: u16 = 8;
    const DISABLED_QUEUES: u16 = 9;
    let info = link_of(index)?.attributes.into_iter().find_map(|one| match one {
        LinkAttribute::LinkInfo(info) => Some(info),
        _ => None,
    })?;
    if !info.contains(&LinkInfo::Kind(InfoKind::Tun)) {
        return None;
    }
    let mut state = TunState::default();
    for one in info.iter().flat_map(|info| match info {
        LinkInfo::Data(InfoData::Tun(data)) => data.as_slice(),
        _ => &[],
    }) {
        let mut value = vec![0; one.value_len()];
        one.emit_value(&mut value);
        // An octet, or four in the host's order.
        let number = match value[..] {
            [octet] => octet.into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => 0,
        };
        match one.kind() {
            PERSIST => state.persists = number != 0,
            QUEUES | DISABLED_QUEUES => state.queues += number,
            _ => {}
        }
    }
    Some(state)
}

fn link_of(index: u32) -> Option<LinkMessage> {
    let request = |handle: rtnetlink::Handle| async move {
        handle.link().get().match_index(index).execute().try_next().await
    };
    ask(request).ok()?.ok()?
}

/// The name of the TUN device of this index; `None` if there is none.
pub(super) fn tun_of(index: u32) -> Option<String> {
    let link = link_of(index)?;
    let is_tun = |info: &Vec<LinkInfo>| info.contains(&LinkInfo::Kind(InfoKind::Tun));
    let tun = link.attributes.iter().any(|one| matches!(one, LinkAttribute::LinkInfo(info) if is_tun(info)));
    let name = link.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    });
    name.filter(|_| tun)
}

fn kernel_tunnel(link: &LinkMessage) -> Option<KernelTunnel> {
    let (mut name, mut is_sit, mut local) = (None, false, None);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(own) => name = Some(own.clone()),
            LinkAttribute::LinkInfo(info) => {
                is_sit |= info.contains(&LinkInfo::Kind(InfoKind::SitTun));
                local = info.iter().find_map(local_of);
            }
            _ => {}
        }
    }
    let up = link.header.flags.contains(LinkFlags::Up);
    name.filter(|_| is_sit).map(|name| KernelTunnel { name, local, up })
}

fn local_of(info: &LinkInfo) -> Option<std::net::Ipv4Addr> {
    let LinkInfo::Data(InfoData::IpTunnel(data)) = info else { return None };
    data.iter().find_map(|one| match one {
        InfoIpTunnel::Local(IpAddr::V4(local)) if !local.is_unspecified() => Some(*local),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, kind: InfoKind, data: Vec<InfoIpTunnel>) -> LinkMessage {
        let mut link = LinkMessage::default();
        let info = vec![LinkInfo::Kind(kind), LinkInfo::Data(InfoData::IpTunnel(data))];
        link.attributes = vec![LinkAttribute::IfName(name.into()), LinkAttribute::LinkInfo(info)];
        link
    }

    #[test]
    fn only_sit_takes_protocol_41_and_for_its_local_address_if_it_has_one() {
        let local = |text: &str| vec![InfoIpTunnel::Local(text.parse().unwrap())];
        let found = kernel_tunnel(&link("sit1", InfoKind::SitTun, local("192.0.2.1"))).unwrap();
        assert_eq!((&*found.name, found.local, found.up), ("sit1", Some([192, 0, 2, 1].into()), false));
        let any = kernel_tunnel(&link("sit0", InfoKind::SitTun, local("0.0.0.0"))).unwrap();
        assert_eq!(any.local, None);
        assert_eq!(kernel_tunnel(&link("tunl0", InfoKind::IpIp, local("192.0.2.1"))), None);
    }

    #[test]
    fn the_kernel_is_asked_without_a_runtime_of_the_callers() {
        kernel_tunnels();
    }
}
