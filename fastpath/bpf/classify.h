// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The owner of a destination, as in `Engine::classify`.
#pragma once

#include "eam.h"
#include "rules.h"

/// An owner: a translator's index, or a tunnel's with OWNER_TUNNEL.
#define OWNER_TUNNEL 0x40u
/// It is not the stateless rules' business.
#define NOBODY 0xffu

/// Kind << 16 | index << 8 | length of the longest prefix that holds an IPv6 destination, given in network order; 0: none does.
__noinline __u32 rule_of(__u64 first, __u64 second)
{
	for (int i = 0; i < RULES && i < config.rules_count; i++) {
		const volatile struct rule6 *rule = &config.rules[i];
		if ((first & rule->mask[0]) == rule->bits[0] && (second & rule->mask[1]) == rule->bits[1])
			return (__u32)rule->kind << 16 | (__u32)rule->index << 8 | rule->length;
	}
	return 0;
}

/// The first translator whose table names an IPv6 address by a prefix of at least this length; or NOBODY.
__noinline __u32 named6(__u64 high, __u64 low, __u32 least)
{
	for (int i = 0; i < TRANSLATORS && i < config.translators_count; i++) {
		if (config.translators[i].kind != KIND_SIIT || !config.translators[i].eam)
			continue;
		struct eam *row = row6(i, high, low);
		if (row && row->length >= least)
			return i;
	}
	return NOBODY;
}

/// The owner of an IPv6 destination. The gateway itself and stateful translators count as NOBODY.
static __always_inline __u32 owner6(__u64 high, __u64 low)
{
	__u64 first = bpf_cpu_to_be64(high), second = bpf_cpu_to_be64(low);

	if (first == *(const volatile __u64 *)&config.own6[0] && second == *(const volatile __u64 *)&config.own6[8])
		return NOBODY;
	__u32 rule = rule_of(first, second), kind = rule >> 16, index = rule >> 8 & 0xff;
	if (!kind)
		return named6(high, low, 0);
	if (kind == KIND_NAT64 || kind == KIND_ENGINE)
		return NOBODY;
	if (kind == KIND_SIIT)
		return index;
	__u32 named = config.siit_count ? named6(high, low, rule & 0xff) : NOBODY;
	return named == NOBODY ? OWNER_TUNNEL | index : named;
}

/// The owner of an IPv4 destination: a translator's index, or NOBODY.
__noinline __u32 owner4(__u32 bits)
{
	if (bpf_htonl(bits) == config.own4)
		return NOBODY;
	for (int i = 0; i < POOLS && i < config.pools_count; i++) {
		if ((bits & config.pools[i].mask) == config.pools[i].address)
			return NOBODY;
	}
	for (int i = 0; i < TRANSLATORS && i < config.translators_count; i++) {
		if (config.translators[i].kind != KIND_SIIT)
			continue;
		// With a single translator no search is needed.
		if (config.siit_count == 1 || (config.translators[i].eam && row4(i, bpf_htonl(bits))))
			return i;
	}
	return config.default_siit ? config.default_siit - 1u : NOBODY;
}
