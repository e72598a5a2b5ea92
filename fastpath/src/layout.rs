//! The data that the programs and the gateway share, octet by octet: `bpf/layout.h` and `bpf/rules.h` in Rust, under the same names.
//!
//! Addresses and ports are stored as in a header (network order, read as this machine reads memory); everything else is the
//! machine's. `tests/layout.rs` compares every field with what clang makes of the headers.

use sixway_dataplane::mechanism::table::Kind;

/// "6way": what the control map starts with.
pub const MAGIC: u32 = 0x3677_6179;
/// The version of everything here and of the hash. Another number: the maps are not ours to use.
pub const LAYOUT_VERSION: u32 = 2;

/// Of a [`Device`]: the tc program can send by it.
pub const SENDS: u8 = 1;
/// Including GSO packets that came in a tunnel. The kernel keeps them marked as though they were in it still: a card that cuts such frames
/// itself would look for an outer header.
pub const SENDS_FROM_TUNNELS: u8 = 2;

/// Entries of a bucket.
pub const BUCKET: usize = 4;
/// Ticks are 2^20 ns of CLOCK_MONOTONIC.
pub const TICK_SHIFT: u32 = 20;
/// Ticks after which the gateway is taken to be away.
pub const AWAY_TICKS: u32 = 1_907;
/// Next hops that there is room for.
pub const NEXT_HOPS: usize = 1_024;
/// Counters of IPv4 identifications, of each processor.
pub const IDENTIFICATIONS: usize = 256;
/// Translators that there is room for, and so on.
pub const TRANSLATORS: usize = 8;
/// See [`TRANSLATORS`].
pub const TUNNELS: usize = 16;
/// See [`TRANSLATORS`].
pub const RULES: usize = 64;
/// See [`TRANSLATORS`].
pub const HOST4: usize = 64;
/// See [`TRANSLATORS`].
pub const POOLS: usize = 16;
/// See [`TRANSLATORS`].
pub const PREFIXES6: usize = 64;
/// See [`TRANSLATORS`].
pub const ADDRESSES4: usize = 64;
/// See [`TRANSLATORS`].
pub const NETWORKS4: usize = 64;
/// See [`TRANSLATORS`].
pub const SOURCES: usize = 32;
/// See [`TRANSLATORS`].
pub const INSIDES: usize = 16;
/// See [`TRANSLATORS`].
pub const PORTS: usize = 32;
/// Kinds of mechanisms that there are counters for.
pub const KINDS: usize = Kind::NUMBERS;
/// Counters: two for each kind of mechanism, then sixteen for what was not forwarded.
pub const COUNTERS: usize = PASSED + 16;
/// The first counter of what was not forwarded.
pub const PASSED: usize = 2 * KINDS;

/// Kinds of mechanisms: the numbers of the table, and what is not a mechanism. `kinds.h` has them from there, too.
pub const KIND_NONE: u8 = 0;
/// See [`KIND_NONE`].
pub const KIND_NAT64: u8 = Kind::Nat64.number();
/// See [`KIND_NONE`].
pub const KIND_NAT44: u8 = Kind::Nat44.number();
/// See [`KIND_NONE`].
pub const KIND_SIIT: u8 = Kind::Siit.number();
/// See [`KIND_NONE`].
pub const KIND_SIX_TO_FOUR: u8 = Kind::SixToFour.number();
/// See [`KIND_NONE`].
pub const KIND_SIX_RD: u8 = Kind::SixRd.number();
/// See [`KIND_NONE`].
pub const KIND_CONFIGURED: u8 = Kind::Configured.number();
/// See [`KIND_NONE`].
pub const KIND_ISATAP: u8 = Kind::Isatap.number();
/// Of a rule: what there was no room for; its destinations are the engine's.
pub const KIND_ENGINE: u8 = 255;

const _: () = assert!(Kind::NUMBERS <= KIND_ENGINE as usize);

