// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Checks that both directions of a tunnel share.
#pragma once

#include "own_address.h"

/// Whether an IPv4 address is in a part of `config.networks`.
__noinline int is_in_networks(__u32 first, __u32 count, __be32 address)
{
	for (__u32 i = 0; i < NETWORKS4 && i < count; i++) {
		const volatile struct network4 *network = &config.networks[(first + i) & (NETWORKS4 - 1)];
		if ((address & network->mask) == network->bits)
			return 1;
	}
	return 0;
}

/// Whether an IPv4 address is in a part of `config.addresses`.
__noinline int is_in_addresses(__u32 first, __u32 count, __be32 address)
{
	for (__u32 i = 0; i < ADDRESSES4 && i < count; i++) {
		if (config.addresses[(first + i) & (ADDRESSES4 - 1)] == address)
			return 1;
	}
	return 0;
}

/// Whether an IPv6 address is in a part of `config.prefixes`.
__noinline int is_in_prefixes(__u32 first, __u32 count, __u64 high, __u64 low)
{
	__u64 words[2] = { bpf_cpu_to_be64(high), bpf_cpu_to_be64(low) };

	for (__u32 i = 0; i < PREFIXES6 && i < count; i++) {
		const volatile struct prefix6 *prefix = &config.prefixes[(first + i) & (PREFIXES6 - 1)];
		if ((words[0] & prefix->mask[0]) == prefix->bits[0] && (words[1] & prefix->mask[1]) == prefix->bits[1])
			return 1;
	}
	return 0;
}

/// Whether the tunnel's list of prefixes holds an address.
static __always_inline int is_behind(const volatile struct tunnel *tunnel, __u64 high, __u64 low)
{
	return is_in_prefixes(tunnel->prefixes.first, tunnel->prefixes.count, high, low);
}

/// Whether an IPv4 address embedded in an IPv6 address may be the tunnel's remote end (RFC 3964 section 5.3.1): that of one host, in the
/// network that the tunnel crosses, and not a relay.
static __always_inline int is_acceptable(const volatile struct tunnel *tunnel, __u32 bits)
{
	if (is_martian4(bits) || is_link_local4(bits) || (tunnel->kind == KIND_SIX_TO_FOUR && !is_public(bits)))
		return 0;
	return !is_in_networks(tunnel->refused.first, tunnel->refused.count, bpf_htonl(bits));
}

/// Whether an ISATAP host may be at this locator (RFC 6324 section 3.1.2).
static __always_inline int may_be_at(const volatile struct tunnel *tunnel, __u32 bits)
{
	return !tunnel->locators.count || is_in_networks(tunnel->locators.first, tunnel->locators.count, bpf_htonl(bits));
}

/// Whether an ISATAP node forms this address itself.
static __always_inline int is_own_isatap(const volatile struct tunnel *tunnel, __u64 high, __u64 low)
{
	return locator_of(low) == FOUND4(bpf_ntohl(tunnel->local)) && is_behind(tunnel, high, low);
}

/// 0::/16 and site-local addresses, which 6to4 refuses (RFC 3964 section 5.3.2).
static __always_inline int is_not_global6(__u64 high)
{
	return high >> 48 == 0 || (high >> 48 & 0xffc0) == 0xfec0;
}

/// Set in an answer about an address that is not a 6to4 address.
#define IS_NATIVE (1ull << 33)

/// Whether a tunnel takes packets with this inner address of its own side: the source of what goes into the tunnel, the destination of
/// what comes out of it. 1 or IS_NATIVE; 0: the engine decides. `is_source` is a constant, so each caller keeps its own half.
static __always_inline __u64 takes_inner(const volatile struct tunnel *tunnel, __u64 high, __u64 low, int is_source)
{
#define LOOPS_BACK(domain) (is_source ? stands_in_source(high, low, domain) : stands_in(high, low, domain))
	if (tunnel->kind == KIND_CONFIGURED)
		return 1;
	if (tunnel->kind == KIND_SIX_TO_FOUR) {
		__u64 site = site_of(high);
		if (is_not_global6(high))
			return 0;
		if (site)
			return site == FOUND4(bpf_ntohl(tunnel->site));
		// Only a relay delivers to the native Internet.
		if (!is_source && tunnel->role != ROLE_RELAY)
			return 0;
		return LOOPS_BACK(0) ? 0 : IS_NATIVE;
	}
	if (tunnel->kind == KIND_SIX_RD) {
		if (tunnel->role == ROLE_CUSTOMER_EDGE)
			return customer_edge_of(tunnel, high, low) == FOUND4(bpf_ntohl(tunnel->local));
		return is_of_domain(tunnel, high, low) || !LOOPS_BACK(tunnel->domain);
	}
	if (tunnel->kind != KIND_ISATAP)
		return 0;
	if (tunnel->role == ROLE_HOST)
		return is_own_isatap(tunnel, high, low);
	return is_behind(tunnel, high, low) || !LOOPS_BACK(0);
#undef LOOPS_BACK
}
