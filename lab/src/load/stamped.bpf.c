// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Frames with a stamp in each (stamp.rs has the layout), what answers them, and what measures them where they arrive.
//
// Senders are run by BPF_PROG_RUN with live frames, as those of frames.bpf.c. A frame is due when it is made.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "stamp.bpf.h"

/// Octets of the longest frame.
#define LONGEST 80
#define FLOWS 1024
/// Packets for which it is known whether they came before: 512 words of 64 bits in each of this many pieces.
#define PIECES 512
#define WORDS 512

/// A whole frame; source port, the last word of the source address, and the stamp are zero in it.
volatile const __u64 pattern[LONGEST / 8] = {};
/// This many flows take turns, FLOWS at most for each of them to have its order.
volatile const __u32 flows = 1;
/// The first of them.
volatile const __u32 first = 0;

/// The number of the next frame.
__u32 next = 0;

/// What arrived. There is one queue, so there are no concurrent writers.
struct stamped {
	__u64 packets;
	__u64 octets;
	__u64 repeated;
	__u64 reordered;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stamped);
} stamped SEC(".maps");

/// For each flow, one more than its highest number.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, __u32);
} highest SEC(".maps");

struct piece {
	__u64 words[WORDS];
};

/// A bit for each packet that came.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PIECES);
	__type(key, __u32);
	__type(value, struct piece);
} came SEC(".maps");

/// The source of a packet as it arrived, as it is in its header: where an answer to it goes.
struct state {
	__be32 address;
	__be16 port;
	__u16 is_there;
};

/// The states of flows whose packets arrive over IPv4 (RFC 9693 §3.1), by the packet's number modulo the number of entries, which
/// the loader chooses.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} states SEC(".maps");
/// That number; 0: none is noted.
volatile const __u32 room = 0;

/// A checksum of zero is written as its other form: zero means that there is none.
static __always_inline void change_checksum(struct udphdr *udp, __u32 sum)
{
	__u16 check = ~fold((__u16)~udp->check + sum);

	udp->check = check ? check : 0xffff;
}

static __always_inline int write(void *data, void *end, const __u32 words)
{
	__u64 *frame = data;

	if ((void *)(frame + words) > end)
		return 0;
#pragma unroll
	for (int i = 0; i < words; i++)
		frame[i] = pattern[i];
	return 1;
}

/// IPv6 and UDP: 80 octets, two of which follow the stamp.
SEC("xdp")
int stamped6(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 sequence = next, flow = first + sequence % (flows ? flows : 1);

	if (!write(data, end, 10))
		return XDP_DROP;
	next = sequence + 1;
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	__u16 port = bpf_htons(4096 + (flow & 1023)), address = bpf_htons(flow >> 10);
	ip->saddr.s6_addr16[7] = address;
	udp->source = port;
	change_checksum(udp, (__u32)port + address);
	write_stamp((void *)(udp + 1), flow, sequence);
	return XDP_TX;
}

/// IPv4 and UDP: 64 octets, six of which follow the stamp.
SEC("xdp")
int stamped4(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 sequence = next, flow = first + sequence % (flows ? flows : 1);

	if (!write(data, end, 8))
		return XDP_DROP;
	next = sequence + 1;
	struct iphdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	__u16 port = bpf_htons(4096 + (flow & 1023)), address = bpf_htons(flow >> 10);
	// The pattern's address ends with 16 bits of zeros wherever there are more than 1,024 flows.
	ip->saddr = bpf_htonl(bpf_ntohl(ip->saddr) + (flow >> 10));
	ip->check = ~fold((__u16)~ip->check + (__u32)address);
	udp->source = port;
	change_checksum(udp, (__u32)port + address);
	write_stamp((void *)(udp + 1), flow, sequence);
	return XDP_TX;
}

/// IPv4 and UDP to the sources that were noted, one after the other.
SEC("xdp")
int stamped_replies4(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 sequence = next, flow = sequence % (flows ? flows : 1);
	struct state *state = bpf_map_lookup_elem(&states, &flow);

	if (!state || !write(data, end, 8))
		return XDP_DROP;
	next = sequence + 1;
	struct iphdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	__u32 address = (state->address & 0xffff) + (state->address >> 16);
	ip->daddr = state->address;
	ip->check = ~fold((__u16)~ip->check + address);
	udp->dest = state->port;
	change_checksum(udp, address + state->port);
	write_stamp((void *)(udp + 1), flow, sequence);
	return XDP_TX;
}

