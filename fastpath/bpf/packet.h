// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// From octets to the few fields that decide. What is not plain is not examined further: it is the engine's.
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "checksum.h"
#include "layout.h"

#define IPV4_HEADER 20
#define IPV6_HEADER 40

/// Types of echo messages (RFC 792, RFC 4443 section 4).
#define ICMP_ECHOREPLY 0
#define ICMP_ECHO 8
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129

/// An ICMP or ICMPv6 header.
struct icmphdr {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be16 identifier;
	__be16 sequence;
};

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/// What a TCP packet does to its connection: nothing; ends it; begins it, with no MSS option or one that is as small as can be; begins it, with an
/// MSS option that is not the first option. Any other number: the MSS option of a SYN.
#define TCP_DATA 0
#define TCP_ENDS 1
#define TCP_BEGINS 2
#define TCP_MSS_ELSEWHERE 0xffff

/// The option's kind and length (RFC 9293 section 3.7.1), and its place behind the TCP header.
#define OPTION_MSS 2
#define OPTION_MSS_LENGTH 4
#define TCP_HEADER 20

/// A packet without options, extension headers or fragmentation, IPv4 or IPv6.
struct packet {
	/// An IPv4 address is in the first four octets, the rest is zero.
	__u8 source[16] __attribute__((aligned(8)));
	__u8 destination[16];
	/// Octets of the packet by its own header; of a GSO packet all of it.
	__u32 length;
	/// Octets of the largest packet that a wire would carry: `length`, or that of a GSO packet's segment.
	__u32 segment;
	/// Packets that a wire would carry.
	__u32 segments;
	/// Ports; of an echo message the identifier, twice.
	__be16 source_port;
	__be16 destination_port;
	__u8 version;
	__u8 protocol;
	__u8 hops;
	__u8 traffic_class;
	__u8 dont_fragment;
	/// UDP: it has no checksum.
	__u8 no_checksum;
	union {
		/// ICMP: type.
		__u8 type;
		/// TCP: TCP_…, or the MSS option.
		__u16 tcp;
	};
};

/// Whether a packet begins or ends a TCP connection.
static __always_inline int changes_connection(const struct packet *packet)
{
	return packet->protocol == IPPROTO_TCP && packet->tcp != TCP_DATA;
}

/// What `struct packet` says of a TCP packet whose header, of `header` octets, is at `at`.
static __always_inline __u16 connection_of(const __u8 *at, const void *end, __u32 header)
{
	__u8 flags = at[13];

	if (!(flags & (FIN | SYN | RST)))
		return TCP_DATA;
	if (!(flags & SYN))
		return TCP_ENDS;
	if (header == TCP_HEADER)
		return TCP_BEGINS;
	// Hosts put it first.
	const __u8 *option = at + TCP_HEADER;
	if ((const void *)(option + OPTION_MSS_LENGTH) > end || option[0] != OPTION_MSS || option[1] != OPTION_MSS_LENGTH)
		return TCP_MSS_ELSEWHERE;
	__u16 mss = bpf_ntohs(*(const __be16 *)(option + 2));
	return mss > TCP_BEGINS ? mss : TCP_BEGINS;
}

static __always_inline int is_plain_transport(__u8 protocol, __u8 version)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP ||
	       protocol == (version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

/// Reads the transport header at `at`. Returns 0, or the cause to pass the packet to the kernel.
static __always_inline int parse_transport(void *at, void *end, struct packet *packet)
{
	__u32 left = packet->length - (packet->version == 4 ? IPV4_HEADER : IPV6_HEADER);

	if (packet->protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = at;
		if ((void *)(tcp + 1) > end || left < sizeof(*tcp))
			return PASS_MALFORMED;
		packet->source_port = tcp->source;
		packet->destination_port = tcp->dest;
		__u32 header = (((__u8 *)tcp)[12] >> 4) * 4;
		if (header < sizeof(*tcp) || header > left)
			return PASS_MALFORMED;
		packet->tcp = connection_of(at, end, header);
		return 0;
	}
	if (packet->protocol == IPPROTO_UDP) {
		struct udphdr *udp = at;
		if ((void *)(udp + 1) > end || left < sizeof(*udp))
			return PASS_MALFORMED;
		packet->source_port = udp->source;
		packet->destination_port = udp->dest;
		packet->no_checksum = udp->check == 0;
		return 0;
	}
	if (packet->protocol == (packet->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
		struct icmphdr *icmp = at;
		if ((void *)(icmp + 1) > end || left < sizeof(*icmp))
			return PASS_MALFORMED;
		packet->type = icmp->type;
		packet->source_port = icmp->identifier;
		packet->destination_port = icmp->identifier;
		// Echo alone; the code of an echo message is zero.
		if (packet->version == 4 ? (icmp->type != ICMP_ECHO && icmp->type != ICMP_ECHOREPLY)
					 : (icmp->type != ICMPV6_ECHO_REQUEST && icmp->type != ICMPV6_ECHO_REPLY))
			return PASS_PROTOCOL;
		return icmp->code ? PASS_PROTOCOL : 0;
	}
	return PASS_PROTOCOL;
}

/// Reads an IPv6 header at `at`, and what follows.
static __always_inline int parse_ipv6(void *at, void *end, struct packet *packet)
{
	struct ipv6hdr *ip = at;

	if ((void *)(ip + 1) > end)
		return PASS_MALFORMED;
	__u32 first = bpf_ntohl(*(const __be32 *)at);
	if (first >> 28 != 6)
		return PASS_MALFORMED;
	packet->version = 6;
	packet->length = IPV6_HEADER + bpf_ntohs(ip->payload_len);
	packet->segment = packet->length;
	packet->segments = 1;
	packet->protocol = ip->nexthdr;
	packet->hops = ip->hop_limit;
	packet->traffic_class = first >> 20;
	packet->dont_fragment = 1;
	__builtin_memcpy(packet->source, &ip->saddr, 16);
	__builtin_memcpy(packet->destination, &ip->daddr, 16);
	return 0;
}

/// Reads an IPv4 header at `at`. Its checksum is verified (RFC 1812 section 5.2.2).
static __always_inline int parse_ipv4(void *at, void *end, struct packet *packet)
{
	struct iphdr *ip = at;
	const __u32 *words = at;

	if ((void *)(ip + 1) > end || ip->version != 4)
		return PASS_MALFORMED;
	if (ip->ihl != 5)
		return PASS_OPTIONS;
	if (ip->frag_off & bpf_htons(0x3fff))
		return PASS_FRAGMENT;
	if (fold((__u64)words[0] + words[1] + words[2] + words[3] + words[4]) != 0xffff)
		return PASS_MALFORMED;
	packet->version = 4;
	packet->length = bpf_ntohs(ip->tot_len);
	if (packet->length < IPV4_HEADER)
		return PASS_MALFORMED;
	packet->segment = packet->length;
	packet->segments = 1;
	packet->protocol = ip->protocol;
	packet->hops = ip->ttl;
	packet->traffic_class = ip->tos;
	packet->dont_fragment = !!(ip->frag_off & bpf_htons(0x4000));
	__builtin_memcpy(packet->source, &ip->saddr, 4);
	__builtin_memcpy(packet->destination, &ip->daddr, 4);
	return 0;
}
