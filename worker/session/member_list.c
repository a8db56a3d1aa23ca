/* member_list.c: see member_list.h. */
#include "worker/session/member_list.h"

#include <stdio.h>

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
