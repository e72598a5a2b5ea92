//! What a device is to do. A task is a row of the list at the end; no device has a default arm for those that it does not know.

use crate::failure::Failure;
use std::net::Ipv4Addr;

/// Forward IPv4 and IPv6 as a router; addresses and routes are those of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward;

/// A 6to4 relay (RFC 3056 §5.2) between 6to4 hosts inside and native IPv6 outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay6to4 {
    /// Its IPv4 address, which the host has on its inside link.
    pub address: Ipv4Addr,
}

macro_rules! tasks {
    ($($name:ident, $get:ident, $text:literal;)*) => {
        /// A task with its data.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Task {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        /// A task without its data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TaskKind {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name,)*
        }

        impl TaskKind {
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
                    #[allow(unreachable_patterns, reason = "there may be one task only")]
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
    Relay6to4, relay_6to4, "6to4 relay";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_a_device_does_not_play_is_named() {
        let relay = Task::Relay6to4(Relay6to4 { address: Ipv4Addr::LOCALHOST });
        assert_eq!(relay.relay_6to4("x").unwrap().address, Ipv4Addr::LOCALHOST);
        assert_eq!(relay.forward("tayga").unwrap_err().to_string(), "tayga cannot be 6to4 relay");
    }
}