/// The translator itself joins two hosts of its table (RFC 7757 section 4.2.2).
pub const HAIRPIN_INTRINSIC: u8 = 0;
/// They are joined outside of it (section 4.2.1).
pub const HAIRPIN_SIMPLE: u8 = 1;
/// They are not.
pub const HAIRPIN_OFF: u8 = 2;
/// Instead of the largest MSS option of a SYN: it stays as it is.
pub const MSS_STAYS: u16 = 0xffff;
/// Instead of it: SYNs are left to the engine.
pub const MSS_ENGINE: u16 = 1;

/// A part in an automatic tunnel: a host's.
pub const ROLE_HOST: u8 = 0;
/// A router's, or a 6rd customer edge's.
pub const ROLE_ROUTER: u8 = 1;
/// A relay's, or a 6rd border relay's.
pub const ROLE_RELAY: u8 = 2;

/// In `enabled`: the programs may forward.
pub const ENABLED: u32 = 1;
/// In `enabled`: they may forward SYN/ACKs by half-open entries.
pub const HALF_OPEN_ALLOWED: u32 = 2;

/// States of an entry: the upper octet of its `word`.
pub const FLOW_FREE: u32 = 0;
/// It is being written.
pub const FLOW_BUSY: u32 = 1;
/// Its packets go to the engine, and leave their mark in the lower 24 bits.
pub const FLOW_ARMED: u32 = 2;
/// Its packets are forwarded; the lower 24 bits are its incarnation.
pub const FLOW_ACTIVE: u32 = 3;
/// It was removed at the tick in the lower 24 bits.
pub const FLOW_RESTING: u32 = 4;
/// An entry to the inside that forwards SYN/ACKs alone; the lower 24 bits are its incarnation. The other half's is [`FLOW_BUSY`].
pub const FLOW_HALF_OPEN: u32 = 5;

/// An entry's direction.
pub const TO_OUTSIDE: u8 = 0;
/// See [`TO_OUTSIDE`].
pub const TO_INSIDE: u8 = 1;

/// The state in an entry's word.
pub const fn flow_state(word: u32) -> u32 {
    word >> 24
}

/// An entry's word.
pub const fn flow_word(state: u32, low: u32) -> u32 {
    state << 24 | low & 0xff_ffff
}

/// Declares structures that are numbers and arrays of numbers through and through, for which any octets are a value.
macro_rules! plain {
    ($($(#[$about:meta])* pub struct $name:ident { $($(#[$note:meta])* pub $field:ident: $type:ty,)+ })+) => {$(
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$note])* pub $field: $type,)+
        }

        impl $name {
            /// All octets zero.
            pub const fn zero() -> Self {
                // SAFETY: numbers and arrays of numbers.
                unsafe { core::mem::zeroed() }
            }

            /// Its octets.
            pub fn octets(&self) -> &[u8] {
                // SAFETY: the structure has no padding: `tests/layout.rs` adds up its fields.
                unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
            }

            /// Where each field lies: name, offset, size, in octets.
            pub fn fields() -> Vec<(&'static str, usize, usize)> {
                let value = Self::zero();
                vec![$((stringify!($field), core::mem::offset_of!(Self, $field), size_of_val(&value.$field))),+]
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::zero()
            }
        }

        // SAFETY: numbers without padding, for which any octets are a value.
        #[cfg(feature = "ebpf")]
        unsafe impl aya::Pod for $name {}
    )+};
}

