// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// IPv4 addresses that the well-known prefix must not represent (RFC 6052 section 3.1, RFC 6890 section 2.2.2). The engine's table is
// `NON_GLOBAL` in dataplane/src/translate/address/non_global.rs; a test compares them.
#pragma once

#include "layout.h"

#define IS_OF(a, b, c, d, length) ((bits ^ ((__u32)(a) << 24 | (b) << 16 | (c) << 8 | (d))) >> (32 - (length)) == 0)

static __always_inline int is_non_global(__u32 bits)
{
	return IS_OF(0, 0, 0, 0, 8) || IS_OF(10, 0, 0, 0, 8) || IS_OF(100, 64, 0, 0, 10) || IS_OF(127, 0, 0, 0, 8) ||
	       IS_OF(169, 254, 0, 0, 16) || IS_OF(172, 16, 0, 0, 12) || IS_OF(192, 0, 0, 0, 24) || IS_OF(192, 0, 2, 0, 24) ||
	       IS_OF(192, 168, 0, 0, 16) || IS_OF(198, 18, 0, 0, 15) || IS_OF(198, 51, 100, 0, 24) || IS_OF(203, 0, 113, 0, 24) ||
	       IS_OF(224, 0, 0, 0, 4) || IS_OF(240, 0, 0, 0, 4);
}
