//! Driver features, by generic netlink: whether a device can send XDP frames, whether it builds packet lists, and whether it segments
//! tunnelled packets.

use super::netlink::NetlinkSocket;
use super::octets::{attribute, attributes, number16, number32, number64, text, write_attribute};
use nix::sys::socket::SockProtocol;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The features of this host's devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// By index, whether XDP frames can be sent by it; `None`: the kernel does not say (before Linux 6.3).
    pub xdp_xmit: Option<BTreeMap<u32, bool>>,
    /// Devices whose `rx-gro-list` is on.
    pub gro_lists: BTreeSet<u32>,
    /// Devices whose `tx-ipxip4-segmentation` is off: what leaves by them in segments has been cut before.
    pub cut_before: BTreeSet<u32>,
}

/// `struct genlmsghdr`.
const HEADER: usize = 4;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 4;
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// Asks for features.
#[derive(Debug)]
pub(super) struct Asker {
    netlink: NetlinkSocket,
    netdev: Option<u16>,
    ethtool: Option<u16>,
}

impl Asker {
    /// Looks up the netlink families.
    ///
    /// # Errors
    /// Generic netlink is not available.
    pub fn open() -> io::Result<Self> {
        let mut netlink = NetlinkSocket::open(SockProtocol::NetlinkGeneric)?;
        let mut family = |name: &str| {
            let mut body = command(CTRL_CMD_GETFAMILY);
            write_attribute(CTRL_ATTR_FAMILY_NAME, format!("{name}\0").as_bytes(), &mut body);
            let mut found = None;
            let asked = netlink.request(GENL_ID_CTRL, &body, |answer| {
                let value = answer.get(HEADER..).and_then(|rest| attribute(rest, CTRL_ATTR_FAMILY_ID));
                found = value.and_then(|value| number16(value, 0));
            });
            asked.ok().and(found)
        };
        let (netdev, ethtool) = (family("netdev"), family("ethtool"));
        Ok(Self { netlink, netdev, ethtool })
    }

    /// The features of these devices at the moment.
    pub fn features(&mut self, devices: impl IntoIterator<Item = u32>) -> Features {
        let xdp_xmit = self.netdev.and_then(|family| {
            let mut found = BTreeMap::new();
            let take = |body: &[u8]| found.extend(xdp_xmit(body));
            self.netlink.dump(family, &command(NETDEV_CMD_DEV_GET), take).ok()?;
            Some(found)
        });
        let (mut gro_lists, mut cut_before) = (BTreeSet::new(), BTreeSet::new());
        for device in devices {
            let Some([joins, cuts]) = self.are_active(device, ["rx-gro-list", "tx-ipxip4-segmentation"])
            else {
                continue;
            };
            gro_lists.extend(joins.then_some(device));
            cut_before.extend((!cuts).then_some(device));
        }
        Features { xdp_xmit, gro_lists, cut_before }
    }

    /// Whether a device has these features at the moment; `None`: the kernel does not say.
    fn are_active<const N: usize>(&mut self, device: u32, names: [&str; N]) -> Option<[bool; N]> {
        let family = self.ethtool?;
        let (mut header, mut body) = (Vec::new(), command(ETHTOOL_MSG_FEATURES_GET));
        write_attribute(ETHTOOL_A_HEADER_DEV_INDEX, &device.to_ne_bytes(), &mut header);
        write_attribute(ETHTOOL_A_FEATURES_HEADER | NESTED, &header, &mut body);
        let mut found = None;
        let take = |answer: &[u8]| found = Some(names.map(|name| is_active(answer, name)));
        self.netlink.request(family, &body, take).ok()?;
        found
    }
}

const NESTED: u16 = 0x8000;

fn command(number: u8) -> Vec<u8> {
    vec![number, 1, 0, 0]
}

fn xdp_xmit(body: &[u8]) -> Option<(u32, bool)> {
    let rest = body.get(HEADER..)?;
    let device = number32(attribute(rest, NETDEV_A_DEV_IFINDEX)?, 0)?;
    let features = number64(attribute(rest, NETDEV_A_DEV_XDP_FEATURES)?, 0)?;
    Some((device, features & NETDEV_XDP_ACT_NDO_XMIT != 0))
}

/// Whether a feature is listed among those that are active.
fn is_active(body: &[u8], name: &str) -> bool {
    let active = body.get(HEADER..).and_then(|rest| attribute(rest, ETHTOOL_A_FEATURES_ACTIVE));
    let bits = active.and_then(|active| attribute(active, ETHTOOL_A_BITSET_BITS)).unwrap_or_default();
    attributes(bits)
        .any(|(_, bit)| attribute(bit, ETHTOOL_A_BITSET_BIT_NAME).is_some_and(|own| text(own) == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let mut body = command(1);
        write_attribute(NETDEV_A_DEV_IFINDEX, &3_u32.to_ne_bytes(), &mut body);
        write_attribute(NETDEV_A_DEV_XDP_FEATURES, &7_u64.to_ne_bytes(), &mut body);
        assert_eq!(xdp_xmit(&body), Some((3, true)));
        let (mut bit, mut bits, mut active, mut body) = (Vec::new(), Vec::new(), Vec::new(), command(12));
        write_attribute(ETHTOOL_A_BITSET_BIT_NAME, b"rx-gro-list\0", &mut bit);
        write_attribute(1, &bit, &mut bits);
        write_attribute(ETHTOOL_A_BITSET_BITS, &bits, &mut active);
        write_attribute(ETHTOOL_A_FEATURES_ACTIVE, &active, &mut body);
        assert!(
            is_active(&body, "rx-gro-list") && !is_active(&body, "rx-gro") && !is_active(&[], "rx-gro-list")
        );
    }

    #[test]
    fn this_kernel_is_asked() {
        let Ok(mut asker) = Asker::open() else { return };
        let features = asker.features([1]);
        assert!(features.xdp_xmit.is_none_or(|found| found.get(&1) == Some(&false)), "nothing is sent by lo");
        assert!(features.gro_lists.is_empty() && !features.cut_before.contains(&99_999));
    }
}
