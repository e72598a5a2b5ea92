//! Whether the host has IPsec policies for what it sends or forwards, or drops packets without one (linux/xfrm.h). The programs do not
//! check policies: they would send unencrypted what must be encrypted, and accept what must not arrive unencrypted.

use super::netlink::NetlinkSocket;
use super::octets::{attribute, number32};
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_XFRM;
use std::io;
use std::os::fd::AsFd;

const XFRM_MSG_GETSPDINFO: u16 = 0x25;
/// Flags; none are defined.
const HEADER: usize = 4;
const XFRMA_SPD_INFO: u16 = 1;
/// Answered by a `struct xfrm_userpolicy_default`: what becomes of packets that no policy is for, those that are received, forwarded, sent.
const XFRM_MSG_GETDEFAULT: u16 = 0x28;
const XFRM_USERPOLICY_BLOCK: u8 = 1;
/// Places in `struct xfrmu_spdinfo`, which counts policies by direction: in, out, forwarded; then the sockets' own.
const OUT: usize = 4;
const FORWARDED: usize = 8;

/// Why the programs forward nothing.
const POLICIES: &str = "this host has IPsec policies (ip xfrm policy), which the fast path would bypass";
const REFUSES: &str = "this host blocks packets without an IPsec policy (ip xfrm policy getdefault)";
const UNKNOWN: &str = "the kernel does not report IPsec policies";

/// Watches for policies.
#[derive(Debug, Default)]
pub(super) struct Policies(Watch<NetlinkSocket>);

impl Policies {
    /// Why the fast path must be suspended; `None`: it need not be. A process that can attach programs may also read policies.
    pub fn in_the_way(&mut self) -> Option<&'static str> {
        self.0.look(open, ask)
    }

    /// Whether the kernel has ever said.
    pub fn are_known(&self) -> bool {
        self.0.last.is_some()
    }
}

fn open() -> io::Result<NetlinkSocket> {
    NetlinkSocket::by(Socket::new(NETLINK_XFRM)?.as_fd().try_clone_to_owned()?)
}

