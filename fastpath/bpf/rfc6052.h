// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// IPv4 addresses in IPv6 ones, by a translator's prefix (RFC 6052 section 2.2).
#pragma once

#include "rules.h"

/// Puts an IPv4 address into a prefix (RFC 6052 section 2.2).
static __always_inline void embed(const volatile struct translator *translator, __be32 address4, __u8 *address)
{
	__u64 *words = (__u64 *)address;
	__u64 high = bpf_be64_to_cpu(*(const volatile __u64 *)&translator->prefix[0]);
	__u64 low = bpf_be64_to_cpu(*(const volatile __u64 *)&translator->prefix[8]);
	__u64 bits = bpf_ntohl(address4);
	__u32 length = translator->length;

	if (length == 96) {
		low |= bits;
	} else {
		__u32 above = (64 - length) & 63, below = (32 - above) & 63;
		high |= above ? bits >> below : 0;
		low |= below ? bits << (64 - below) >> 8 : 0;
	}
	words[0] = bpf_cpu_to_be64(high);
	words[1] = bpf_cpu_to_be64(low);
}

/// Whether a prefix of RFC 6052 holds the address, its octet u and suffix being zero; then the IPv4 address in it.
static __always_inline int embedded(const volatile struct translator *translator, const __u8 *address, __be32 *found)
{
	__u8 length = translator->length;
	const __u64 *words = (const __u64 *)address;
	__u64 high = bpf_be64_to_cpu(words[0]), low = bpf_be64_to_cpu(words[1]);
	__u64 prefix_high = bpf_be64_to_cpu(*(const volatile __u64 *)&translator->prefix[0]);
	__u64 prefix_low = bpf_be64_to_cpu(*(const volatile __u64 *)&translator->prefix[8]);

	if (length == 96) {
		if (high != prefix_high || (low ^ prefix_low) >> 32)
			return 0;
		*found = bpf_htonl((__u32)low);
		return 1;
	}
	if (length < 32 || length > 64)
		return 0;
	// Bits of the address above octet u: 64 - length; below it: length - 32.
	__u32 above = 64 - length, below = 32 - above;
	if (above ? (high ^ prefix_high) >> above : high != prefix_high)
		return 0;
	if (low >> 56 || (below < 32 ? low << (8 + below) : low << 40))
		return 0;
	__u64 address4 = (above ? (high & ((1ull << above) - 1)) << below : 0) | (below ? low << 8 >> (64 - below) : 0);
	*found = bpf_htonl((__u32)address4);
	return 1;
}