static __always_inline void note(struct stamped *counted, struct stamp *stamp)
{
	__u32 sequence = bpf_ntohl(stamp->sequence), flow = bpf_ntohs(stamp->flow) & (FLOWS - 1);
	__u32 number = sequence >> 15;
	struct piece *piece = bpf_map_lookup_elem(&came, &number);

	if (piece) {
		__u64 *word = &piece->words[sequence >> 6 & (WORDS - 1)], bit = 1ULL << (sequence & 63);
		if (*word & bit) {
			counted->repeated += 1;
			return;
		}
		*word |= bit;
	}
	__u32 *of_flow = bpf_map_lookup_elem(&highest, &flow);
	if (of_flow) {
		if (sequence < *of_flow)
			counted->reordered += 1;
		else
			*of_flow = sequence + 1;
	}
	note_time(&times, bpf_ktime_get_ns() - bpf_be64_to_cpu(stamp->due));
}

/// The stamp of a packet of UDP, if it is one.
static __always_inline struct stamp *find(void *data, void *end)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct stamp *stamp;

	if ((void *)(ip + 1) > end)
		return 0;
	if (ip->version == 4 && ip->ihl == 5 && ip->protocol == IPPROTO_UDP)
		stamp = (void *)(ip + 1) + sizeof(struct udphdr);
	else if (ip->version == 6 && (void *)(ip6 + 1) <= end && ip6->nexthdr == IPPROTO_UDP)
		stamp = (void *)(ip6 + 1) + sizeof(struct udphdr);
	else
		return 0;
	return (void *)(stamp + 1) <= end && sum_of(stamp) == 0xffff ? stamp : 0;
}

static __always_inline void note_state(void *data, void *end, __u32 number)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	struct state *state = bpf_map_lookup_elem(&states, &number);

	if (!state || (void *)(udp + 1) > end || ip->version != 4)
		return;
	state->address = ip->saddr;
	state->port = udp->source;
	state->is_there = 1;
}

/// Measures stamped packets, and takes them away; everything else is the host's.
SEC("xdp")
int stamped_sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct stamp *stamp = find(data, end);
	__u32 zero = 0;
	struct stamped *counted = bpf_map_lookup_elem(&stamped, &zero);

	if (!stamp || !counted)
		return XDP_PASS;
	counted->packets += 1;
	counted->octets += (long)end - (long)data;
	note(counted, stamp);
	if (room)
		note_state(data, end, bpf_ntohl(stamp->sequence) % (room ? room : 1));
	return XDP_DROP;
}

static __always_inline void swap_ports(struct udphdr *udp)
{
	__u16 kept = udp->source;

	udp->source = udp->dest;
	udp->dest = kept;
}

/// Another type of an ICMP message in the same octet; the code is zero.
static __always_inline void turn(__u16 *message, __u8 request, __u8 reply)
{
	message[1] = ~fold((__u16)~message[1] + (__u32)(__u16)~(__u16)request + reply);
	message[0] = reply;
}

/// Answers echo requests and UDP, whatever address they are for, before the host sees them; everything else is the host's.
SEC("xdp")
int responder(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;

	if ((void *)(ip + 1) > end)
		return XDP_PASS;
	if (ip->version == 4 && ip->ihl == 5 && !(ip->frag_off & bpf_htons(0x3fff))) {
		__u16 *message = (void *)(ip + 1);
		if ((void *)(message + 4) > end)
			return XDP_PASS;
		if (ip->protocol == IPPROTO_UDP)
			swap_ports((void *)message);
		else if (ip->protocol == IPPROTO_ICMP && message[0] == 8)
			turn(message, 8, 0);
		else
			return XDP_PASS;
		__be32 kept = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = kept;
	} else if (ip->version == 6 && (void *)(ip6 + 1) <= end) {
		__u16 *message = (void *)(ip6 + 1);
		if ((void *)(message + 4) > end)
			return XDP_PASS;
		if (ip6->nexthdr == IPPROTO_UDP)
			swap_ports((void *)message);
		else if (ip6->nexthdr == IPPROTO_ICMPV6 && message[0] == 128)
			turn(message, 128, 129);
		else
			return XDP_PASS;
		struct in6_addr kept = ip6->saddr;
		ip6->saddr = ip6->daddr;
		ip6->daddr = kept;
	} else {
		return XDP_PASS;
	}
	swap_frame(data);
	return XDP_TX;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
