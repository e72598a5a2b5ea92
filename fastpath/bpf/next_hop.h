// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Next hops: looked up in the kernel's routing table once, then cached in `next_hops` for all flows and paths that share them.
//
// What is remembered holds for one generation. The gateway begins a new one whenever something changes that may matter; while the
// gateway is away, each second is one.
#pragma once

#include "maps.h"
#include "rules.h"

#define AF_INET 2
#define AF_INET6 10

/// The time in ticks as it was found in a jiffy. Asking the kernel is a call, and 15 ns; looking whether the jiffy is another is a load. The coarse
/// clock goes no finer.
struct clock {
	__u64 jiffy;
	__u32 ticks;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock);
} clocks SEC(".maps");

/// The time in ticks.
static __always_inline __u32 now_ticks(void)
{
	__u32 zero = 0;
	__u64 jiffy = bpf_jiffies64();
	struct clock *clock = bpf_map_lookup_elem(&clocks, &zero);

	if (!clock)
		return bpf_ktime_get_coarse_ns() >> TICK_SHIFT;
	if (clock->jiffy != jiffy) {
		clock->ticks = bpf_ktime_get_coarse_ns() >> TICK_SHIFT;
		clock->jiffy = jiffy;
	}
	return clock->ticks;
}

/// An index of a next hop and the generation in which it was found, as they are remembered.
#define HOP_INDEX(found) ((found) >> 22)
#define HOP_GENERATION(found) ((found) & 0x3fffff)
#define HOP_FOUND(index, generation) ((__u32)(index) << 22 | (generation))

/// Ticks since the gateway's last heartbeat. Its clock may be a little ahead of this processor's, which has not looked for a jiffy.
static __always_inline __u32 absence_of(const struct control *control, __u32 now)
{
	__u32 since = now - control->heartbeat;
	return since > 0u - AHEAD ? 0 : since;
}

/// The generation, 34 bits, which do not come round within years; never zero. Those without a running gateway and those with one are different.
static __always_inline __u64 whole_generation_of(const struct control *control, __u32 now)
{
	if (absence_of(control, now) > AWAY_TICKS)
		return 3ull << 32 | now >> 10;
	return 2ull << 32 | control->generation;
}

/// The same in 22 bits, as a flow remembers it; never zero. Without a branch, which the verifier would follow for all that comes after.
static __always_inline __u32 generation_of(__u64 whole)
{
	return 0x100000 | (whole >> 11 & 0x200000) | (whole & 0x0fffff);
}

/// Whether the gateway has been away for too long for its word to hold. Ticks wrap after 52 days: an old heartbeat is kept as old as half of that, so
/// that no gateway becomes valid again by it.
static __always_inline int now_is_too_late(struct control *control, __u32 now)
{
	__u32 absence = absence_of(control, now);

	if (absence <= config.absence)
		return 0;
	if (absence > 3u << 30)
		__sync_val_compare_and_swap(&control->heartbeat, now - absence, now - (1u << 31));
	return 1;
}

/// The parameters of a lookup in the kernel's routing table.
struct question {
	/// IPv4 addresses in the first four octets.
	__u8 source[16];
	__u8 destination[16];
	/// Device that it comes by.
	__u32 ifindex;
	__u8 version;
	__u8 protocol;
	__u8 traffic_class;
};

/// Memory for the slow path, which does not fit on the stack.
struct desk {
	struct question question;
	struct question back;
	struct bpf_fib_lookup fib;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct desk);
} desks SEC(".maps");

static __always_inline struct desk *desk_of(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&desks, &zero);
}

static __always_inline long ask_kernel(void *ctx, const struct question *question, struct bpf_fib_lookup *fib)
{
	__builtin_memset(fib, 0, sizeof(*fib));
	fib->ifindex = question->ifindex;
	fib->l4_protocol = question->protocol;
	// Without it the kernel does not return the route's MTU.
	fib->tot_len = 1;
	if (question->version == 4) {
		fib->family = AF_INET;
		fib->tos = question->traffic_class & 0x1c;
		__builtin_memcpy(&fib->ipv4_src, question->source, 4);
		__builtin_memcpy(&fib->ipv4_dst, question->destination, 4);
	} else {
		fib->family = AF_INET6;
		__builtin_memcpy(fib->ipv6_src, question->source, 16);
		__builtin_memcpy(fib->ipv6_dst, question->destination, 16);
	}
	return bpf_fib_lookup(ctx, fib, sizeof(*fib), 0);
}

