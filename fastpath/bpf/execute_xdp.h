// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Execution in the driver: the frame is rebuilt in front of the transport header, and sent.
#pragma once

#include "headers.h"
#include "next_hop.h"

struct vlan_header {
	__be16 tag;
	__be16 protocol;
};

/// The halves of a word as they are in memory; the last of one word and the first of the next.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST_HALF(word) ((__u16)(word))
#define SECOND_HALF(word) ((__u16)((word) >> 16))
#define JOINED(one, other) ((one) >> 16 | (other) << 16)
#else
#define FIRST_HALF(word) ((__u16)((word) >> 16))
#define SECOND_HALF(word) ((__u16)(word))
#define JOINED(one, other) ((one) << 16 | (other) >> 16)
#endif

/// Length in octets of the next hop's link header.
static __always_inline __u32 link_octets(const struct next_hop *hop)
{
	return hop->vlan ? ETH_HLEN + sizeof(struct vlan_header) : ETH_HLEN;
}

/// Writes both addresses, which are stored in the next hop as in a frame, in as few words as may be: a frame starts two octets in front of a multiple
/// of four.
static __always_inline void write_macs(void *data, const struct next_hop *hop)
{
	const __u32 *macs = (const __u32 *)hop->destination;
	__u32 first = macs[0], second = macs[1], third = macs[2];

	*(__u16 *)data = FIRST_HALF(first);
	*(__u32 *)(data + 2) = JOINED(first, second);
	*(__u32 *)(data + 6) = JOINED(second, third);
	*(__u16 *)(data + 10) = SECOND_HALF(third);
}

/// Writes the link header at the frame's start; returns where the IP header goes, or 0.
static __always_inline void *write_link(void *data, void *end, const struct next_hop *hop, __u16 protocol)
{
	struct ethhdr *link = data;

	if ((void *)(link + 1) > end)
		return 0;
	write_macs(data, hop);
	if (!hop->vlan) {
		*(__be16 *)(data + 12) = bpf_htons(protocol);
		return link + 1;
	}
	struct vlan_header *vlan = (void *)(link + 1);
	if ((void *)(vlan + 1) > end)
		return 0;
	link->h_proto = bpf_htons(ETH_P_8021Q);
	vlan->tag = bpf_htons(hop->vlan);
	vlan->protocol = bpf_htons(protocol);
	return vlan + 1;
}

/// Ports and checksum of a translated packet, whose transport header is at `at`. 0, or it must be dropped: it cannot happen to what was
/// parsed.
static __always_inline int change_transport(void *at, void *end, const struct packet *packet, const struct act *act)
{
	__u64 delta = act->delta;
	__u16 *field;

	if (packet->protocol == IPPROTO_TCP || packet->protocol == IPPROTO_UDP) {
		__be16 *ports = at;
		if ((void *)(ports + 4) > end)
			return -1;
		if (act->writes_ports) {
			delta += (__u64)act->source_port + act->destination_port + (__u16)~packet->source_port +
				 (__u16)~packet->destination_port;
			ports[0] = act->source_port;
			ports[1] = act->destination_port;
		}
		if (packet->protocol == IPPROTO_TCP) {
			if ((void *)(ports + 9) > end)
				return -1;
			ports[8] = update(ports[8], delta);
		} else {
			__u16 after = update(ports[3], delta);
			ports[3] = after ? after : 0xffff;
		}
		return 0;
	}
	struct icmphdr *icmp = at;
	if ((void *)(icmp + 1) > end)
		return -1;
	field = &icmp->checksum;
	delta = change_of_identifier(packet, act);
	if (act->writes_ports)
		icmp->identifier = identifier_of(act);
	if (act->kind == ACT_RENUMBER_4) {
		*field = update(*field, delta);
		return 0;
	}
	__u8 type;
	__u32 octets = packet->length - (packet->version == 6 ? IPV6_HEADER : IPV4_HEADER);
	const __u8 *source = packet->version == 6 ? packet->source : act->source;
	const __u8 *destination = packet->version == 6 ? packet->destination : act->destination;
	*field = update(*field, delta + icmp_change(packet, octets, sum6(source) + sum6(destination), &type));
	icmp->type = type;
	return 0;
}

