// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// TCP connections without sockets: as many as their tables have room for, opened at a rate and kept open (RFC 3511 §5.2).
//
//	open ── SYN ──────────────────▶ server     notes where it came from
//	client ◀───────────── SYN+ACK ──
//	       ── ACK ────────────────▶
//	ask ── a stamp ───────────────▶            if it comes from there
//	client ◀──────── the same stamp ──
//
// A flow's number is its initial sequence number, so that each segment says which connection it belongs to. `open` and `ask` are senders, run by
// BPF_PROG_RUN with live frames: each run is about the next connection that is not open, or not answered yet. So a second turn repeats what was
// lost, at the same rate.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "stamp.bpf.h"

/// 16-bit words of the longest frame.
#define LONGEST 46
/// Octets of a segment's data: a stamp.
#define DATA 16
/// Connections that a run passes over, at most.
#define PASSED_OVER 256
/// The server's initial sequence number.
#define SERVERS 0x51000000
/// Connections to a port of the server take this power of two of numbers, and there are this many ports.
#define OF_A_PORT 14
#define PORTS 1024
/// The fourth 32-bit word of a header of 24 and of 20 octets, with its flags and the largest window.
#define SYN_ACK 0x6012ffff
#define ACK_WITH_NOPS 0x6010ffff
#define PSH_ACK 0x5018ffff
#define FOUR_NOPS 0x01010101

/// Whole frames, of a SYN and of data; what differs from flow to flow is zero in them.
volatile const __u16 syn[LONGEST] = {};
volatile const __u16 data_frame[LONGEST] = {};
/// The first of the server's ports.
volatile const __u16 port = 0;

/// A connection as the client has it.
struct connection {
	/// When its first SYN left.
	__u64 due;
	__u32 is_open;
	__u32 is_answered;
};

/// The same as the server has it: where its SYN came from.
struct peer {
	__be32 address;
	__be16 port;
	__u16 is_there;
};

/// The connection that comes next; the loader begins each turn with the first one.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

/// The loader chooses how many there are.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct peer);
} peers SEC(".maps");

/// Each has one writer: the sender, the client's link or the server's.
struct counted {
	__u64 syns;
	__u64 asked;
	__u64 open;
	__u64 answered;
	/// Resets that came to the client.
	__u64 resets;
	/// Data that came to the server from elsewhere than the connection's SYN.
	__u64 from_elsewhere;
	/// Segments that came to either end, whatever they are: as long as some come, others may be under way.
	__u64 at_client;
	__u64 at_server;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counted);
} counted SEC(".maps");

/// From a connection's first SYN to its SYN+ACK.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} setups SEC(".maps");

/// A 32-bit number as the sum of its halves.
static __always_inline __u32 halves(__be32 number)
{
	return (number & 0xffff) + (number >> 16);
}

static __always_inline __u16 source_port(__u32 flow)
{
	return bpf_htons(4096 + (flow & 1023));
}

static __always_inline struct counted *count(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counted, &zero);
}

/// Writes a pattern's frame for a flow.
static __always_inline int write(struct xdp_md *ctx, const volatile __u16 *pattern, const int six, const int octets,
				 __u32 flow, __u32 sequence)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u16 *frame = data, address = bpf_htons(flow >> 10);
	__u32 number = bpf_htonl(sequence);
	struct tcphdr *tcp;

	if (data + octets > end)
		return XDP_DROP;
#pragma unroll
	for (int i = 0; i < octets / 2; i++)
		frame[i] = pattern[i];
	if (six) {
		struct ipv6hdr *ip = data + ETH_HLEN;
		ip->saddr.s6_addr16[7] = address;
		tcp = (void *)(ip + 1);
	} else {
		struct iphdr *ip = data + ETH_HLEN;
		// The pattern's address ends with 16 bits of zeros wherever there are more than 1,024 flows.
		ip->saddr = bpf_htonl(bpf_ntohl(ip->saddr) + (flow >> 10));
		ip->check = ~fold((__u16)~ip->check + (__u32)address);
		tcp = (void *)(ip + 1);
	}
	// The port of the destination is in the pattern's checksum.
	__u16 of_server = bpf_htons(port + ((flow >> OF_A_PORT) & (PORTS - 1)));
	__u32 sum = (__u16)~tcp->check + (__u32)address + source_port(flow) + halves(number);
	tcp->check = ~fold(sum + (__u16)~tcp->dest + of_server);
	tcp->source = source_port(flow);
	tcp->dest = of_server;
	tcp->seq = number;
	return XDP_TX;
}

