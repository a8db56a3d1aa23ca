/* member_set.c: see member_set.h. */
#include "worker/session/member_set.h"

#include <stdio.h>

void member_set_text(uint64_t set, char out[static MEMBER_SET_TEXT_BYTES]) {
	int left = __builtin_popcountll(set), n = 0;
	if (left == 0) {
		(void)snprintf(out, MEMBER_SET_TEXT_BYTES, "nobody");
		return;
	}
	n = snprintf(out, MEMBER_SET_TEXT_BYTES, "member%s", left == 1 ? "" : "s");
	const char *before = " ";
	for (int i = 0; i < 64; i++) {
		if ((set >> i & 1) == 0)
			continue;
		n += snprintf(out + n, MEMBER_SET_TEXT_BYTES - (size_t)n, "%s%d", before, i);
		before = --left == 1 ? " and " : ", ";
	}
}

void member_list_text(const uint32_t *members, int n, char out[static MEMBER_LIST_TEXT_BYTES]) {
	enum { NAMED = 5 };
	const int named = n <= NAMED + 1 ? n : NAMED;
	size_t at = (size_t)snprintf(out, MEMBER_LIST_TEXT_BYTES, n == 0 ? "nobody" : n == 1 ? "member" : "members");
	for (int i = 0; i < named; i++) {
		const char *before = i == 0 ? " " : i + 1 == n ? " and " : ", ";
		at += (size_t)snprintf(out + at, MEMBER_LIST_TEXT_BYTES - at, "%s%u", before, members[i]);
	}
	if (named < n)
		(void)snprintf(out + at, MEMBER_LIST_TEXT_BYTES - at, " and %d more", n - named);
}
