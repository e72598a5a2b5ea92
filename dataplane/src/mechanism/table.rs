//! The one table of mechanisms. Everything else that lists them follows from it: counters and their names, the numbers in the fast path,
//! the words of the admin API and of metrics, the engine's dispatch.
//!
//! A new mechanism is a row here, a file or folder beside this one, a section of the configuration and a page of the docs.

use super::contract::{Build as _, Claims, Configured, Mechanism, Share};
use super::{configured, ip_in_ip, isatap, nat64, npt66, siit, six_rd, six_to_four};
use crate::translate::Policy;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::Domain;
use crate::tunnel::ends::TunnelEnds;
use crate::verdict::{MechanismId, PolicyId};
use core::net::Ipv4Addr;

/// Why a mechanism cannot be built. Only a dynamic pool can fail.
pub use super::siit::dynamic_pool::DynamicPoolFault as BuildFault;

/// The mechanisms of a kind, and their look-ups under way.
pub(crate) struct Row<M: Mechanism> {
    /// They, in the order of the configuration.
    pub(crate) all: Vec<M>,
    /// One place for each packet of a stride.
    pub(crate) probes: Vec<M::Probe>,
}

impl<M: Mechanism> Default for Row<M> {
    fn default() -> Self {
        Self { all: Vec::new(), probes: Vec::new() }
    }
}

/// The two ways through a mechanism. Each has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Way {
    /// To the IPv4 network, to the outside, or into the tunnel.
    Out = 0,
    /// To the IPv6 hosts, to the inside, or out of the tunnel.
    In = 1,
}

macro_rules! mechanisms {
    ($d:tt $($(#[doc = $doc:literal])+ $kind:ident {
        module: $module:ident,
        state: $state:ident,
        config: $config:ident,
        section: $section:literal,
        title: $title:literal,
        number: $number:literal,
        stateful: $stateful:literal,
        out: $out:literal = $out_help:literal,
        in: $in:literal = $in_help:literal,
    })+) => {
        /// A kind of mechanism: a row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// Its name: its module, and the first part of its counters' names.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($module),)+ }
            }

            /// Its section in the configuration.
            pub const fn section(self) -> &'static str {
                match self { $(Self::$kind => $section,)+ }
            }

            /// What people call it.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)+ }
            }

            /// Its number in the fast path's maps. Numbers are never given again to another kind.
            pub const fn number(self) -> u8 {
                match self { $(Self::$kind => $number,)+ }
            }

            /// Whether it keeps sessions.
            pub const fn is_stateful(self) -> bool {
                match self { $(Self::$kind => $stateful,)+ }
            }

            /// The name of a way's counter, without the kind's.
            pub const fn verb(self, way: Way) -> &'static str {
                match (self, way) {
                    $((Self::$kind, Way::Out) => $out, (Self::$kind, Way::In) => $in,)+
                }
            }

            /// The whole name of a way's counter.
            pub const fn counter(self, way: Way) -> &'static str {
                match (self, way) {
                    $((Self::$kind, Way::Out) => concat!(stringify!($module), ".", $out),
                      (Self::$kind, Way::In) => concat!(stringify!($module), ".", $in),)+
                }
            }

            /// What a way's counter counts, in a sentence.
            pub const fn help(self, way: Way) -> &'static str {
                match (self, way) {
                    $((Self::$kind, Way::Out) => $out_help, (Self::$kind, Way::In) => $in_help,)+
                }
            }
        }

        /// What a mechanism of any kind is built from.
        #[derive(Clone)]
        pub enum MechanismConfig {
            $($(#[doc = $doc])+ $kind($module::$config),)+
        }

        $(impl From<$module::$config> for MechanismConfig {
            fn from(config: $module::$config) -> Self {
                Self::$kind(config)
            }
        })+

        impl core::fmt::Debug for MechanismConfig {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "MechanismConfig({}: {:?})", self.kind().name(), self.claims())
            }
        }

        impl MechanismConfig {
            /// Its kind.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }

            /// As its kind's own.
            fn own(&self) -> &dyn Configured {
                match self { $(Self::$kind(config) => config,)+ }
            }
        }

        /// The kinds for which this is so, a bit each: asked of every packet, so without a jump.
        macro_rules! kinds {
            ($d constant:ident) => {
                0_u64 $(| (<$module::$state as Mechanism>::$d constant as u64) << Kind::$kind as u64)+
            };
        }

        /// All mechanisms of an engine, by kind.
        #[derive(Default)]
        pub(crate) struct Mechanisms {
            $(pub(crate) $module: Row<$module::$state>,)+
        }

        impl Mechanisms {
            /// Adds a mechanism, whose packets follow the policy of this number.
            pub(crate) fn add(
                &mut self,
                config: &MechanismConfig,
                policy: PolicyId,
                share: &Share,
            ) -> Result<MechanismId, BuildFault> {
                let index = match config {
                    $(MechanismConfig::$kind(config) => {
                        self.$module.all.push(config.build(policy, share)?);
                        self.$module.all.len() - 1
                    })+
                };
                Ok(MechanismId { kind: config.kind(), index: index as u16 })
            }

            /// Forgets all mechanisms of a kind.
            pub(crate) fn clear(&mut self, kind: Kind) {
                match kind { $(Kind::$kind => self.$module.all.clear(),)+ }
            }
        }

        /// Does something with the row of a kind: the one place where kinds are told apart. Each arm is compiled for its own mechanism.
        macro_rules! with_row {
            ($d mechanisms:expr, $d kind:expr, $d row:ident => $d what:expr) => {
                match $d kind {
                    $($crate::mechanism::table::Kind::$kind => {
                        let $d row = &mut $d mechanisms.$module;
                        $d what
                    })+
                }
            };
        }

        /// The same with a shared reference.
        macro_rules! with_row_ref {
            ($d mechanisms:expr, $d kind:expr, $d row:ident => $d what:expr) => {
                match $d kind {
                    $($crate::mechanism::table::Kind::$kind => {
                        let $d row = &$d mechanisms.$module;
                        $d what
                    })+
                }
            };
        }

        pub(crate) use {with_row, with_row_ref};
    };
}

