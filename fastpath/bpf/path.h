// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Stateless mechanisms: applies the rules to a packet. Usually two cached lines are enough; otherwise the slow path fills them.
//
//     packet ─▶ line of its destination ─▶ line of its source ─▶ sizes, hops ─▶ act
//                 │ unknown                  │ unknown
//                 └─▶ path_fill.h            └─▶ path_fill.h
#pragma once

#include "headers.h"
#include "path_fill.h"

/// Runs the slow path for the sheet's key and caches the result.
static __always_inline void fill(void *ctx, const struct packet *packet, const struct way *way, struct sheet *sheet, __u32 about,
				 __u32 owner)
{
	const struct path_key *key = &sheet->key;
	struct found *found = &sheet->found;

	__builtin_memset(found, 0, sizeof(*found));
	switch (about) {
	case DESTINATION6:
		found->passed = fill_destination6(ctx, packet, key, found);
		break;
	case SOURCE6:
		found->passed = fill_source6(key, owner, found);
		break;
	case DESTINATION4:
		found->passed = fill_destination4(ctx, packet, key, found);
		break;
	case SOURCE4:
		found->passed = fill_source4(ctx, key, owner, found);
		break;
	case INNER_SOURCE:
		found->passed = fill_inner_source(ctx, key, found);
		break;
	default:
		found->passed = fill_inner_destination(ctx, packet, key, owner, found);
		break;
	}
	found->since = way->now;
}

/// The cached facts of a key, looked up if necessary. Returns 0, or the cause to pass packets with this address to the kernel.
static __always_inline int look_up(void *ctx, const struct packet *packet, const struct way *way, struct path_key key, __u32 about,
				   __u32 owner, struct found *found)
{
	struct path_line *line = line_of(way, &key, about, owner);
	if (!line)
		return PASS_NOT_OURS;
	key.tag = PATH_TAG(about, owner, way);
	*found = line->found;
	if (is_about(line, &key, about) && way->now - found->since < (found->passed ? REFUSED_TICKS : FORGOTTEN_TICKS))
		return found->passed;
	struct sheet *sheet = sheet_of();
	if (!sheet)
		return PASS_NOT_OURS;
	sheet->key = key;
	fill(ctx, packet, way, sheet, about, owner);
	// The kernel may be finding out where the neighbour is.
	if (sheet->found.passed != PASS_NO_NEXT_HOP)
		remember(line, &sheet->key, &sheet->found);
	*found = sheet->found;
	return found->passed;
}

/// A translator's policy for both directions.
static __always_inline int translates(const struct packet *packet, struct act *act, __u32 owner)
{
	const volatile struct translator *translator = translator_at(owner);

	if (packet->no_checksum)
		return PASS_PROTOCOL;
	act->writes_ports = 0;
	act->hops = packet->hops - 1;
	if (packet->version == 6) {
		act->kind = ACT_TRANSLATE_6_TO_4;
		act->counter = COUNTER(KIND_SIIT, 0);
		act->traffic_class = translator->sets_tos ? translator->tos : packet->traffic_class;
		act->dont_fragment = packet->segment - 20 > DONT_FRAGMENT_ABOVE;
		act->mtu = config.mtu4;
		return clamp(packet, translator->mss, act);
	}
	act->kind = ACT_TRANSLATE_4_TO_6;
	act->counter = COUNTER(KIND_SIIT, 1);
	act->traffic_class = translator->sets_traffic_class ? translator->traffic_class : packet->traffic_class;
	act->mtu = packet->dont_fragment ? config.mtu6 : translator->lowest_mtu;
	return clamp(packet, translator->mss, act);
}

/// The outer header of a packet that goes into a tunnel (RFC 4213 section 3.5).
static __always_inline int encapsulates(const struct packet *packet, struct act *act, __u32 owner)
{
	const volatile struct tunnel *tunnel = tunnel_at(owner);
	__u8 class = packet->traffic_class;
	__u32 carried = tunnel->mtu + 20u;

	act->kind = ACT_ENCAP_4;
	act->counter = COUNTER(tunnel->kind, 0);
	act->writes_ports = 0;
	// RFC 6040 section 4.1.
	act->traffic_class = ((tunnel->sets_dscp ? tunnel->dscp : class) & 0xfc) | (tunnel->ecn_normal ? class & 3 : 0);
	// The gateway's one hop has been counted.
	act->hops = tunnel->sets_ttl ? tunnel->ttl : packet->hops - 1;
	if (act->hops <= 1)
		return PASS_HOPS;
	act->dont_fragment = tunnel->dont_fragment;
	act->mtu = carried < config.mtu4 ? carried : config.mtu4;
	act->delta = 0;
	*(__be32 *)act->source = tunnel->local;
	return clamp(packet, tunnel->mss, act);
}

/// The key of an IPv6 address.
static __always_inline struct path_key key6(const __u8 *address)
{
	const __u64 *words = (const __u64 *)address;
	return (struct path_key){ .address = { words[0], words[1] } };
}

/// The key of an IPv4 address.
static __always_inline struct path_key key4(const __u8 *address)
{
	return (struct path_key){ .address = { *(const __be32 *)address } };
}