fn ask(netlink: &mut NetlinkSocket) -> io::Result<Option<&'static str>> {
    let (mut counted, mut blocked) = (None, None);
    netlink.request(XFRM_MSG_GETSPDINFO, &[0; HEADER], |answer| counted = counts(answer))?;
    match netlink.request(XFRM_MSG_GETDEFAULT, &[0; HEADER], |answer| blocked = blocks(answer)) {
        // Before Linux 5.15 what no policy is for passes.
        Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => blocked = Some(false),
        outcome => outcome?,
    }
    match counted.zip(blocked) {
        Some((true, _)) => Ok(Some(POLICIES)),
        Some((false, true)) => Ok(Some(REFUSES)),
        Some((false, false)) => Ok(None),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Whether an answer refuses what is sent or forwarded without a policy; `None`: it does not say.
fn blocks(body: &[u8]) -> Option<bool> {
    let [_received, forwarded, sent] = body.first_chunk::<3>()?;
    Some([forwarded, sent].contains(&&XFRM_USERPOLICY_BLOCK))
}

/// Whether an answer counts policies that what is forwarded is subject to; `None`: it does not say.
fn counts(body: &[u8]) -> Option<bool> {
    let info = attribute(body.get(HEADER..)?, XFRMA_SPD_INFO)?;
    Some(number32(info, OUT)? > 0 || number32(info, FORWARDED)? > 0)
}

/// What a socket received about policies; opening it is tried again until it succeeds.
#[derive(Debug)]
struct Watch<S> {
    socket: Option<S>,
    /// The kernel has no IPsec, and is not asked to load it at each check.
    is_without: bool,
    /// What was said last.
    last: Option<Option<&'static str>>,
    /// It cannot be read any more, which was reported.
    is_silent: bool,
}

impl<S> Default for Watch<S> {
    fn default() -> Self {
        Self { socket: None, is_without: false, last: None, is_silent: false }
    }
}

impl<S> Watch<S> {
    /// The reason for suspension: the last known one, or an unknown state, since packets that must be encrypted must not be sent
    /// unencrypted.
    fn look(
        &mut self,
        open: impl FnOnce() -> io::Result<S>,
        ask: impl FnOnce(&mut S) -> io::Result<Option<&'static str>>,
    ) -> Option<&'static str> {
        match self.try_look(open, ask) {
            Ok(said) => {
                self.last = Some(said);
                self.is_silent = false;
            }
            Err(error) if self.is_silent => tracing::debug!("IPsec policies: {error}"),
            Err(error) => {
                match self.last {
                    Some(_) => tracing::warn!("fast path: {UNKNOWN}; assuming no change: {error}"),
                    None => tracing::warn!("fast path suspended while {UNKNOWN}: {error}"),
                }
                self.is_silent = true;
            }
        }
        self.last.unwrap_or(Some(UNKNOWN))
    }

    fn try_look(
        &mut self,
        open: impl FnOnce() -> io::Result<S>,
        ask: impl FnOnce(&mut S) -> io::Result<Option<&'static str>>,
    ) -> io::Result<Option<&'static str>> {
        if self.is_without {
            return Ok(None);
        }
        let socket = match self.socket.take().map_or_else(open, Ok) {
            Ok(socket) => self.socket.insert(socket),
            Err(error) if error.raw_os_error() == Some(nix::libc::EPROTONOSUPPORT) => {
                self.is_without = true;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        ask(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_path::octets::write_attribute;

    /// A kernel's answer with these numbers of policies: in, out, forwarded; the same for sockets.
    fn answer(counts: [u32; 6]) -> Vec<u8> {
        let mut body = vec![0; HEADER];
        write_attribute(XFRMA_SPD_INFO, &counts.map(u32::to_ne_bytes).concat(), &mut body);
        // The size of its tables.
        write_attribute(2, &[7, 0, 0, 0, 0, 0, 16, 0], &mut body);
        body
    }

    #[test]
    fn policies_for_what_is_sent_or_forwarded_count() {
        for (there, said) in [
            ([0; 6], false),
            ([0, 1, 0, 0, 0, 0], true),
            ([0, 0, 1, 0, 0, 0], true),
            // Policies for packets to this host itself, and those of its sockets.
            ([1, 0, 0, 1, 1, 1], false),
        ] {
            assert_eq!(counts(&answer(there)), Some(said), "{there:?}");
        }
        let whole = answer([0, 1, 1, 0, 0, 0]);
        (0..HEADER + 12).for_each(|length| assert_eq!(counts(&whole[..length]), None, "{length}"));
    }

    #[test]
    fn what_is_refused_without_a_policy_counts() {
        // Received, forwarded, sent; 0 is what kernels say that were never told, 2 accepts. Then what aligns the message.
        for (default, said) in [([0; 3], false), ([1, 2, 2], false), ([2, 1, 2], true), ([0, 0, 1], true)] {
            assert_eq!(blocks(&[&default[..], &[9]].concat()), Some(said), "{default:?}");
        }
        assert_eq!(blocks(&[1, 1]), None);
    }

    fn failure(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn what_the_kernel_fails_to_say_is_as_it_was() {
        let mut watch = Watch::<()>::default();
        let silent = |_: &mut ()| Err(failure(nix::libc::EAGAIN));
        assert_eq!(watch.look(|| Ok(()), silent), Some(UNKNOWN), "nothing is known yet");
        for said in [None, Some(POLICIES), Some(REFUSES)] {
            assert_eq!(watch.look(|| Ok(()), |()| Ok(said)), said);
            assert_eq!(watch.look(|| Ok(()), silent), said);
        }
    }

    #[test]
    fn a_socket_that_cannot_be_had_is_tried_again() {
        let mut watch = Watch::<()>::default();
        for number in [nix::libc::EMFILE, nix::libc::ENOMEM] {
            assert_eq!(watch.look(|| Err(failure(number)), |()| Ok(None)), Some(UNKNOWN));
        }
        assert_eq!(watch.look(|| Ok(()), |()| Ok(None)), None);
        assert_eq!(watch.look(|| unreachable!("it is open"), |()| Ok(Some(POLICIES))), Some(POLICIES));
    }

    #[test]
    fn a_kernel_without_ipsec_has_no_policies_and_is_asked_once() {
        let mut watch = Watch::<()>::default();
        let without = || Err(failure(nix::libc::EPROTONOSUPPORT));
        assert_eq!(watch.look(without, |()| Ok(Some(POLICIES))), None);
        assert_eq!(watch.look(|| unreachable!("it has none"), |()| Ok(Some(POLICIES))), None);
    }
}
