//! VRFs of the kernel (Documentation/networking/vrf.rst): each is a device with a routing table, and packets that arrive on its interfaces
//! are routed by that table. The operator creates them; they are never created or removed here.

use super::kernel::{Refusal, ask};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::link::{
    InfoData, InfoKind, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::{Error, Handle, LinkUnspec};
use std::fmt;

/// A VRF, as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vrf {
    /// The index of its device.
    pub index: u32,
    /// The number of its routing table.
    pub table: u32,
    /// Whether its device is up: without that it routes nothing.
    pub is_up: bool,
}

/// Why there is no VRF to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoVrf {
    /// No interface has this name.
    Absent,
    /// It is missing, and the kernel does not support VRFs.
    Unsupported,
    /// An interface of another kind has this name.
    OtherKind,
    /// The kernel does not say: its words.
    Unknown(String),
}

impl NoVrf {
    /// What is wrong with the VRF of this name.
    pub fn what(&self, name: &str) -> String {
        match self {
            Self::Absent => format!("VRF {name} does not exist"),
            Self::Unsupported => {
                format!("VRF {name} does not exist, and this kernel has no VRFs (CONFIG_NET_VRF)")
            }
            Self::OtherKind => format!("interface {name} is not a VRF"),
            Self::Unknown(words) => format!("VRF {name}: {words}"),
        }
    }

    /// What to do about it.
    pub fn advice(&self, name: &str) -> String {
        match self {
            Self::Absent => format!("ip link add {name} up type vrf table 101"),
            Self::Unsupported => "write realm.table and realm.interfaces in place of realm.vrf".into(),
            Self::OtherKind => "write the name of a VRF, as `ip link show type vrf` has them".into(),
            Self::Unknown(_) => "`ip link show type vrf` lists the VRFs".into(),
        }
    }
}

impl fmt::Display for Vrf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}", self.table)
    }
}

/// The VRF of this name.
pub fn vrf(name: &str) -> Result<Vrf, NoVrf> {
    match link(name) {
        Ok(Some(link)) => vrf_of(&link).ok_or(NoVrf::OtherKind),
        Ok(None) if !has_vrfs() => Err(NoVrf::Unsupported),
        Ok(None) => Err(NoVrf::Absent),
        Err(refusal) => Err(NoVrf::Unknown(refusal.to_string())),
    }
}

/// The VRF that an interface belongs to; `None` if it is absent or belongs to none.
pub fn vrf_with(interface: &str) -> Option<String> {
    let all = links().ok()?;
    let index = master(all.iter().find(|link| name_of(link) == Some(interface))?)?;
    let vrf = all.iter().find(|link| link.header.index == index)?;
    vrf_of(vrf).and(name_of(vrf)).map(str::to_owned)
}

/// The interfaces that belong to the VRF of this index.
pub fn members(vrf: u32) -> Vec<String> {
    let all = links().unwrap_or_default();
    let members = all.iter().filter(|link| master(link) == Some(vrf));
    members.filter_map(|link| name_of(link).map(str::to_owned)).collect()
}

/// The index of what the interface of this index belongs to: a VRF, a bridge, a bond.
pub(super) fn master_of(index: u32) -> Result<Option<u32>, Refusal> {
    let request =
        |handle: Handle| async move { handle.link().get().match_index(index).execute().try_next().await };
    let found = ask(request)?.map_err(|error| Refusal::of(&error))?;
    found.map(|link| master(&link)).ok_or(Refusal::Absent)
}

/// Makes an interface belong to a VRF, or to nothing. The kernel takes it down and up again, and with that removes the routes into it.
pub(super) fn enslave(index: u32, vrf: Option<u32>) -> Result<(), Refusal> {
    let message = enslaving(index, vrf);
    ask(|handle: Handle| async move { handle.link().set(message).execute().await })?
        .map_err(|error| Refusal::of(&error))
}

fn enslaving(index: u32, vrf: Option<u32>) -> LinkMessage {
    let builder = LinkUnspec::new_with_index(index);
    match vrf {
        Some(vrf) => builder.controller(vrf).build(),
        None => builder.nocontroller().build(),
    }
}

/// Whether the kernel can have VRFs: one without a table is refused, as an invalid request where they are known.
fn has_vrfs() -> bool {
    let message = without_table();
    let outcome = ask(|handle: Handle| async move { handle.link().add(message).execute().await });
    !matches!(outcome, Ok(Err(Error::NetlinkError(error))) if error.raw_code() == -nix::libc::EOPNOTSUPP)
}

fn without_table() -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Vrf)])];
    message
}

fn links() -> Result<Vec<LinkMessage>, Refusal> {
    ask(|handle| async move { handle.link().get().execute().try_collect().await })?
        .map_err(|error| Refusal::of(&error))
}

fn link(name: &str) -> Result<Option<LinkMessage>, Refusal> {
    let name = name.to_owned();
    let request =
        |handle: Handle| async move { handle.link().get().match_name(name).execute().try_next().await };
    match ask(request)?.map_err(|error| Refusal::of(&error)) {
        Err(Refusal::Absent) => Ok(None),
        found => found,
    }
}

fn vrf_of(link: &LinkMessage) -> Option<Vrf> {
    let info = link.attributes.iter().find_map(|one| match one {
        LinkAttribute::LinkInfo(info) => Some(info),
        _ => None,
    })?;
    let table = info.iter().find_map(|one| match one {
        LinkInfo::Data(InfoData::Vrf(data)) => data.iter().find_map(|one| match one {
            InfoVrf::TableId(table) => Some(*table),
            _ => None,
        }),
        _ => None,
    })?;
    Some(Vrf { index: link.header.index, table, is_up: link.header.flags.contains(LinkFlags::Up) })
}

fn master(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|one| match one {
        LinkAttribute::Controller(index) if *index != 0 => Some(*index),
        _ => None,
    })
}

fn name_of(link: &LinkMessage) -> Option<&str> {
    link.attributes.iter().find_map(|one| match one {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vrf_is_known_by_its_kind_and_has_a_table() {
        let mut link = LinkMessage::default();
        link.header.index = 7;
        link.header.flags = LinkFlags::Up;
        let data = InfoData::Vrf(vec![InfoVrf::TableId(101)]);
        link.attributes =
            vec![LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Vrf), LinkInfo::Data(data)])];
        assert_eq!(vrf_of(&link), Some(Vrf { index: 7, table: 101, is_up: true }));
        link.attributes = vec![LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)])];
        assert_eq!(vrf_of(&link), None);
    }

    #[test]
    fn a_device_is_given_to_a_vrf_and_taken_from_it_by_its_master() {
        let given = enslaving(5, Some(7));
        assert_eq!((given.header.index, master(&given)), (5, Some(7)));
        let taken = enslaving(5, None);
        assert_eq!((taken.header.index, master(&taken)), (5, None));
        assert!(taken.attributes.contains(&LinkAttribute::Controller(0)));
    }

    #[test]
    fn what_has_no_such_name_or_is_of_another_kind_is_no_vrf() {
        assert_eq!(vrf("lo"), Err(NoVrf::OtherKind));
        assert!(matches!(vrf("no-such-vrf"), Err(NoVrf::Absent | NoVrf::Unsupported)));
        assert_eq!(vrf_with("lo"), None);
    }
}
