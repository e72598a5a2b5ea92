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

/// Stateful flows; the loader says how many.
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

/// Devices of VLANs: by index of the device below << 12 | identifier. Kept by the gateway.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} vlans SEC(".maps");

/// IPv4 destinations of tunnels to which less fits than the configuration says. Kept by the gateway.
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

/// Identifications of IPv4 packets that may be fragmented.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} identifications SEC(".maps");

#ifdef HOOK_XDP
#define DEVICE_TAKES(device) ((device)->xdp)
#else
#define DEVICE_TAKES(device) ((device)->tc)
#endif

static __always_inline void count(__u32 which, __u64 packets, __u64 octets)
{
	struct counter *counter = bpf_map_lookup_elem(&counters, &which);
	if (counter) {
		counter->packets += packets;
		counter->octets += octets;
	}
}
