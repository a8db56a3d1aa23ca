/* member_set.c: see member_set.h. */
#include "net/member_set.h"

#include <string.h>

int member_place(const uint32_t *numbers, int n, uint32_t member) {
	int low = 0, high = n;
	while (low < high) {
		int mid = (low + high) / 2;
		if (numbers[mid] < member)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_at(const struct member_set *s, int at, uint32_t member) {
	return at < s->n && s->members[at] == member;
}

bool member_set_has(const struct member_set *s, uint32_t member) {
	return is_at(s, member_place(s->members, s->n, member), member);
}

bool member_set_add(struct member_set *s, uint32_t member) {
	int at = member_place(s->members, s->n, member);
	if (is_at(s, at, member))
		return true;
	if (s->n == NET_MAX_PEERS)
		return false;
	memmove(&s->members[at + 1], &s->members[at], (size_t)(s->n++ - at) * sizeof s->members[0]);
	s->members[at] = member;
	return true;
}

void member_set_remove(struct member_set *s, uint32_t member) {
	int at = member_place(s->members, s->n, member);
	if (is_at(s, at, member))
		memmove(&s->members[at], &s->members[at + 1], (size_t)(--s->n - at) * sizeof s->members[0]);
}
