//! The kernel's notifications of changes that may concern the gateway's configuration. They are read once in a second, so that a flood
//! of routes costs little; if some were lost, everything is suspect. What is suspect is examined before anything is restored.

use super::tc_filters::TcFilters;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Links, tc, addresses, routes and rules of both families (`RTMGRP_*`; that of IPv6 rules, number 19, has no such name).
const ROUTE_GROUPS: u32 = (libc::RTMGRP_LINK
    | libc::RTMGRP_TC
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE) as u32
    | 1 << 18;
/// `NFNLGRP_NFTABLES`, number 7.
const FILTER_GROUPS: u32 = 1 << 6;
/// `NFNL_SUBSYS_NFTABLES`.
const NFTABLES: u16 = 10;
/// `NFT_MSG_DELTABLE`, `NFT_MSG_DELCHAIN`, `NFT_MSG_DELRULE`.
const DELETIONS: [u16; 3] = [2, 5, 8];
/// Those, and `NFT_MSG_NEWTABLE`, `NFT_MSG_NEWCHAIN`, `NFT_MSG_NEWRULE`: not the elements of sets, which some programs change all the time.
const RULES: [u16; 6] = [0, 2, 3, 5, 6, 8];
/// Octets of a netlink message's header.
const HEADER: usize = 16;

/// What may have been changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suspects {
    /// Routes, rules and addresses.
    pub routing: bool,
    /// Filters at tc.
    pub steering: bool,
    /// The gateway's table in the packet filter.
    pub packet_filter: bool,
    /// Rules of others in the packet filter.
    pub ruleset: bool,
    /// Default routes of others: where packets leave this host.
    pub way_out: bool,
}

/// What the notifications are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own<'a> {
    /// The device's index.
    pub device: u32,
    /// The protocol number of the gateway's routes.
    pub protocol: u8,
    /// The name of its table in the packet filter.
    pub table: &'a str,
    /// Its filters at tc.
    pub filters: &'a TcFilters,
}

/// Two sockets that receive them.
#[derive(Debug)]
pub(super) struct Events {
    route: OwnedFd,
    /// `None` if the kernel has no nftables.
    filter: Option<OwnedFd>,
    buffer: Vec<u8>,
}

impl Events {
    /// From now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            route: listen(SockProtocol::NetlinkRoute, ROUTE_GROUPS)?,
            filter: listen(SockProtocol::NetlinkNetFilter, FILTER_GROUPS).ok(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// What happened since the last call.
    pub fn read(&mut self, own: Own<'_>) -> Suspects {
        let mut suspects = Suspects::default();
        let lost = drain(&self.route, &mut self.buffer, |message| note(message, own, &mut suspects));
        if lost {
            (suspects.routing, suspects.steering, suspects.way_out) = (true, true, true);
        }
        (suspects.packet_filter, suspects.ruleset) = self.filter_changed(own.table);
        suspects
    }

    /// Discards notifications about routes and filters at tc: they were the gateway's own changes.
    pub fn ignore_routes(&mut self) {
        drain(&self.route, &mut self.buffer, |_| {});
    }

    /// Discards notifications about the packet filter: they were the gateway's own changes.
    pub fn ignore_packet_filter(&mut self) {
        self.filter_changed("");
    }

    /// Whether the gateway's table was changed, and whether rules of others were.
    fn filter_changed(&mut self, table: &str) -> (bool, bool) {
        let Some(filter) = &self.filter else { return (false, false) };
        let (mut changed, mut others) = (false, false);
        // Names end with a zero.
        let name = [table.as_bytes(), &[0]].concat();
        let lost = drain(filter, &mut self.buffer, |Message { kind, body, .. }| {
            let deletes = kind >> 8 == NFTABLES && DELETIONS.contains(&(kind & 0xff));
            let is_own = || body.windows(name.len()).any(|part| part == name);
            if is_of_rules(kind) {
                match is_own() {
                    true => changed |= deletes,
                    false => others = true,
                }
            }
        });
        (changed || lost, others || lost)
    }
}

/// Notifications of changes of the packet filter's rules alone, for a gateway that has nothing else to restore.
#[derive(Debug)]
pub struct RuleEvents {
    filter: OwnedFd,
    buffer: Vec<u8>,
}

impl RuleEvents {
    /// From now on.
    ///
    /// # Errors
    /// The kernel's, such as that it has no nftables.
    pub fn open() -> io::Result<Self> {
        let filter = listen(SockProtocol::NetlinkNetFilter, FILTER_GROUPS)?;
        Ok(Self { filter, buffer: vec![0; 64 << 10] })
    }

