//! Opens a TUN device with its queues, with as many offloads as the kernel supports.

use super::overload_filter::{self, Senders};
use super::{Abilities, BlockMap, Steering, TunQueue, steering};
use crate::syscall::{annotate, interface_request, ioctl, ioctl_number};
use crate::{interface, queue_discipline};
use sixway_dataplane::frame::Realm;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// How to open a TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunConfig {
    /// The device's name, at most 15 octets; a `%d` in it is numbered by the kernel.
    pub name: String,
    /// How many queues: one for each worker, at least 1.
    pub queues: usize,
    /// The device outlives the process: its routes stay, and the next start adopts it. `false` also takes that property
    /// away from a device that is adopted.
    pub persist: bool,
    /// The device existed before: its queueing discipline and the length of its queue stay.
    pub found: bool,
    /// The realm whose hosts are behind the device.
    pub realm: Realm,
    /// The offloads to request; the kernel may support fewer.
    pub abilities: Abilities,
    /// How the kernel is to choose the queue; `None`, or a kernel that cannot: by a hash of the flow.
    pub steering: Option<Steering>,
    /// The bits of the IPv6 prefix of a sender, if packets of heavy senders may be dropped in front of the queues while the engine is overloaded. A
    /// kernel that cannot do this is accepted.
    pub senders: Option<u8>,
}

impl Default for TunConfig {
    fn default() -> Self {
        Self {
            name: "sixway%d".into(),
            queues: 1,
            persist: false,
            found: false,
            realm: Realm(0),
            abilities: Abilities::ALL,
            steering: None,
            senders: None,
        }
    }
}

/// An open TUN device. It vanishes with its last queue unless it was made to persist.
#[derive(Debug)]
pub struct Tun {
    /// The device's name, as the kernel gave it.
    pub name: String,
    /// What the kernel granted.
    pub abilities: Abilities,
    /// The owners of the port blocks, if the kernel steers packets as [`TunConfig::steering`] requested.
    pub blocks: Option<BlockMap>,
    /// The queues, one for each worker.
    pub queues: Vec<TunQueue>,
}

/// Decides whether the device outlives the process. The device exists at least as long as this value.
#[derive(Debug)]
pub struct Persistence {
    fd: OwnedFd,
}

impl Persistence {
    /// Lets the device outlive the process, or not.
    ///
    /// # Errors
    /// The kernel's error of TUNSETPERSIST.
    pub fn set(&self, persist: bool) -> io::Result<()> {
        // SAFETY: TUNSETPERSIST takes a number.
        unsafe { ioctl_number(self.fd.as_fd(), libc::TUNSETPERSIST, persist.into()) }
            .map_err(|error| annotate(error, "TUNSETPERSIST"))
    }
}

impl Tun {
    /// What decides whether the device outlives the process.
    ///
    /// # Errors
    /// The kernel has no file descriptor left.
    pub fn persistence(&self) -> io::Result<Persistence> {
        let Some(queue) = self.queues.first() else { return Err(io::ErrorKind::NotFound.into()) };
        Ok(Persistence { fd: queue.descriptor().try_clone_to_owned()? })
    }

    /// Opens `/dev/net/tun`, and makes the device or adopts a persistent one of that name. The device is left down, with the
    /// kernel's default MTU, and with room for [`interface::QUEUE_LENGTH`] packets.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_ADMIN is missing. `ResourceBusy`: another
    /// process has the device.
    pub fn open(config: &TunConfig) -> io::Result<Self> {
        let wanted = config.abilities.steps().next().unwrap_or(Abilities::NONE);
        let first = open_clone()?;
        let (name, has_several) = attach_first(&first, &config.name, wanted.vnet)?;
        if wanted.vnet {
            let mut length = super::virtio::LENGTH as libc::c_int;
            // SAFETY: TUNSETVNETHDRSZ reads an int.
            unsafe { ioctl(first.as_fd(), libc::TUNSETVNETHDRSZ, &mut length) }
                .map_err(|error| annotate(error, "TUNSETVNETHDRSZ"))?;
        }
        let abilities = negotiate(&first, wanted)?;
        // SAFETY: TUNSETPERSIST takes a number.
        unsafe { ioctl_number(first.as_fd(), libc::TUNSETPERSIST, config.persist.into()) }
            .map_err(|error| annotate(error, "TUNSETPERSIST"))?;
        let mut queues = vec![TunQueue::new(OwnedFd::from(first), abilities, config.realm)];
        while queues.len() < config.queues {
            if !has_several {
                // One reader, so that packets stay in order.
                queues.push(queues[0].sender()?);
                continue;
            }
            let file = open_clone()?;
            attach(&file, &name, wanted.vnet, libc::IFF_MULTI_QUEUE)?;
            queues.push(TunQueue::new(OwnedFd::from(file), abilities, config.realm));
        }
        let blocks = config
            .steering
            .as_ref()
            .filter(|_| has_several)
            .and_then(|steering| steering::attach(queues[0].descriptor(), steering).ok());
        if !config.found {
            set_filters(&mut queues, config, has_several);
            // Spares memory and time; where the kernel refuses, everything works as well.
            let _ = queue_discipline::remove(&name);
            interface::set_queue_length(&name, interface::QUEUE_LENGTH)?;
        }
        Ok(Self { name, abilities, blocks, queues })
    }
}

