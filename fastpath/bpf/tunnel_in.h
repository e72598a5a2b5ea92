// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Out of a tunnel: the tunnel that a packet came through, and the packets that it accepts.
#pragma once

#include "classify.h"
#include "tunnel.h"

/// Whether a packet is a tunnel's, where several end at one address; it may depend on the destination.
#define CLAIMS_NOT 0
#define CLAIMS 1
#define CLAIMS_PERHAPS 2

static __always_inline int is_listed(const volatile struct tunnel *tunnel, __be32 from)
{
	return is_in_addresses(tunnel->relays.first, tunnel->relays.count, from);
}

/// RFC 4213 section 3.6.
static __always_inline int configured_takes(const volatile struct tunnel *tunnel, __be32 from, __u64 high, __u64 low)
{
	return tunnel->remote == from && (!tunnel->strict || is_behind(tunnel, high, low));
}

/// RFC 3964 section 5.2.
static __always_inline int six_to_four_takes(const volatile struct tunnel *tunnel, __be32 from, __u64 high)
{
	__u64 site = site_of(high);

	if (is_not_global6(high))
		return 0;
	if (site)
		return site == FOUND4(bpf_ntohl(from)) && is_acceptable(tunnel, (__u32)site);
	if (tunnel->role == ROLE_RELAY)
		return 0;
	if (tunnel->remote && tunnel->remote == from)
		return 1;
	return tunnel->listed_only ? is_listed(tunnel, from) : is_acceptable(tunnel, bpf_ntohl(from));
}

/// RFC 5969 section 9.2.
static __always_inline int six_rd_takes(const volatile struct tunnel *tunnel, __be32 from, __u64 high, __u64 low)
{
	if (tunnel->role == ROLE_CUSTOMER_EDGE && is_listed(tunnel, from))
		return 1;
	__u64 edge = customer_edge_of(tunnel, high, low);
	return edge == FOUND4(bpf_ntohl(from)) && is_acceptable(tunnel, (__u32)edge);
}

/// RFC 5214 section 7.3.
static __always_inline int isatap_takes(const volatile struct tunnel *tunnel, __be32 from, __u64 high, __u64 low)
{
	__u64 locator = locator_of(low);

	if (is_listed(tunnel, from))
		return 1;
	return locator == FOUND4(bpf_ntohl(from)) && is_behind(tunnel, high, low) && is_acceptable(tunnel, (__u32)locator) &&
	       may_be_at(tunnel, (__u32)locator);
}

/// Whether a tunnel takes packets with this outer and this inner source.
__noinline int takes_arrived(__u32 index, __be32 from, __u64 high, __u64 low)
{
	const volatile struct tunnel *tunnel = tunnel_at(index);

	if (tunnel->kind == KIND_CONFIGURED)
		return configured_takes(tunnel, from, high, low);
	if (tunnel->kind == KIND_SIX_TO_FOUR)
		return six_to_four_takes(tunnel, from, high);
	if (tunnel->kind == KIND_SIX_RD)
		return six_rd_takes(tunnel, from, high, low);
	return tunnel->kind == KIND_ISATAP && isatap_takes(tunnel, from, high, low);
}

static __always_inline int claims(__u32 index, __be32 from, __u64 high, __u64 low)
{
	const volatile struct tunnel *tunnel = tunnel_at(index);

	if (tunnel->kind == KIND_SIX_TO_FOUR) {
		if (site_of(high))
			return CLAIMS;
		return tunnel->role == ROLE_RELAY ? CLAIMS_NOT : CLAIMS_PERHAPS;
	}
	if (tunnel->kind == KIND_SIX_RD) {
		if (tunnel->role == ROLE_CUSTOMER_EDGE)
			return CLAIMS_PERHAPS;
		return is_of_domain(tunnel, high, low) ? CLAIMS : CLAIMS_NOT;
	}
	return takes_arrived(index, from, high, low) ? CLAIMS : CLAIMS_NOT;
}

/// The tunnel whose configured remote end is the outer source; else NOBODY. `<< 8`: the number of other tunnels at the local address.
static __always_inline __u32 exactly(__be32 local, __be32 from)
{
	__u32 found = NOBODY, rest = 0;

	for (__u32 i = 0; i < TUNNELS && i < config.tunnels_count; i++) {
		if (config.tunnels[i].local != local)
			continue;
		if (config.tunnels[i].kind != KIND_CONFIGURED || !config.tunnels[i].remote)
			rest++;
		else if (config.tunnels[i].remote == from)
			found = i;
	}
	return rest << 8 | found;
}

/// The tunnel that a packet came through, if it takes packets of these sources and follows from them alone; else NOBODY.
__noinline __u32 came_through(__be32 local, __be32 from, __u64 high, __u64 low)
{
	__u32 both = exactly(local, from), exact = both & 0xff, rest = both >> 8;

	if (exact != NOBODY && (rest == 0 || claims(exact, from, high, low) == CLAIMS))
		return takes_arrived(exact, from, high, low) ? exact : NOBODY;
	for (__u32 i = 0; i < TUNNELS && i < config.tunnels_count; i++) {
		if (config.tunnels[i].local != local || (config.tunnels[i].kind == KIND_CONFIGURED && config.tunnels[i].remote))
			continue;
		int claim = rest == 1 && exact == NOBODY ? CLAIMS : claims(i, from, high, low);
		if (claim == CLAIMS_NOT)
			continue;
		return claim == CLAIMS && takes_arrived(i, from, high, low) ? i : NOBODY;
	}
	return NOBODY;
}

/// Whether a tunnel takes packets to this inner destination.
__noinline int takes_destination(__u32 index, __u64 high, __u64 low)
{
	return takes_inner(tunnel_at(index), high, low, 0) != 0;
}