/// An IPv6 packet that is routed to a translator or into a tunnel.
static __always_inline int path6(void *ctx, const struct packet *packet, const struct way *way, struct act *act)
{
	// One after the other: Linux 6.1 allows little stack.
	struct found found;

	int passed = look_up(ctx, packet, way, key6(packet->destination), DESTINATION6, 0, &found);
	if (passed)
		return passed;
	__u32 owner = found.owner, delta = found.delta, is_native = found.is_native;
	act->next_hop = found.next_hop;
	*(__be32 *)act->destination = *(__be32 *)found.mapped;
	passed = look_up(ctx, packet, way, key6(packet->source), SOURCE6, owner, &found);
	if (passed)
		return passed;
	if (owner & OWNER_TUNNEL) {
		// From native to native no relay takes it (RFC 3964 section 5.2).
		return is_native && found.is_native ? PASS_SOURCE : encapsulates(packet, act, owner);
	}
	*(__be32 *)act->source = *(__be32 *)found.mapped;
	act->delta = fold32(delta + found.delta);
	return translates(packet, act, owner);
}

/// An IPv4 packet that is routed to a translator.
static __always_inline int path4(void *ctx, const struct packet *packet, const struct way *way, struct act *act)
{
	struct found found;

	int passed = look_up(ctx, packet, way, key4(packet->destination), DESTINATION4, 0, &found);
	if (passed)
		return passed;
	__u32 owner = found.owner, delta = found.delta;
	act->next_hop = found.next_hop;
	__builtin_memcpy(act->destination, found.mapped, 16);
	passed = look_up(ctx, packet, way, key4(packet->source), SOURCE4, owner, &found);
	if (passed)
		return passed;
	__builtin_memcpy(act->source, found.mapped, 16);
	act->delta = fold32(delta + found.delta);
	return translates(packet, act, owner);
}

/// The inner Traffic Class as it leaves a tunnel (RFC 6040 section 4.2); negative: a combination that the engine drops or counts.
static __always_inline int combine(__u8 inner, __u8 outer)
{
	__u8 mark = outer & 3, field = inner & 3;

	if (mark == 0 || mark == field)
		return inner;
	if (field == 0 || (field == 3 && mark == 1) || (field == 1 && mark == 2))
		return -1;
	return field == 3 ? inner : (inner & 0xfc) | mark;
}

/// Reads the inner packet of a tunnel packet: it must be plain and have the length of its header. Returns its Traffic Class after
/// decapsulation, or the negative cause to pass the packet to the kernel.
static __always_inline int open(void *inside, void *end, const struct packet *packet, struct packet *inner)
{
	int passed = parse_ipv6(inside, end, inner);
	if (!passed && inner->length != packet->length - IPV4_HEADER)
		passed = PASS_MALFORMED;
	if (!passed)
		passed = parse_transport(inside + IPV6_HEADER, end, inner);
	if (!passed && inner->hops <= 1)
		passed = PASS_HOPS;
	if (passed)
		return -passed;
	int class = combine(inner->traffic_class, packet->traffic_class);
	return class < 0 ? -PASS_PROTOCOL : class;
}

/// An IPv4 packet of protocol 41: what came through a tunnel (RFC 4213 section 3.6).
static __always_inline int path_inside(void *ctx, const struct packet *packet, const struct way *way, struct act *act)
{
	struct found found;
	struct sheet *sheet = sheet_of();

	if (!sheet)
		return PASS_NOT_OURS;
	struct packet *inner = &sheet->inner;
	void *data = (void *)(long)((context *)ctx)->data, *end = (void *)(long)((context *)ctx)->data_end;
// At most one VLAN tag precedes it.
	// An Ethernet header, with tags or without, has two octets more than a multiple of four: some kernels insist on aligned words.
	int class = open(data + 2 + (way->link & 28) + IPV4_HEADER, end, packet, inner);
	if (class < 0)
		return -class;
	struct path_key key = key6(inner->source);
	key.from = *(const __be32 *)packet->source;
	key.local = *(const __be32 *)packet->destination;
	int passed = look_up(ctx, packet, way, key, INNER_SOURCE, 0, &found);
	if (passed)
		return passed;
	__u32 owner = found.owner;
	passed = look_up(ctx, packet, way, key6(inner->destination), INNER_DESTINATION, owner, &found);
	if (passed)
		return passed;
	act->kind = ACT_DECAP;
	act->counter = COUNTER(tunnel_at(owner)->kind, 1);
	act->writes_ports = 0;
	act->traffic_class = class;
	act->hops = inner->hops - 1;
	act->delta = 0;
	act->mtu = 0xffff;
	act->next_hop = found.next_hop;
	// What may be sent back depends on the path to the other end.
	__u16 most = tunnel_at(owner)->mss;
	if (changes_connection(inner) && inner->tcp > TCP_ENDS && most != MSS_STAYS && tunnel_at(owner)->learns &&
	    bpf_map_lookup_elem(&narrow_paths, packet->source))
		return PASS_FLAGS;
	return clamp(inner, most, act);
}

/// Applies the stateless rules to a packet. Returns 0 with `act` filled in, or the cause to pass the packet to the kernel.
static __noinline int path(void *ctx, const struct packet *packet, const struct way *way, struct act *act)
{
	if (packet->version == 6)
		return path6(ctx, packet, way, act);
	if (packet->protocol == IPPROTO_IPV6)
		return config.tunnels_count ? path_inside(ctx, packet, way, act) : PASS_NOT_OURS;
	return config.siit_count ? path4(ctx, packet, way, act) : PASS_NOT_OURS;
}
