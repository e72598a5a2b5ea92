// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What was found out about an address, remembered by each processor: a cache line for a destination or a source. The place follows from a keyed
// hash, so that nobody outside knows which addresses share one; who comes later takes it.
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
	__be32 from;
	__be32 local;
	__u32 ingress;
	/// What it is about << 29 | owner << 22 | generation.
	__u32 tag;
};

#define PATH_TAG(about, owner, generation) ((about) << 29 | (owner) << 22 | (generation))

struct found {
	/// The address that takes its place; of a destination in a tunnel the other end.
	__u8 mapped[16];
	__u32 next_hop;
	/// What the change adds to a checksum.
	__u16 delta;
	/// 0, or why packets with this address are passed on.
	__u8 passed;
	__u8 owner;
	/// It is no 6to4 address.
	__u8 is_native;
	__u8 reserved[3];
	/// Tick at which it was found out.
	__u32 since;
};

/// What was refused is asked for again after a second, whatever the generation: 1,000 ticks.
#define REFUSED_TICKS 1000

struct path_line {
	struct path_key key;
	struct found found;
};

/// Not pinned, and never another program's: what it says follows from this program's constants.
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

/// The line of a key, whoever has it now.
static __always_inline struct path_line *line_of(const struct control *control, const struct path_key *key)
{
	const __u32 *words = (const __u32 *)key->address;
	// Not by the generation: a new one takes the old one's place.
	__u64 hash = stir(pair(control->keys[0], words[0], words[1]) + pair(control->keys[1], words[2], words[3]) +
			  pair(control->keys[2], key->from, key->local) + pair(control->keys[3], key->ingress, key->tag >> 22));
	__u32 index = hash % PATHS;
	return bpf_map_lookup_elem(&paths, &index);
}

#define KEEP_ORDER() __asm__ volatile("" ::: "memory")

/// Copies what a line says, if it has the key still when it was copied.
static __always_inline int recall(const struct path_line *line, const struct path_key *key, struct found *found, __u32 now)
{
	__builtin_memcpy(found, &line->found, sizeof(*found));
	KEEP_ORDER();
	if (found->passed && now - found->since >= REFUSED_TICKS)
		return 0;
	return line->key.tag == key->tag && line->key.address[0] == key->address[0] && line->key.address[1] == key->address[1] &&
	       line->key.ingress == key->ingress && line->key.from == key->from && line->key.local == key->local;
}

static __always_inline void remember(struct path_line *line, const struct path_key *key, const struct found *found)
{
	line->key.tag = 0;
	KEEP_ORDER();
	__builtin_memcpy(&line->found, found, sizeof(*found));
	__builtin_memcpy(&line->key, key, sizeof(*key) - sizeof(key->tag));
	KEEP_ORDER();
	line->key.tag = key->tag;
}
