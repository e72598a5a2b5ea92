// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Explicit address mappings (RFC 7757), a column each: the longest prefix wins. The gateway fills them before the program is attached; they
// do not change.
#pragma once

#include "address.h"
#include "maps.h"

/// `bits`: 32 for the translator's number, and the prefix.
struct eam4_key {
	__u32 bits;
	__u8 translator[4];
	__be32 address;
};

struct eam6_key {
	__u32 bits;
	__u8 translator[4];
	__u64 address[2];
};

/// A mapping, seen from one of its sides. The other column's prefix is a number of the machine's; of IPv4 in `low`.
struct eam {
	__u64 high;
	__u64 low;
	__u8 length;
	__u8 other_length;
	/// The dynamic pool, not a mapping: the engine forwards its hosts.
	__u8 is_pool;
	__u8 reserved[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct eam4_key);
	__type(value, struct eam);
} eam4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct eam6_key);
	__type(value, struct eam);
} eam6 SEC(".maps");

/// The row by which a translator maps an IPv4 address.
static __always_inline struct eam *row4(__u32 translator, __be32 address)
{
	struct eam4_key key = { .bits = 64, .translator = { translator }, .address = address };
	return bpf_map_lookup_elem(&eam4, &key);
}

/// The row by which a translator maps an IPv6 address.
static __always_inline struct eam *row6(__u32 translator, __u64 high, __u64 low)
{
	struct eam6_key key = { .bits = 160, .translator = { translator } };
	key.address[0] = bpf_cpu_to_be64(high);
	key.address[1] = bpf_cpu_to_be64(low);
	return bpf_map_lookup_elem(&eam6, &key);
}

/// The IPv6 address of an IPv4 address (RFC 7757 section 3.3.1): the suffix moves up to the IPv6 prefix.
static __always_inline void through_row4(const struct eam *row, __u32 bits, __u64 *high, __u64 *low)
{
	__u64 suffix = bits & (__u32)~(mask64(row->length) >> 32);
	__u32 up = 96 + row->length - row->other_length;

	*high = row->high;
	*low = row->low;
	if (up >= 128)
		return;
	if (up >= 64) {
		*high |= suffix << ((up - 64) & 63);
	} else {
		*low |= suffix << up;
		*high |= up ? suffix >> ((64 - up) & 63) : 0;
	}
}

/// The IPv4 address of an IPv6 address (RFC 7757 section 3.3.2): what is left of the suffix is cut at its end.
static __always_inline __u32 through_row6(const struct eam *row, __u64 high, __u64 low)
{
	__u32 length = row->length, down = 96 + row->other_length - length;

	high &= ~mask64(length);
	low &= length > 64 ? ~mask64(length - 64) : ~0ull;
	if (down >= 128)
		return row->low;
	if (down >= 64)
		return (__u32)row->low | (__u32)(high >> ((down - 64) & 63));
	return (__u32)row->low | (__u32)(low >> down | (down ? high << ((64 - down) & 63) : 0));
}
