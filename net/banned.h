/* banned.h: the members that the operator removed: what a document names, and what links and relays
 * refuse. Plain data; a zeroed one is empty. */
#ifndef RV_NET_BANNED_H
#define RV_NET_BANNED_H

#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct banned {
	uint16_t n;
	uint32_t members[NET_MAX_BANNED]; /* numbers, ascending */
};

bool banned_has(const struct banned *b, uint32_t member);
bool banned_equal(const struct banned *a, const struct banned *b);

#endif