/// The next connection that is not open, or of those that are open the next one without an answer; its number.
static __always_inline struct connection *choose(const int asks, __u32 *flow)
{
	__u32 zero = 0, *number = bpf_map_lookup_elem(&next, &zero);

	if (!number)
		return 0;
	for (int i = 0; i < PASSED_OVER; i++) {
		*flow = *number;
		struct connection *connection = bpf_map_lookup_elem(&connections, flow);
		if (!connection)
			return 0;
		*number = *flow + 1;
		if (asks ? connection->is_open && !connection->is_answered : !connection->is_open)
			return connection;
	}
	return 0;
}

/// A SYN.
static __always_inline int open(struct xdp_md *ctx, const int six)
{
	__u32 flow = 0;
	struct connection *connection = choose(0, &flow);
	struct counted *counts = count();

	if (!connection || !counts)
		return XDP_DROP;
	if (!connection->due)
		connection->due = bpf_ktime_get_ns();
	counts->syns += 1;
	return write(ctx, syn, six, ETH_HLEN + (six ? 40 : 20) + 24, flow, flow);
}

/// Data.
static __always_inline int ask(struct xdp_md *ctx, const int six)
{
	const int front = ETH_HLEN + (six ? 40 : 20) + 20;
	__u32 flow = 0;
	struct connection *connection = choose(1, &flow);
	struct counted *counts = count();

	if (!connection || !counts)
		return XDP_DROP;
	counts->asked += 1;
	if (write(ctx, data_frame, six, front + DATA, flow, flow + 1) != XDP_TX)
		return XDP_DROP;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + front + DATA > end)
		return XDP_DROP;
	write_stamp(data + front, flow, flow);
	return XDP_TX;
}

SEC("xdp")
int open6(struct xdp_md *ctx)
{
	return open(ctx, 1);
}

SEC("xdp")
int open4(struct xdp_md *ctx)
{
	return open(ctx, 0);
}

SEC("xdp")
int ask6(struct xdp_md *ctx)
{
	return ask(ctx, 1);
}

SEC("xdp")
int ask4(struct xdp_md *ctx)
{
	return ask(ctx, 0);
}

/// The header of a segment of TCP.
static __always_inline struct tcphdr *find(void *data, void *end)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct tcphdr *tcp;

	if ((void *)(ip + 1) > end)
		return 0;
	if (ip->version == 4 && ip->ihl == 5 && ip->protocol == IPPROTO_TCP && !(ip->frag_off & bpf_htons(0x3fff)))
		tcp = (void *)(ip + 1);
	else if (ip->version == 6 && (void *)(ip6 + 1) <= end && ip6->nexthdr == IPPROTO_TCP)
		tcp = (void *)(ip6 + 1);
	else
		return 0;
	return (void *)(tcp + 1) <= end ? tcp : 0;
}

/// Whether a port is one of the server's.
static __always_inline int is_servers(__be16 number)
{
	return (__u16)(bpf_ntohs(number) - port) < PORTS;
}

/// Changes a 32-bit word, and the sum that the checksum is made of.
static __always_inline __u32 change(void *word, __be32 to)
{
	__u32 *at = word, sum = halves(~*at) + halves(to);

	*at = to;
	return sum;
}

