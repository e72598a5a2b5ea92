// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The maps of the fast path. Those that are pinned outlive the gateway's process.
#pragma once

#include "layout.h"

/// The gateway's: written from user space, one element.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

/// Stateful flows; the loader sets the number of buckets.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, NEXT_HOPS);
	__type(key, __u32);
	__type(value, struct next_hop);
} next_hops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct device);
} devices SEC(".maps");

/// IPv4 destinations of tunnels whose path MTU is below the configured one. Maintained by the gateway.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, __u8);
} narrow_paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");

/// Identifications of IPv4 packets that may be fragmented: counters that the destinations share.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IDENTIFICATIONS);
	__type(key, __u32);
	__type(value, __u32);
} identifications SEC(".maps");

#ifdef HOOK_XDP
#define TAKES(hop) ((hop)->xdp)
#else
#define TAKES(hop) ((hop)->tc)
#endif

/// The same number; the verifier forgets that it knows it, or else it follows each of its values to the program's end. `unknown` may
/// be any 64-bit number that is wholly unknown to it: a key's.
static __always_inline __u32 forget(__u32 number, __u64 unknown)
{
	__u64 wide = number;

	asm volatile("%0 += %1\n%0 -= %1" : "+r"(wide) : "r"(unknown));
	return wide;
}

static __always_inline void count(__u32 which, __u64 packets, __u64 octets)
{
	struct counter *counter = bpf_map_lookup_elem(&counters, &which);
	if (counter) {
		counter->packets += packets;
		counter->octets += octets;
	}
}
