// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Stateful flows: one exact lookup, in a cache line.
#pragma once

#include "act.h"
#include "checksum.h"
#include "next_hop.h"

/// What is older is looked up again, regardless of the generation, whose remembered bits come round: 10 min.
#define FORGOTTEN_TICKS 572205

/// The hash is NH (RFC 4418 section 5.2.2): without the keys an attacker cannot choose flows that collide.
/// Two words and their keys.
static __always_inline __u64 pair(__u64 keys, __u32 one, __u32 other)
{
	return (__u64)(__u32)(one + (__u32)keys) * (__u32)(other + (__u32)(keys >> 32));
}

/// Makes every bit depend on all of the sum.
static __always_inline __u64 stir(__u64 sum)
{
	sum = (sum ^ sum >> 32) * 0x9e3779b97f4a7c15ull;
	return sum ^ sum >> 32;
}

/// The hash of a packet to the outside. `inside` is read in four words.
static __always_inline __u64 hash_to_outside(const struct control *control, const __u8 *inside, __be32 remote, __u32 ports,
					     __u32 tail)
{
	const __u32 *words = (const __u32 *)inside;

	return stir(pair(control->keys[0], words[0], words[1]) + pair(control->keys[1], words[2], words[3]) +
		    pair(control->keys[2], remote, ports) + pair(control->keys[3], tail, 0));
}

/// The hash of a packet to the inside.
static __always_inline __u64 hash_to_inside(const struct control *control, __be32 outside, __be32 remote, __u32 ports, __u32 tail)
{
	return stir(pair(control->keys[0], outside, remote) + pair(control->keys[1], ports, tail));
}

/// The lookup key of a packet. Ports: the inside's or outside's << 16 | the remote's, in network byte order.
struct flow_key {
	__u64 hash;
	__u8 inside[16];
	__be32 outside;
	__be32 remote;
	/// Of an echo message the identifier; it has no `remote_port`.
	__be16 port;
	__be16 remote_port;
	__u8 protocol;
	__u8 direction;
	__u8 mechanism;
};

static __always_inline int is_flow(const struct flow *flow, const struct flow_key *key)
{
	if (flow->remote != key->remote || flow->remote_port != key->remote_port || flow->protocol != key->protocol ||
	    flow->direction != key->direction)
		return 0;
	if (key->direction == TO_INSIDE)
		return flow->outside == key->outside && flow->outside_port == key->port;
	const __u64 *a = (const __u64 *)flow->inside, *b = (const __u64 *)key->inside;
	return a[0] == b[0] && a[1] == b[1] && flow->inside_port == key->port && flow->mechanism == key->mechanism;
}

/// Looks through one bucket, from a place on that follows from the hash: an entry is put there if it can be.
static __always_inline struct flow *flow_in(__u32 number, const struct flow_key *key)
{
	__u32 first = (__u32)key->hash;

	struct bucket *bucket = bpf_map_lookup_elem(&flows, &number);
	if (!bucket)
		return 0;
#pragma unroll
	for (int i = 0; i < BUCKET; i++) {
		struct flow *flow = &bucket->flows[(first + i) & (BUCKET - 1)];
		__u32 state = FLOW_STATE(*(volatile __u32 *)&flow->word);
		if ((state == FLOW_ACTIVE || state == FLOW_ARMED || state == FLOW_HALF_OPEN) && is_flow(flow, key))
			return flow;
	}
	return 0;
}

static __always_inline struct flow *find_flow(const struct control *control, const struct flow_key *key)
{
	__u32 buckets = control->buckets;
	struct flow *flow = flow_in((__u32)((key->hash >> 32) * buckets >> 32), key);
	if (!flow)
		flow = flow_in((__u32)((key->hash & 0xffffffff) * buckets >> 32), key);
	return flow;
}

