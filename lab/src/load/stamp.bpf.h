// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What the programs of stamped.bpf.c and connections.bpf.c have in common: the stamp of a packet (stamp.rs has the layout), and times by buckets.

/// Times by their highest bit and the four that follow.
#define BUCKETS 1024

struct stamp {
	__be16 flow;
	__u16 balance;
	__be32 sequence;
	__be64 due;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} times SEC(".maps");

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/// The sum of a stamp's words.
static __always_inline __u16 sum_of(struct stamp *stamp)
{
	__u16 *words = (void *)stamp;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 8; i++)
		sum += words[i];
	return fold(sum);
}

static __always_inline void write_stamp(struct stamp *stamp, __u32 flow, __u32 sequence)
{
	stamp->flow = bpf_htons(flow);
	stamp->balance = 0;
	stamp->sequence = bpf_htonl(sequence);
	stamp->due = bpf_cpu_to_be64(bpf_ktime_get_ns());
	stamp->balance = ~sum_of(stamp);
}

/// Counts a time in a map of BUCKETS numbers.
static __always_inline void note_time(void *map, __u64 time)
{
	__u32 bits = 0, bucket;
	__u64 rest = time;

	// The number of the highest bit, by halves.
#pragma unroll
	for (int step = 32; step; step /= 2) {
		if (rest >> step) {
			rest >>= step;
			bits += step;
		}
	}
	bucket = bits < 4 ? (__u32)time : (bits - 3) << 4 | ((time >> (bits - 4)) & 15);
	__u64 *count = bpf_map_lookup_elem(map, &bucket);
	if (count)
		*count += 1;
}

static __always_inline void swap_frame(struct ethhdr *frame)
{
	__u16 *words = (void *)frame;

#pragma unroll
	for (int i = 0; i < 3; i++) {
		__u16 kept = words[i];
		words[i] = words[i + 3];
		words[i + 3] = kept;
	}
}

/// Lets a device take frames that programs send to it.
SEC("xdp")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}
