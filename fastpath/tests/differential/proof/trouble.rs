//! What can be the matter with a packet.

use super::choices::Choices;
use super::draft::{Addresses, Draft};
use super::generator::Made;
use super::world::{World, embedded, four, remote4, remote6, six};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    Options,
    Extension,
    Fragment,
    Flags,
    Hops,
    OuterHops,
    BadHeaderChecksum,
    BadChecksum,
    NoChecksum,
    LyingLength,
    LyingUdpLength,
    LyingDataOffset,
    Truncated,
    Padded,
    Large,
    MartianSource,
    MartianDestination,
    OtherSource,
    OtherDestination,
    OtherOuterSource,
    OwnAddress,
    Circle,
    Nested,
    OtherProtocol,
    OtherPorts,
    OtherIcmp,
    Ecn,
    Changed,
    OtherMac,
    OtherEthertype,
    OtherTag,
    OtherPort,
}

impl Trouble {
    pub const ALL: &[Self] = &[
        Self::Options,
        Self::Extension,
        Self::Fragment,
        Self::Flags,
        Self::Hops,
        Self::OuterHops,
        Self::BadHeaderChecksum,
        Self::BadChecksum,
        Self::NoChecksum,
        Self::LyingLength,
        Self::LyingUdpLength,
        Self::LyingDataOffset,
        Self::Truncated,
        Self::Padded,
        Self::Large,
        Self::MartianSource,
        Self::MartianDestination,
        Self::OtherSource,
        Self::OtherDestination,
        Self::OtherOuterSource,
        Self::OwnAddress,
        Self::Circle,
        Self::Nested,
        Self::OtherProtocol,
        Self::OtherPorts,
        Self::OtherIcmp,
        Self::Ecn,
        Self::Changed,
        Self::OtherMac,
        Self::OtherEthertype,
        Self::OtherTag,
        Self::OtherPort,
    ];
}

/// Puts a trouble into a packet that is not octets yet.
pub fn into_draft(trouble: Trouble, made: &mut Made, world: &World, choices: &mut Choices) {
    let outermost = made.outer.is_some() && choices.one_in(2);
    if let (true, Some(outer)) = (outermost, &mut made.outer) {
        header(trouble, outer, choices);
    } else {
        header(trouble, &mut made.draft, choices);
        transport(trouble, &mut made.draft, choices);
    }
    addresses(trouble, made, world, choices);
    match trouble {
        Trouble::OuterHops => {
            made.outer.iter_mut().for_each(|outer| outer.hops = choices.of(&[0, 1, 2, 255]))
        }
        Trouble::Ecn => {
            made.draft.tos = made.draft.tos & !3 | choices.octet() & 3;
            made.outer.iter_mut().for_each(|outer| outer.tos = choices.octet());
        }
        Trouble::Nested => nested(made, choices),
        _ => {}
    }
}

