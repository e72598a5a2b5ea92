// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Asks the kernel what it can do, by one packet in a test run.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#ifndef BPF_F_ADJ_ROOM_DECAP_L3_IPV6
#define BPF_F_ADJ_ROOM_DECAP_L3_IPV6 (1ULL << 8)
#endif

/// Takes the outer header of an IPv6 packet in an IPv4 packet away, as the fast path does with GSO packets. 0, or the kernel's error.
SEC("classifier")
int sixway_probe(struct __sk_buff *skb)
{
	return bpf_skb_adjust_room(skb, -20, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_DECAP_L3_IPV6);
}

char LICENSE[] SEC("license") = "Apache-2.0 OR MIT";
