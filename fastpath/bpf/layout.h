// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What the programs and the gateway share: the maps' values and the programs' constants. Addresses and ports are stored as in a
// header (network order); everything else is in host order. `src/layout.rs` is the same in Rust, and a test compares them.
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// KIND_… of each mechanism, and KINDS, one more than the greatest of these numbers may be: `build.rs` makes it from the table of mechanisms.
#include "kinds.h"

/// "6way", then the version of everything in this file and of the hash. Another number: the maps are not ours to use.
#define MAGIC 0x36776179u
#define LAYOUT_VERSION 2u

// ---- flows ----------------------------------------------------------------------------------------------------------------

/// Entries of a bucket.
#define BUCKET 4

/// States of an entry: the upper octet of `word`.
#define FLOW_FREE 0u
/// It is being written.
#define FLOW_BUSY 1u
/// Its packets go to the engine, and leave their mark in the lower 24 bits.
#define FLOW_ARMED 2u
/// Its packets are forwarded here.
#define FLOW_ACTIVE 3u
/// (ACTIVE has the number of its incarnation in the lower 24 bits: an entry that was used for another flow in between is another.)
/// It was removed at the tick in the lower 24 bits, and is not reused for two seconds.
#define FLOW_RESTING 4u
/// Of an entry to the inside: SYN/ACKs are forwarded here, and its other packets go to the engine, without a mark. The other half's entry is BUSY.
/// (It has the number of its incarnation in the lower 24 bits, too.)
#define FLOW_HALF_OPEN 5u

#define FLOW_STATE(word) ((word) >> 24)
#define FLOW_WORD(state, low) ((state) << 24 | ((low) & 0xffffffu))

/// The direction of an entry's packets.
#define TO_OUTSIDE 0
#define TO_INSIDE 1

/// One direction of a stateful flow: a cache line with all that its packets read and write, and all that its binding and its
/// session can be made from again.
struct flow {
	__u32 word;
	/// Index of the next hop << 22 | lower 22 bits of the generation in which it was found; 0: none yet. Written by the programs.
	__u32 next_hop;
	/// Packets (segments of GSO packets each) and octets of IP packets as they came. Written by the programs.
	__u64 packets;
	__u64 octets;
	__u8 inside[16];
	/// Tick of the last packet. Written by the programs.
	__u32 last;
	__be32 outside;
	__be32 remote;
	__be16 outside_port;
	__be16 remote_port;
	__be16 inside_port;
	/// IPPROTO_TCP, IPPROTO_UDP or, also of a NAT64, IPPROTO_ICMP: echo messages, whose ports are their identifier inside and outside.
	__u8 protocol;
	/// TO_OUTSIDE or TO_INSIDE.
	__u8 direction;
	/// Index into config.translators.
	__u8 mechanism;
	/// Index into config.ports, plus one, of where its packets come in; 0: not known yet. Written by the programs.
	__u8 ingress;
	/// What the change of the addresses adds to a one's complement checksum: sum of the new less sum of the old, folded, as the
	/// header's octets are read by this machine (no byte swap).
	__u16 delta;
};

struct bucket {
	struct flow flows[BUCKET];
};

/// Slots of translators.
#define TRANSLATORS 8

// ---- control --------------------------------------------------------------------------------------------------------------

/// The programs may forward.
#define ENABLED 1u
/// They may forward SYN/ACKs by half-open entries: connection tracking need not see them.
#define HALF_OPEN_ALLOWED 2u

/// One, mmapped.
struct control {
	__u32 magic;
	__u32 version;
	/// Buckets of `flows`.
	__u32 buckets;
	/// Raised by the gateway whenever a route, neighbour or link that may matter has changed. The lower 22 bits count.
	__u32 generation;
	/// Tick of the gateway's last heartbeat.
	__u32 heartbeat;
	/// ENABLED, HALF_OPEN_ALLOWED; without ENABLED the programs pass everything.
	__u32 enabled;
	/// Secret of the hash.
	__u64 keys[4];
	/// For the gateway's own use: what the maps were created for.
	__u8 gateway[64];
	/// Whose each slot of config.translators is, which flows name: the gateway's own use.
	__u64 slots[TRANSLATORS];
};

/// Clock ticks of 2^20 ns, from CLOCK_MONOTONIC.
#define TICK_SHIFT 20
/// Ticks after which the gateway is taken to be away: 2 s.
#define AWAY_TICKS 1907
/// Ticks that the gateway's clock may be ahead of a processor's: two minutes.
#define AHEAD 114441u

// ---- next hops ------------------------------------------------------------------------------------------------------------

#define NEXT_HOPS 1024
/// Counters of IPv4 identifications, of each processor; a power of two.
#define IDENTIFICATIONS 256

