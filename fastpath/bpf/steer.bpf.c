// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Steering: what comes to one of our own IPv4 addresses and is the engine's goes into the TUN device, before the local stack sees it:
// tunnel packets (IPv6 in IPv4, protocol 41), and TCP and UDP for the ports that a translator shares with this host. Everything else
// is passed on unchanged, to other programs and to the stack. While no process reads the device, redirected packets are dropped there.
//
//     TCP, UDP          destination port is ours          taken
//     ICMP error        quotes TCP or UDP from our ports  taken
//     echo reply        identifier is ours                copied: the host's own pings take any identifier
//     ICMP error        quotes such an echo request       copied
//     echo request                                        the host's, which answers it
//     a later fragment  where its first one went; copied if that has not come yet: the other one never completes it
//
// What is taken is past netfilter and reverse path filtering. So a source of an inside host is believed only at interfaces that lead to
// inside hosts. At others it is forged, and the packet is the host's to refuse. Routers outside may have such addresses, too: an ICMP error
// is forged if it quotes a packet to an inside host.
//
// On the loopback interface only ICMP is examined: errors that this host's kernel makes about our packets, such as Fragmentation Needed
// before a narrow link, are addressed to this host and never leave it.
//
// A tc ingress program. The packet arrives at the TUN device's reader as the bare IPv4 packet, fragments as they came.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/// Whose a packet is.
#define HOSTS 0
#define OURS 1
#define BOTHS 2

/// Bits of an IPv4 header's fragment field.
#define MORE_FRAGMENTS 0x2000
#define FRAGMENT_OFFSET 0x1fff

/// <linux/icmp.h> needs the C library's headers.
#define ICMP_ECHOREPLY 0
#define ICMP_DEST_UNREACH 3
#define ICMP_ECHO 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETERPROB 12

struct icmp {
	__u8 type;
	__u8 code;
	__be16 checksum;
	/// Of echo requests and replies.
	__be16 identifier;
	__be16 sequence;
};

/// The loopback interface has this index in every network namespace.
#define LOOPBACK 1

/// Index of the TUN device; the loader writes it.
volatile const __u32 tun = 0;

#define RANGES 8

/// What is taken of an address of ours. The loader knows the same shape.
struct own {
	/// Protocol 41.
	__u8 tunnels;
	/// How many ranges of ports and ICMP identifiers, first and last of each, in the machine's order.
	__u8 ranges;
	__u16 first[RANGES];
	__u16 last[RANGES];
};

/// The host's own addresses, in network byte order. The loader has the same size.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, struct own);
} addresses SEC(".maps");

/// Of a trie: how many bits, and the address.
struct prefix {
	__u32 length;
	__be32 address;
};

/// The IPv4 prefixes of inside hosts. The loader sets the size.
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u8);
} inside SEC(".maps");

/// The indices of the interfaces that lead to them; ANY: it is not known which these are. The loader has the same size.
#define ANY 0
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u8);
} inner SEC(".maps");

struct fragmented {
	__be32 source;
	__be32 destination;
	__be16 identification;
	__u8 protocol;
	__u8 reserved;
};

/// Whose packets are that come in fragments, of those whose first one was seen.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fragmented);
	__type(value, __u8);
} fragments SEC(".maps");

struct taken {
	__u64 packets;
	__u64 octets;
};

/// Redirected packets; a GSO packet counts once.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct taken);
} counters SEC(".maps");

/// Counted from the network header: devices with and without Ethernet headers are alike.
static __always_inline long load(struct __sk_buff *skb, __u32 offset, void *to, __u32 length)
{
	return bpf_skb_load_bytes_relative(skb, offset, to, length, BPF_HDR_START_NET);
}

/// Whether a port or an ICMP identifier, in network byte order, is in one of our ranges.
static __always_inline int is_ours(const struct own *own, __be16 port)
{
	__u16 number = bpf_ntohs(port);

#pragma unroll
	for (int i = 0; i < RANGES; i++) {
		if (i < own->ranges && own->first[i] <= number && number <= own->last[i])
			return 1;
	}
	return 0;
}

/// Whether an inside host has an address, and the packet's interface does not lead to it. This host's own errors come by the loopback interface.
static __always_inline int is_elsewhere(struct __sk_buff *skb, __be32 address)
{
	struct prefix host = { .length = 32, .address = address };
	__u32 interface = skb->ifindex, any = ANY;

	return interface != LOOPBACK && bpf_map_lookup_elem(&inside, &host) && !bpf_map_lookup_elem(&inner, &interface) &&
	       !bpf_map_lookup_elem(&inner, &any);
}

