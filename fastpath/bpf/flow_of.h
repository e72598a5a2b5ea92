// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The flow that a packet belongs to, and what becomes of the packet.
#pragma once

#include "flow.h"
#include "headers.h"
#include "rfc6052.h"

/// Whether the packet is for one of this host's own addresses and comes to the engine by steering, not by a route. Asked of packets that
/// have a flow: their port is one of the pool's.
static __always_inline int is_steered(const struct packet *packet)
{
	if (packet->version != 4)
		return 0;
	__u32 bits = bpf_ntohl(*(const __be32 *)packet->destination), shared = 0;

	for (int i = 0; i < POOLS && i < config.pools_count; i++) {
		if ((bits & config.pools[i].mask) == config.pools[i].address) {
			shared = config.pools[i].shared;
			break;
		}
	}
	return forget(shared, bits);
}

/// Whether an IPv4 address is of a NAT64's pool.
static __always_inline int is_of_pool(const struct control *control, __be32 address)
{
	__u32 bits = bpf_ntohl(address), found = 0;

	for (int i = 0; i < POOLS && i < config.pools_count; i++) {
		if ((bits & config.pools[i].mask) == config.pools[i].address) {
			found = 1;
			break;
		}
	}
	return forget(found, control->keys[0]);
}

/// Whether an IPv4 packet comes from an inside host of the NAT44.
static __always_inline int is_of_inside(const struct control *control, const struct packet *packet)
{
	__be32 source = *(const __be32 *)packet->source;
	__u32 found = 0;

	for (int i = 0; i < INSIDES && i < config.inside4_count; i++) {
		if ((source & config.inside4[i].mask) == config.inside4[i].bits) {
			found = 1;
			break;
		}
	}
	return forget(found, control->keys[0]);
}

/// Fills in what a packet that goes out is looked up by: the inside host, as everything outside of the engine knows it (RFC 4291 section 2.5.5.2),
/// and the remote address. Returns 0 if no stateful translator takes it.
static __always_inline int outward_key(const struct control *control, const struct packet *packet, struct flow_key *key)
{
	__u32 mechanism = TRANSLATORS;

	if (packet->version == 4) {
		key->mechanism = config.nat44 - 1;
		*(__be32 *)&key->inside[8] = bpf_htonl(0xffff);
		*(__be32 *)&key->inside[12] = *(const __be32 *)packet->source;
		key->remote = *(const __be32 *)packet->destination;
		return 1;
	}
	for (__u32 i = 0; i < TRANSLATORS && i < config.translators_count; i++) {
		if (config.translators[i].kind == KIND_NAT64 &&
		    embedded(&config.translators[i], packet->destination, &key->remote)) {
			mechanism = i;
			break;
		}
	}
	key->mechanism = forget(mechanism, control->keys[0]);
	__builtin_memcpy(key->inside, packet->source, 16);
	return key->mechanism < TRANSLATORS;
}

/// The entry of a packet, if it has one; `cause` says that it might have had.
static __always_inline struct flow *flow_of(const struct control *control, const struct packet *packet, int *cause)
{
	int is_echo = packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP;
	struct flow_key key = { .protocol = is_echo ? IPPROTO_ICMP : packet->protocol };

	// It may need one that must be computed.
	if (packet->no_checksum)
		return 0;

	if (packet->version == 4 && !(config.nat44 && is_of_inside(control, packet))) {
		key.direction = TO_INSIDE;
		key.outside = *(const __be32 *)packet->destination;
		key.remote = *(const __be32 *)packet->source;
		key.port = packet->destination_port;
		key.remote_port = is_echo ? 0 : packet->source_port;
		if (!is_of_pool(control, key.outside))
			return 0;
		*cause = PASS_NO_FLOW;
		key.hash = hash_to_inside(control, key.outside, key.remote, (__u32)key.port << 16 | key.remote_port,
					  (__u32)key.protocol << 8 | key.direction);
		return find_flow(control, &key);
	}
	key.direction = TO_OUTSIDE;
	if (!outward_key(control, packet, &key))
		return 0;
	*cause = PASS_NO_FLOW;
	key.port = packet->source_port;
	key.remote_port = is_echo ? 0 : packet->destination_port;
	key.hash = hash_to_outside(control, key.inside, key.remote, (__u32)key.port << 16 | key.remote_port,
				   (__u32)key.mechanism << 16 | (__u32)key.protocol << 8 | key.direction);
	return find_flow(control, &key);
}

