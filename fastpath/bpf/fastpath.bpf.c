// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The fast path: what the engine has decided, the kernel repeats. One source for two hooks, HOOK_XDP and HOOK_TC.
//
//     frame ─▶ packet ─▶ flow? ─▶ path? ─▶ act ─▶ execute ─▶ next hop
//                │         │        │               │
//                └─────────┴────────┴───────────────┴──────▶ passed on as it came: the kernel, and so the engine
//
// It never drops: what it does not carry goes on untouched.

#include <linux/pkt_cls.h>

#include "act.h"
#include "checksum.h"
#include "flow.h"
#include "maps.h"
#include "next_hop.h"
#include "path.h"
#include "rfc6052.h"
#include "rules.h"

#ifdef HOOK_XDP
#include "execute_xdp.h"
typedef struct xdp_md context;
#define PASS XDP_PASS
#else
#include "execute_tc.h"
typedef struct __sk_buff context;
#define PASS TC_ACT_UNSPEC
#endif

/// Whether the packet is for one of this host's own addresses and comes to the engine by steering, not by a route. Asked of packets that
/// have a flow: their port is one of the pool's.
static __always_inline int is_steered(const struct packet *packet)
{
	if (packet->version != 4)
		return 0;
	__u32 bits = bpf_ntohl(*(const __be32 *)packet->destination);

	for (int i = 0; i < POOLS && i < config.pools_count; i++) {
		if ((bits & config.pools[i].mask) == config.pools[i].address)
			return config.pools[i].shared != 0;
	}
	return 0;
}

/// Fills in what a translated packet has from its flow. 0, or why the packet is passed on.
static __always_inline int by_flow(context *ctx, const struct control *control, struct flow *flow, const struct packet *packet,
				   struct act *act, __u32 now)
{
	__u32 word = *(volatile __u32 *)&flow->word;
	__u32 mechanism = flow->mechanism;
	if (mechanism >= TRANSLATORS)
		return PASS_CHANGED;
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
	} else {
		act->kind = ACT_TRANSLATE_4_TO_6;
		act->counter = COUNTER(KIND_NAT64, 1);
		act->traffic_class = translator->sets_traffic_class ? translator->traffic_class : packet->traffic_class;
		embed(translator, flow->remote, act->source);
		__builtin_memcpy(act->destination, flow->inside, 16);
		act->source_port = flow->remote_port;
		act->destination_port = flow->inside_port;
		act->mtu = packet->dont_fragment ? config.mtu6 : translator->lowest_mtu;
	}
	// Where to: found in this generation, or asked now.
	__u32 generation = generation_of(control, now), found = *(volatile __u32 *)&flow->next_hop;
	if ((found & 0xffff) != generation) {
		struct question question = { .version = packet->version, .protocol = packet->protocol,
					     .traffic_class = packet->traffic_class, .ifindex = ctx->ingress_ifindex };
		__builtin_memcpy(question.source, packet->source, 16);
		__builtin_memcpy(question.destination, packet->destination, 16);
		if (!is_steered(packet) && !is_routed_to_us(ctx, &question))
			return PASS_KERNEL;
		question.version = packet->version == 6 ? 4 : 6;
		question.protocol = packet->protocol;
		question.traffic_class = act->traffic_class;
		__builtin_memcpy(question.source, act->source, 16);
		__builtin_memcpy(question.destination, act->destination, 16);
		int index = find_next_hop(ctx, &question);
		if (index < 0)
			return -index;
		found = (__u32)index << 16 | generation;
		*(volatile __u32 *)&flow->next_hop = found;
	}
	act->next_hop = found >> 16;
	// The entry is still the one that was compared.
	if (*(volatile __u32 *)&flow->word != word || FLOW_STATE(word) != FLOW_ACTIVE)
		return PASS_CHANGED;
	return 0;
}

/// Whether an IPv4 address is of a NAT64's pool.
static __always_inline int is_of_pool(__be32 address)
{
	__u32 bits = bpf_ntohl(address);

	for (int i = 0; i < POOLS && i < config.pools_count; i++) {
		if ((bits & config.pools[i].mask) == config.pools[i].address)
			return 1;
	}
	return 0;
}

/// The entry of a packet, if it has one.
static __always_inline struct flow *flow_of(const struct control *control, const struct packet *packet)
{
	struct flow_key key = { .protocol = packet->protocol };

	if (packet->version == 4) {
		key.direction = TO_INSIDE;
		key.outside = *(const __be32 *)packet->destination;
		key.remote = *(const __be32 *)packet->source;
		key.port = packet->destination_port;
		key.remote_port = packet->source_port;
		if (!is_of_pool(key.outside))
			return 0;
		key.hash = hash_to_inside(control, key.outside, key.remote, (__u32)key.port << 16 | key.remote_port,
					  (__u32)key.protocol << 8 | key.direction);
		return find_flow(control, &key);
	}
	key.direction = TO_OUTSIDE;
	for (int i = 0; i < TRANSLATORS && i < config.translators_count; i++) {
		const volatile struct translator *translator = &config.translators[i];
		if (translator->kind != KIND_NAT64)
			break;
		if (!embedded(translator, packet->destination, &key.remote))
			continue;
		key.mechanism = i;
		__builtin_memcpy(key.inside, packet->source, 16);
		key.port = packet->source_port;
		key.remote_port = packet->destination_port;
		key.hash = hash_to_outside(control, key.inside, key.remote, (__u32)key.port << 16 | key.remote_port,
					   (__u32)key.mechanism << 16 | (__u32)key.protocol << 8 | key.direction);
		return find_flow(control, &key);
	}
	return 0;
}
