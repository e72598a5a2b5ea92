// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What was decided about a packet, for the executors: the programs' `Action`.
#pragma once

#include "packet.h"

#define ACT_TRANSLATE_6_TO_4 1
#define ACT_TRANSLATE_4_TO_6 2
#define ACT_ENCAP_4 3
#define ACT_DECAP 4

struct act {
	__u8 kind;
	/// COUNTER(kind, way).
	__u8 counter;
	/// TOS or Traffic Class of the result; of a decapsulated packet its inner one with the mark carried on.
	__u8 traffic_class;
	/// TTL or hop limit of the header that is written; of a decapsulated packet its new hop limit.
	__u8 hops;
	/// The IPv4 header that is written has DF.
	__u8 dont_fragment;
	/// The ports are written.
	__u8 writes_ports;
	__be16 source_port;
	__be16 destination_port;
	/// What the change of addresses adds to the transport checksum (see struct flow). Tunnels: 0.
	__u16 delta;
	/// Largest packet by segment that may leave, beside the next hop's MTU: the result's.
	__u16 mtu;
	/// Index into next_hops.
	__u32 next_hop;
	/// New addresses; IPv4 in the first four octets.
	__u8 source[16];
	__u8 destination[16];
};
