// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Probes an ability of the kernel with one packet in a test run.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#ifndef BPF_F_ADJ_ROOM_DECAP_L3_IPV6
#define BPF_F_ADJ_ROOM_DECAP_L3_IPV6 (1ULL << 8)
#endif

/// Removes the outer header of a 6in4 packet as the fast path does with GSO packets. Returns 0, or the kernel's error.
SEC("classifier")
int sixway_probe(struct __sk_buff *skb)
{
	return bpf_skb_adjust_room(skb, -20, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_DECAP_L3_IPV6);
}

char LICENSE[] SEC("license") = "Apache-2.0 OR MIT";
