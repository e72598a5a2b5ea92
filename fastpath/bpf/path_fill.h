// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The slow path: the facts of an address, from the rules and the kernel's routing tables. Runs once for each cached line.
#pragma once

#include "path_line.h"
#include "siit.h"
#include "tunnel_in.h"
#include "tunnel_out.h"

/// The bits of an address that no packet may bear, or that the kernel does not forward.
static __always_inline int is_refused6(__u64 high, __u64 low)
{
	return is_martian6(high, low) || is_bare_ipv4(high, low);
}

/// A port's description.
static __always_inline const volatile struct port *port_at(__u32 ingress)
{
	return &config.ports[ingress & (PORTS - 1)];
}

/// Whether the kernel's routes, or who owns a packet, depend on this IPv4 source.
__noinline int is_routed_by_source4(__be32 address)
{
	for (int i = 0; i < SOURCES && i < config.sources4_count; i++) {
		if ((address & config.sources4[i].mask) == config.sources4[i].bits)
			return 1;
	}
	return 0;
}

/// The same of an IPv6 source.
__noinline int is_routed_by_source6(__u64 high, __u64 low)
{
	__u64 first = bpf_cpu_to_be64(high), second = bpf_cpu_to_be64(low);

	for (int i = 0; i < SOURCES && i < config.sources6_count; i++) {
		const volatile struct prefix6 *prefix = &config.sources6[i];
		if ((first & prefix->mask[0]) == prefix->bits[0] && (second & prefix->mask[1]) == prefix->bits[1])
			return 1;
	}
	return 0;
}

/// Begins a question about a packet as it came. The answer is remembered for its destination, so the question holds nothing else of it:
/// a source that the kernel forwards nothing from would spoil the destination for all others. Sources by which routes differ are passed
/// to the kernel.
static __always_inline struct desk *ask(__u8 version, const struct packet *packet, __u32 ingress)
{
	struct desk *desk = desk_of();

	if (!desk)
		return 0;
	desk->question.version = version;
	desk->question.protocol = 0;
	desk->question.traffic_class = 0;
	desk->question.ifindex = port_at(ingress)->ifindex;
	__builtin_memset(desk->question.source, 0, 16);
	__builtin_memcpy(desk->question.destination, packet->destination, 16);
	return desk;
}

/// Where a result to an address goes. It holds for every source, so the query names none; but packets into a tunnel have one source, which is
/// given. 0, or why the packet is passed on.
static __always_inline int send_to(void *ctx, struct desk *desk, __u8 version, __be32 source, const void *address, struct found *found)
{
	desk->question.version = version;
	desk->question.traffic_class = 0;
	__builtin_memset(desk->question.source, 0, 16);
	*(__be32 *)desk->question.source = source;
	__builtin_memset(desk->question.destination, 0, 16);
	__builtin_memcpy(desk->question.destination, address, version == 4 ? 4 : 16);
	int index = find_next_hop(ctx, desk);
	if (index < 0)
		return -index;
	found->next_hop = index;
	return 0;
}

/// The remote end of a tunnel to an IPv6 destination. Returns 0, or the cause to pass the packet to the kernel.
static __always_inline int find_end(__u32 owner, __u64 high, __u64 low, struct found *found)
{
	__u64 end = other_end(owner, high, low);

	*(__be32 *)found->mapped = bpf_htonl((__u32)end);
	found->is_native = !!(end & IS_NATIVE);
	return end ? 0 : PASS_NOT_OURS;
}

/// The IPv4 destination after translation. Returns 0, or the cause to pass the packet to the kernel.
static __always_inline int translate_destination6(__u32 owner, const struct path_key *key, struct found *found)
{
	__u64 by = map6(owner, high_of(key->address), low_of(key->address));
	__be32 mapped = by;

	if (!by || is_martian4(bpf_ntohl(mapped)) || (by >> 32 == BY_PREFIX && turns_around(owner, mapped)))
		return PASS_NOT_OURS;
	*(__be32 *)found->mapped = mapped;
	found->delta = difference(sum6((const __u8 *)key->address), mapped);
	return 0;
}

/// An IPv6 destination.
static __noinline int fill_destination6(void *ctx, const struct packet *packet, const struct path_key *key, struct found *found)
{
	__u64 high = high_of(key->address), low = low_of(key->address);

	if (is_refused6(high, low))
		return PASS_NOT_OURS;
	__u32 owner = owner6(high, low);
	if (owner == NOBODY)
		return PASS_NOT_OURS;
	found->owner = owner;
	struct desk *desk = ask(6, packet, ingress_of(key));
	if (!desk || !is_routed_to_us(ctx, desk))
		return PASS_KERNEL;
	__u8 into_tunnel = owner & OWNER_TUNNEL;
	int passed = into_tunnel ? find_end(owner, high, low, found) : translate_destination6(owner, key, found);
	return passed ? passed : send_to(ctx, desk, 4, into_tunnel ? tunnel_at(owner)->local : 0, found->mapped, found);
}

/// An IPv6 source, for an owner.
static __noinline int fill_source6(const struct path_key *key, __u32 owner, struct found *found)
{
	__u64 high = high_of(key->address), low = low_of(key->address);

	if (is_refused6(high, low) || is_routed_by_source6(high, low))
		return PASS_SOURCE;
	if (owner & OWNER_TUNNEL) {
		__u64 taken = takes_source(owner, high, low);
		found->is_native = !!(taken & IS_NATIVE);
		return taken ? 0 : PASS_SOURCE;
	}
	__u64 by = map6(owner, high, low);
	__be32 mapped = by;
	if (!by || is_martian4(bpf_ntohl(mapped)) || is_routed_by_source4(mapped))
		return PASS_SOURCE;
	*(__be32 *)found->mapped = mapped;
	found->delta = difference(sum6((const __u8 *)key->address), mapped);
	return 0;
}

