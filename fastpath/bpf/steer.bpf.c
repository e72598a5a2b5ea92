// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Steering: tunnel packets (IPv6 in IPv4, protocol 41) for one of our own IPv4 addresses go into the TUN device, before the
// local stack sees them. Everything else goes on untouched, to other programs and to the stack.
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

/// Index of the TUN device; the loader writes it.
volatile const __u32 tun = 0;

/// Our own addresses, as they stand in a header. The loader knows the same size.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, __u8);
} addresses SEC(".maps");

struct taken {
	__u64 packets;
	__u64 octets;
};

/// What was taken, super-frames as one.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct taken);
} counters SEC(".maps");

SEC("classifier")
int sixway_steer(struct __sk_buff *skb)
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
	// Counted from the network header: devices with and without Ethernet headers are alike.
	if (bpf_skb_load_bytes_relative(skb, 0, &header, sizeof(header), BPF_HDR_START_NET))
		return TC_ACT_UNSPEC;
	if (header.version != 4 || header.ihl < 5 || header.protocol != IPPROTO_IPV6)
		return TC_ACT_UNSPEC;
	if (!bpf_map_lookup_elem(&addresses, &header.daddr))
		return TC_ACT_UNSPEC;

	struct taken *taken = bpf_map_lookup_elem(&counters, &zero);
	if (taken) {
		taken->packets += 1;
		taken->octets += bpf_ntohs(header.tot_len);
	}
	return bpf_redirect(tun, 0);
}

char LICENSE[] SEC("license") = "Apache-2.0 OR MIT";