/// The mark that a packet leaves behind at an armed entry: `mark` in dataplane/src/offload.rs says the same.
static __always_inline __u32 mark_of(const struct packet *packet, void *transport, void *end)
{
	__u32 mixed;

	if (packet->protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = transport;
		if ((void *)(tcp + 1) > end)
			return 0;
		__u32 header = (((__u8 *)tcp)[12] >> 4) * 4;
		__u32 octets = packet->length - (packet->version == 4 ? IPV4_HEADER : IPV6_HEADER);
		mixed = (bpf_ntohl(tcp->seq) + octets - header) * 0x9e3779b1u ^ bpf_ntohl(tcp->ack_seq) * 0x85ebca6bu;
	} else {
		struct udphdr *udp = transport;
		if ((void *)(udp + 1) > end)
			return 0;
		__u32 octets = packet->length - (packet->version == 4 ? IPV4_HEADER : IPV6_HEADER);
		mixed = (__u32)(bpf_ntohs(udp->len) << 16 | bpf_ntohs(udp->check)) * 0x9e3779b1u;
		__be32 *payload = (void *)(udp + 1);
		if (octets >= 12 && (void *)(payload + 1) <= end)
			mixed ^= bpf_ntohl(payload[0]) * 0x85ebca6bu;
		if (octets >= 16 && (void *)(payload + 2) <= end)
			mixed ^= bpf_ntohl(payload[1]) * 0xc2b2ae35u;
	}
	return mixed >> 8;
}

/// SYN/ACKs that a half-open entry forwards.
#define ANSWERS 4
/// One that comes later than this after the SYN, or after the SYN/ACK before, is the engine's: 5 s.
#define ANSWERED_TICKS 4768

/// The word of an entry that is half-open, if the packet is one of its first SYN/ACKs and carries no data; else 0. Without a gateway nobody
/// would learn of it.
static __always_inline __u32 half_open_word(const struct way *way, const struct packet *packet, void *transport, void *end)
{
	const struct control *control = way->control;
	struct flow *flow = way->flow;
	const __u8 *tcp = transport;

	if (!flow || packet->protocol != IPPROTO_TCP || (void *)(tcp + TCP_HEADER) > end)
		return 0;
	if ((tcp[13] & (FIN | SYN | RST | ACK)) != (SYN | ACK) || packet->length != IPV4_HEADER + (tcp[12] >> 4) * 4u)
		return 0;
	if (!(control->enabled & HALF_OPEN_ALLOWED) || (__s32)(way->now - control->heartbeat) > AWAY_TICKS)
		return 0;
	if (flow->packets >= ANSWERS || (__s32)(way->now - flow->last) > ANSWERED_TICKS)
		return 0;
	__u32 word = *(volatile __u32 *)&flow->word;
	return FLOW_STATE(word) == FLOW_HALF_OPEN ? word : 0;
}

/// The entry's word if the packet is to be forwarded by it, because it is active; else 0. An armed entry has the packet's mark left on it.
static __always_inline __u32 active_word(struct flow *flow, const struct packet *packet, void *transport, void *end)
{
	__u32 word = *(volatile __u32 *)&flow->word;

	if (FLOW_STATE(word) != FLOW_ARMED)
		return FLOW_STATE(word) == FLOW_ACTIVE ? word : 0;
	__u32 marked = FLOW_WORD(FLOW_ARMED, mark_of(packet, transport, end));
	__u32 seen = __sync_val_compare_and_swap(&flow->word, word, marked);
	// Made active just now: nothing of this flow is under way. Marked by another processor just now: ours is the later.
	if (seen != word && FLOW_STATE(seen) == FLOW_ARMED)
		__sync_val_compare_and_swap(&flow->word, seen, marked);
	return seen != word && FLOW_STATE(seen) == FLOW_ACTIVE ? seen : 0;
}

/// The word once more, after the entry was copied.
static __always_inline __u32 word_again(struct flow *flow)
{
#ifdef ORDERED
	return __sync_fetch_and_add(&flow->word, 0);
#else
	// x86-64 keeps loads in order.
	return *(volatile __u32 *)&flow->word;
#endif
}
