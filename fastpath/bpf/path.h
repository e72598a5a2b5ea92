// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Stateless mechanisms: what a rule makes of a packet.
#pragma once

#include "act.h"
#include "next_hop.h"

/// What the stateless rules say about a packet. `inside` is where the packet in it starts, if its protocol is 41. 0: `act` is filled in; or
/// why the packet is passed on.
static __always_inline int path(void *ctx, const struct control *control, const struct packet *packet, void *inside, void *end,
				__u32 ingress, __u32 generation, struct act *act)
{
	return PASS_NOT_OURS;
}
