// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Execution at tc ingress: GSO packets stay whole. The kernel moves the headers, so that it knows where they are; the checksum of the
// transport header is changed by the kernel too, which knows whether it is complete.
#pragma once

#include "headers.h"
#include "next_hop.h"

#ifndef BPF_F_ADJ_ROOM_DECAP_L3_IPV6
#define BPF_F_ADJ_ROOM_DECAP_L3_IPV6 (1ULL << 8)
#endif

/// Places of the transport checksum.
static __always_inline __u32 checksum_at(__u8 protocol)
{
	return protocol == IPPROTO_TCP ? 16 : protocol == IPPROTO_UDP ? 6 : 2;
}

/// What other ports add to a checksum.
static __always_inline __u16 change_of_ports(const struct packet *packet, const struct act *act)
{
	return fold((__u64)act->source_port + act->destination_port + (__u16)~packet->source_port + (__u16)~packet->destination_port);
}

/// A datagram's checksum that is complete, though the kernel may take it for one that a device has yet to finish: what the device finishes is a
/// checksum further inside, where the datagram is a tunnel's (VXLAN and its like, from hosts of this machine). What is unfinished here is the sum of
/// the addresses, the length and the protocol alone. 1: it is changed; 0: the kernel has to.
static __always_inline int change_complete(struct __sk_buff *skb, __u32 at, const struct packet *packet, const struct act *act)
{
	// Length and checksum.
	__u16 words[2];
	__u16 after;

	if (bpf_skb_load_bytes(skb, at + 4, words, sizeof(words)))
		return -1;
	if (words[1] == fold(sum6(packet->source) + sum6(packet->destination) + words[0] + bpf_htons(IPPROTO_UDP)))
		return 0;
	after = update(words[1], (__u64)act->delta + (act->writes_ports ? change_of_ports(packet, act) : 0));
	after = after ? after : 0xffff;
	return bpf_skb_store_bytes(skb, at + 6, &after, sizeof(after), BPF_F_RECOMPUTE_CSUM) ? -1 : 1;
}

/// Ports and checksum of a translated packet, whose transport header is at `at`.
static __always_inline int change_transport(struct __sk_buff *skb, __u32 at, const struct packet *packet, const struct act *act)
{
	__u32 field = at + checksum_at(packet->protocol);

	if (packet->protocol == IPPROTO_TCP || packet->protocol == IPPROTO_UDP) {
		__u64 mangled = packet->protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
		int changed = packet->protocol == IPPROTO_UDP ? change_complete(skb, at, packet, act) : 0;
		if (changed < 0)
			return -1;
		if (!changed && bpf_l4_csum_replace(skb, field, 0, act->delta, BPF_F_PSEUDO_HDR | mangled))
			return -1;
		if (!act->writes_ports)
			return 0;
		if (!changed && bpf_l4_csum_replace(skb, field, 0, change_of_ports(packet, act), mangled))
			return -1;
		__be16 ports[2] = { act->source_port, act->destination_port };
		return bpf_skb_store_bytes(skb, at, ports, sizeof(ports), changed ? BPF_F_RECOMPUTE_CSUM : 0);
	}
	if (act->writes_ports) {
		__be16 identifier = identifier_of(act);
		if (bpf_l4_csum_replace(skb, field, 0, fold(change_of_identifier(packet, act)), 0) ||
		    bpf_skb_store_bytes(skb, at + 4, &identifier, sizeof(identifier), 0))
			return -1;
		if (act->kind == ACT_RENUMBER_4)
			return 0;
	}
	__u8 type;
	__u32 octets = packet->length - (packet->version == 6 ? IPV6_HEADER : IPV4_HEADER);
	const __u8 *source = packet->version == 6 ? packet->source : act->source;
	const __u8 *destination = packet->version == 6 ? packet->destination : act->destination;
	__u16 delta = icmp_change(packet, octets, sum6(source) + sum6(destination), &type);
	if (bpf_l4_csum_replace(skb, field, 0, delta, BPF_F_PSEUDO_HDR))
		return -1;
	// CHECKSUM_COMPLETE, where the device supplied it, already includes the checksum's change but not the type's.
	return bpf_skb_store_bytes(skb, at, &type, 1, BPF_F_RECOMPUTE_CSUM);
}

/// Moves the headers. Not zero: nothing was changed.
static __always_inline long make_front(struct __sk_buff *skb, const struct act *act)
{
	switch (act->kind) {
	case ACT_TRANSLATE_6_TO_4:
		return bpf_skb_change_proto(skb, bpf_htons(ETH_P_IP), 0);
	case ACT_TRANSLATE_4_TO_6:
		return bpf_skb_change_proto(skb, bpf_htons(ETH_P_IPV6), 0);
	case ACT_RENUMBER_6:
	case ACT_RENUMBER_4:
		return 0;
	case ACT_ENCAP_4:
		return bpf_skb_adjust_room(skb, IPV4_HEADER, BPF_ADJ_ROOM_MAC,
					   BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4);
	default:
		return bpf_skb_adjust_room(skb, -IPV4_HEADER, BPF_ADJ_ROOM_MAC,
					   BPF_F_ADJ_ROOM_FIXED_GSO | (config.can_decap_gso ? BPF_F_ADJ_ROOM_DECAP_L3_IPV6 : 0));
	}
}