/// Where the flow's packets go: remembered in its entry, or asked now. Index of the next hop, or why the packet is passed on, negative. A hairpin's
/// packets go where the other entry says, which may change: nothing is cached.
static __always_inline int hop_of(void *ctx, struct flow *flow, const struct packet *packet, const struct way *way,
				  const struct act *act)
{
	__u32 found = *(volatile __u32 *)&flow->next_hop, ingress = way->ingress;

	if (!way->turned && HOP_GENERATION(found) == generation_of(WHOLE_GENERATION(way)) && flow->ingress == ingress + 1 &&
	    way->now - flow->last < FORGOTTEN_TICKS)
		return HOP_INDEX(found);
	struct desk *desk = desk_of();
	if (!desk)
		return -PASS_KERNEL;
	struct question *question = &desk->question;
	question->version = packet->version;
	question->protocol = packet->protocol;
	question->traffic_class = packet->traffic_class;
	question->ifindex = config.ports[ingress & (PORTS - 1)].ifindex;
	__builtin_memcpy(question->source, packet->source, 16);
	__builtin_memcpy(question->destination, packet->destination, 16);
	// A hairpin's packets come from inside: from outside an address of the pool is stolen.
	if (packet->version == 4 && is_of_pool(way->control, *(const __be32 *)packet->source))
		return -PASS_SOURCE;
	int steered = is_steered(packet);
	// An answer to an echo request of our own may be the host's, which shares the address: both have it.
	if (steered && packet->protocol == IPPROTO_ICMP)
		return -PASS_KERNEL;
	if (!steered && !is_routed_to_us(ctx, desk))
		return -PASS_KERNEL;
	__u8 strict = config.ports[ingress & (PORTS - 1)].strict;
	// An inside host's address may be this host's own, which the kernel takes from no wire.
	if (packet->version == 4 && (strict || flow->direction == TO_OUTSIDE) && !is_from_there(ctx, desk, strict))
		return -PASS_KERNEL;
	question->version = is_ipv4(act->kind) ? 4 : 6;
	question->traffic_class = act->traffic_class;
	__builtin_memcpy(question->source, act->source, 16);
	__builtin_memcpy(question->destination, act->destination, 16);
	int index = find_next_hop(ctx, desk);
	if (index < 0 || way->turned)
		return index;
	flow->ingress = ingress + 1;
	*(volatile __u32 *)&flow->next_hop = HOP_FOUND(index, generation_of(WHOLE_GENERATION(way)));
	return index;
}

/// Whether an entry was idle for longer than its session may be.
static __always_inline int is_forgotten(const struct flow *flow, const struct packet *packet, __u32 now)
{
	__u32 most = packet->protocol == IPPROTO_TCP   ? config.idle_tcp
		     : packet->protocol == IPPROTO_UDP ? config.idle_udp
						       : config.idle_icmp;
	return (__s32)(now - flow->last) > (__s32)most;
}

/// A packet for an address of the pool is another host's inside: the entry by which its result would come in again makes one change of the
/// two. Returns 0, or the cause to pass the packet to the kernel.
static __always_inline int turn(const struct packet *packet, struct way *way, void *transport, void *end, struct act *act)
{
	struct flow_key key = { .protocol = packet->protocol, .direction = TO_INSIDE };

	key.outside = *(const __be32 *)act->destination;
	key.remote = *(const __be32 *)act->source;
	key.port = act->destination_port;
	key.remote_port = act->source_port;
	key.hash = hash_to_inside(way->control, key.outside, key.remote, (__u32)key.port << 16 | key.remote_port,
				  (__u32)key.protocol << 8 | key.direction);
	struct flow *flow = find_flow(way->control, &key);
	if (!flow || is_forgotten(flow, packet, way->now))
		return PASS_NO_FLOW;
	__u32 mechanism = flow->mechanism;
	if (mechanism >= TRANSLATORS)
		return PASS_CHANGED;
	const volatile struct translator *translator = &config.translators[mechanism];
	// Another kind's pool: the kernel routes the packet to the engine a second time.
	if (translator->kind != (packet->version == 4 ? KIND_NAT44 : KIND_NAT64))
		return PASS_NO_FLOW;
	way->turned = flow;
	way->turned_word = active_word(flow, packet, transport, end);
	if (!way->turned_word)
		return PASS_MOVING;
	act->delta = fold((__u64)act->delta + flow->delta);
	if (packet->version == 4) {
		// The source stays the caller's outside endpoint (RFC 4787 REQ-9).
		*(__be32 *)act->destination = *(const __be32 *)&flow->inside[12];
		act->destination_port = flow->inside_port;
		return 0;
	}
	act->kind = ACT_RENUMBER_6;
	if (translator->sets_traffic_class)
		act->traffic_class = translator->traffic_class;
	embed(translator, flow->remote, act->source);
	__builtin_memcpy(act->destination, flow->inside, 16);
	act->source_port = flow->remote_port;
	act->destination_port = flow->inside_port;
	act->mtu = act->dont_fragment ? config.mtu6 : translator->lowest_mtu < config.mtu6 ? translator->lowest_mtu : config.mtu6;
	return 0;
}

