//! Why a host cannot be set up.

use super::nft::NftError;
use super::record::RecordError;
use super::route::RouteError;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Why setting up the host failed. Changes were reverted.
#[derive(Debug)]
pub enum HostError {
    /// CAP_NET_ADMIN is missing; the device's name.
    NotPermitted(String),
    /// The state file cannot be used.
    Record(RecordError),
    /// The device cannot be created: its name and the error.
    Device(String, io::Error),
    /// A setting under `/proc/sys` cannot be made.
    Setting(PathBuf, io::Error),
    /// `/proc/sys` is read-only, and these settings are not as they have to be: `NAME=VALUE`.
    ReadOnly(Vec<String>),
    /// A route cannot be set.
    Route(RouteError),
    /// A realm cannot be in its VRF: the realm's name, what is wrong, and what to do.
    Vrf(String, String, String),
    /// An address cannot be added: which, and the error.
    Address(String, String),
    /// The same of an address at which any server of its kind may be asked. The gateway can do without.
    Anycast(IpAddr, String),
    /// The table in the packet filter cannot be made.
    PacketFilter(NftError),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted(device) => write!(
                f,
                "sixway needs CAP_NET_ADMIN to create {device}. Run it as root, or: setcap \
                 cap_net_admin+ep $(command -v sixway)"
            ),
            Self::Record(error) => error.fmt(f),
            Self::Device(device, error) => match error.kind() {
                io::ErrorKind::ResourceBusy => {
                    write!(
                        f,
                        "{device} is in use by another process; stop that (a site: sixway down), or set another `tun.name`"
                    )
                }
                io::ErrorKind::NotFound => {
                    write!(
                        f,
                        "{device}: {error}; load the tun module: modprobe tun; a container needs --device /dev/net/tun"
                    )
                }
                io::ErrorKind::InvalidInput => write!(
                    f,
                    "{device}: {error}; a device of this name exists that is not a multi-queue TUN device: remove it (ip link delete {device}), or set another `tun.name`"
                ),
                _ => write!(f, "{device}: {error}"),
            },
            Self::Setting(path, error) if path.starts_with("/proc/sys/net/ipv6") => {
                write!(f, "{}: {error}; IPv6 may be disabled on this host", path.display())
            }
            Self::Setting(path, error) => write!(f, "{}: {error}", path.display()),
            Self::ReadOnly(missing) => write!(
                f,
                "/proc/sys is read-only, as in a container: make it writable there, or start the container with --sysctl {}",
                missing.join(" --sysctl ")
            ),
            Self::Route(error) => error.fmt(f),
            Self::Vrf(realm, what, advice) => write!(f, "realm {realm}: {what}; {advice}"),
            Self::Address(address, error) => write!(f, "address {address}: {error}"),
            Self::Anycast(address, error) => write!(
                f,
                "the anycast address {address} cannot be added: {error}; anycast = false in [pcp] does without it"
            ),
            Self::PacketFilter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HostError {}