mechanisms! { $
    /// Stateful NAT64 (RFC 6146).
    Nat64 {
        module: nat64,
        state: Nat64,
        config: Nat64Config,
        section: "nat64",
        title: "nat64",
        number: 1,
        stateful: true,
        out: "v6_to_v4" = "Frames translated from IPv6 to IPv4 by NAT64.",
        in: "v4_to_v6" = "Frames translated from IPv4 to IPv6 by NAT64.",
    }
    /// Stateless translation (RFC 7915).
    Siit {
        module: siit,
        state: Siit,
        config: SiitConfig,
        section: "siit",
        title: "siit",
        number: 2,
        stateful: false,
        out: "v6_to_v4" = "Frames translated from IPv6 to IPv4 by SIIT.",
        in: "v4_to_v6" = "Frames translated from IPv4 to IPv6 by SIIT.",
    }
    /// 6to4 (RFC 3056).
    SixToFour {
        module: six_to_four,
        state: SixToFour,
        config: SixToFourConfig,
        section: "six_to_four",
        title: "6to4",
        number: 3,
        stateful: false,
        out: "encap" = "Frames that went into a 6to4 tunnel.",
        in: "decap" = "Frames that came out of a 6to4 tunnel.",
    }
    /// 6rd (RFC 5969).
    SixRd {
        module: six_rd,
        state: SixRd,
        config: SixRdConfig,
        section: "six_rd",
        title: "6rd",
        number: 4,
        stateful: false,
        out: "encap" = "Frames that went into a 6rd tunnel.",
        in: "decap" = "Frames that came out of a 6rd tunnel.",
    }
    /// Configured tunnels (RFC 4213, RFC 2473).
    Configured {
        module: configured,
        state: Configured,
        config: ConfiguredConfig,
        section: "tunnel",
        title: "configured",
        number: 5,
        stateful: false,
        out: "encap" = "Frames that went into a configured tunnel.",
        in: "decap" = "Frames that came out of a configured tunnel.",
    }
    /// ISATAP (RFC 5214).
    Isatap {
        module: isatap,
        state: Isatap,
        config: IsatapConfig,
        section: "isatap",
        title: "isatap",
        number: 6,
        stateful: false,
        out: "encap" = "Frames that went into an ISATAP tunnel.",
        in: "decap" = "Frames that came out of an ISATAP tunnel.",
    }
    /// NPTv6 (RFC 6296).
    Npt66 {
        module: npt66,
        state: Npt66,
        config: Npt66Config,
        section: "npt66",
        title: "npt66",
        number: 7,
        stateful: false,
        out: "to_outside" = "Frames whose source became an outside address by NPTv6.",
        in: "to_inside" = "Frames whose destination became an inside address by NPTv6.",
    }
    /// Tunnels of IP in IP that are not of IPv6 in IPv4 (RFC 2473, RFC 2003).
    IpInIp {
        module: ip_in_ip,
        state: IpInIp,
        config: IpInIpConfig,
        section: "ip_in_ip",
        title: "ip-in-ip",
        number: 8,
        stateful: false,
        out: "encap" = "Frames that went into an IP-in-IP tunnel.",
        in: "decap" = "Frames that came out of an IP-in-IP tunnel.",
    }
}

