// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The fast path: what the engine has decided, the kernel repeats. One source for two hooks, HOOK_XDP and HOOK_TC.
//
//     frame ─▶ packet ─▶ flow? ─▶ path? ─▶ act ─▶ execute ─▶ next hop
//                │         │        │               │
//                └─────────┴────────┴───────────────┴──────▶ passed to the kernel unchanged, and so to the engine
//
// It decides nothing: packets that it does not forward are passed on unchanged.

#include <linux/pkt_cls.h>

#ifdef HOOK_XDP
typedef struct xdp_md context;
#else
typedef struct __sk_buff context;
#endif

#include "act.h"
#include "checksum.h"
#include "flow_of.h"
#include "maps.h"
#include "next_hop.h"
#include "path.h"
#include "rules.h"

#ifdef HOOK_XDP
#include "execute_xdp.h"
#define PASS XDP_PASS
#define LOSE XDP_DROP
#else
#include "execute_tc.h"
#define PASS TC_ACT_UNSPEC
#define LOSE TC_ACT_SHOT
#endif

/// Decides what to do with a packet. Returns 0, or the cause to pass it to the kernel.
static __always_inline int decide(void *ctx, const struct control *control, const struct packet *packet, void *transport, void *end,
				  struct way *way, struct act *act)
{
	int cause = PASS_NOT_OURS;

	if (config.has_stateful && packet->protocol != IPPROTO_IPV6) {
		way->flow = flow_of(control, packet, &cause);
		// The engine has to see it.
		if (cause == PASS_NO_FLOW && changes_connection(packet))
			cause = PASS_FLAGS;
		if (way->flow) {
			if (FLOW_STATE(*(volatile __u32 *)&way->flow->word) == FLOW_HALF_OPEN) {
				way->word = half_open_word(way, packet, transport, end);
			} else if (cause == PASS_NO_FLOW) {
				cause = PASS_MOVING;
				way->word = active_word(way->flow, packet, transport, end);
			}
			return way->word ? by_flow(ctx, packet, way, transport, end, act) : cause;
		}
	}
	if (!config.has_stateless || !config.plain_routing)
		return cause;
	int passed = path(ctx, packet, way, act);
	return passed == PASS_NOT_OURS ? cause : passed;
}

/// Whether the result fits everywhere, by segment.
static __always_inline int fits(const struct packet *packet, const struct act *act, const struct next_hop *hop)
{
	__u32 mtu = act->mtu < hop->mtu ? act->mtu : hop->mtu;
	int more = act->kind == ACT_TRANSLATE_4_TO_6 || act->kind == ACT_ENCAP_4 ? 20 : -20;

	if (act->kind == ACT_RENUMBER_6 || act->kind == ACT_RENUMBER_4)
		more = 0;

	if (packet->length + more > 65535)
		return 0;
	if (act->kind != ACT_DECAP && packet->segment > config.tun_mtu)
		return 0;
	return packet->segment + more <= mtu;
}

static __always_inline void count_flow(struct flow *flow, const struct packet *packet, __u32 length, __u32 now)
{
	flow->packets += packet->segments;
	flow->octets += length;
	flow->last = now;
}

/// Handles a packet that is known to be plain.
static __always_inline int carry(context *ctx, const struct control *control, const struct packet *packet, void *transport, void *end,
				 struct way *way, int *cause)
{
	struct act act = {};

	way->control = control;
	way->now = now_ticks();
	__u64 generation = whole_generation_of(control, way->now);
	way->generation = generation;
	way->era = generation >> 32;
	if (now_is_too_late((struct control *)control, way->now)) {
		*cause = PASS_KERNEL;
		return PASS;
	}
	*cause = decide(ctx, control, packet, transport, end, way, &act);
	if (*cause)
		return PASS;
	__u32 index = act.next_hop;
	struct next_hop *hop = bpf_map_lookup_elem(&next_hops, &index);
	if (!hop || hop->sequence & 1 || !hop->ifindex) {
		*cause = PASS_NO_NEXT_HOP;
		return PASS;
	}
	// Both hooks share what flows remember.
	if (!TAKES(hop)) {
		*cause = PASS_NO_DEVICE;
		return PASS;
	}
	if (!fits(packet, &act, hop)) {
		*cause = PASS_TOO_BIG;
		return PASS;
	}
	if (hop->used != way->now)
		hop->used = way->now;
	int verdict = execute(ctx, way->link, packet, &act, hop);
	if (verdict == PASS) {
		*cause = PASS_KERNEL;
		return PASS;
	}
	if (verdict == LOSE) {
		*cause = LOST;
		return LOSE;
	}
	if (way->flow)
		count_flow(way->flow, packet, packet->length, way->now);
	if (way->turned) {
		// As IPv4, between the two translations.
		count_flow(way->turned, packet, packet->length - (packet->version == 6 ? 20 : 0), way->now);
		count(act.counter + 1, packet->segments, packet->length);
	}
	count(act.counter, packet->segments, packet->length);
	return verdict;
}

