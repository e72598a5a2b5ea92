// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This host's own addresses, and IPv6 addresses in which they stand: packets that run in a circle between two automatic tunnels bear them
// (RFC 6324).
#pragma once

#include "address.h"
#include "rules.h"

static __always_inline const volatile struct tunnel *tunnel_at(__u32 index)
{
	return &config.tunnels[index & (TUNNELS - 1)];
}

/// Whether an address lies in a tunnel's 6rd domain.
static __always_inline int is_of_domain(const volatile struct tunnel *tunnel, __u64 high, __u64 low)
{
	__u64 prefix_high = bpf_be64_to_cpu(*(const volatile __u64 *)&tunnel->prefix[0]);
	__u64 prefix_low = bpf_be64_to_cpu(*(const volatile __u64 *)&tunnel->prefix[8]);
	return is_under(high, low, prefix_high, prefix_low, tunnel->prefix_length);
}

/// The IPv4 address of the customer edge that an address of the 6rd domain belongs to (RFC 5969 section 4).
static __always_inline __u64 customer_edge_of(const volatile struct tunnel *tunnel, __u64 high, __u64 low)
{
	__u32 shared_length = tunnel->shared_length;
	__u32 behind = (128 - tunnel->prefix_length - (32 - shared_length)) & 127;
	__u32 mask = mask64(shared_length) >> 32;
	__u32 bits;

	if (!is_of_domain(tunnel, high, low))
		return 0;
	if (behind >= 64)
		bits = high >> (behind - 64);
	else
		bits = low >> behind | (behind ? high << (64 - behind) : 0);
	return FOUND4((bpf_ntohl(tunnel->shared) & mask) | (bits & ~mask));
}

/// Whether an IPv4 address is this host's: a tunnel packet to it would come back, and none can come from it.
__noinline int is_this_host(__be32 address)
{
	for (int i = 0; i < HOST4 && i < config.own_count; i++) {
		if (config.own[i].address == address && config.own[i].is_host4)
			return 1;
	}
	return 0;
}

/// Whether an IPv6 address is this host's.
__noinline int is_host6(__u64 high, __u64 low)
{
	__u64 first = bpf_cpu_to_be64(high), second = bpf_cpu_to_be64(low);

	for (int i = 0; i < HOST4 && i < config.host6_count; i++) {
		const volatile __u64 *words = (const volatile __u64 *)config.host6[i];
		if (words[0] == first && words[1] == second)
			return 1;
	}
	return 0;
}

/// Whether an IPv4 address is one that tunnels know this host by.
__noinline int is_own_name(__u32 bits)
{
	for (int i = 0; i < HOST4 && i < config.own_count; i++) {
		if (config.own[i].address == bpf_htonl(bits))
			return 1;
	}
	return 0;
}

/// Whether an IPv6 address embeds a public address of this host in the format of 6to4, ISATAP or Teredo.
__noinline int is_written(__u64 high, __u64 low)
{
	__u64 site = site_of(high), locator = locator_of(low), client = teredo_client_of(high, low);

	if (!site && !locator && !client)
		return 0;
	for (int i = 0; i < HOST4 && i < config.own_count; i++) {
		__u64 own = FOUND4(bpf_ntohl(config.own[i].address));
		if (config.own[i].public_ && (own == site || own == locator || own == client))
			return 1;
	}
	return 0;
}

/// Whether an IPv6 address embeds one of this host's IPv4 addresses in any tunnel's format, other than that of 6rd domain `but_domain` (0:
/// none), which its own tunnel checks.
__noinline int stands_in(__u64 high, __u64 low, __u32 but_domain)
{
	if (is_written(high, low))
		return 1;
	for (int i = 0; i < TUNNELS && i < config.tunnels_count; i++) {
		if (config.tunnels[i].kind != KIND_SIX_RD || config.tunnels[i].domain == but_domain)
			continue;
		__u64 edge = customer_edge_of(&config.tunnels[i], high, low);
		if (edge && is_own_name(edge))
			return 1;
	}
	return 0;
}

/// The same for the source of a packet that goes into a tunnel: the host's own packets cannot loop.
static __always_inline int stands_in_source(__u64 high, __u64 low, __u32 but_domain)
{
	return stands_in(high, low, but_domain) && !is_host6(high, low);
}
