// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What was found out about an address, remembered by each processor: a cache line for a destination or a source. The place follows from a keyed
// hash, so that it is unknown outside which addresses share one; who comes later takes it.
#pragma once

#include "flow.h"

/// Lines of a processor.
#define PATHS 4096

/// What a line is about.
#define DESTINATION6 0u
#define SOURCE6 1u
#define DESTINATION4 2u
#define SOURCE4 3u
#define INNER_DESTINATION 4u
#define INNER_SOURCE 5u

/// What a line is known by. Sources hold for one owner, all for one ingress and one generation.
struct path_key {
	__u64 address[2];
	/// Outer addresses of what came through a tunnel.
	__be32 from __attribute__((aligned(8)));
	__be32 local;
	/// What it is about << 61 | owner << 54 | whole generation << 8 | ingress; 0: nothing, it is being written. All 32 bits of the generation: the
	/// 20 that a flow remembers come round within six hours of 50 changes a second, and a line may stay unused for as long.
	__u64 tag;
};

#define PATH_TAG(about, owner, way)                                                                                                          \
	((__u64)(about) << 61 | (__u64)(owner) << 54 | WHOLE_GENERATION(way) << 8 | (__u8)(way)->ingress)

/// Index into config.ports of where the packets of a key come in.
static __always_inline __u32 ingress_of(const struct path_key *key)
{
	return (__u8)key->tag;
}

struct found {
	/// The address that takes its place; of a destination in a tunnel the other end.
	__u8 mapped[16] __attribute__((aligned(8)));
	__u32 next_hop;
	/// What the change adds to a checksum.
	__u16 delta;
	/// 0, or the cause to pass packets with this address to the kernel.
	__u8 passed;
	__u8 owner;
	/// Not a 6to4 address.
	__u8 is_native;
	__u8 reserved[3];
	/// Tick at which it was found out.
	__u32 since;
};

/// A refused address is looked up again after this many ticks (about a second), regardless of the generation.
#define REFUSED_TICKS 1000

struct path_line {
	struct path_key key;
	struct found found;
};

/// Not pinned and never shared with another program, because its contents follow from this program's constants.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATHS);
	__type(key, __u32);
	__type(value, struct path_line);
} paths SEC(".maps");

/// Room for the question at hand, which the stack has not.
struct sheet {
	struct path_key key;
	struct found found;
	struct packet inner;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sheet);
} sheets SEC(".maps");

static __always_inline struct sheet *sheet_of(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&sheets, &zero);
}

/// The line of a key, which may hold another key now. Not by the generation: a new one takes the old one's place. What it is about, owner and ingress move
/// the place by fixed steps, after the hash: so a lookup does not wait for the owner, which follows from another line, before it begins.
static __always_inline struct path_line *line_of(const struct way *way, const struct path_key *key, __u32 about, __u32 owner)
{
	const __u64 *keys = way->control->keys;
	__u64 sum = pair(keys[0], (__u32)key->address[0], key->address[0] >> 32);

	if (about != DESTINATION4 && about != SOURCE4)
		sum += pair(keys[1], (__u32)key->address[1], key->address[1] >> 32);
	if (about == INNER_SOURCE)
		sum += pair(keys[2], key->from, key->local);
	__u32 index = (__u32)(stir(sum) + about * 683u + owner * 59u + way->ingress * 97u) % PATHS;
	return bpf_map_lookup_elem(&paths, &index);
}

#define KEEP_ORDER() __asm__ volatile("" ::: "memory")

/// Whether a line still holds the key after its contents were copied.
static __always_inline int is_about(const struct path_line *line, const struct path_key *key, __u32 about)
{
	KEEP_ORDER();
	if (line->key.tag != key->tag || line->key.address[0] != key->address[0] || line->key.address[1] != key->address[1])
		return 0;
	return about != INNER_SOURCE || (line->key.from == key->from && line->key.local == key->local);
}

static __always_inline void remember(struct path_line *line, const struct path_key *key, const struct found *found)
{
	line->key.tag = 0;
	KEEP_ORDER();
	__builtin_memcpy(&line->found, found, sizeof(*found));
	line->key.address[0] = key->address[0];
	line->key.address[1] = key->address[1];
	line->key.from = key->from;
	line->key.local = key->local;
	KEEP_ORDER();
	line->key.tag = key->tag;
}
