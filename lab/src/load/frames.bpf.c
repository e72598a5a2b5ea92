// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Small frames as fast as a driver could bring them, and what counts them where they arrive.
//
// The senders are run by BPF_PROG_RUN with live frames: each writes its whole frame, for frames come back as the last receiver left them, and
// lets it leave by the device that it is said to have come by. The words that differ from flow to flow are balanced by a word of payload, so
// that the transport checksum is that of the pattern.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define LARGEST 128
#define ANSWERS 1024
/// Sampling: one frame in this many is kept, up to this many samples.
#define APART 1024
#define SAMPLES 16

/// The frame; the words that differ and the balancing one are zero in it.
volatile const __u64 pattern[LARGEST / 8] = {};
/// This many flows, one after the other,
volatile const __u32 flows = 1;
/// or in any order,
volatile const __u32 at_random = 0;
/// or this power of two of packets each, a thousand and twenty-four flows at a time; the first packets are marked.
volatile const __u32 train = 0;

/// What the next packet is counted from.
__u32 next = 1;

/// Where the answers' packets go: IPv4 address and port as they are in a header.
struct answer {
	__be32 address;
	__be16 port;
	__u16 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ANSWERS);
	__type(key, __u32);
	__type(value, struct answer);
} answers SEC(".maps");

/// What arrived. There is one queue, so there are no concurrent writers.
struct seen {
	__u64 packets;
	__u64 octets;
	/// Those with a mark.
	__u64 firsts;
	/// Answers noted: of the first packets after it was set to zero.
	__u64 noted;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct seen);
} seen SEC(".maps");

/// The last frames that were kept.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLES);
	__type(key, __u32);
	__type(value, __u8[LARGEST]);
} samples SEC(".maps");

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/// The number of the next packet's flow. `first`: it is the flow's first.
static __always_inline __u32 choose(__u32 *first)
{
	__u32 number = next;

	if (at_random) {
		number ^= number << 13;
		number ^= number >> 17;
		number ^= number << 5;
		next = number;
		return (__u64)number * flows >> 32;
	}
	if (train) {
		next = number + 1;
		*first = !(number >> 10 & ((1u << (train & 7)) - 1));
		return (number >> 10 >> (train & 7) << 10) + (number & 1023);
	}
	next = number + 1 < flows ? number + 1 : 0;
	return number;
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

/// Lets source port and the last word of the source address differ.
static __always_inline void differ(struct ipv6hdr *ip, struct udphdr *udp, __u32 flow)
{
	__u16 *payload = (void *)(udp + 1);
	__u16 port = bpf_htons(4096 + (flow & 1023)), address = bpf_htons(flow >> 10);

	ip->saddr.s6_addr16[7] = address;
	udp->source = port;
	*payload = ~fold((__u32)port + address);
}

/// IPv6, 64 octets.
SEC("xdp")
int frames6(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 first = 0, flow = choose(&first);

	if (!write(data, end, 8))
		return XDP_DROP;
	struct ipv6hdr *ip = data + ETH_HLEN;
	differ(ip, (void *)(ip + 1), flow);
	if (first)
		ip->priority = 4;
	return XDP_TX;
}

/// IPv4, 64 octets.
SEC("xdp")
int frames4(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 first = 0, flow = choose(&first);

	if (!write(data, end, 8))
		return XDP_DROP;
	struct iphdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	__u16 *payload = (void *)(udp + 1), mark = first ? 4 : 0;
	__u32 address = bpf_htons(flow >> 10);
	// The pattern's address ends with 16 bits of zeros wherever there are more than 1,024 flows.
	ip->saddr = bpf_htonl(bpf_ntohl(ip->saddr) + (flow >> 10));
	ip->tos = mark;
	ip->check = ~fold((__u16)~ip->check + address + bpf_htons(mark));
	udp->source = bpf_htons(4096 + (flow & 1023));
	*payload = ~fold((__u32)udp->source + address);
	return XDP_TX;
}

/// IPv4, 64 octets, to the destinations that were noted.
SEC("xdp")
int replies4(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 first, flow = choose(&first) & (ANSWERS - 1);
	struct answer *answer = bpf_map_lookup_elem(&answers, &flow);

	if (!answer || !write(data, end, 8))
		return XDP_DROP;
	struct iphdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	__u16 *payload = (void *)(udp + 1);
	__u32 address = (answer->address & 0xffff) + (answer->address >> 16);
	ip->daddr = answer->address;
	ip->check = ~fold((__u16)~ip->check + address);
	udp->dest = answer->port;
	*payload = ~fold(address + answer->port);
	return XDP_TX;
}

/// IPv6 in IPv4, 88 octets.
SEC("xdp")
int frames41(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 first, flow = choose(&first);

	if (!write(data, end, 11))
		return XDP_DROP;
	struct ipv6hdr *ip = data + ETH_HLEN + sizeof(struct iphdr);
	differ(ip, (void *)(ip + 1), flow);
	return XDP_TX;
}

/// Keeps the first frame, and one in APART.
static __always_inline void keep(struct xdp_md *ctx, __u64 packets, __u32 octets)
{
	__u32 which = packets / APART % SAMPLES;
	__u8 *kept = bpf_map_lookup_elem(&samples, &which);

	// Longer frames than those that are sent are not ours; the verifier wants to see a mask.
	octets &= LARGEST - 1;
	if (kept && octets)
		bpf_xdp_load_bytes(ctx, 0, kept, octets);
}

static __always_inline void note(struct seen *seen, struct iphdr *ip, void *end)
{
	__u32 number = seen->noted;
	struct answer *answer = bpf_map_lookup_elem(&answers, &number);
	struct udphdr *udp = (void *)(ip + 1);

	seen->noted = number + 1;
	if (answer && (void *)(udp + 1) <= end) {
		answer->address = ip->saddr;
		answer->port = udp->source;
	}
}

/// Takes UDP and tunnel packets; everything else is the host's.
SEC("xdp")
int sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	__u32 zero = 0, marked;

	if ((void *)(ip + 1) > end)
		return XDP_PASS;
	if (ip->version == 4) {
		if (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_IPV6)
			return XDP_PASS;
		marked = ip->tos;
	} else {
		if (ip->version != 6 || (void *)(ip6 + 1) > end || ip6->nexthdr != IPPROTO_UDP)
			return XDP_PASS;
		marked = ip6->priority;
	}
	struct seen *counted = bpf_map_lookup_elem(&seen, &zero);
	if (!counted)
		return XDP_DROP;
	counted->packets += 1;
	counted->octets += (long)end - (long)data;
	if (marked)
		counted->firsts += 1;
	if (counted->noted < ANSWERS)
		note(counted, ip, end);
	if (counted->packets % APART == 1)
		keep(ctx, counted->packets, (long)end - (long)data);
	return XDP_DROP;
}

/// Index of the device that `onward` sends by.
volatile const __u32 out = 0;

/// Does nothing but send on: what leaving by another device costs alone.
SEC("xdp")
int onward(struct xdp_md *ctx)
{
	return bpf_redirect(out, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
