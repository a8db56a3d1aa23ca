/* member_set.h: sets of members, by number: those with which one worker has to do. Plain data; a
 * zeroed one is empty. */
#ifndef RV_NET_MEMBER_SET_H
#define RV_NET_MEMBER_SET_H

#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct member_set {
	uint16_t n;
	uint32_t members[NET_MAX_PEERS]; /* numbers, ascending */
};

/* Returns the index of the first of `n` ascending numbers that is `member` or higher; n: none
 * is. */
int member_place(const uint32_t *numbers, int n, uint32_t member);

bool member_set_has(const struct member_set *s, uint32_t member);
/* Adds a member. Returns false if it is not in and the set is full. */
bool member_set_add(struct member_set *s, uint32_t member);
void member_set_remove(struct member_set *s, uint32_t member);

#endif
