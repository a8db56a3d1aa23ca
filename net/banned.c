/* banned.c: see banned.h. */
#include "net/banned.h"

#include "net/member_set.h"

#include <string.h>

bool banned_has(const struct banned *b, uint32_t member) {
	int at = member_place(b->members, b->n, member);
	return at < b->n && b->members[at] == member;
}

bool banned_equal(const struct banned *a, const struct banned *b) {
	return a->n == b->n && memcmp(a->members, b->members, a->n * sizeof a->members[0]) == 0;
}
