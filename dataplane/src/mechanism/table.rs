//! The table of mechanisms: what each [`Kind`] is built from and what decides on its packets. The engine's dispatch follows from it.
//!
//! A new mechanism is a kind, a row here, a file or folder in this folder, a section of the configuration and a page of the docs.

use super::contract::{Build as _, BuildContext, BuildFault, Claims, Configured, Mechanism};
use super::{
    b4, configured, ds_lite, four_over_six, ip_in_ip, isatap, nat44, nat46, nat64, npt66, siit, six_rd,
    six_to_four, teredo,
};
use crate::effects::Effects;
use crate::instant::Instant;
use crate::stateful::Stateful;
use crate::translate::Policy;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::Domain;
use crate::tunnel::ends::{Concentrator, TunnelEnds};
use crate::verdict::{MechanismId, PolicyId};
use core::net::{IpAddr, Ipv4Addr};

pub use crate::kind::Kind;

/// The mechanisms of a kind, and the state of their lookups.
pub(crate) struct Row<M: Mechanism> {
    /// The mechanisms, in the order of the configuration.
    pub(crate) all: Vec<M>,
    /// One probe for each packet of a stride.
    pub(crate) probes: Vec<M::Probe>,
}

impl<M: Mechanism> Default for Row<M> {
    fn default() -> Self {
        Self { all: Vec::new(), probes: Vec::new() }
    }
}

impl<M: Mechanism> Row<M> {
    /// Those that keep sessions: all of them or none.
    fn stateful(&mut self) -> impl Iterator<Item = &mut dyn Stateful> {
        let all = if M::KIND.is_stateful() { &mut self.all[..] } else { &mut [] };
        all.iter_mut().filter_map(Mechanism::stateful)
    }
}