/// Sends a segment back with other numbers and flags; addresses and ports that change places do not change the checksum.
static __always_inline int turn(void *data, struct tcphdr *tcp, __u32 sequence, __u32 acknowledged, __u32 flags)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	__be16 port_kept = tcp->source;
	__u32 sum = (__u16)~tcp->check;

	if (ip->version == 4) {
		__be32 kept = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = kept;
	} else {
		struct in6_addr kept = ip6->saddr;
		ip6->saddr = ip6->daddr;
		ip6->daddr = kept;
	}
	tcp->source = tcp->dest;
	tcp->dest = port_kept;
	sum += change(&tcp->seq, bpf_htonl(sequence));
	sum += change(&tcp->ack_seq, bpf_htonl(acknowledged));
	sum += change((void *)tcp + 12, bpf_htonl(flags));
	if (flags == ACK_WITH_NOPS)
		sum += change(tcp + 1, bpf_htonl(FOUR_NOPS));
	tcp->check = ~fold(sum);
	swap_frame(data);
	return XDP_TX;
}

/// The client's link: completes the connections that the server accepts, and notes answers.
SEC("xdp")
int client(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct counted *counts = count();
	struct tcphdr *tcp = find(data, end);

	if (!tcp || !counts || !is_servers(tcp->source))
		return XDP_PASS;
	counts->at_client += 1;
	if (tcp->rst) {
		counts->resets += 1;
		return XDP_DROP;
	}
	if (tcp->syn && tcp->ack && tcp->doff == 6) {
		__u32 flow = bpf_ntohl(tcp->ack_seq) - 1;
		struct connection *connection = bpf_map_lookup_elem(&connections, &flow);

		if (!connection || tcp->dest != source_port(flow) || (void *)(tcp + 1) + 4 > end)
			return XDP_DROP;
		if (!connection->is_open) {
			connection->is_open = 1;
			counts->open += 1;
			note_time(&setups, bpf_ktime_get_ns() - connection->due);
		}
		return turn(data, tcp, flow + 1, bpf_ntohl(tcp->seq) + 1, ACK_WITH_NOPS);
	}
	struct stamp *stamp = (void *)(tcp + 1);
	if ((void *)(stamp + 1) > end || tcp->doff != 5 || sum_of(stamp) != 0xffff)
		return XDP_DROP;
	__u32 flow = bpf_ntohl(stamp->sequence);
	struct connection *connection = bpf_map_lookup_elem(&connections, &flow);
	if (!connection || tcp->dest != source_port(flow) || bpf_ntohl(tcp->ack_seq) != flow + 1 + DATA)
		return XDP_DROP;
	if (!connection->is_answered) {
		connection->is_answered = 1;
		counts->answered += 1;
		note_time(&times, bpf_ktime_get_ns() - bpf_be64_to_cpu(stamp->due));
	}
	return XDP_DROP;
}

/// The server's link, over IPv4: accepts connections, and answers over those that it knows.
SEC("xdp")
int server(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct counted *counts = count();
	struct tcphdr *tcp = (void *)(ip + 1);

	if (!counts || (void *)(tcp + 1) > end || find(data, end) != tcp || !is_servers(tcp->dest))
		return XDP_PASS;
	counts->at_server += 1;
	if (tcp->syn && !tcp->ack && tcp->doff == 6) {
		__u32 flow = bpf_ntohl(tcp->seq);
		struct peer *peer = bpf_map_lookup_elem(&peers, &flow);

		if (!peer)
			return XDP_DROP;
		peer->address = ip->saddr;
		peer->port = tcp->source;
		peer->is_there = 1;
		return turn(data, tcp, SERVERS, flow + 1, SYN_ACK);
	}
	struct stamp *stamp = (void *)(tcp + 1);
	if ((void *)(stamp + 1) > end || tcp->doff != 5 || sum_of(stamp) != 0xffff)
		return XDP_DROP;
	__u32 flow = bpf_ntohl(tcp->seq) - 1;
	struct peer *peer = bpf_map_lookup_elem(&peers, &flow);
	if (!peer || !peer->is_there || peer->address != ip->saddr || peer->port != tcp->source) {
		counts->from_elsewhere += 1;
		return XDP_DROP;
	}
	return turn(data, tcp, SERVERS + 1, flow + 1 + DATA, PSH_ACK);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
