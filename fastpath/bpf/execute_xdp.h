// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Execution in the driver: the frame is made anew in front of the transport header, and sent.
#pragma once

#include "headers.h"
#include "next_hop.h"

struct vlan_header {
	__be16 tag;
	__be16 protocol;
};

/// Octets of the link header that a next hop wants.
static __always_inline __u32 link_octets(const struct next_hop *hop)
{
	return hop->vlan ? ETH_HLEN + sizeof(struct vlan_header) : ETH_HLEN;
}

/// Moves the frame's start so that `wanted` octets stand in front of what stood behind the first `had`.
static __always_inline long make_front(struct xdp_md *ctx, __u32 had, __u32 wanted)
{
	if (had == wanted)
		return 0;
	return bpf_xdp_adjust_head(ctx, (int)had - (int)wanted);
}

/// Writes the link header at the frame's start; returns where the IP header goes, or 0.
static __always_inline void *write_link(void *data, void *end, const struct next_hop *hop, __u16 protocol)
{
	struct ethhdr *link = data;

	if ((void *)(link + 1) > end)
		return 0;
	__builtin_memcpy(link->h_dest, hop->destination, 6);
	__builtin_memcpy(link->h_source, hop->source, 6);
	if (!hop->vlan) {
		link->h_proto = bpf_htons(protocol);
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
		__u32 place = packet->protocol == IPPROTO_TCP ? 8 : 3;
		if ((void *)(ports + 10) > end && (packet->protocol == IPPROTO_TCP || (void *)(ports + 4) > end))
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
	__u8 type;
	__u32 octets = packet->length - (packet->version == 6 ? IPV6_HEADER : IPV4_HEADER);
	const __u8 *source = packet->version == 6 ? packet->source : act->source;
	const __u8 *destination = packet->version == 6 ? packet->destination : act->destination;
	field = &icmp->checksum;
	*field = update(*field, icmp_change(packet, octets, sum6(source) + sum6(destination), &type));
	icmp->type = type;
	return 0;
}

/// Executes `act` on the frame, whose IP header starts at `had_link`. XDP_PASS: nothing was changed.
static __always_inline int execute(struct xdp_md *ctx, __u32 had_link, const struct packet *packet, const struct act *act)
{
	__u32 index = act->next_hop;
	struct next_hop *hop = bpf_map_lookup_elem(&next_hops, &index);
	if (!hop || hop->sequence & 1)
		return XDP_PASS;
	__u32 wants_link = link_octets(hop);
	__u32 had, wanted;

	switch (act->kind) {
	case ACT_TRANSLATE_6_TO_4:
		had = had_link + IPV6_HEADER;
		wanted = wants_link + IPV4_HEADER;
		break;
	case ACT_TRANSLATE_4_TO_6:
		had = had_link + IPV4_HEADER;
		wanted = wants_link + IPV6_HEADER;
		break;
	case ACT_ENCAP_4:
		had = had_link;
		wanted = wants_link + IPV4_HEADER;
		break;
	default:
		had = had_link + IPV4_HEADER;
		wanted = wants_link;
		break;
	}
	if (make_front(ctx, had, wanted))
		return XDP_PASS;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 is_4 = act->kind == ACT_TRANSLATE_6_TO_4 || act->kind == ACT_ENCAP_4;
	void *at = write_link(data, end, hop, is_4 ? ETH_P_IP : ETH_P_IPV6);
	if (!at)
		return XDP_DROP;
	if (is_4) {
		struct iphdr *ip = at;
		if ((void *)(ip + 1) > end)
			return XDP_DROP;
		__u8 protocol = act->kind == ACT_ENCAP_4 ? IPPROTO_IPV6 : other_protocol(packet->protocol);
		__u32 length = packet->length + (act->kind == ACT_ENCAP_4 ? IPV4_HEADER : IPV4_HEADER - IPV6_HEADER);
		make_ipv4(ip, act, length, protocol, packet->segments);
		at = ip + 1;
		if (act->kind == ACT_ENCAP_4) {
			// The one hop that the gateway is.
			struct ipv6hdr *inner = at;
			if ((void *)(inner + 1) > end)
				return XDP_DROP;
			inner->hop_limit = packet->hops - 1;
		}
	} else {
		struct ipv6hdr *ip = at;
		if ((void *)(ip + 1) > end)
			return XDP_DROP;
		if (act->kind == ACT_DECAP) {
			ip->priority = act->traffic_class >> 4;
			ip->flow_lbl[0] = (ip->flow_lbl[0] & 0x0f) | act->traffic_class << 4;
			ip->hop_limit = act->hops;
		} else {
			make_ipv6(ip, act, packet->length - IPV4_HEADER, other_protocol(packet->protocol));
		}
		at = ip + 1;
	}
	if (act->kind == ACT_TRANSLATE_6_TO_4 || act->kind == ACT_TRANSLATE_4_TO_6) {
		if (change_transport(at, end, packet, act))
			return XDP_DROP;
	}
	hop->used = now_ticks();
	return bpf_redirect(hop->port, 0);
}