macro_rules! mechanisms {
    ($d:tt $($(#[doc = $doc:literal])+ $kind:ident { module: $module:ident, state: $state:ident, config: $config:ident })+) => {
        /// The module of each kind.
        #[cfg(test)]
        const MODULES: &[(Kind, &str)] = &[$((Kind::$kind, stringify!($module)),)+];

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

            /// As the configuration of its kind.
            fn own(&self) -> &dyn Configured {
                match self { $(Self::$kind(config) => config,)+ }
            }
        }

        /// The kinds for which this is true, one bit each: tested for every packet, so without a branch.
        macro_rules! kinds {
            ($d constant:ident) => {
                0_u64 $(| (<$module::$state as Mechanism>::$d constant as u64) << Kind::$kind as u64)+
            };
        }

        /// All mechanisms of an engine, by kind.
        #[derive(Default)]
        pub(crate) struct Mechanisms {
            $(pub(crate) $module: Row<$module::$state>,)+
            /// The kinds of which there was one, one bit each: most are never examined.
            present: u64,
        }

        impl Mechanisms {
            /// Adds a mechanism, whose packets follow the policy of this number.
            pub(crate) fn add(
                &mut self,
                config: &MechanismConfig,
                policy: PolicyId,
                context: &BuildContext,
            ) -> Result<MechanismId, BuildFault> {
                let index = match config {
                    $(MechanismConfig::$kind(config) => {
                        let built = config.build(policy, context).map_err(BuildFault::from)?;
                        self.$module.all.push(built);
                        self.$module.all.len() - 1
                    })+
                };
                self.present |= 1 << config.kind() as u64;
                Ok(MechanismId { kind: config.kind(), index: index as u16 })
            }

            /// Ends what is due, examining at most `budget` entries of each table.
            #[inline]
            pub(crate) fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
                $(if self.present >> Kind::$kind as u64 & 1 == 1 {
                    for mechanism in &mut self.$module.all {
                        Mechanism::expire(mechanism, now, budget, effects);
                    }
                })+
            }

            /// Those that keep sessions, by kind and in the order of the configuration.
            pub(crate) fn stateful(&mut self) -> impl Iterator<Item = &mut dyn Stateful> {
                core::iter::empty()$(.chain(self.$module.stateful()))+
            }

            /// Removes the mechanisms of a kind but the first `kept`.
            pub(crate) fn truncate(&mut self, kind: Kind, kept: usize) {
                match kind { $(Kind::$kind => self.$module.all.truncate(kept),)+ }
            }
        }

        /// Does something with the row of a kind: the only place that matches on the kind. Each arm is compiled for its own mechanism.
        macro_rules! with_row {
            ($d mechanisms:expr, $d kind:expr, $d row:ident => $d what:expr) => {
                match $d kind {
                    $($crate::kind::Kind::$kind => {
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
                    $($crate::kind::Kind::$kind => {
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
    Nat64 { module: nat64, state: Nat64, config: Nat64Config }
    /// NAT44 (RFC 3022, RFC 4787).
    Nat44 { module: nat44, state: Nat44, config: Nat44Config }
    /// Stateless translation (RFC 7915).
    Siit { module: siit, state: Siit, config: SiitConfig }
    /// 6to4 (RFC 3056).
    SixToFour { module: six_to_four, state: SixToFour, config: SixToFourConfig }
    /// 6rd (RFC 5969).
    SixRd { module: six_rd, state: SixRd, config: SixRdConfig }
    /// Configured tunnels (RFC 4213, RFC 2473).
    Configured { module: configured, state: Configured, config: ConfiguredConfig }
    /// ISATAP (RFC 5214).
    Isatap { module: isatap, state: Isatap, config: IsatapConfig }
    /// NPTv6 (RFC 6296).
    Npt66 { module: npt66, state: Npt66, config: Npt66Config }
    /// Tunnels of IP in IP that are not of IPv6 in IPv4 (RFC 2473, RFC 2003).
    IpInIp { module: ip_in_ip, state: IpInIp, config: IpInIpConfig }
    /// DS-Lite's AFTR (RFC 6333).
    DsLite { module: ds_lite, state: DsLite, config: DsLiteConfig }
    /// The B4 of DS-Lite (RFC 6333 §5).
    B4 { module: b4, state: B4, config: B4Config }
    /// NAT46: IPv4 hosts reach IPv6 servers by name.
    Nat46 { module: nat46, state: Nat46, config: Nat46Config }
    /// Public 4over6 (RFC 7040).
    FourOverSix { module: four_over_six, state: FourOverSix, config: FourOverSixConfig }
    /// Teredo's relay and client (RFC 4380).
    Teredo { module: teredo, state: Teredo, config: TeredoConfig }
}

impl MechanismConfig {
    /// The packets that it handles.
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

    /// Where its tunnels end, if their remote ends are many.
    pub fn concentrator(&self) -> Option<Concentrator> {
        self.own().concentrator()
    }

    /// The remote ends through which packets of any sender come.
    pub fn relays(&self) -> Vec<IpAddr> {
        self.own().relays()
    }

    /// The IPv4 address embedded in its site's prefix: this host's, or that of a NAT in front of it.
    pub fn stands_for(&self) -> Option<Ipv4Addr> {
        self.own().stands_for()
    }

    /// The domain whose addresses contain this host's.
    pub fn domain(&self) -> Option<Domain> {
        self.own().domain()
    }
}

/// Kinds whose packets the gateway forwards as a router does.
const ROUTED: u64 = kinds!(COUNTS_HOP);
/// Kinds whose packets keep their family.
const KEEP_FAMILY: u64 = kinds!(KEEPS_FAMILY);
/// Kinds whose IPv4 destinations are not valid as sources of packets from outside.
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

    /// Whether its IPv4 destinations are not valid as sources of packets from outside.
    #[inline(always)]
    pub(crate) const fn owns_sources(self) -> bool {
        OWN_SOURCES >> self as u64 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_for_its_module() {
        for (kind, module) in MODULES {
            assert_eq!(kind.name(), *module);
        }
        assert_eq!(MODULES.len(), Kind::COUNT);
    }
}
