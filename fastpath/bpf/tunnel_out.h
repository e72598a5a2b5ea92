// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Into a tunnel: its remote end for a destination, and the sources that it accepts.
#pragma once

#include "maps.h"
#include "tunnel.h"

/// An IPv4 address that an IPv6 destination embeds, if it may be an end.
static __always_inline __u64 if_acceptable(const volatile struct tunnel *tunnel, __u64 found)
{
	return found && is_acceptable(tunnel, (__u32)found) ? found : 0;
}

static __always_inline __u64 configured_end(const volatile struct tunnel *tunnel)
{
	return tunnel->remote ? FOUND4(bpf_ntohl(tunnel->remote)) : 0;
}

static __always_inline __u64 six_to_four_end(const volatile struct tunnel *tunnel, __u64 high)
{
	__u64 site = site_of(high);

	if (is_not_global6(high) || site == FOUND4(bpf_ntohl(tunnel->site)))
		return 0;
	if (site)
		return if_acceptable(tunnel, site);
	__u64 relay = configured_end(tunnel);
	return relay ? relay | IS_NATIVE : 0;
}

static __always_inline __u64 six_rd_end(const volatile struct tunnel *tunnel, __u64 high, __u64 low)
{
	__u64 edge = customer_edge_of(tunnel, high, low);

	if (edge)
		return if_acceptable(tunnel, edge);
	return tunnel->role == ROLE_CUSTOMER_EDGE ? configured_end(tunnel) : 0;
}

static __always_inline __u64 isatap_end(const volatile struct tunnel *tunnel, __u64 high, __u64 low)
{
	if (!is_behind(tunnel, high, low))
		return tunnel->role == ROLE_HOST ? configured_end(tunnel) : 0;
	__u64 locator = if_acceptable(tunnel, locator_of(low));
	return locator && may_be_at(tunnel, (__u32)locator) ? locator : 0;
}

/// The outer destination of packets to an IPv6 destination, with IS_NATIVE; 0: they are the engine's.
__noinline __u64 other_end(__u32 index, __u64 high, __u64 low)
{
	const volatile struct tunnel *tunnel = tunnel_at(index);
	__u64 end = 0;

	if (tunnel->kind == KIND_CONFIGURED)
		end = configured_end(tunnel);
	else if (tunnel->kind == KIND_SIX_TO_FOUR)
		end = six_to_four_end(tunnel, high);
	else if (tunnel->kind == KIND_SIX_RD)
		end = six_rd_end(tunnel, high, low);
	else if (tunnel->kind == KIND_ISATAP)
		end = isatap_end(tunnel, high, low);
	__be32 address = bpf_htonl((__u32)end);
	if (!end || is_this_host(address))
		return 0;
// The path MTU to it is below the configured one.
	return tunnel->learns && bpf_map_lookup_elem(&narrow_paths, &address) ? 0 : end;
}

/// Whether a tunnel takes packets from an IPv6 source: 1, or IS_NATIVE; 0: the engine decides.
__noinline __u64 takes_source(__u32 index, __u64 high, __u64 low)
{
	return takes_inner(tunnel_at(index), high, low, 1);
}
