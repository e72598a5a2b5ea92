//! The kinds of mechanisms. Everything that lists mechanisms by name or number follows from this list: counters and their names, the numbers in
//! the fast path, the words of the admin API and of metrics. What a kind is built from and how it decides is in `mechanism/table.rs`, which
//! does not compile without a row for each.

use crate::direction::Direction;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident {
        name: $name:literal,
        section: $section:literal,
        title: $title:literal,
        number: $number:literal,
        stateful: $stateful:literal,
        out: $out:literal = $out_help:literal,
        in: $in:literal = $in_help:literal,
    })+) => {
        /// A kind of mechanism.
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
                match self { $(Self::$kind => $name,)+ }
            }

            /// Its section in the configuration.
            pub const fn section(self) -> &'static str {
                match self { $(Self::$kind => $section,)+ }
            }

            /// Its display name.
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

            /// The whole name of the counter of a direction.
            pub const fn counter(self, direction: Direction) -> &'static str {
                match (self, direction) {
                    $((Self::$kind, Direction::Out) => concat!($name, ".", $out),
                      (Self::$kind, Direction::In) => concat!($name, ".", $in),)+
                }
            }

            /// What the counter of a direction counts, in a sentence.
            pub const fn help(self, direction: Direction) -> &'static str {
                match (self, direction) {
                    $((Self::$kind, Direction::Out) => $out_help, (Self::$kind, Direction::In) => $in_help,)+
                }
            }
        }
    };
}

kinds! {
    /// Stateful NAT64 (RFC 6146).
    Nat64 {
        name: "nat64",
        section: "nat64",
        title: "nat64",
        number: 1,
        stateful: true,
        out: "v6_to_v4" = "Frames translated from IPv6 to IPv4 by NAT64.",
        in: "v4_to_v6" = "Frames translated from IPv4 to IPv6 by NAT64.",
    }
    /// NAT44 (RFC 3022, RFC 4787).
    Nat44 {
        name: "nat44",
        section: "nat44",
        title: "nat44",
        number: 9,
        stateful: true,
        out: "to_outside" = "Frames from inside hosts whose source NAT44 translated.",
        in: "to_inside" = "Frames to inside hosts whose destination NAT44 translated.",
    }
    /// Stateless translation (RFC 7915).
    Siit {
        name: "siit",
        section: "siit",
        title: "siit",
        number: 2,
        stateful: false,
        out: "v6_to_v4" = "Frames translated from IPv6 to IPv4 by SIIT.",
        in: "v4_to_v6" = "Frames translated from IPv4 to IPv6 by SIIT.",
    }
    /// 6to4 (RFC 3056).
    SixToFour {
        name: "six_to_four",
        section: "six_to_four",
        title: "6to4",
        number: 3,
        stateful: false,
        out: "encap" = "Frames encapsulated by 6to4 tunnels.",
        in: "decap" = "Frames decapsulated by 6to4 tunnels.",
    }
    /// 6rd (RFC 5969).
    SixRd {
        name: "six_rd",
        section: "six_rd",
        title: "6rd",
        number: 4,
        stateful: false,
        out: "encap" = "Frames encapsulated by 6rd tunnels.",
        in: "decap" = "Frames decapsulated by 6rd tunnels.",
    }
    /// Configured tunnels (RFC 4213, RFC 2473).
    Configured {
        name: "configured",
        section: "tunnel",
        title: "configured",
        number: 5,
        stateful: false,
        out: "encap" = "Frames encapsulated by configured tunnels.",
        in: "decap" = "Frames decapsulated by configured tunnels.",
    }
    /// ISATAP (RFC 5214).
    Isatap {
        name: "isatap",
        section: "isatap",
        title: "isatap",
        number: 6,
        stateful: false,
        out: "encap" = "Frames encapsulated by ISATAP tunnels.",
        in: "decap" = "Frames decapsulated by ISATAP tunnels.",
    }
    /// NPTv6 (RFC 6296).
    Npt66 {
        name: "npt66",
        section: "npt66",
        title: "npt66",
        number: 7,
        stateful: false,
        out: "to_outside" = "Frames whose source NPTv6 translated to an outside address.",
        in: "to_inside" = "Frames whose destination NPTv6 translated to an inside address.",
    }
    /// Tunnels of IP in IP that are not of IPv6 in IPv4 (RFC 2473, RFC 2003).
    IpInIp {
        name: "ip_in_ip",
        section: "ip_in_ip",
        title: "ip-in-ip",
        number: 8,
        stateful: false,
        out: "encap" = "Frames encapsulated by IP-in-IP tunnels.",
        in: "decap" = "Frames decapsulated by IP-in-IP tunnels.",
    }
    /// DS-Lite's AFTR (RFC 6333).
    DsLite {
        name: "ds_lite",
        section: "ds_lite",
        title: "ds-lite",
        number: 10,
        stateful: true,
        out: "to_outside" = "Frames from softwires whose source the AFTR translated.",
        in: "to_inside" = "Frames that the AFTR translated and sent into softwires.",
    }
    /// The B4 of DS-Lite (RFC 6333 §5).
    B4 {
        name: "b4",
        section: "ds_lite",
        title: "ds-lite b4",
        number: 13,
        stateful: false,
        out: "encap" = "Frames encapsulated by the B4 of DS-Lite.",
        in: "decap" = "Frames decapsulated by the B4 of DS-Lite.",
    }
    /// NAT46: IPv4 hosts reach IPv6 servers by name.
    Nat46 {
        name: "nat46",
        section: "nat46",
        title: "nat46",
        number: 12,
        stateful: false,
        out: "v6_to_v4" = "Frames of servers translated from IPv6 to IPv4 by NAT46.",
        in: "v4_to_v6" = "Frames of clients translated from IPv4 to IPv6 by NAT46.",
    }
    /// Public 4over6 (RFC 7040).
    FourOverSix {
        name: "four_over_six",
        section: "four_over_six",
        title: "4over6",
        number: 11,
        stateful: false,
        out: "encap" = "Frames encapsulated by 4over6 tunnels.",
        in: "decap" = "Frames decapsulated by 4over6 tunnels.",
    }
    /// Teredo's relay and client (RFC 4380).
    Teredo {
        name: "teredo",
        section: "teredo_relay",
        title: "teredo",
        number: 14,
        stateful: false,
        out: "encap" = "Frames encapsulated by Teredo.",
        in: "decap" = "Frames decapsulated by Teredo.",
    }
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// One more than the greatest number that a kind may have in the fast path.
    pub const NUMBERS: usize = 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_its_own_index_and_has_a_name_and_a_number_of_its_own() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert!((1..Kind::NUMBERS).contains(&kind.number().into()), "{kind:?}");
            assert!(Kind::ALL[index + 1..].iter().all(|other| other.number() != kind.number()), "{kind:?}");
            assert!(Kind::ALL[index + 1..].iter().all(|other| other.name() != kind.name()), "{kind:?}");
        }
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
            (Kind::IpInIp, 8),
            (Kind::Nat44, 9),
            (Kind::DsLite, 10),
            (Kind::B4, 13),
            (Kind::Nat46, 12),
            (Kind::FourOverSix, 11),
            (Kind::Teredo, 14),
        ];
        assert!(given.iter().all(|(kind, number)| kind.number() == *number));
    }
}
