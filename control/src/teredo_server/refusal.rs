//! Why a datagram is discarded: each has a counter.

use core::fmt;

macro_rules! refusals {
    ($($(#[doc = $doc:literal])+ $reason:ident = $name:literal)+) => {
        /// Why a server discards a datagram.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[doc = $doc])+ $reason,)+
        }

        impl Refusal {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$reason,)+];

            /// Its name in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$reason => $name,)+ }
            }

            /// Its meaning.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$reason => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

refusals! {
    /// It contains no IPv6 packet whose length fits (RFC 4380 §5.3.1, 1).
    Malformed = "malformed"
    /// It is neither a bubble nor an ICMPv6 echo message nor a router solicitation (RFC 4380 §5.3.1, 2).
    NotForwarded = "not_forwarded"
    /// Its IPv4 source is not global unicast (RFC 4380 §5.3.1, 3).
    SourceNotGlobal = "source_not_global"
    /// Its IPv6 source is not the client that its IPv4 source is (RFC 4380 §5.3.1, 5).
    SourceSpoofed = "source_spoofed"
    /// It is to a client of another server, or to a native host and not from a client of this one (RFC 4380 §5.3.1, 6).
    NotOurClient = "not_our_client"
    /// Its IPv6 destination is of a link, or of a group.
    DestinationNotGlobal = "destination_not_global"
    /// The IPv4 address in its IPv6 destination is not global unicast, or its port is 0 (RFC 4380 §5.3.1).
    MappedNotGlobal = "mapped_not_global"
    /// Its cone bit asks for an answer from a second address, which this server does not have.
    NoSecondary = "no_secondary"
    /// It comes from this host, or would come back to it.
    Loop = "loop"
    /// Its authentication is missing or wrong (RFC 4380 §5.2.2).
    NotAuthentic = "not_authentic"
    /// Its source is over its rate.
    SourceRate = "source_rate"
    /// The client that it goes to is over its rate.
    DestinationRate = "destination_rate"
    /// All together are over their rate.
    TotalRate = "total_rate"
    /// It is to a native host, and this server forwards nothing there.
    NativeDisabled = "native_disabled"
    /// It is to a native host in a network of this host, and `own_networks` is off.
    OwnNetwork = "own_network"
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