/// Where packets go. Found by the programs in the kernel's routing table; slot by hash of (ifindex, address of the neighbour's MAC).
struct next_hop {
	/// Odd while it is being written.
	__u32 sequence;
	/// Device of the kernel's route (may be a VLAN's).
	__u32 ifindex;
	/// Device to send by, and its tag: 0 none.
	__u32 port;
	__u16 vlan;
	/// The route's MTU.
	__u16 mtu;
	__u8 destination[6];
	__u8 source[6];
	/// Tick of the last use, for probing. Written by the programs.
	__u32 used;
	/// Family (AF_INET or AF_INET6) and address of the neighbour.
	__u32 family;
	__u8 neighbour[16];
	/// Which hooks may send by it, by the device's features.
	__u8 xdp;
	__u8 tc;
	__u16 reserved0;
	__u32 reserved[2];
};

/// Devices that the programs may send by, keyed by interface index. Maintained by the gateway.
struct device {
	/// Device that XDP redirects to: itself, or below a VLAN's device the one whose frames bear its tag. tc redirects to the VLAN's.
	__u32 port;
	__u16 vlan;
	__u8 xdp;
	/// SENDS…
	__u8 tc;
};

/// tc can send by it,
#define SENDS 1
/// and even a GSO packet that came in a tunnel: the kernel keeps it marked as one that still is, which misleads a card that cuts such ones.
#define SENDS_FROM_TUNNELS 2

// ---- configuration --------------------------------------------------------------------------------------------------------

#define TUNNELS 16
#define RULES 64
#define HOST4 64
#define POOLS 16

#define KIND_NONE 0
/// Of a rule: what there was no room for; its destinations are the engine's.
#define KIND_ENGINE 255

/// How a SIIT translator joins two hosts of its table (RFC 7757 section 4.2).
#define HAIRPIN_INTRINSIC 0
#define HAIRPIN_SIMPLE 1
#define HAIRPIN_OFF 2

/// Instead of the largest MSS option of a SYN: it stays as it is; SYNs are left to the engine.
#define MSS_STAYS 0xffff
#define MSS_ENGINE 1

/// A translator. A stateful one stays in its slot from one process of the gateway to the next, in whatever order the configuration has them.
struct translator {
	__u8 kind;
	/// Length of the prefix in bits; 0: it has none.
	__u8 length;
	/// RFC 6052 section 3.1 applies: non-global IPv4 addresses are refused.
	__u8 global_only;
	/// TOS and Traffic Class are set to these, or copied.
	__u8 sets_tos;
	__u8 tos;
	__u8 sets_traffic_class;
	__u8 traffic_class;
	/// SIIT: it has explicit address mappings, under this number in the tries.
	__u8 eam;
	/// IPv6 packets made from IPv4 packets with DF clear may have this size.
	__u16 lowest_mtu;
	/// SIIT: HAIRPIN_…
	__u8 hairpinning;
	__u8 reserved;
	__u8 prefix[16];
	/// The largest MSS option of a SYN, of stateful translators a SYN/ACK's to the inside, or MSS_….
	__u16 mss;
	__u16 reserved1;
	/// Whose flows are its: the gateway's own use.
	__u64 identity;
};

/// IPv4 addresses of NAT64 pools, in the order of the machine.
struct pool4 {
	__u32 address;
	__u32 mask;
	/// It is this host's own address, shared with it: no route leads its packets to the gateway, they are steered by their ports.
	__u32 shared;
};

// `struct config` itself and the tunnels' part of it are in rules.h.

// ---- counters -------------------------------------------------------------------------------------------------------------

struct counter {
	__u64 packets;
	__u64 octets;
};

/// Index of a counter: kind * 2 + way; way 0: v6_to_v4 or encap, 1: v4_to_v6 or decap.
#define COUNTER(kind, way) ((kind) * 2 + (way))
/// Then packets passed to the kernel, by cause.
#define PASSED (2 * KINDS)
#define PASS_NOT_OURS (PASSED + 0)
#define PASS_NO_FLOW (PASSED + 1)
#define PASS_MOVING (PASSED + 2)
#define PASS_FLAGS (PASSED + 3)
#define PASS_FRAGMENT (PASSED + 4)
#define PASS_OPTIONS (PASSED + 5)
#define PASS_HOPS (PASSED + 6)
#define PASS_TOO_BIG (PASSED + 7)
#define PASS_PROTOCOL (PASSED + 8)
#define PASS_SOURCE (PASSED + 9)
#define PASS_NO_NEXT_HOP (PASSED + 10)
#define PASS_NO_DEVICE (PASSED + 11)
#define PASS_CHANGED (PASSED + 12)
#define PASS_MALFORMED (PASSED + 13)
#define PASS_KERNEL (PASSED + 14)
/// The packet was lost: something failed after its first octet was changed.
#define LOST (PASSED + 15)
#define COUNTERS (PASSED + 16)