/// Index of the port that a frame came in by, or PORTS. `control` has numbers that the verifier does not know.
static __always_inline __u32 port_of(const struct control *control, __u32 ifindex, __u16 vlan)
{
	__u32 found = PORTS;

	for (__u32 i = 0; i < PORTS && i < config.ports_count; i++) {
#ifdef HOOK_XDP
		if (config.ports[i].below == ifindex && config.ports[i].vlan == vlan) {
#else
		if (config.ports[i].ifindex == ifindex) {
#endif
			found = i;
			break;
		}
	}
	return forget(found, control->keys[0]);
}

/// Whether the kernel would let the IPv4 packet of the desk's question in: its source is not this host's own; where reverse path filtering is strict,
/// it is reached by the same device. The kernel's filter follows no rule
/// that names the interface where the packet came in. Nor does this question, which names the gateway's device.
static __noinline int is_from_there(void *ctx, struct desk *desk, __u8 strict)
{
	if (!desk)
		return 0;
	struct bpf_fib_lookup *fib = &desk->fib;
	__builtin_memset(&desk->back, 0, sizeof(desk->back));
	__builtin_memcpy(desk->back.source, desk->question.destination, 4);
	__builtin_memcpy(desk->back.destination, desk->question.source, 4);
	desk->back.ifindex = config.tun;
	desk->back.version = 4;
	desk->back.protocol = desk->question.protocol;
	long found = ask_kernel(ctx, &desk->back, fib);
	if (!strict)
		return found != BPF_FIB_LKUP_RET_NOT_FWDED;
	return (found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH) && fib->ifindex == desk->question.ifindex;
}

/// Whether the kernel would route the packet of the desk's question into the gateway's device, if it were left to it.
static __noinline int is_routed_to_us(void *ctx, struct desk *desk)
{
	if (!desk)
		return 0;
	long found = ask_kernel(ctx, &desk->question, &desk->fib);
	// The device has no neighbours: the packet is sent without a link-layer destination.
	return (found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH) && desk->fib.ifindex == config.tun;
}

static __always_inline int is_same_mac(const __u8 *one, const __u8 *other)
{
	const __u16 *a = (const __u16 *)one, *b = (const __u16 *)other;
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static __always_inline int is_same_hop(const struct next_hop *hop, const struct bpf_fib_lookup *fib)
{
	return hop->ifindex == fib->ifindex && hop->mtu == fib->mtu_result &&
	       is_same_mac(hop->destination, fib->dmac) && is_same_mac(hop->source, fib->smac);
}

static __always_inline int is_same_device(const struct next_hop *hop, const struct device *device)
{
	return hop->port == device->port && hop->vlan == device->vlan && hop->xdp == device->xdp && hop->tc == device->tc;
}

/// Index of the next hop of a result of the gateway's, which the desk's question is about, as though it came from the gateway's device; or
/// the cause for passing on, negative.
static __noinline int find_next_hop(void *ctx, struct desk *desk)
{
	if (!desk)
		return -PASS_NO_NEXT_HOP;
	struct bpf_fib_lookup *fib = &desk->fib;
	desk->question.ifindex = config.tun;
	if (ask_kernel(ctx, &desk->question, fib) != BPF_FIB_LKUP_RET_SUCCESS)
		return -PASS_NO_NEXT_HOP;
	if (!fib->mtu_result)
		return -PASS_NO_NEXT_HOP;
	__u32 ifindex = fib->ifindex;
	struct device *device = bpf_map_lookup_elem(&devices, &ifindex);
	if (!device)
		return -PASS_NO_DEVICE;

	__u32 hash = ifindex * 0x9e3779b1u;
	hash = (hash ^ *(__u32 *)&fib->dmac[2]) * 0x85ebca6bu;
	hash ^= hash >> 16;
	for (int probe = 0; probe < 8; probe++) {
		__u32 index = (hash + probe) % NEXT_HOPS;
		struct next_hop *hop = bpf_map_lookup_elem(&next_hops, &index);
		if (!hop)
			return -PASS_NO_NEXT_HOP;
		if (hop->ifindex && !(hop->sequence & 1)) {
			if (is_same_hop(hop, fib) && is_same_device(hop, device))
				return index;
			continue;
		}
		// This processor writes the slot unless another one was faster; then the packet goes to the kernel, and the next one tries again.
		__u32 sequence = hop->sequence & ~1u;
		if (hop->ifindex || __sync_val_compare_and_swap(&hop->sequence, sequence, sequence + 1) != sequence)
			return -PASS_NO_NEXT_HOP;
		hop->port = device->port;
		hop->vlan = device->vlan;
		hop->xdp = device->xdp;
		hop->tc = device->tc;
		hop->mtu = fib->mtu_result;
		__builtin_memcpy(hop->destination, fib->dmac, 6);
		__builtin_memcpy(hop->source, fib->smac, 6);
		hop->family = fib->family;
		__builtin_memcpy(hop->neighbour, fib->ipv6_dst, 16);
		hop->used = now_ticks();
		*(volatile __u32 *)&hop->ifindex = ifindex;
		__sync_fetch_and_add(&hop->sequence, 1);
		return index;
	}
	return -PASS_NO_NEXT_HOP;
}