plain! {
    /// One direction of a stateful flow, a cache line.
    pub struct Flow {
        /// State and 24 bits.
        pub word: u32,
        /// Index of the next hop << 22 | lower 22 bits of the generation; 0: none yet. The programs'.
        pub next_hop: u32,
        /// Packets, a GSO packet's segments each. The programs'.
        pub packets: u64,
        /// Octets of IP packets as they came. The programs'.
        pub octets: u64,
        /// The inside address.
        pub inside: [u8; 16],
        /// Tick of the last packet. The programs'.
        pub last: u32,
        /// The outside address.
        pub outside: u32,
        /// The other end's address.
        pub remote: u32,
        /// The outside port.
        pub outside_port: u16,
        /// The other end's port.
        pub remote_port: u16,
        /// The inside port.
        pub inside_port: u16,
        /// Protocol number: 6 or 17.
        pub protocol: u8,
        /// [`TO_OUTSIDE`] or [`TO_INSIDE`].
        pub direction: u8,
        /// Index into [`Config::translators`].
        pub mechanism: u8,
        /// Index into [`Config::ports`] plus one, of where its packets come in; 0: not known yet. The programs'.
        pub ingress: u8,
        /// What the change of the addresses adds to a one's complement sum of the header's words as this machine reads them.
        pub delta: u16,
    }

    /// Entries with the same place.
    pub struct Bucket {
        /// They.
        pub flows: [Flow; BUCKET],
    }

    /// What the gateway tells the programs while they run.
    pub struct Control {
        /// [`MAGIC`].
        pub magic: u32,
        /// [`LAYOUT_VERSION`].
        pub version: u32,
        /// Buckets of the flow table.
        pub buckets: u32,
        /// Raised when routes, neighbours or links change.
        pub generation: u32,
        /// Tick of the gateway's last heartbeat.
        pub heartbeat: u32,
        /// 0: everything is passed to the kernel.
        pub enabled: u32,
        /// Secret of the hash.
        pub keys: [u64; 4],
        /// The gateway's name, zeros behind it.
        pub gateway: [u8; 64],
        /// Whose each slot of [`Config::translators`] is: the number of a stateful translator's identity, or 0.
        pub slots: [u64; TRANSLATORS],
    }

    /// Where packets go.
    pub struct NextHop {
        /// Odd while it is being written.
        pub sequence: u32,
        /// Device of the kernel's route.
        pub ifindex: u32,
        /// Device to send by.
        pub port: u32,
        /// VLAN tag; 0: none.
        pub vlan: u16,
        /// The route's MTU in octets.
        pub mtu: u16,
        /// Ethernet address of the neighbour.
        pub destination: [u8; 6],
        /// Ethernet address of the device.
        pub source: [u8; 6],
        /// Tick of the last use.
        pub used: u32,
        /// AF_INET or AF_INET6.
        pub family: u32,
        /// The neighbour's address.
        pub neighbour: [u8; 16],
        /// Whether XDP may send by it.
        pub xdp: u8,
        /// Whether tc may send by it.
        pub tc: u8,
        /// Zero.
        pub reserved0: u16,
        /// Zero.
        pub reserved: [u32; 2],
    }

    /// A device that may be sent by.
    pub struct Device {
        /// Device to redirect to: itself, or below a VLAN's device the one that has the tag put on.
        pub port: u32,
        /// The tag.
        pub vlan: u16,
        /// XDP frames can be sent by it.
        pub xdp: u8,
        /// What the tc program can send by it: [`SENDS`], [`SENDS_FROM_TUNNELS`].
        pub tc: u8,
    }

    /// A translator.
    pub struct Translator {
        /// [`KIND_NAT64`], [`KIND_NAT44`] or [`KIND_SIIT`].
        pub kind: u8,
        /// Length of the prefix in bits; 0: it has none.
        pub length: u8,
        /// Non-global IPv4 addresses are refused (RFC 6052 section 3.1).
        pub global_only: u8,
        /// TOS of results is `tos`; else copied.
        pub sets_tos: u8,
        /// See `sets_tos`.
        pub tos: u8,
        /// Traffic Class of results is `traffic_class`; else copied.
        pub sets_traffic_class: u8,
        /// See `sets_traffic_class`.
        pub traffic_class: u8,
        /// It has explicit address mappings, under its index in the tries.
        pub eam: u8,
        /// IPv6 packets made from IPv4 packets with DF clear may have this size.
        pub lowest_mtu: u16,
        /// SIIT: `HAIRPIN_…`.
        pub hairpinning: u8,
        /// Zero.
        pub reserved: u8,
        /// The prefix.
        pub prefix: [u8; 16],
        /// The largest MSS option of a SYN, of stateful translators a SYN/ACK's to the inside, or `MSS_…`.
        pub mss: u16,
        /// Zero.
        pub reserved1: u16,
        /// The number of a stateful one's identity; the programs do not read it.
        pub identity: u64,
    }

    /// IPv4 addresses of a pool, in the order of the machine.
    pub struct Pool4 {
        /// The network.
        pub address: u32,
        /// Its mask.
        pub mask: u32,
        /// It is this host's own address: no route leads its packets to the gateway, they are steered by their ports.
        pub shared: u32,
    }

    /// A row of explicit address mappings, seen from the column that it is in; the other column's prefix is a number of the
    /// machine's, of IPv4 in `low`.
    pub struct Eam {
        /// Upper half of the other column's prefix.
        pub high: u64,
        /// Lower half.
        pub low: u64,
        /// Length of the prefix in this column, in bits.
        pub length: u8,
        /// Length in the other one.
        pub other_length: u8,
        /// The dynamic pool, not a mapping: the engine forwards its hosts.
        pub is_pool: u8,
        /// Zero.
        pub reserved: [u8; 5],
    }

    /// Packets and octets.
    pub struct Counter {
        /// Packets, a GSO packet's segments each.
        pub packets: u64,
        /// Octets of IP packets as they came.
        pub octets: u64,
    }

    /// A prefix of IPv6 destinations and whose it is.
    pub struct Rule6 {
        /// In network order, as two words each.
        pub bits: [u64; 2],
        /// See `bits`.
        pub mask: [u64; 2],
        /// Bits of the mask.
        pub length: u8,
        /// Kind of the mechanism.
        pub kind: u8,
        /// Index into translators or tunnels.
        pub index: u8,
        /// Zero.
        pub reserved: [u8; 5],
    }

    /// A tunnel. Lists are spans (first, count) of the arrays in [`Config`].
    pub struct Tunnel {
        /// Kind of the mechanism.
        pub kind: u8,
        /// 0 host, 1 router, 2 relay; 6rd: 1 customer edge, 2 border relay.
        pub role: u8,
        /// The outer TTL is `ttl`; else copied.
        pub sets_ttl: u8,
        /// See `sets_ttl`.
        pub ttl: u8,
        /// The upper six bits of the outer TOS are those of `dscp`; else copied.
        pub sets_dscp: u8,
        /// See `sets_dscp`.
        pub dscp: u8,
        /// RFC 6040 normal mode; else compatibility mode.
        pub ecn_normal: u8,
        /// Outer DF where nothing was learnt of the path.
        pub dont_fragment: u8,
        /// Largest inner packet where nothing was learnt of the path.
        pub mtu: u16,
        /// Packets to destinations in `narrow_paths` are passed to the kernel.
        pub learns: u8,
        /// Configured tunnels: only sources behind the other end.
        pub strict: u8,
        /// The near end.
        pub local: u32,
        /// The far end, or the relay of native destinations; 0: none.
        pub remote: u32,
        /// 6to4: the address that the site's prefix embeds.
        pub site: u32,
        /// 6rd: the domain.
        pub shared: u32,
        /// Its length in bits.
        pub shared_length: u8,
        /// Length of `prefix` in bits.
        pub prefix_length: u8,
        /// 6to4: native sources only from listed relays.
        pub listed_only: u8,
        /// 6rd: tunnels of one domain have one number.
        pub domain: u8,
        /// 6rd: the domain's prefix.
        pub prefix: [u8; 16],
        /// The largest MSS option of a SYN where nothing was learnt of the path, or `MSS_…`.
        pub mss: u16,
        /// Zero.
        pub reserved: [u8; 6],
        /// Span of [`Config::prefixes`]: what is behind the other end, or on the ISATAP link.
        pub prefixes: [u8; 2],
        /// Span of [`Config::addresses`]: relays from which native sources are accepted.
        pub relays: [u8; 2],
        /// Span of [`Config::networks`]: where ISATAP hosts may be; none: anywhere.
        pub locators: [u8; 2],
        /// Span of [`Config::networks`]: embedded IPv4 addresses that are refused.
        pub refused: [u8; 2],
    }

    /// An address of this host.
    pub struct Own {
        /// It.
        pub address: u32,
        /// It is looked for in every tunnel's format.
        pub public_: u8,
        /// It is an address of the host.
        pub is_host4: u8,
        /// Zero.
        pub reserved: [u8; 2],
    }

    /// A prefix, in network order.
    pub struct Prefix6 {
        /// Its bits.
        pub bits: [u64; 2],
        /// Its mask.
        pub mask: [u64; 2],
    }

    /// A network, in network order.
    pub struct Network4 {
        /// Its bits.
        pub bits: u32,
        /// Its mask.
        pub mask: u32,
    }

    /// An ingress interface: one that the programs are attached to, or a VLAN device on top of it.
    pub struct Port {
        /// What the kernel's routes know it by.
        pub ifindex: u32,
        /// Where its frames come by in XDP: the device below a VLAN's; else the same.
        pub below: u32,
        /// Identifier of the VLAN; 0: untagged.
        pub vlan: u16,
        /// Its Ethernet address.
        pub mac: [u8; 6],
        /// Strict reverse path filtering: an IPv4 source must be reached by it.
        pub strict: u8,
        /// The tc program is attached as well: it sees what the program in the driver passes.
        pub tc: u8,
        /// Zero.
        pub reserved: [u8; 2],
    }

    /// The programs' constants.
    pub struct Config {
        /// Index of the TUN device.
        pub tun: u32,
        /// Its MTU in octets.
        pub tun_mtu: u32,
        /// Ticks after which an idle TCP flow's packets are left to the engine.
        pub idle_tcp: u32,
        /// The same of UDP.
        pub idle_udp: u32,
        /// The same of echo messages.
        pub idle_icmp: u32,
        /// Ticks without a heartbeat after which everything is passed to the kernel.
        pub absence: u32,
        /// Of `ports`.
        pub ports_count: u8,
        /// The kernel's routes depend on destination and ingress alone, but for `sources4` and `sources6`.
        pub plain_routing: u8,
        /// Whether the kernel can decapsulate GSO packets. Written by the loader.
        pub can_decap_gso: u8,
        /// Index of the NAT44 in `translators`, plus one; 0: none.
        pub nat44: u8,
        /// The interfaces that packets come in by.
        pub ports: [Port; PORTS],
        /// MTU of the next links in octets, as the engine has it.
        pub mtu4: u16,
        /// See `mtu4`.
        pub mtu6: u16,
        /// The engine's own IPv6 address.
        pub own6: [u8; 16],
        /// The engine's own IPv4 address.
        pub own4: u32,
        /// Of `translators`.
        pub translators_count: u8,
        /// Of `tunnels`.
        pub tunnels_count: u8,
        /// Of `rules`.
        pub rules_count: u8,
        /// Of `pools`.
        pub pools_count: u8,
        /// Of `own`.
        pub own_count: u8,
        /// Of `host6`.
        pub host6_count: u8,
        /// SIIT translators.
        pub siit_count: u8,
        /// Index of the first SIIT translator with a prefix, plus one; 0: none.
        pub default_siit: u8,
        /// There is a stateless rule.
        pub has_stateless: u8,
        /// There is a stateful translator.
        pub has_stateful: u8,
        /// Of `sources4`.
        pub sources4_count: u8,
        /// Of `sources6`.
        pub sources6_count: u8,
        /// Of `inside4`.
        pub inside4_count: u32,
        /// The secret by which destinations share counters of IPv4 identifications.
        pub identification: u32,
        /// Stateful ones in their slots ([`Control::slots`]), stateless ones where there is room, in the order of the configuration.
        pub translators: [Translator; TRANSLATORS],
        /// Tunnels.
        pub tunnels: [Tunnel; TUNNELS],
        /// Longest first; the first that matches owns.
        pub rules: [Rule6; RULES],
        /// Pools of the stateful translators.
        pub pools: [Pool4; POOLS],
        /// Addresses of this host that are looked for.
        pub own: [Own; HOST4],
        /// Prefixes that tunnels name.
        pub prefixes: [Prefix6; PREFIXES6],
        /// Networks that tunnels name.
        pub networks: [Network4; NETWORKS4],
        /// Addresses that tunnels name.
        pub addresses: [u32; ADDRESSES4],
        /// The host's own IPv6 addresses.
        pub host6: [[u8; 16]; HOST4],
        /// Sources that routing depends on: those of policy rules, and those by which another mechanism has its packets.
        pub sources4: [Network4; SOURCES],
        /// The same of IPv6.
        pub sources6: [Prefix6; SOURCES],
        /// Whose packets go out by the NAT44.
        pub inside4: [Network4; INSIDES],
    }
}