/// Writes the link header. What the device has summed up begins behind it.
static __always_inline long write_link(struct __sk_buff *skb, const struct next_hop *hop, __u16 protocol)
{
	struct ethhdr link = { .h_proto = bpf_htons(protocol) };

	__builtin_memcpy(link.h_dest, hop->destination, 6);
	__builtin_memcpy(link.h_source, hop->source, 6);
	return bpf_skb_store_bytes(skb, 0, &link, sizeof(link), 0);
}

static __always_inline int write_4(struct __sk_buff *skb, const struct next_hop *hop, const struct packet *packet, const struct act *act)
{
	__u8 encap = act->kind == ACT_ENCAP_4;
	struct iphdr ip = {};
	__u8 hops = packet->hops - 1;

	if (act->kind == ACT_RENUMBER_4) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
			return -1;
		renumber_ipv4(&ip, act, packet->segments);
	} else {
		make_ipv4(&ip, act, packet->length + (encap ? IPV4_HEADER : IPV4_HEADER - IPV6_HEADER),
			  encap ? IPPROTO_IPV6 : other_protocol(packet->protocol), packet->segments);
	}
	if (write_link(skb, hop, ETH_P_IP) || bpf_skb_store_bytes(skb, ETH_HLEN, &ip, sizeof(ip), BPF_F_RECOMPUTE_CSUM))
		return -1;
	if (encap)
		return bpf_skb_store_bytes(skb, ETH_HLEN + IPV4_HEADER + 7, &hops, 1, BPF_F_RECOMPUTE_CSUM);
	return change_transport(skb, ETH_HLEN + IPV4_HEADER, packet, act);
}

static __always_inline int write_6(struct __sk_buff *skb, const struct next_hop *hop, const struct packet *packet, const struct act *act)
{
	struct ipv6hdr ip;

	if (act->kind == ACT_DECAP) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
			return -1;
		ip.priority = act->traffic_class >> 4;
		ip.flow_lbl[0] = (ip.flow_lbl[0] & 0x0f) | act->traffic_class << 4;
		ip.hop_limit = act->hops;
	} else if (act->kind == ACT_RENUMBER_6) {
		make_ipv6(&ip, act, packet->length - IPV6_HEADER, packet->protocol);
	} else {
		make_ipv6(&ip, act, packet->length - IPV4_HEADER, other_protocol(packet->protocol));
	}
	if (write_link(skb, hop, ETH_P_IPV6) || bpf_skb_store_bytes(skb, ETH_HLEN, &ip, sizeof(ip), BPF_F_RECOMPUTE_CSUM))
		return -1;
	if (act->kind == ACT_DECAP)
		return 0;
	return change_transport(skb, ETH_HLEN + IPV6_HEADER, packet, act);
}

/// Lowers the MSS option of a SYN whose TCP header is at `at`.
static __always_inline int lower_mss(struct __sk_buff *skb, __u32 at, __u16 mss)
{
	__be16 wanted = bpf_htons(mss), was;

	if (bpf_skb_load_bytes(skb, at + TCP_HEADER + 2, &was, sizeof(was)) ||
	    bpf_l4_csum_replace(skb, at + checksum_at(IPPROTO_TCP), was, wanted, sizeof(wanted)))
		return -1;
	return bpf_skb_store_bytes(skb, at + TCP_HEADER + 2, &wanted, sizeof(wanted), 0);
}

/// Executes `act`. TC_ACT_UNSPEC: nothing was changed. TC_ACT_SHOT: it was too late to pass the packet on.
static __noinline int execute(struct __sk_buff *skb, __u32 link, const struct packet *packet, const struct act *act,
				   const struct next_hop *hop)
{
	int failed;

	if (act->kind == ACT_DECAP && skb->gso_size && !(config.can_decap_gso && hop->tc & SENDS_FROM_TUNNELS))
		return TC_ACT_UNSPEC;
	if (make_front(skb, act))
		return TC_ACT_UNSPEC;
	if (is_ipv4(act->kind))
		failed = write_4(skb, hop, packet, act);
	else
		failed = write_6(skb, hop, packet, act);
	if (failed)
		return TC_ACT_SHOT;
	if (act->mss && lower_mss(skb, ETH_HLEN + front_of(act->kind), act->mss))
		return TC_ACT_SHOT;
	// By the device of the route: a VLAN device adds its tag itself.
	return bpf_redirect(hop->ifindex, 0);
}