/// The owner of an ICMP error: that of the packet that it quotes.
static __always_inline int of_quoted(struct __sk_buff *skb, const struct own *own, __u32 offset, __be32 destination)
{
	struct iphdr quoted;
	struct icmp echo;
	__be16 port;

	if (load(skb, offset, &quoted, sizeof(quoted)) || quoted.version != 4 || quoted.ihl < 5 || quoted.saddr != destination ||
	    quoted.frag_off & bpf_htons(FRAGMENT_OFFSET) || is_elsewhere(skb, quoted.daddr))
		return HOSTS;
	offset += quoted.ihl * 4;
	switch (quoted.protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		return !load(skb, offset, &port, sizeof(port)) && is_ours(own, port) ? OURS : HOSTS;
	case IPPROTO_ICMP:
		if (load(skb, offset, &echo, sizeof(echo)) || echo.type != ICMP_ECHO)
			return HOSTS;
		return is_ours(own, echo.identifier) ? BOTHS : HOSTS;
	}
	return HOSTS;
}

/// Whose a whole packet, or the first fragment of one, is.
static __always_inline int of_first(struct __sk_buff *skb, const struct own *own, const struct iphdr *header)
{
	__u32 offset = header->ihl * 4;
	struct icmp icmp;
	__be16 ports[2];

	switch (header->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		return !load(skb, offset, ports, sizeof(ports)) && is_ours(own, ports[1]) ? OURS : HOSTS;
	case IPPROTO_ICMP:
		break;
	default:
		return HOSTS;
	}
	if (load(skb, offset, &icmp, sizeof(icmp)))
		return HOSTS;
	switch (icmp.type) {
	case ICMP_ECHOREPLY:
		return is_ours(own, icmp.identifier) && !is_elsewhere(skb, header->saddr) ? BOTHS : HOSTS;
	case ICMP_DEST_UNREACH:
	case ICMP_TIME_EXCEEDED:
	case ICMP_PARAMETERPROB:
		return of_quoted(skb, own, offset + sizeof(icmp), header->daddr);
	}
	return HOSTS;
}

/// Whose a packet to an address with ports of ours is.
static __always_inline int whose(struct __sk_buff *skb, const struct own *own, const struct iphdr *header)
{
	struct fragmented packet = { .source = header->saddr, .destination = header->daddr, .identification = header->id,
				     .protocol = header->protocol };
	__u16 fragment = bpf_ntohs(header->frag_off);

	if (header->protocol != IPPROTO_TCP && header->protocol != IPPROTO_UDP && header->protocol != IPPROTO_ICMP)
		return HOSTS;
	int forged = is_elsewhere(skb, header->saddr);
	if (forged && header->protocol != IPPROTO_ICMP)
		return HOSTS;
	if (fragment & FRAGMENT_OFFSET) {
		__u8 *first = bpf_map_lookup_elem(&fragments, &packet);
		return first ? *first : forged ? HOSTS : BOTHS;
	}
	__u8 found = of_first(skb, own, header);
	if (fragment & MORE_FRAGMENTS)
		bpf_map_update_elem(&fragments, &packet, &found, BPF_ANY);
	return found;
}

SEC("classifier")
int sixway_ingress(struct __sk_buff *skb)
{
	struct iphdr header;
	__u32 zero = 0;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_UNSPEC;
	// A frame of a VLAN belongs to the VLAN's own device, where it comes by once more without its tag.
	if (skb->vlan_present)
		return TC_ACT_UNSPEC;
	// What a bridge or a sniffer lets us see, and broadcasts, the stack would not take either (RFC 1122 section 3.3.6).
	if (skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	if (load(skb, 0, &header, sizeof(header)) || header.version != 4 || header.ihl < 5)
		return TC_ACT_UNSPEC;
	if (skb->ifindex == LOOPBACK && header.protocol != IPPROTO_ICMP)
		return TC_ACT_UNSPEC;
	struct own *own = bpf_map_lookup_elem(&addresses, &header.daddr);
	if (!own)
		return TC_ACT_UNSPEC;
	int found = header.protocol != IPPROTO_IPV6 ? whose(skb, own, &header) : own->tunnels ? OURS : HOSTS;
	if (found == HOSTS)
		return TC_ACT_UNSPEC;

	struct taken *taken = bpf_map_lookup_elem(&counters, &zero);
	if (taken) {
		taken->packets += 1;
		taken->octets += bpf_ntohs(header.tot_len);
	}
	if (found == OURS)
		return bpf_redirect(tun, 0);
	// If it cannot be copied, it is lost to the engine alone.
	bpf_clone_redirect(skb, tun, 0);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Apache-2.0 OR MIT";