/// Lowers the MSS option of a SYN whose TCP header is at `at`.
static __always_inline int lower_mss(void *at, void *end, __u16 mss)
{
	__be16 *words = at, wanted = bpf_htons(mss);

	if (at + TCP_HEADER + OPTION_MSS_LENGTH > end)
		return -1;
	words[8] = update(words[8], difference(words[11], wanted));
	words[11] = wanted;
	return 0;
}

/// Octets in front of the transport header or the inner packet: those that go, and those that come.
static __always_inline void measure(__u32 had_link, __u32 wants_link, __u8 kind, __u32 *had, __u32 *wanted)
{
	*had = had_link;
	*wanted = wants_link;
	switch (kind) {
	case ACT_TRANSLATE_6_TO_4:
		*had += IPV6_HEADER;
		*wanted += IPV4_HEADER;
		return;
	case ACT_TRANSLATE_4_TO_6:
		*had += IPV4_HEADER;
		*wanted += IPV6_HEADER;
		return;
	case ACT_RENUMBER_6:
		*had += IPV6_HEADER;
		*wanted += IPV6_HEADER;
		return;
	case ACT_RENUMBER_4:
		*had += IPV4_HEADER;
		*wanted += IPV4_HEADER;
		return;
	case ACT_ENCAP_4:
		*wanted += IPV4_HEADER;
		return;
	default:
		*had += IPV4_HEADER;
		return;
	}
}

static __always_inline int write_4(void *at, void *end, const struct packet *packet, const struct act *act)
{
	struct iphdr *ip = at;
	__u8 encap = act->kind == ACT_ENCAP_4;

	if ((void *)(ip + 1) > end)
		return -1;
	if (act->kind == ACT_RENUMBER_4) {
		renumber_ipv4(ip, act, packet->segments);
		return change_transport(ip + 1, end, packet, act);
	}
	make_ipv4(ip, act, packet->length + (encap ? IPV4_HEADER : IPV4_HEADER - IPV6_HEADER),
		  encap ? IPPROTO_IPV6 : other_protocol(packet->protocol), packet->segments);
	if (!encap)
		return change_transport(ip + 1, end, packet, act);
	// The one hop that the gateway is.
	struct ipv6hdr *inner = (void *)(ip + 1);
	if ((void *)(inner + 1) > end)
		return -1;
	inner->hop_limit = packet->hops - 1;
	return 0;
}

static __always_inline int write_6(void *at, void *end, const struct packet *packet, const struct act *act)
{
	struct ipv6hdr *ip = at;

	if ((void *)(ip + 1) > end)
		return -1;
	if (act->kind == ACT_DECAP) {
		ip->priority = act->traffic_class >> 4;
		ip->flow_lbl[0] = (ip->flow_lbl[0] & 0x0f) | act->traffic_class << 4;
		ip->hop_limit = act->hops;
		return 0;
	}
	if (act->kind == ACT_RENUMBER_6)
		make_ipv6(ip, act, packet->length - IPV6_HEADER, packet->protocol);
	else
		make_ipv6(ip, act, packet->length - IPV4_HEADER, other_protocol(packet->protocol));
	return change_transport(ip + 1, end, packet, act);
}

/// Executes `act` on the frame, whose IP header starts at `link`. XDP_PASS: nothing was changed. XDP_DROP: it was too late to pass the
/// packet on.
static __always_inline int execute(struct xdp_md *ctx, __u32 link, const struct packet *packet, const struct act *act,
				   const struct next_hop *hop)
{
	__u32 had, wanted;

	measure(link, link_octets(hop), act->kind, &had, &wanted);
	if (had != wanted && bpf_xdp_adjust_head(ctx, (int)had - (int)wanted))
		return XDP_PASS;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 is_4 = is_ipv4(act->kind);
	void *at = write_link(data, end, hop, is_4 ? ETH_P_IP : ETH_P_IPV6);
	if (!at)
		return XDP_DROP;
	if (is_4 ? write_4(at, end, packet, act) : write_6(at, end, packet, act))
		return XDP_DROP;
	if (act->mss && lower_mss(at + front_of(act->kind), end, act->mss))
		return XDP_DROP;
	return bpf_redirect(hop->port, 0);
}