/// In any IP header.
fn header(trouble: Trouble, draft: &mut Draft, choices: &mut Choices) {
    match trouble {
        Trouble::Options => {
            draft.options = choices
                .of(&[&[1, 1, 1, 0][..], &[7, 7, 4, 0, 0, 0, 0, 0], &[131, 7, 4, 45, 1, 0, 1, 0], &[0; 40]])
                .to_vec();
        }
        Trouble::Extension => {
            let octets = choices.of(&[
                &[0, 0, 1, 4, 0, 0, 0, 0][..],
                &[0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                &[0, 0, 4, 1, 0, 0, 0, 0],
            ]);
            draft.extension = Some((choices.of(&[0, 43, 60, 44, 51, 50, 135, 59]), octets.to_vec()));
        }
        Trouble::Fragment => {
            draft.fragment = Some((choices.of(&[0, 8, 1_208, 64_000]), choices.one_in(2)));
            draft.dont_fragment = choices.one_in(4);
        }
        Trouble::Hops => draft.hops = choices.of(&[0, 1, 2, 3]),
        Trouble::BadHeaderChecksum => draft.bad_header_checksum = true,
        Trouble::LyingLength => draft.lie = choices.of(&[1, -1, 8, -8, 100, -30, -60, 1_000, 40_000]),
        Trouble::OtherProtocol => {
            draft.protocol =
                choices.of(&[0, 1, 4, 6, 17, 33, 41, 43, 44, 47, 50, 58, 59, 60, 132, 136, 255, 2])
        }
        _ => {}
    }
}

/// In what follows the innermost.
fn transport(trouble: Trouble, draft: &mut Draft, choices: &mut Choices) {
    let place = draft.checksum_at.unwrap_or(0);
    match trouble {
        Trouble::Flags if draft.protocol == 6 && draft.body.len() >= 20 => {
            draft.body[13] = choices.of(&[2, 0x12, 1, 0x11, 4, 0x14, 0, 0xff, 0x3f])
        }
        Trouble::BadChecksum => {
            draft.checksum_at = None;
            if let Some(field) = draft.body.get_mut(place..place + 2) {
                field.copy_from_slice(&choices.of(&[0x1234_u16, 0xffff, 0x0001, 0]).to_be_bytes());
            }
        }
        Trouble::NoChecksum if draft.protocol == 17 => {
            draft.checksum_at = None;
            draft.body[6..8].fill(0);
        }
        Trouble::LyingUdpLength if draft.protocol == 17 => {
            let length = choices.of(&[0, 7, 8, 9, 1_000, 65_535]);
            draft.body[4..6].copy_from_slice(&u16::to_be_bytes(length));
        }
        Trouble::LyingDataOffset if draft.protocol == 6 && draft.body.len() >= 20 => {
            draft.body[12] = choices.of(&[0, 0x10, 0x40, 0x60, 0xf0, 0x5f])
        }
        Trouble::Large => {
            let more = choices.below(1_400);
            draft.body.resize(draft.body.len() + more, 0x5a);
        }
        Trouble::OtherPorts if matches!(draft.protocol, 6 | 17) => {
            draft.body[usize::from(choices.octet()) % 4] ^= 1 << (choices.octet() % 8);
        }
        Trouble::OtherIcmp => {
            let kind = choices.of(&[0, 3, 4, 5, 8, 11, 12, 13, 1, 2, 128, 129, 130, 133, 134, 135, 136, 143]);
            let quote: Vec<u8> = (0..choices.below(80)).map(|n| n as u8).collect();
            draft.icmp(kind, choices.octet() % 5, choices.double(), &quote);
        }
        _ => {}
    }
}

fn addresses(trouble: Trouble, made: &mut Made, world: &World, choices: &mut Choices) {
    let other4 = |choices: &mut Choices| strange4(trouble, world, choices);
    let other6 = |choices: &mut Choices| strange6(trouble, world, choices);
    let is_source = match trouble {
        Trouble::MartianSource | Trouble::OtherSource => true,
        Trouble::MartianDestination | Trouble::OtherDestination => false,
        Trouble::OwnAddress | Trouble::Circle => choices.one_in(2),
        Trouble::OtherOuterSource => {
            if let Some(Addresses::V4(source, _)) = made.outer.as_mut().map(|outer| &mut outer.addresses) {
                *source = other4(choices);
            }
            return;
        }
        _ => return,
    };
    let place = match &mut made.outer {
        Some(outer) if trouble != Trouble::Circle && choices.one_in(3) => &mut outer.addresses,
        Some(_) | None => &mut made.draft.addresses,
    };
    match (place, is_source) {
        (Addresses::V4(source, _), true) => *source = other4(choices),
        (Addresses::V4(_, destination), false) => *destination = other4(choices),
        (Addresses::V6(source, _), true) => *source = other6(choices),
        (Addresses::V6(_, destination), false) => *destination = other6(choices),
    }
}

const MARTIANS4: &[&str] =
    &["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "169.254.1.1"];
const MARTIANS6: &[&str] = &[
    "::",
    "::1",
    "fe80::1",
    "fe80::5efe:10.1.2.3",
    "ff02::1",
    "ff0e::1",
    "fec0::1",
    "::45.1.0.1",
    "::ffff:45.1.0.1",
    "0:1::1",
];
/// Private and public, in addition to what the worlds have.
const OTHERS4: &[&str] = &[
    "10.1.2.9",
    "10.66.6.6",
    "10.67.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "192.88.99.1",
    "45.64.0.1",
    "45.71.0.9",
    "45.1.0.0",
    "45.1.0.7",
    "198.51.100.1",
    "8.8.8.8",
];
const OTHERS6: &[&str] = &[
    "2002:a00:1::1",
    "2002:2d50:1::1",
    "2002:2d50:2::1",
    "2002:e000:1::1",
    "2002:2d05:1::1",
    "2002:c058:6301::1",
    "2a00:71::7",
    "2a00:60::45.1.0.1",
    "2a00:7:7::9",
    "2a00:6d00:0a00:100::1",
    "2001:db8::1",
    "2a00:15:1:2::5efe:10.0.0.1",
    "2a00:15:1:2::5efe:224.0.0.1",
    "2a00:15:1:2::1",
    "fd00::1",
];

/// Where IPv4 addresses are in IPv6 ones: prefix, and bits before the address.
const FORMATS: &[(&str, u8)] = &[
    ("64:ff9b::", 96),
    ("2a00:60::", 96),
    ("2a00:6064:64:64::", 64),
    ("2a00:6056:56:5600::", 56),
    ("2a00:6048:4800::", 48),
    ("2a00:6040:4000::", 40),
    ("2a00:6032::", 32),
    ("2002::", 16),
    ("2a00:15:1:2:0:5efe::", 96),
    ("2a00:15:1:2:200:5efe::", 96),
    ("2a00:6d00::", 32),
    ("2001::", 96),
];

fn strange4(trouble: Trouble, world: &World, choices: &mut Choices) -> Ipv4Addr {
    match trouble {
        Trouble::MartianSource | Trouble::MartianDestination => four(choices.of(MARTIANS4)),
        Trouble::OwnAddress => {
            let own = world
                .local
                .iter()
                .filter_map(|own| if let IpAddr::V4(own) = own { Some(*own) } else { None });
            let own: Vec<_> = own.chain([four("45.90.0.254"), four("10.201.0.1")]).collect();
            choices.of(&own)
        }
        _ if choices.one_in(2) => remote4(choices),
        _ => four(choices.of(OTHERS4)),
    }
}

fn strange6(trouble: Trouble, world: &World, choices: &mut Choices) -> Ipv6Addr {
    match trouble {
        Trouble::MartianSource | Trouble::MartianDestination => {
            if choices.one_in(2) {
                return six(choices.of(MARTIANS6));
            }
            // A martian in each format.
            let martian = four(choices.of(MARTIANS4));
            let (prefix, length) = choices.of(FORMATS);
            embedded(prefix, length, martian)
        }
        // This host's address in the format of any tunnel (RFC 6324).
        Trouble::Circle => {
            let own =
                world.local.iter().find_map(|own| if let IpAddr::V4(own) = own { Some(*own) } else { None });
            let own = own.unwrap_or(four("45.90.0.254"));
            let teredo = Ipv4Addr::from_bits(!own.to_bits());
            choices.of(&[
                embedded("2002::", 16, own),
                embedded("2001:db8:7:7:0:5efe::", 96, own),
                embedded("2a00:7:7:7:200:5efe::", 96, own),
                embedded("2001:0:4136:e378::", 96, teredo),
                embedded("2a00:6d00::", 32, own),
            ])
        }
        Trouble::OwnAddress => {
            let own = strange4(trouble, world, choices);
            let (prefix, length) = choices.of(FORMATS);
            choices.of(&[
                six("2a00:90::fe"),
                six("2001:db8:ff01::1"),
                embedded(prefix, length, own),
                embedded(prefix, length, own),
            ])
        }
        _ => match choices.below(3) {
            0 => remote6(choices),
            1 => six(choices.of(OTHERS6)),
            _ => {
                let other = four(choices.of(OTHERS4));
                let (prefix, length) = choices.of(FORMATS);
                embedded(prefix, length, other)
            }
        },
    }
}

/// A packet in a packet in a packet.
fn nested(made: &mut Made, choices: &mut Choices) {
    let inner = made.draft.octets();
    let Some(outer) = &made.outer else {
        made.draft.protocol = if choices.one_in(2) { 41 } else { 4 };
        (made.draft.body, made.draft.checksum_at) = (inner, None);
        return;
    };
    match choices.below(3) {
        0 => made.draft.body = inner,
        1 => made.draft.body = [&outer.octets()[..], &inner].concat(),
        _ => made.outer = None,
    }
    (made.draft.protocol, made.draft.checksum_at) = (choices.of(&[41, 4]), None);
}

/// Puts a trouble into a packet's octets.
pub fn into_octets(trouble: Trouble, octets: &mut Vec<u8>, choices: &mut Choices) {
    match trouble {
        Trouble::Truncated => {
            let keep = if choices.one_in(2) {
                choices.below(octets.len())
            } else {
                choices.below(octets.len().min(64))
            };
            octets.truncate(keep);
        }
        Trouble::Padded => octets.extend(std::iter::repeat_n(0xee, usize::from(choices.octet() % 60) + 1)),
        Trouble::Changed => {
            let at = choices.below(octets.len().min(100));
            let other = choices.octet();
            octets.get_mut(at).into_iter().for_each(|octet| *octet ^= other);
        }
        _ => {}
    }
}
