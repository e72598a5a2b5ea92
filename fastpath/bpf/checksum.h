// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// One's complement sums (RFC 1071, RFC 1624) over 16-bit words as this machine reads them from a header.
#pragma once

#include "layout.h"

/// Folds a sum of words to 16 bits. A sum that is not zero stays so.
static __always_inline __u16 fold32(__u32 sum)
{
	return (sum + (sum << 16 | sum >> 16)) >> 16;
}

/// The same of a larger sum.
static __always_inline __u16 fold(__u64 sum)
{
	// Added to itself with its halves changed over, the upper half is the sum of both with the carry.
	sum += sum << 32 | sum >> 32;
	return fold32(sum >> 32);
}

/// Sum of an IPv4 address.
static __always_inline __u64 sum4(const __u8 *address)
{
	return *(const __u32 *)address;
}

/// Sum of an IPv6 address.
static __always_inline __u64 sum6(const __u8 *address)
{
	const __u32 *words = (const __u32 *)address;
	return (__u64)words[0] + words[1] + words[2] + words[3];
}

/// What a change from `before` to `after` adds to a checksum's sum.
static __always_inline __u16 difference(__u64 before, __u64 after)
{
	return fold(after + (__u16)~fold(before));
}

/// The checksum field after what it covers has changed by `delta` (RFC 1624 section 3).
static __always_inline __u16 update(__u16 field, __u64 delta)
{
	return ~fold((__u64)(__u16)~field + delta);
}
