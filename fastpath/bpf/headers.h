// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The headers that results get (RFC 7915 sections 4.1 and 5.1, RFC 4213 section 3.5).
#pragma once

#include "act.h"
#include "checksum.h"
#include "maps.h"
#include "rules.h"

/// IPv4 packets up to this size are sent with DF clear (RFC 7915 section 5.1).
#define DONT_FRAGMENT_ABOVE 1260

/// The first of `segments` identifications for a destination; the processors' are interleaved. A host sees how much is sent to its own address, and to
/// few others (RFC 6864 section 7): who shares a counter, and where each starts, follows from a secret. Not static: the verifier follows it once, not
/// for each state of its callers.
__noinline __u16 identify(__be32 destination, __u32 segments)
{
	__u64 secret = (__u64)config.identification << 32 | 0x9e3779b1u;
	__u32 index = (secret * (destination | 1ull << 32)) >> 56 & (IDENTIFICATIONS - 1);
	__u32 *next = bpf_map_lookup_elem(&identifications, &index);
	if (!next)
		return 0;
	__u32 first = *next;
	*next = first + segments;
	return ((secret + index) * 0x9e3779b97f4a7c15ull >> 48) + first + (bpf_get_smp_processor_id() << 13);
}

/// An IPv4 header of `length` octets in all, its checksum computed.
static __always_inline void make_ipv4(struct iphdr *ip, const struct act *act, __u16 length, __u8 protocol, __u32 segments)
{
	__u32 *words = (__u32 *)ip;
	__u32 fragment = act->dont_fragment ? 0x4000 : 0;
	__u32 source = *(const __u32 *)act->source, destination = *(const __u32 *)act->destination;

	if (!act->dont_fragment || act->kind != ACT_TRANSLATE_6_TO_4)
		fragment |= (__u32)identify(destination, segments) << 16;
	// Summed up from the words, not from the header: what was written in octets is slow to be read in words.
	__u32 first = bpf_htonl(0x45000000u | (__u32)act->traffic_class << 16 | length);
	__u32 second = bpf_htonl(fragment);
	__u32 third = bpf_htonl((__u32)act->hops << 24 | (__u32)protocol << 16);
	words[0] = first;
	words[1] = second;
	words[2] = third;
	words[3] = source;
	words[4] = destination;
	ip->check = ~fold((__u64)first + second + third + source + destination);
}

/// Gives an IPv4 header without options other addresses. What may be fragmented and has a source that several hosts share gets an identification of
/// its own (RFC 6864 section 5.3.1).
static __always_inline void renumber_ipv4(struct iphdr *ip, const struct act *act, __u32 segments)
{
	__u32 *words = (__u32 *)ip;
	__u32 source = *(const __u32 *)act->source, destination = *(const __u32 *)act->destination;
	__u32 first = words[0], second = bpf_ntohl(words[1]), third = bpf_ntohl(words[2]);

	if (!act->dont_fragment)
		second = (__u32)identify(destination, segments) << 16 | (second & 0xffff);
	second = bpf_htonl(second);
	third = bpf_htonl((__u32)act->hops << 24 | (third & 0x00ff0000));
	words[1] = second;
	words[2] = third;
	words[3] = source;
	words[4] = destination;
	ip->check = ~fold((__u64)first + second + third + source + destination);
}

/// An IPv6 header, flow label zero.
static __always_inline void make_ipv6(struct ipv6hdr *ip, const struct act *act, __u16 payload, __u8 next_header)
{
	__u8 class = act->traffic_class;
	__u32 *first = (__u32 *)ip;

	*first = bpf_htonl(0x60000000u | (__u32)class << 20);
	ip->payload_len = bpf_htons(payload);
	ip->nexthdr = next_header;
	ip->hop_limit = act->hops;
	__builtin_memcpy(&ip->saddr, act->source, 16);
	__builtin_memcpy(&ip->daddr, act->destination, 16);
}

/// The protocol number in the other family.
static __always_inline __u8 other_protocol(__u8 protocol)
{
	return protocol == IPPROTO_ICMP ? IPPROTO_ICMPV6 : protocol == IPPROTO_ICMPV6 ? IPPROTO_ICMP : protocol;
}

/// What the pseudo-header's upper-layer length and next header add to an ICMPv6 checksum.
static __always_inline __u64 icmp_pseudo(__u32 octets)
{
	return (__u64)bpf_htonl(octets) + bpf_htons(IPPROTO_ICMPV6);
}

/// The identifier of an echo message that belongs to a flow. It has no remote port.
static __always_inline __be16 identifier_of(const struct act *act)
{
	return act->source_port | act->destination_port;
}

/// What another identifier adds to a checksum; 0 without a flow.
static __always_inline __u64 change_of_identifier(const struct packet *packet, const struct act *act)
{
	return act->writes_ports ? (__u64)identifier_of(act) + (__u16)~packet->source_port : 0;
}

/// What an ICMP echo message's checksum changes by, and its new type. `old_type` and the pseudo-header of the side that has one.
static __always_inline __u64 icmp_change(const struct packet *packet, __u32 octets, __u64 addresses6, __u8 *type)
{
	__u64 pseudo = addresses6 + icmp_pseudo(octets);

	if (packet->version == 6) {
		*type = packet->type == ICMPV6_ECHO_REQUEST ? ICMP_ECHO : ICMP_ECHOREPLY;
		return difference(pseudo + bpf_htons(packet->type << 8), bpf_htons(*type << 8));
	}
	*type = packet->type == ICMP_ECHO ? ICMPV6_ECHO_REQUEST : ICMPV6_ECHO_REPLY;
	return difference(bpf_htons(packet->type << 8), pseudo + bpf_htons(*type << 8));
}
