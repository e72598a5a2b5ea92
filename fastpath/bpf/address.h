// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What an address is by its bits alone. IPv6 addresses are two numbers of the machine's, `high` and `low`.
#pragma once

#include "layout.h"

/// The halves of an IPv6 address in network byte order.
static __always_inline __u64 high_of(const __u64 *words)
{
	return bpf_be64_to_cpu(words[0]);
}

static __always_inline __u64 low_of(const __u64 *words)
{
	return bpf_be64_to_cpu(words[1]);
}

/// The ones in front of a mask of 0 to 64 bits.
static __always_inline __u64 mask64(__u32 length)
{
	return length == 0 ? 0 : length >= 64 ? ~0ull : ~0ull << (64 - length);
}

/// Whether an address lies under a prefix.
static __always_inline int is_under(__u64 high, __u64 low, __u64 prefix_high, __u64 prefix_low, __u32 length)
{
	return !((high ^ prefix_high) & mask64(length)) && !((low ^ prefix_low) & (length > 64 ? mask64(length - 64) : 0));
}

/// Networks 0 and 127, multicast, class E (RFC 1812 section 5.3.7).
static __always_inline int is_martian4(__u32 bits)
{
	__u32 first = bits >> 24;
	return first == 0 || first == 127 || first >= 224;
}

/// Unspecified, loopback, multicast or link-local (RFC 4291 sections 2.5, 2.7).
static __always_inline int is_martian6(__u64 high, __u64 low)
{
	return (high == 0 && low <= 1) || high >> 56 == 0xff || high >> 54 == 0xfe80 >> 6;
}

/// IPv4-compatible and IPv4-mapped addresses (RFC 4291 section 2.5.5).
static __always_inline int is_bare_ipv4(__u64 high, __u64 low)
{
	return high == 0 && (low >> 32 == 0 || low >> 32 == 0xffff);
}

static __always_inline int is_link_local4(__u32 bits)
{
	return bits >> 16 == 0xa9fe;
}

/// Neither private (RFC 1918) nor shared (RFC 6598) nor link-local (RFC 3927), nor a martian.
static __always_inline int is_public(__u32 bits)
{
	return !(bits >> 24 == 10 || bits >> 20 == 0xac1 || bits >> 16 == 0xc0a8 || bits >> 22 == 0x191 || is_link_local4(bits) ||
		 is_martian4(bits));
}

/// An IPv4 address embedded in an IPv6 address; 0: none.
#define FOUND4(bits) (1ull << 32 | (__u32)(bits))

/// V4ADDR of a 6to4 address (RFC 3056 section 2).
static __always_inline __u64 site_of(__u64 high)
{
	return high >> 48 == 0x2002 ? FOUND4(high >> 16) : 0;
}

/// The IPv4 address in an ISATAP interface identifier (RFC 5214 section 6.1).
static __always_inline __u64 locator_of(__u64 low)
{
	return (low >> 32 & ~0x02000000ull) == 0x5efe ? FOUND4(low) : 0;
}

/// The mapped address of a Teredo client, whose bits are inverted (RFC 4380 section 4).
static __always_inline __u64 teredo_client_of(__u64 high, __u64 low)
{
	return high >> 32 == 0x20010000 ? FOUND4(~low) : 0;
}
