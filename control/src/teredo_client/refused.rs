//! Why a datagram is discarded, as `show` names it.

use core::fmt;

macro_rules! refused {
    ($($(#[doc = $doc:literal])+ $reason:ident = $name:literal, $words:literal)+) => {
        /// Why a client discards a datagram.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refused {
            $($(#[doc = $doc])+ $reason,)+
        }

        impl Refused {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$reason,)+];

            /// Its name in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$reason => $name,)+ }
            }

            const fn words(self) -> &'static str {
                match self { $(Self::$reason => $words,)+ }
            }
        }
    };
}

refused! {
    /// No solicitation is outstanding.
    NotAsked = "not_asked", "nothing was asked"
    /// It did not come from the address that has to answer.
    WrongSource = "wrong_source", "it is not from the server that was asked"
    /// Its encapsulations or its IPv6 packet are truncated or malformed (RFC 4380 §5.2.3).
    Malformed = "malformed", "it is malformed"
    /// It is not a valid router advertisement (RFC 4861 §6.1.2).
    NotAdvertisement = "not_advertisement", "it is not a valid router advertisement"
    /// Its nonce is missing or another than the one sent (RFC 4380 §5.2.2).
    WrongNonce = "wrong_nonce", "its nonce is not the one that was sent"
    /// Its authentication value is wrong (RFC 4380 §5.2.2).
    NotAuthentic = "not_authentic", "its authentication value is wrong"
    /// It has no origin indication (RFC 4380 §5.2.1).
    NoOrigin = "no_origin", "it does not contain a mapped address"
    /// It is for another link-local address (RFC 4380 §5.2.1).
    WrongDestination = "wrong_destination", "it is for another client"
    /// It does not contain exactly one prefix, that of the server (RFC 4380 §5.2.1).
    WrongPrefix = "wrong_prefix", "its prefix is not the server's"
    /// Its mapped address is not a global unicast address (RFC 4380 §5.2.4).
    MappedNotGlobal = "mapped_not_global", "the mapped address in it is not a global one"
    /// It is not a discovery bubble (RFC 4380 §5.2.8).
    NotDiscovery = "not_discovery", "it is not a discovery bubble"
    /// It came from outside the networks of this host (RFC 4380 §5.2.8).
    NotOfLink = "not_of_link", "it is not from this link"
    /// Its source is not a client behind the same mapped address (RFC 4380 §5.2.8).
    NotBehindSameNat = "not_behind_same_nat", "its source is not a client behind the same NAT"
    /// This client sent it.
    Own = "own", "it is our own"
    /// There are too many of them.
    TooMany = "too_many", "there are too many of them"
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