impl MechanismConfig {
    /// What is its business.
    pub fn claims(&self) -> Claims {
        self.own().claims()
    }

    /// Options of its translation.
    pub fn policy(&self) -> Policy {
        self.own().policy()
    }

    /// Options of its tunnel.
    pub fn tunnel_policy(&self) -> TunnelPolicy {
        self.own().tunnel_policy()
    }

    /// The IPv4 address of this host at which its tunnel ends.
    pub fn local(&self) -> Option<Ipv4Addr> {
        self.own().local()
    }

    /// The ends of a tunnel of IP in IP that is not of IPv6 in IPv4.
    pub fn ends(&self) -> Option<TunnelEnds> {
        self.own().ends()
    }

    /// The IPv4 address in its site's prefix, which may be another that stands for this host at a NAT.
    pub fn stands_for(&self) -> Option<Ipv4Addr> {
        self.own().stands_for()
    }

    /// The domain in whose addresses this host's stands.
    pub fn domain(&self) -> Option<Domain> {
        self.own().domain()
    }
}

/// Kinds whose packets the gateway forwards as a router does.
const ROUTED: u64 = kinds!(COUNTS_HOP);
/// Kinds whose packets keep their family.
const KEEP_FAMILY: u64 = kinds!(KEEPS_FAMILY);
/// Kinds that own sources which nobody outside has.
const OWN_SOURCES: u64 = kinds!(OWNS_SOURCES);

impl Kind {
    /// Whether the gateway forwards its packets as a router does; the kernel routes what goes into tunnels.
    #[inline(always)]
    pub(crate) const fn is_routed(self) -> bool {
        ROUTED >> self as u64 & 1 == 1
    }

    /// Whether its packets keep their family.
    #[inline(always)]
    pub(crate) const fn keeps_family(self) -> bool {
        KEEP_FAMILY >> self as u64 & 1 == 1
    }

    /// Whether it owns sources which nobody outside has.
    #[inline(always)]
    pub(crate) const fn owns_sources(self) -> bool {
        OWN_SOURCES >> self as u64 & 1 == 1
    }

    /// Number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// One more than the greatest number that a kind may have in the fast path.
    pub const NUMBERS: usize = 32;

    /// The kind of a number in the fast path's maps.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_its_own_index_and_has_a_name_and_a_number_of_its_own() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert!((1..Kind::NUMBERS).contains(&kind.number().into()), "{kind:?}");
            assert_eq!(Kind::of_number(kind.number()), Some(*kind));
            assert!(Kind::ALL[index + 1..].iter().all(|other| other.name() != kind.name()), "{kind:?}");
        }
        assert_eq!(Kind::of_number(0), None);
    }

    #[test]
    fn numbers_that_were_given_stay() {
        let given = [
            (Kind::Nat64, 1),
            (Kind::Siit, 2),
            (Kind::SixToFour, 3),
            (Kind::SixRd, 4),
            (Kind::Configured, 5),
            (Kind::Isatap, 6),
            (Kind::Npt66, 7),
        ];
        assert!(given.iter().all(|(kind, number)| kind.number() == *number));
    }
}
