/* banned.c: see banned.h. */
#include "net/banned.h"

#include <string.h>

bool banned_has(const struct banned *b, uint32_t member) {
	int low = 0, high = b->n;
	while (low < high) {
		int mid = (low + high) / 2;
		if (b->members[mid] == member)
			return true;
		if (b->members[mid] < member)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

bool banned_equal(const struct banned *a, const struct banned *b) {
	return a->n == b->n && memcmp(a->members, b->members, a->n * sizeof a->members[0]) == 0;
}