/// Attaches the overload filter to a device, or detaches that of an earlier process.
fn set_filters(queues: &mut [TunQueue], config: &TunConfig, has_several: bool) {
    let Some(first) = queues.first() else { return };
    let count = if has_several { u16::try_from(queues.len()).unwrap_or(u16::MAX) } else { 1 };
    let senders = config.senders.map(|bits| Senders { bits, realm: config.realm });
    let filters = senders.map(|senders| overload_filter::attach(first.descriptor(), senders, count));
    match filters {
        Some(Ok(filters)) => {
            queues.iter_mut().zip(filters).for_each(|(queue, filter)| queue.set_filter(filter));
        }
        Some(Err(_)) | None => {
            // Then there is none: a kernel that knows no filters has none to detach either.
            let _ = overload_filter::detach(first.descriptor());
        }
    }
}

fn open_clone() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .map_err(|error| match error.kind() {
            // Not a capability: that is wanted when a device is made.
            io::ErrorKind::PermissionDenied => io::Error::other(format!(
                "/dev/net/tun may not be opened ({error}); change its mode or owner, or give the container the device"
            )),
            _ => annotate(error, "open /dev/net/tun"),
        })
}

/// Attaches the first queue: the device's name, and whether it can have several. The device may be one that another program created with a
/// single queue.
fn attach_first(file: &File, name: &str, vnet: bool) -> io::Result<(String, bool)> {
    match attach(file, name, vnet, libc::IFF_MULTI_QUEUE) {
        Ok(name) => Ok((name, true)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput && interface::find(name)?.is_some() => {
            match attach(file, name, vnet, 0) {
                Ok(name) => Ok((name, false)),
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it exists and is not a TUN device; remove it, or set another `tun.name`",
                )),
            }
        }
        Err(error) => Err(error),
    }
}

/// TUNSETIFF: makes the file a queue of the device and returns the device's name.
fn attach(file: &File, name: &str, vnet: bool, several: libc::c_int) -> io::Result<String> {
    let mut request = interface_request(name)?;
    let header = if vnet { libc::IFF_VNET_HDR } else { 0 };
    // Several queues may be attached even where there is one: a persistent device keeps this property, and refuses those who
    // do not name it.
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | several | header;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes an ifreq.
    unsafe { ioctl(file.as_fd(), libc::TUNSETIFF, &mut request) }
        .map_err(|error| annotate(error, &format!("TUNSETIFF {name}")))?;
    let octets: Vec<u8> = request.ifr_name.iter().map(|c| *c as u8).take_while(|octet| *octet != 0).collect();
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// TUNSETOFFLOAD, from the most down to what the kernel grants.
fn negotiate(file: &File, wanted: Abilities) -> io::Result<Abilities> {
    let mut refusal = io::Error::from(io::ErrorKind::Unsupported);
    for step in wanted.steps() {
        // SAFETY: TUNSETOFFLOAD takes a number.
        match unsafe { ioctl_number(file.as_fd(), libc::TUNSETOFFLOAD, step.offload_flags().into()) } {
            Ok(()) => return Ok(step),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(annotate(error, "TUNSETOFFLOAD")),
        }
    }
    Err(annotate(refusal, "TUNSETOFFLOAD"))
}
