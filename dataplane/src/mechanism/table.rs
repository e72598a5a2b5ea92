//! The one table of mechanisms. Everything else that lists them follows from it: counters and their names, the numbers in the fast path,
//! the words of the admin API and of metrics, the engine's dispatch.
//!
//! A new mechanism is a row here, a file or folder beside this one, a section of the configuration and a page of the docs.

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
    ($($(#[doc = $doc:literal])+ $kind:ident {
        name: $name:literal,
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
                match self { $(Self::$kind => $name,)+ }
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
                    $((Self::$kind, Way::Out) => concat!($name, ".", $out),
                      (Self::$kind, Way::In) => concat!($name, ".", $in),)+
                }
            }

            /// What a way's counter counts, in a sentence.
            pub const fn help(self, way: Way) -> &'static str {
                match (self, way) {
                    $((Self::$kind, Way::Out) => $out_help, (Self::$kind, Way::In) => $in_help,)+
                }
            }
        }
    };
}

mechanisms! {
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
        out: "encap" = "Frames that went into a 6to4 tunnel.",
        in: "decap" = "Frames that came out of a 6to4 tunnel.",
    }
    /// 6rd (RFC 5969).
    SixRd {
        name: "six_rd",
        section: "six_rd",
        title: "6rd",
        number: 4,
        stateful: false,
        out: "encap" = "Frames that went into a 6rd tunnel.",
        in: "decap" = "Frames that came out of a 6rd tunnel.",
    }
    /// Configured tunnels (RFC 4213, RFC 2473).
    Configured {
        name: "configured",
        section: "tunnel",
        title: "configured",
        number: 5,
        stateful: false,
        out: "encap" = "Frames that went into a configured tunnel.",
        in: "decap" = "Frames that came out of a configured tunnel.",
    }
    /// ISATAP (RFC 5214).
    Isatap {
        name: "isatap",
        section: "isatap",
        title: "isatap",
        number: 6,
        stateful: false,
        out: "encap" = "Frames that went into an ISATAP tunnel.",
        in: "decap" = "Frames that came out of an ISATAP tunnel.",
    }
}

impl Kind {
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
        ];
        assert!(given.iter().all(|(kind, number)| kind.number() == *number));
    }
}