    /// Whether rules changed since the last call.
    pub fn read(&mut self) -> bool {
        let mut changed = false;
        let lost = drain(&self.filter, &mut self.buffer, |Message { kind, .. }| changed |= is_of_rules(kind));
        changed || lost
    }
}

/// Whether a message tells of a table, a chain or a rule.
fn is_of_rules(kind: u16) -> bool {
    kind >> 8 == NFTABLES && RULES.contains(&(kind & 0xff))
}

/// A message of netlink.
#[derive(Clone, Copy, Debug)]
struct Message<'a> {
    kind: u16,
    flags: u16,
    body: &'a [u8],
}

fn note(Message { kind, flags, body }: Message<'_>, own: Own<'_>, suspects: &mut Suspects) {
    // `struct rtmsg` and `struct fib_rule_hdr` have the protocol or the table behind four octets; the others, the index.
    let index = body.get(4..8).and_then(|octets| octets.try_into().ok()).map(u32::from_ne_bytes);
    let is_ours = index == Some(own.device);
    let is_own_route = body.get(5) == Some(&own.protocol);
    if [libc::RTM_NEWROUTE, libc::RTM_DELROUTE].contains(&kind) {
        // `rtm_dst_len`. Of other routes there may be hundreds of thousands, which change all the time.
        suspects.way_out |= body.get(1) == Some(&0) && !is_own_route;
    }
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK | libc::RTM_DELADDR => suspects.routing |= is_ours,
        // The kernel flushes IPv4 routes of a device that goes down without telling; its link event does.
        libc::RTM_DELROUTE => suspects.routing |= is_own_route,
        // There is no message about the route that it replaces.
        libc::RTM_NEWROUTE => suspects.routing |= flags & libc::NLM_F_REPLACE as u16 != 0,
        libc::RTM_DELRULE => suspects.routing = true,
        libc::RTM_DELQDISC | libc::RTM_DELTFILTER => suspects.steering |= is_filter(kind, body, own.filters),
        _ => {}
    }
}

/// Whether a `struct tcmsg` is about the queueing discipline that filters are attached to, or about one of them.
fn is_filter(kind: u16, body: &[u8], filters: &TcFilters) -> bool {
    /// `clsact` and `ingress` have this handle.
    const INGRESS: u32 = 0xffff_0000;
    let (words, _) = body.as_chunks::<4>();
    let Some([_, interface, handle, _, info]) =
        words.first_chunk().copied().map(|it| it.map(u32::from_ne_bytes))
    else {
        return false;
    };
    let priority = info >> 16;
    let which = match kind {
        libc::RTM_DELQDISC => handle == INGRESS,
        // All filters of a priority, or of the whole chain, go with one message.
        _ => {
            (priority == 0 || priority == u32::from(filters.priority))
                && (handle == 0 || filters.handles.contains(&handle))
        }
    };
    which && filters.interfaces.contains(&interface)
}

/// Reads what waits. Whether some was lost.
fn drain(socket: &OwnedFd, buffer: &mut [u8], mut take: impl FnMut(Message<'_>)) -> bool {
    /// More than this in a second is a flood: what it contains is looked up instead.
    const DATAGRAMS: usize = 20_000;
    let mut lost = false;
    for _ in 0..DATAGRAMS {
        match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => messages(&buffer[..length], &mut take),
            Err(Errno::ENOBUFS) => lost = true,
            Err(_) => return lost,
        }
    }
    true
}