/// An IPv4 destination.
static __noinline int fill_destination4(void *ctx, const struct packet *packet, const struct path_key *key, struct found *found)
{
	__be32 address = (__u32)key->address[0];
	__u64 *mapped = (__u64 *)found->mapped;

	// The kernel's reverse path filter looks the way back up by rules for packets from this address.
	if (is_martian4(bpf_ntohl(address)) || is_routed_by_source4(address))
		return PASS_NOT_OURS;
	__u32 owner = owner4(bpf_ntohl(address));
	if (owner == NOBODY)
		return PASS_NOT_OURS;
	found->owner = owner;
	struct desk *desk = ask(4, packet, ingress_of(key));
	if (!desk || !is_routed_to_us(ctx, desk))
		return PASS_KERNEL;
	if (map4(owner, address, 1, mapped) == BY_NOTHING || is_refused6(high_of(mapped), low_of(mapped)))
		return PASS_NOT_OURS;
	found->delta = difference(address, sum6(found->mapped));
	return send_to(ctx, desk, 6, 0, found->mapped, found);
}

/// Whether the kernel takes an IPv4 source from where it came: it is not an address of this host, and can be reached; where reverse path
/// filtering is strict, by the same device (RFC 3704 section 2.2). `local` is where its packets go, if that is one address (see is_from_there).
static __noinline int is_fit_source(void *ctx, __be32 source, __be32 local, __u32 ingress)
{
	struct desk *desk = desk_of();

	if (!desk)
		return 0;
	struct question *back = &desk->back;
	__builtin_memset(back, 0, sizeof(*back));
	back->version = 4;
	back->ifindex = config.tun;
	*(__be32 *)back->source = local;
	*(__be32 *)back->destination = source;
	long found = ask_kernel(ctx, back, &desk->fib);
	if (found != BPF_FIB_LKUP_RET_SUCCESS && found != BPF_FIB_LKUP_RET_NO_NEIGH)
		return 0;
	return !port_at(ingress)->strict || desk->fib.ifindex == port_at(ingress)->ifindex;
}

/// Whether the kernel has an IPv4 address itself, so that what comes there comes to us.
static __noinline int is_local(void *ctx, __be32 address, __u32 ingress)
{
	struct desk *desk = desk_of();

	if (!desk)
		return 0;
	__builtin_memset(&desk->back, 0, sizeof(desk->back));
	desk->back.version = 4;
	desk->back.ifindex = port_at(ingress)->ifindex;
	*(__be32 *)desk->back.destination = address;
	return ask_kernel(ctx, &desk->back, &desk->fib) == BPF_FIB_LKUP_RET_NOT_FWDED;
}

/// An IPv4 source, for a translator.
static __noinline int fill_source4(void *ctx, const struct path_key *key, __u32 owner, struct found *found)
{
	__be32 address = (__u32)key->address[0];
	__u64 *mapped = (__u64 *)found->mapped;

	if (is_martian4(bpf_ntohl(address)) || is_routed_by_source4(address) || !is_fit_source(ctx, address, 0, ingress_of(key)))
		return PASS_SOURCE;
	// RFC 7757 section 4.2.1.
	int asks_table = translator_at(owner)->hairpinning != HAIRPIN_SIMPLE;
	if (map4(owner, address, asks_table, mapped) == BY_NOTHING || is_refused6(high_of(mapped), low_of(mapped)) ||
	    is_routed_by_source6(high_of(mapped), low_of(mapped)))
		return PASS_SOURCE;
	found->delta = difference(address, sum6(found->mapped));
	return 0;
}

/// The sources of a packet that came through a tunnel, and which one it was.
static __noinline int fill_inner_source(void *ctx, const struct path_key *key, struct found *found)
{
	__u64 high = high_of(key->address), low = low_of(key->address);

	__u32 tunnel = came_through(key->local, key->from, high, low);
	if (tunnel == NOBODY)
		return PASS_NOT_OURS;
	found->owner = OWNER_TUNNEL | tunnel;
	if (is_refused6(high, low) || is_routed_by_source6(high, low) || is_martian4(bpf_ntohl(key->from)) || is_this_host(key->from))
		return PASS_SOURCE;
	if (key->address[0] == *(const volatile __u64 *)&config.own6[0] && key->address[1] == *(const volatile __u64 *)&config.own6[8])
		return PASS_SOURCE;
	// It would look as if the NAT64 had translated it.
	if (rule_of(key->address[0], key->address[1]) >> 16 == KIND_NAT64)
		return PASS_SOURCE;
	if (!is_local(ctx, key->local, ingress_of(key)))
		return PASS_KERNEL;
	return is_fit_source(ctx, key->from, key->local, ingress_of(key)) ? 0 : PASS_SOURCE;
}

/// The destination of a packet that came through a tunnel.
static __noinline int fill_inner_destination(void *ctx, const struct packet *packet, const struct path_key *key, __u32 owner,
					     struct found *found)
{
	__u64 high = high_of(key->address), low = low_of(key->address);

	if (is_refused6(high, low) || !takes_destination(owner, high, low))
		return PASS_NOT_OURS;
	struct desk *desk = ask(6, packet, ingress_of(key));
	return desk ? send_to(ctx, desk, 6, 0, key->address, found) : PASS_KERNEL;
}
