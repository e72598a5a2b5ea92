// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What was decided about a packet, for the executors: the programs' `Action`.
#pragma once

#include "packet.h"

#define ACT_TRANSLATE_6_TO_4 1
#define ACT_TRANSLATE_4_TO_6 2
#define ACT_ENCAP_4 3
#define ACT_DECAP 4
/// Both translations of a hairpin together (RFC 6146 section 3.8).
#define ACT_RENUMBER_6 5
/// An IPv4 packet gets other addresses and ports (RFC 3022).
#define ACT_RENUMBER_4 6

struct act {
	/// New addresses; IPv4 in the first four octets.
	__u8 source[16] __attribute__((aligned(8)));
	__u8 destination[16];
	__u8 kind;
	/// COUNTER(kind, way).
	__u8 counter;
	/// TOS or Traffic Class of the result; of a decapsulated packet its inner one with the ECN mark of the outer one.
	__u8 traffic_class;
	/// TTL or hop limit of the header that is written; of a decapsulated packet its new hop limit.
	__u8 hops;
	/// The IPv4 header that is written has DF. ACT_RENUMBER_4: its identification stays.
	__u8 dont_fragment;
	/// The ports are written.
	__u8 writes_ports;
	__be16 source_port;
	__be16 destination_port;
	/// What the change of addresses adds to the transport checksum (see struct flow). Tunnels: 0.
	__u16 delta;
	/// Largest result by segment, in addition to the next hop's MTU.
	__u16 mtu;
	/// The MSS option of a SYN, which is the first one, is lowered to this; 0: it stays.
	__u16 mss;
	/// Index into next_hops.
	__u32 next_hop;
};

/// The MSS option of a SYN is lowered to `most`, as by `mss::clamp` in dataplane/src/rewrite. Returns 0, or the cause to pass the packet to the
/// kernel.
static __always_inline int clamp(const struct packet *packet, __u16 most, struct act *act)
{
	if (!changes_connection(packet) || packet->tcp <= most)
		return 0;
	if (packet->tcp == TCP_MSS_ELSEWHERE || most == MSS_ENGINE)
		return PASS_FLAGS;
	act->mss = most;
	return 0;
}

/// Whether the result is an IPv4 packet.
static __always_inline int is_ipv4(__u8 kind)
{
	return kind == ACT_TRANSLATE_6_TO_4 || kind == ACT_ENCAP_4 || kind == ACT_RENUMBER_4;
}

/// Octets of the result in front of its transport header; in a tunnel, in front of the inner one's.
static __always_inline __u32 front_of(__u8 kind)
{
	return (is_ipv4(kind) ? IPV4_HEADER : IPV6_HEADER) + (kind == ACT_ENCAP_4 ? IPV6_HEADER : 0);
}

struct flow;

/// The state of processing a packet, apart from its contents.
struct way {
	/// Its entry, if it has one, and the entry's word when it was found to be active.
	struct flow *flow;
	/// A hairpin's other entry, by which its result goes inside again.
	struct flow *turned;
	const struct control *control;
	__u32 word;
	__u32 turned_word;
	/// Index into config.ports.
	__u32 ingress;
	/// The lower 32 bits of the generation, and the others. Apart: Linux 6.1 counts the stack of all calls together, and there is no room for padding.
	__u32 generation;
	__u16 era;
	/// Octets in front of its IP header.
	__u16 link;
	__u32 now;
};

/// The generation in all its bits (see whole_generation_of).
#define WHOLE_GENERATION(way) ((__u64)(way)->era << 32 | (way)->generation)
