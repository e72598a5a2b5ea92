// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What a stateless translator makes of one address: by its table, else by its prefix (RFC 7757 section 3.3, RFC 6052 section 2.3). Hosts of the
// dynamic pool are the engine's.
#pragma once

#include "classify.h"
#include "non_global.h"
#include "rfc6052.h"

/// How an address was mapped.
#define BY_NOTHING 0
#define BY_TABLE 1
#define BY_PREFIX 2

static __always_inline const volatile struct translator *translator_at(__u32 index)
{
	return &config.translators[index & (TRANSLATORS - 1)];
}

/// How an address was mapped << 32 | what it became.
#define MAPPED(by, address) ((__u64)(by) << 32 | (address))

/// The IPv4 address of an IPv6 address, as MAPPED.
__noinline __u64 map6(__u32 index, __u64 high, __u64 low)
{
	const volatile struct translator *translator = translator_at(index);
	__u64 words[2] = { bpf_cpu_to_be64(high), bpf_cpu_to_be64(low) };
	__be32 found = 0;

	if (translator->eam) {
		struct eam *row = row6(index, high, low);
		if (row)
			return row->is_pool ? 0 : MAPPED(BY_TABLE, bpf_htonl(through_row6(row, high, low)));
	}
	if (!translator->length || !embedded(translator, (const __u8 *)words, &found))
		return 0;
	return translator->global_only && is_non_global(bpf_ntohl(found)) ? 0 : MAPPED(BY_PREFIX, found);
}

/// The IPv6 address of an IPv4 address, in network order. BY_…
static __noinline int map4(__u32 index, __be32 address, int asks_table, __u64 *mapped)
{
	const volatile struct translator *translator = translator_at(index);

	if (translator->eam && asks_table) {
		struct eam *row = row4(index, address);
		if (row) {
			__u64 high, low;
			through_row4(row, bpf_ntohl(address), &high, &low);
			mapped[0] = bpf_cpu_to_be64(high);
			mapped[1] = bpf_cpu_to_be64(low);
			return row->is_pool ? BY_NOTHING : BY_TABLE;
		}
	}
	if (!translator->length || (translator->global_only && is_non_global(bpf_ntohl(address))))
		return BY_NOTHING;
	embed(translator, address, (__u8 *)mapped);
	return BY_PREFIX;
}

/// Whether an IPv4 destination that was found by the prefix is that of a host of the table, so that the translator turns the packet around
/// (RFC 7757 section 4.2.2).
static __always_inline int turns_around(__u32 index, __be32 address)
{
	const volatile struct translator *translator = translator_at(index);
	return translator->hairpinning == HAIRPIN_INTRINSIC && translator->eam && row4(index, address) != 0;
}