/// Reads a packet that starts at `at`; `left` octets of the frame are there. Where its transport header or inner packet starts follows from
/// its version. Returns 0, or the cause to pass it to the kernel.
static __always_inline int parse(void *at, void *end, __u32 left, __u8 is_4, struct packet *packet)
{
	int cause = is_4 ? parse_ipv4(at, end, packet) : parse_ipv6(at, end, packet);

	if (cause)
		return cause;
	if (packet->length > left)
		return PASS_MALFORMED;
	if (packet->hops <= 1 && !(is_4 && packet->protocol == IPPROTO_IPV6))
		return PASS_HOPS;
	if (is_4 && packet->protocol == IPPROTO_IPV6)
		return 0;
	return parse_transport(at + (is_4 ? IPV4_HEADER : IPV6_HEADER), end, packet);
}

static __always_inline const struct control *control_of(void)
{
	__u32 zero = 0;
	const struct control *found = bpf_map_lookup_elem(&control, &zero);
	return found && found->enabled & ENABLED ? found : 0;
}

#ifdef HOOK_XDP
/// Whether a frame is for this port: a promiscuous device also receives frames for others.
static __always_inline int is_for_us(const struct ethhdr *link, __u32 ingress)
{
	const volatile __u8 *mac = config.ports[ingress & (PORTS - 1)].mac;
	const __u16 *destination = (const __u16 *)link->h_dest;

	// Words as they lie, there as here.
	return !((*(const volatile __u16 *)mac ^ destination[0]) |
		 (*(const volatile __u32 *)(mac + 2) ^ *(const __u32 *)(destination + 1)));
}

SEC("xdp")
int sixway_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *link = data;
	struct packet packet = {};
	const struct control *control = control_of();
	struct way way = { .link = sizeof(*link) };
	__u16 vlan = 0;

	if ((void *)(link + 1) > end || !control)
		return XDP_PASS;
	__be16 protocol = *(const __be16 *)(data + 12);
	void *at = link + 1;
	if (protocol == bpf_htons(ETH_P_8021Q)) {
		struct vlan_header *tag = at;
		if ((void *)(tag + 1) > end)
			return XDP_PASS;
		protocol = tag->protocol;
		vlan = bpf_ntohs(tag->tag) & 0xfff;
		// A frame with a priority alone is the untagged device's.
		if (!vlan)
			return XDP_PASS;
		way.link += sizeof(*tag);
		at = tag + 1;
	}
	if (protocol != bpf_htons(ETH_P_IP) && protocol != bpf_htons(ETH_P_IPV6))
		return XDP_PASS;
	way.ingress = port_of(control, ctx->ingress_ifindex, vlan);
	if (way.ingress >= PORTS || !is_for_us(link, way.ingress))
		return XDP_PASS;
	__u8 is_4 = protocol == bpf_htons(ETH_P_IP);
	int cause = parse(at, end, end - at, is_4, &packet);
	int verdict = XDP_PASS;
	if (!cause)
		verdict = carry(ctx, control, &packet, at + (is_4 ? IPV4_HEADER : IPV6_HEADER), end, &way, &cause);
	// The program at tc carries it, or counts it.
	if (cause && (cause == LOST || !config.ports[way.ingress & (PORTS - 1)].tc))
		count(cause, 1, packet.length);
	return verdict;
}
#else
#define EINVAL 22
#define ENOTSUPP 524