fn messages(mut octets: &[u8], take: &mut impl FnMut(Message<'_>)) {
    while let Some((header, _)) = octets.split_at_checked(HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(body) = octets.get(HEADER..length) else { return };
        take(Message { kind, flags: u16::from_ne_bytes([header[6], header[7]]), body });
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn listen(protocol: SockProtocol, groups: u32) -> io::Result<OwnedFd> {
    use nix::sys::socket::setsockopt;
    use nix::sys::socket::sockopt::RcvBufForce;
    const ROOM: usize = 1 << 20;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    // With less room some are lost sooner, and the loss is reported.
    let _ = setsockopt(&socket, RcvBufForce, &ROOM);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(filters: &TcFilters) -> Own<'_> {
        Own { device: 7, protocol: 64, table: "sixway-gw1", filters }
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut octets = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.resize(HEADER, 0);
        octets.extend(body);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    fn suspects(datagram: &[u8]) -> Suspects {
        let mut suspects = Suspects::default();
        let filters = TcFilters { interfaces: vec![3], priority: 9, handles: [20, 21] };
        messages(datagram, &mut |message| note(message, own(&filters), &mut suspects));
        suspects
    }

    #[test]
    fn only_what_may_be_the_gateways_is_suspect() {
        let of_link = |kind, index: u32| message(kind, &[[0; 4], index.to_ne_bytes()].concat());
        let route = |protocol| message(libc::RTM_DELROUTE, &[2, 24, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0]);
        let of_tc = |kind, [interface, handle, info]: [u32; 3]| {
            message(kind, [0, interface, handle, 0, info].map(u32::to_ne_bytes).as_flattened())
        };
        let mut replacing = message(libc::RTM_NEWROUTE, &[2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
        replacing[6..8].copy_from_slice(&(libc::NLM_F_REPLACE as u16).to_ne_bytes());
        let routing = Suspects { routing: true, ..Suspects::default() };
        let default = |kind, protocol| message(kind, &[2, 0, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0]);
        let way_out = Suspects { way_out: true, ..Suspects::default() };
        let steering = Suspects { steering: true, ..Suspects::default() };
        for (datagram, expected) in [
            (of_link(libc::RTM_NEWLINK, 7), routing),
            (of_link(libc::RTM_NEWLINK, 8), Suspects::default()),
            (of_link(libc::RTM_DELADDR, 7), routing),
            (of_link(libc::RTM_NEWADDR, 7), Suspects::default()),
            (default(libc::RTM_NEWROUTE, 4), way_out),
            (default(libc::RTM_DELROUTE, 16), way_out),
            (default(libc::RTM_NEWROUTE, 64), Suspects::default()),
            (route(64), routing),
            (route(4), Suspects::default()),
            (of_link(libc::RTM_DELRULE, 0), routing),
            (of_tc(libc::RTM_DELTFILTER, [3, 21, 9 << 16 | 0x300]), steering),
            (of_tc(libc::RTM_DELTFILTER, [4, 21, 9 << 16]), Suspects::default()),
            (of_tc(libc::RTM_DELTFILTER, [3, 22, 9 << 16]), Suspects::default()),
            (of_tc(libc::RTM_DELTFILTER, [3, 0, 9 << 16]), steering),
            (of_tc(libc::RTM_DELTFILTER, [3, 0, 0]), steering),
            (of_tc(libc::RTM_DELTFILTER, [3, 0, 8 << 16]), Suspects::default()),
            (replacing, routing),
            (message(libc::RTM_NEWROUTE, &[2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]), Suspects::default()),
            (of_tc(libc::RTM_DELTFILTER, [3, 21, 8 << 16]), Suspects::default()),
            (of_tc(libc::RTM_DELQDISC, [3, 0xffff_0000, 0]), steering),
            (of_tc(libc::RTM_DELQDISC, [3, 0x8001_0000, 0]), Suspects::default()),
            (of_tc(libc::RTM_DELQDISC, [4, 0xffff_0000, 0]), Suspects::default()),
            ([route(4), message(libc::RTM_DELROUTE, &[2]), route(64)].concat(), routing),
        ] {
            assert_eq!(suspects(&datagram), expected, "{datagram:?}");
            for length in 0..datagram.len() {
                suspects(&datagram[..length]);
            }
        }
    }
}
