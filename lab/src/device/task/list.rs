//! The tasks of devices. A task is a row of the list at the end; no device has a default arm for unknown tasks.

use super::softwires::{Aftr, B4, Concentrator, LeasingHost};
use super::translators::{Clat, Dns64, Nat44, Nat46, Nat64, Siit};
use super::tunnels::{
    Configured, Host6to4, IpInIp, IsatapHost, IsatapRouter, Relay6to4, Router6to4, SiteGateway, TeredoClient,
    TeredoRelay, TeredoServer,
};
use crate::failure::Failure;

/// Forward IPv4 and IPv6 as a router; addresses and routes are those of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward;

macro_rules! tasks {
    ($($name:ident, $get:ident, $text:literal;)*) => {
        /// A task with its data.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Task {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        /// A task without its data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TaskKind {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name,)*
        }

        impl TaskKind {
            /// All tasks.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As it is written for recipes and on command lines: in small letters, without spaces.
            pub fn key(self) -> String {
                self.text().to_lowercase().replace(' ', "-")
            }

            /// As it is written in lists.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }

        impl Task {
            /// Which task it is.
            pub const fn kind(&self) -> TaskKind {
                match self { $(Self::$name(_) => TaskKind::$name,)* }
            }

            $(
                #[doc = concat!("Its data if it is ", stringify!($name), "; else the failure that `device` does not play it.")]
                ///
                /// # Errors
                /// It is another task.
                pub fn $get(&self, device: &str) -> Result<&$name, Failure> {
                    match self {
                        Self::$name(data) => Ok(data),
                        other => Err(Failure::Unexpected(format!("{device} cannot be {}", other.kind().text()))),
                    }
                }
            )*
        }
    };
}

tasks! {
    Forward, forward, "forwarder";
    Nat64, nat64, "NAT64";
    Siit, siit, "SIIT";
    Clat, clat, "CLAT";
    Nat44, nat44, "NAT44";
    Nat46, nat46, "NAT46";
    Dns64, dns64, "DNS64";
    Relay6to4, relay_6to4, "6to4 relay";
    Router6to4, router_6to4, "6to4 router";
    Host6to4, host_6to4, "6to4 host";
    Configured, configured, "end of a configured tunnel";
    IpInIp, ip_in_ip, "end of a tunnel over IPv6";
    IsatapRouter, isatap_router, "ISATAP router";
    IsatapHost, isatap_host, "ISATAP host";
    SiteGateway, site_gateway, "site gateway";
    Aftr, aftr, "AFTR";
    B4, b4, "B4";
    Concentrator, concentrator, "4over6 concentrator";
    LeasingHost, leasing_host, "4over6 host";
    TeredoRelay, teredo_relay, "Teredo relay";
    TeredoServer, teredo_server, "Teredo server";
    TeredoClient, teredo_client, "Teredo client";
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::Ipv4Addr;

    #[test]
    fn a_task_that_a_device_does_not_play_is_named() {
        let relay = Task::Relay6to4(Relay6to4 { address: Ipv4Addr::LOCALHOST });
        assert_eq!(relay.relay_6to4("x").unwrap().address, Ipv4Addr::LOCALHOST);
        assert_eq!(relay.forward("tayga").unwrap_err().to_string(), "tayga cannot be 6to4 relay");
    }
}
