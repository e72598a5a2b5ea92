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

/// The entry of a packet, if it has one; `cause` says that it might have had.
static __always_inline struct flow *flow_of(const struct control *control, const struct packet *packet, int *cause)
{
	struct flow_key key = { .protocol = packet->protocol };

	// It may need one that must be computed.
	if (packet->no_checksum)
		return 0;

	if (packet->version == 4) {
		key.direction = TO_INSIDE;
		key.outside = *(const __be32 *)packet->destination;
		key.remote = *(const __be32 *)packet->source;
		key.port = packet->destination_port;
		key.remote_port = packet->source_port;
		if (!is_of_pool(control, key.outside))
			return 0;
		*cause = PASS_NO_FLOW;
		key.hash = hash_to_inside(control, key.outside, key.remote, (__u32)key.port << 16 | key.remote_port,
					  (__u32)key.protocol << 8 | key.direction);
		return find_flow(control, &key);
	}
	key.direction = TO_OUTSIDE;
	__u32 mechanism = TRANSLATORS;
	for (__u32 i = 0; i < TRANSLATORS && i < config.translators_count; i++) {
		if (config.translators[i].kind == KIND_NAT64 &&
		    embedded(&config.translators[i], packet->destination, &key.remote)) {
			mechanism = i;
			break;
		}
	}
	key.mechanism = forget(mechanism, control->keys[0]);
	if (key.mechanism >= TRANSLATORS)
		return 0;
	*cause = PASS_NO_FLOW;
	__builtin_memcpy(key.inside, packet->source, 16);
	key.port = packet->source_port;
	key.remote_port = packet->destination_port;
	key.hash = hash_to_outside(control, key.inside, key.remote, (__u32)key.port << 16 | key.remote_port,
				   (__u32)key.mechanism << 16 | (__u32)key.protocol << 8 | key.direction);
	return find_flow(control, &key);
}

/// Where the flow's packets go: remembered in its entry, or asked now. Index of the next hop, or why the packet is passed on, negative. A hairpin's
/// packets go to whom the other entry says, which may be another one tomorrow: nothing is remembered of it.
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
	if (!is_steered(packet) && !is_routed_to_us(ctx, desk))
		return -PASS_KERNEL;
	if (packet->version == 4 && config.ports[ingress & (PORTS - 1)].strict && !is_from_there(ctx, desk))
		return -PASS_KERNEL;
	question->version = act->kind == ACT_TRANSLATE_6_TO_4 ? 4 : 6;
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
	__u32 most = packet->protocol == IPPROTO_TCP ? config.idle_tcp : config.idle_udp;
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
	way->turned = flow;
	way->turned_word = active_word(flow, packet, transport, end);
	if (!way->turned_word)
		return PASS_MOVING;
	__u32 mechanism = flow->mechanism;
	if (mechanism >= TRANSLATORS)
		return PASS_CHANGED;
	const volatile struct translator *translator = &config.translators[mechanism];
	act->kind = ACT_RENUMBER_6;
	act->delta = fold((__u64)act->delta + flow->delta);
	if (translator->sets_traffic_class)
		act->traffic_class = translator->traffic_class;
	embed(translator, flow->remote, act->source);
	__builtin_memcpy(act->destination, flow->inside, 16);
	act->source_port = flow->remote_port;
	act->destination_port = flow->inside_port;
	act->mtu = act->dont_fragment ? config.mtu6 : translator->lowest_mtu < config.mtu6 ? translator->lowest_mtu : config.mtu6;
	return 0;
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
	if (packet->version == 6) {
		act->kind = ACT_TRANSLATE_6_TO_4;
		act->counter = COUNTER(KIND_NAT64, 0);
		act->traffic_class = translator->sets_tos ? translator->tos : packet->traffic_class;
		act->dont_fragment = packet->segment - 20 > DONT_FRAGMENT_ABOVE;
		__builtin_memcpy(act->source, &flow->outside, 4);
		__builtin_memcpy(act->destination, &flow->remote, 4);
		act->source_port = flow->outside_port;
		act->destination_port = flow->remote_port;
		act->mtu = config.mtu4;
		if (is_of_pool(way->control, flow->remote)) {
			int cause = turn(packet, way, transport, end, act);
			if (cause)
				return cause;
		}
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
	int hop = hop_of(ctx, flow, packet, way, act);
	if (hop < 0)
		return -hop;
	act->next_hop = hop;
	// What was copied is still the entry that was found.
	if (way->turned && word_again(way->turned) != way->turned_word)
		return PASS_CHANGED;
	return word_again(flow) == way->word ? 0 : PASS_CHANGED;
}
