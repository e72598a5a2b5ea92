//! Routes into the device, by netlink. They vanish with the device.

use super::kernel::{Refusal, ask};
use super::route_mark::RouteMark;
use rtnetlink::packet_route::route::{RouteMessage, RouteScope};
use rtnetlink::{Handle, RouteMessageBuilder};
use sixway_wire::{Prefix4, Prefix6};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a route cannot be set.
#[derive(Debug)]
pub enum RouteError {
    /// There is another route to the same prefix.
    Exists(String),
    /// The kernel refused: the request and the error.
    Kernel(String, String),
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(prefix) => {
                let family = if prefix.contains(':') { "-6 " } else { "" };
                write!(
                    f,
                    "another route to {prefix} exists; remove it (see: ip {family}route show {prefix}), or remove this one from `tun.routes`"
                )
            }
            Self::Kernel(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for RouteError {}

/// A connection to the kernel's routing tables; it needs a Tokio runtime.
pub(super) struct Routes {
    handle: Handle,
    mark: RouteMark,
}

impl Routes {
    /// Connects; the routes get this mark.
    ///
    /// # Errors
    /// The netlink socket cannot be opened.
    pub(super) fn connect(mark: RouteMark) -> Result<Self, RouteError> {
        let (connection, handle, _) = rtnetlink::new_connection()
            .map_err(|error| RouteError::Kernel("netlink".into(), error.to_string()))?;
        tokio::spawn(connection);
        Ok(Self { handle, mark })
    }

    /// Routes `prefix` into the device with index `device`; without a `metric`, before all other routes to it.
    ///
    /// # Errors
    /// There is such a route already, or the kernel refused.
    pub async fn add4(&self, prefix: Prefix4, device: u32, metric: Option<u32>) -> Result<(), RouteError> {
        let message = message4(prefix, device, self.mark, metric);
        self.handle.route().add(message).execute().await.map_err(|error| refused(&prefix, &error))
    }

    /// Removes such a route. If it is gone already, that is not an error.
    ///
    /// # Errors
    /// The kernel refused.
    pub async fn remove4(&self, prefix: Prefix4, device: u32) -> Result<(), RouteError> {
        let message = message4(prefix, device, self.mark, None);
        match self.handle.route().del(message).execute().await {
            Err(error) if Refusal::of(&error) != Refusal::Absent => Err(refused(&prefix, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Routes `prefix` into the device with index `device`.
    ///
    /// # Errors
    /// There is such a route already, or the kernel refused.
    pub async fn add6(&self, prefix: Prefix6, device: u32) -> Result<(), RouteError> {
        let message = RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(prefix.address(), prefix.length())
            .output_interface(device)
            .protocol(self.mark.protocol())
            .build();
        self.handle.route().add(message).execute().await.map_err(|error| refused(&prefix, &error))
    }
}

/// Routes `prefix` into the device again, on a thread that waits for the kernel.
pub(super) fn restore4(
    prefix: Prefix4,
    device: u32,
    mark: RouteMark,
    metric: Option<u32>,
) -> Result<(), Refusal> {
    let message = message4(prefix, device, mark, metric);
    let add = |handle: Handle| async move { handle.route().add(message).execute().await };
    ask(add)?.map_err(|error| Refusal::of(&error))
}

/// Removes such a route, on a thread that waits for the kernel.
pub(super) fn remove4(prefix: Prefix4, device: u32, mark: RouteMark) -> Result<(), Refusal> {
    let delete = |handle: Handle| async move {
        handle.route().del(message4(prefix, device, mark, None)).execute().await
    };
    ask(delete)?.map_err(|error| Refusal::of(&error))
}

pub(super) fn message4(prefix: Prefix4, device: u32, mark: RouteMark, metric: Option<u32>) -> RouteMessage {
    let builder = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(prefix.address(), prefix.length())
        .output_interface(device)
        .protocol(mark.protocol())
        .scope(RouteScope::Link);
    match metric {
        Some(metric) => builder.priority(metric).build(),
        None => builder.build(),
    }
}

fn refused(prefix: &impl fmt::Display, error: &rtnetlink::Error) -> RouteError {
    match error {
        rtnetlink::Error::NetlinkError(message) if message.raw_code() == -nix::libc::EEXIST => {
            RouteError::Exists(prefix.to_string())
        }
        error => RouteError::Kernel(format!("route to {prefix}"), error.to_string()),
    }
}
