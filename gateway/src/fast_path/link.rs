//! The links of this host, from netlink.

use super::octets::{attribute, number16, number32, text};

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub ifindex: u32,
    pub name: String,
    pub is_ethernet: bool,
    pub up: bool,
    pub mac: [u8; 6],
    /// The bridge, bond or VRF that it is part of.
    pub master: Option<u32>,
    /// The lower device of a VLAN device and the VLAN ID; `None`: not a VLAN device, or not 802.1Q.
    pub vlan: Option<(u32, u16)>,
    /// What it is, if it is not a card's: `vlan`, `veth`, ….
    pub kind: String,
}

/// `struct ifinfomsg`.
const HEADER: usize = 16;
const ARPHRD_ETHER: u16 = 1;
const IFF_UP: u32 = 1;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;
const ETH_P_8021Q: u16 = 0x8100;

impl Link {
    /// The link that a message is about.
    pub fn read(body: &[u8]) -> Option<Self> {
        let rest = body.get(HEADER..)?;
        let number = |kind| attribute(rest, kind).and_then(|value| number32(value, 0));
        let info = attribute(rest, IFLA_LINKINFO).unwrap_or_default();
        let kind = attribute(info, IFLA_INFO_KIND).map(text).unwrap_or_default();
        let data = attribute(info, IFLA_INFO_DATA).filter(|_| kind == "vlan");
        let mac = attribute(rest, IFLA_ADDRESS).and_then(|value| value.try_into().ok());
        Some(Self {
            ifindex: number32(body, 4)?,
            name: text(attribute(rest, IFLA_IFNAME)?),
            is_ethernet: number16(body, 2)? == ARPHRD_ETHER,
            up: number32(body, 8)? & IFF_UP != 0,
            mac: mac.unwrap_or_default(),
            master: number(IFLA_MASTER),
            vlan: data.and_then(|data| Some((number(IFLA_LINK)?, identifier(data)?))),
            kind,
        })
    }
}

fn identifier(data: &[u8]) -> Option<u16> {
    // In network order.
    let protocol = attribute(data, IFLA_VLAN_PROTOCOL).and_then(|value| number16(value, 0));
    protocol.is_none_or(|protocol| u16::from_be(protocol) == ETH_P_8021Q).then_some(())?;
    number16(attribute(data, IFLA_VLAN_ID)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_path::octets::write_attribute;

    fn vlan(protocol: u16) -> Vec<u8> {
        let mut data = Vec::new();
        write_attribute(IFLA_VLAN_PROTOCOL, &protocol.to_be_bytes(), &mut data);
        write_attribute(IFLA_VLAN_ID, &5_u16.to_ne_bytes(), &mut data);
        let mut info = Vec::new();
        write_attribute(IFLA_INFO_KIND, b"vlan", &mut info);
        write_attribute(IFLA_INFO_DATA, &data, &mut info);
        let mut body = vec![0, 0, 1, 0, 9, 0, 0, 0, 0x43, 0x10, 1, 0, 0, 0, 0, 0];
        write_attribute(IFLA_IFNAME, b"eth0.5\0", &mut body);
        write_attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9], &mut body);
        write_attribute(IFLA_LINK, &3_u32.to_ne_bytes(), &mut body);
        write_attribute(IFLA_LINKINFO, &info, &mut body);
        body
    }

    #[test]
    fn a_vlans_device_knows_what_it_is_above() {
        let link = Link::read(&vlan(0x8100)).unwrap();
        let expected = Link {
            ifindex: 9,
            name: "eth0.5".into(),
            is_ethernet: true,
            up: true,
            mac: [2, 0, 0, 0, 0, 9],
            master: None,
            vlan: Some((3, 5)),
            kind: "vlan".into(),
        };
        assert_eq!(link, expected);
        assert_eq!(Link::read(&vlan(0x88a8)).unwrap().vlan, None, "a provider's tag is another");
        assert_eq!(Link::read(&vlan(0x8100)[..20]), None);
    }
}