/// Whether a GSO packet with UDP in its header, or in that of a packet in a tunnel, is cut behind it: not one of a tunnel in UDP (VXLAN, GENEVE,
/// FOU), which is cut further inside, nor one that is cut into fragments. Nothing says so but what the kernel has against making room in front
/// of it: it looks at the kind of GSO packet, then whether a tunnel is in it, then, before it changes anything, for an inner link header of 255
/// octets in the one octet that is requested. In a tunnel there is one already; there, what is not TCP must keep its size.
static __always_inline int is_cut_behind_udp(struct __sk_buff *skb, __u8 is_in_tunnel)
{
	__u64 wish = BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L2(255);

	if (is_in_tunnel)
		return bpf_skb_adjust_room(skb, 1, BPF_ADJ_ROOM_MAC, wish) == -ENOTSUPP;
	return bpf_skb_adjust_room(skb, 1, BPF_ADJ_ROOM_MAC, wish | BPF_F_ADJ_ROOM_FIXED_GSO) == -EINVAL;
}

/// Of a GSO packet: how many packets it is, and how large they are. Pointers into it do not hold afterwards.
static __always_inline int measure_gso(struct __sk_buff *skb, void *transport, void *end, struct packet *packet)
{
	__u32 size = skb->gso_size, front = packet->version == 4 ? IPV4_HEADER : IPV6_HEADER;
	__u8 protocol = packet->protocol;

	if (protocol == IPPROTO_IPV6) {
		struct ipv6hdr *inner = transport;
		if ((void *)(inner + 1) > end)
			return PASS_MALFORMED;
		protocol = inner->nexthdr;
		transport = inner + 1;
		front += IPV6_HEADER;
	}
	if (protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = transport;
		if ((void *)(tcp + 1) > end)
			return PASS_MALFORMED;
		front += (((__u8 *)tcp)[12] >> 4) * 4;
	} else if (protocol == IPPROTO_UDP) {
		front += sizeof(struct udphdr);
	} else {
		return PASS_PROTOCOL;
	}
	if (packet->length <= front)
		return PASS_MALFORMED;
	packet->segment = front + size;
	packet->segments = (packet->length - front + size - 1) / size;
	if (protocol != IPPROTO_UDP)
		return 0;
	// The number is not always known.
	if (skb->gso_segs && skb->gso_segs != packet->segments)
		return PASS_PROTOCOL;
	return is_cut_behind_udp(skb, packet->protocol == IPPROTO_IPV6) ? 0 : PASS_PROTOCOL;
}

/// Octets that must lie in one piece: link header, outer header, and what is examined behind.
#define LOOKED_AT (ETH_HLEN + IPV4_HEADER + IPV6_HEADER + TCP_HEADER + OPTION_MSS_LENGTH)

SEC("classifier")
int sixway_tc(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct way way = { .link = ETH_HLEN };
	const struct control *control = control_of();
	__u8 is_4 = skb->protocol == bpf_htons(ETH_P_IP);

	if (!control || skb->pkt_type != 0 /* PACKET_HOST */ || skb->vlan_present)
		return TC_ACT_UNSPEC;
	if (!is_4 && skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_UNSPEC;
	way.ingress = port_of(control, skb->ingress_ifindex, 0);
	if (way.ingress >= PORTS)
		return TC_ACT_UNSPEC;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (data + LOOKED_AT > end && skb->len > end - data) {
		bpf_skb_pull_data(skb, skb->len < LOOKED_AT ? skb->len : LOOKED_AT);
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	void *at = data + ETH_HLEN;
	int cause = parse(at, end, skb->len - ETH_HLEN, is_4, &packet);
	void *transport = at + (is_4 ? IPV4_HEADER : IPV6_HEADER);
	int verdict = TC_ACT_UNSPEC;
	if (!cause && skb->gso_size) {
		cause = measure_gso(skb, transport, end, &packet);
		transport = (void *)(long)skb->data + ETH_HLEN + (is_4 ? IPV4_HEADER : IPV6_HEADER);
		end = (void *)(long)skb->data_end;
	}
	if (!cause)
		verdict = carry(skb, control, &packet, transport, end, &way, &cause);
	if (cause)
		count(cause, 1, packet.length);
	return verdict;
}
#endif

char LICENSE[] SEC("license") = "Dual MIT/GPL";
