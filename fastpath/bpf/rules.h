// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The programs' constants: what the configuration says, as of the moment when they were loaded. They are read-only data of the program, so
// that the verifier knows them; another configuration is another program, which replaces the old one atomically.
#pragma once

#include "layout.h"

/// A prefix of IPv6 destinations and whose it is. Longest first; the first that matches owns.
struct rule6 {
	/// In network order, as two words each.
	__u64 bits[2];
	__u64 mask[2];
	__u8 length;
	__u8 kind;
	/// Index into translators or tunnels.
	__u8 index;
	__u8 reserved[5];
};

/// Roles of the gateway in an automatic tunnel.
#define ROLE_HOST 0
#define ROLE_ROUTER 1
#define ROLE_RELAY 2
#define ROLE_CUSTOMER_EDGE 1
#define ROLE_BORDER_RELAY 2

/// A part of an array in `struct config`.
struct span {
	__u8 first;
	__u8 count;
};

/// A tunnel.
struct tunnel {
	__u8 kind;
	/// ROLE_…
	__u8 role;
	/// The outer TTL is set, or the inner hop limit after the gateway has counted.
	__u8 sets_ttl;
	__u8 ttl;
	/// Upper six bits of the outer TOS are set to those of `dscp`, or copied.
	__u8 sets_dscp;
	__u8 dscp;
	/// RFC 6040 normal mode; else compatibility mode.
	__u8 ecn_normal;
	/// Outer DF where nothing was learnt of the path.
	__u8 dont_fragment;
	/// Largest inner packet where nothing was learnt of the path; packets to destinations in `narrow_paths` are passed to the kernel if `learns` is set.
	__u16 mtu;
	__u8 learns;
	/// Configured tunnels: only sources behind the other end.
	__u8 strict;
	__be32 local;
	/// The remote; the relay of 6to4, 6rd or ISATAP that native destinations are sent to; 0: none.
	__be32 remote;
	/// 6to4: the address that the site's prefix embeds.
	__be32 site;
	/// 6rd: the IPv4 prefix that all addresses of the domain share.
	__be32 shared;
	__u8 shared_length;
	__u8 prefix_length;
	/// 6to4: native sources only from listed relays.
	__u8 listed_only;
	/// 6rd: tunnels of one domain have one number.
	__u8 domain;
	/// 6rd: the domain's prefix.
	__u8 prefix[16];
	/// The largest MSS option of a SYN where nothing was learnt of the path, or MSS_….
	__u16 mss;
	/// To 64 octets: an index is a shift then, which keeps the stack of the functions small.
	__u8 reserved[6];
	/// In `prefixes`: what is behind the other end, or on the ISATAP link.
	struct span prefixes;
	/// In `addresses`: relays from which native sources are accepted.
	struct span relays;
	/// In `networks`: where ISATAP hosts may be; none: anywhere.
	struct span locators;
	/// In `networks`: embedded IPv4 addresses that are refused: broadcast addresses, and relays.
	struct span refused;
};

/// Addresses of this host and their likes that are looked for.
struct own {
	__be32 address;
	/// It is public, so that it is looked for in every tunnel's format.
	__u8 public_;
	__u8 is_host4;
	__u8 reserved[2];
};

#define PREFIXES6 64
#define ADDRESSES4 64
#define NETWORKS4 64

struct prefix6 {
	__u64 bits[2];
	__u64 mask[2];
};

struct network4 {
	__be32 bits;
	__be32 mask;
};

#define SOURCES 32
#define INSIDES 16

#define PORTS 32

/// An ingress interface: one that the programs are attached to, or a VLAN device on top of it.
struct port {
	/// What the kernel's routes know it by.
	__u32 ifindex;
	/// Where its frames come by in XDP: the device below a VLAN's; else the same.
	__u32 below;
	/// Identifier of the VLAN, 0: untagged.
	__u16 vlan;
	__u8 mac[6];
	/// Strict reverse path filtering: an IPv4 source must be reached by it.
	__u8 strict;
	/// The tc program is attached as well: it sees what the program in the driver passes.
	__u8 tc;
	__u8 reserved[2];
};

struct config {
	/// Index of the TUN device, and its MTU.
	__u32 tun;
	__u32 tun_mtu;
	/// Ticks after which an idle entry is left to the engine, and after which an absent gateway's programs pass everything.
	__u32 idle_tcp;
	__u32 idle_udp;
	__u32 idle_icmp;
	__u32 absence;
	__u8 ports_count;
	/// The kernel's routes depend on destination and ingress alone, but for `sources4` and `sources6`, so that they can be remembered by these.
	__u8 plain_routing;
	/// The kernel knows BPF_F_ADJ_ROOM_DECAP_L3_IPV6.
	__u8 can_decap_gso;
	/// Index of the NAT44 in `translators`, plus one; 0: none.
	__u8 nat44;
	struct port ports[PORTS];
	/// MTUs of the next links, as the engine has them.
	__u16 mtu4;
	__u16 mtu6;
	__u8 own6[16];
	__be32 own4;
	__u8 translators_count;
	__u8 tunnels_count;
	__u8 rules_count;
	__u8 pools_count;
	__u8 own_count;
	__u8 host6_count;
	__u8 siit_count;
	/// Index of the first SIIT translator with a prefix, plus one; 0: none.
	__u8 default_siit;
	/// There are stateless rules: without them packets without a flow are passed to the kernel immediately.
	__u8 has_stateless;
	/// There is a stateful translator.
	__u8 has_stateful;
	__u8 sources4_count;
	__u8 sources6_count;
	__u32 inside4_count;
	/// Identifications of IPv4 packets start here.
	__u32 identification;
	struct translator translators[TRANSLATORS];
	struct tunnel tunnels[TUNNELS];
	struct rule6 rules[RULES];
	struct pool4 pools[POOLS];
	struct own own[HOST4];
	struct prefix6 prefixes[PREFIXES6];
	struct network4 networks[NETWORKS4];
	__be32 addresses[ADDRESSES4];
	__u8 host6[HOST4][16];
	/// Sources that routing depends on: those of policy rules, and those by which another mechanism has its packets.
	struct network4 sources4[SOURCES];
	struct prefix6 sources6[SOURCES];
	/// Whose packets go out by the NAT44.
	struct network4 inside4[INSIDES];
};

volatile const struct config config = {};