/// Fills in the fields of a packet from its flow, of a NAT44: either direction.
static __always_inline void renumber(const struct packet *packet, const struct flow *flow, struct act *act)
{
	act->kind = ACT_RENUMBER_4;
	act->traffic_class = packet->traffic_class;
	act->mtu = config.mtu4;
	if (flow->direction == TO_INSIDE) {
		act->counter = COUNTER(KIND_NAT44, 1);
		act->dont_fragment = 1;
		*(__be32 *)act->source = flow->remote;
		*(__be32 *)act->destination = *(const __be32 *)&flow->inside[12];
		act->source_port = flow->remote_port;
		act->destination_port = flow->inside_port;
		return;
	}
	act->counter = COUNTER(KIND_NAT44, 0);
	act->dont_fragment = packet->dont_fragment;
	*(__be32 *)act->source = flow->outside;
	*(__be32 *)act->destination = flow->remote;
	act->source_port = flow->outside_port;
	act->destination_port = flow->remote_port;
}

/// Fills in the fields of a translated packet from its flow. Returns 0, or the cause to pass the packet to the kernel.
static __always_inline int by_flow(void *ctx, const struct packet *packet, struct way *way, void *transport, void *end, struct act *act)
{
	struct flow *flow = way->flow;
	if (!flow)
		return PASS_NO_FLOW;
	__u32 mechanism = flow->mechanism;

	if (mechanism >= TRANSLATORS)
		return PASS_CHANGED;
	if (is_forgotten(flow, packet, way->now))
		return PASS_NO_FLOW;
	const volatile struct translator *translator = &config.translators[mechanism];
	act->writes_ports = 1;
	act->hops = packet->hops - 1;
	act->delta = flow->delta;
	if (translator->kind == KIND_NAT44) {
		renumber(packet, flow, act);
	} else if (packet->version == 6) {
		act->kind = ACT_TRANSLATE_6_TO_4;
		act->counter = COUNTER(KIND_NAT64, 0);
		act->traffic_class = translator->sets_tos ? translator->tos : packet->traffic_class;
		act->dont_fragment = packet->segment - 20 > DONT_FRAGMENT_ABOVE;
		__builtin_memcpy(act->source, &flow->outside, 4);
		__builtin_memcpy(act->destination, &flow->remote, 4);
		act->source_port = flow->outside_port;
		act->destination_port = flow->remote_port;
		act->mtu = config.mtu4;
	} else {
		act->kind = ACT_TRANSLATE_4_TO_6;
		act->counter = COUNTER(KIND_NAT64, 1);
		act->traffic_class = translator->sets_traffic_class ? translator->traffic_class : packet->traffic_class;
		embed(translator, flow->remote, act->source);
		__builtin_memcpy(act->destination, flow->inside, 16);
		act->source_port = flow->remote_port;
		act->destination_port = flow->inside_port;
		act->mtu = config.mtu6;
		if (!packet->dont_fragment && translator->lowest_mtu < act->mtu)
			act->mtu = translator->lowest_mtu;
	}
	if (flow->direction == TO_OUTSIDE && is_of_pool(way->control, flow->remote)) {
		int cause = turn(packet, way, transport, end, act);
		if (cause)
			return cause;
	}
	int hop = hop_of(ctx, flow, packet, way, act);
	if (hop < 0)
		return -hop;
	act->next_hop = hop;
	// Of a half-open entry.
	int cause = clamp(packet, translator->mss, act);
	if (cause)
		return cause;
	// What was copied is still the entry that was found.
	if (way->turned && word_again(way->turned) != way->turned_word)
		return PASS_CHANGED;
	return word_again(flow) == way->word ? 0 : PASS_CHANGED;
}
