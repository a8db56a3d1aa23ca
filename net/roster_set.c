/* roster_set.c: see roster_set.h. */
#include "net/roster_set.h"

#include <string.h>

int roster_set_count(const uint64_t *set, int words) {
	int n = 0;
	for (int i = 0; i < words; i++)
		n += __builtin_popcountll(set[i]);
	return n;
}

int roster_set_next(const uint64_t *set, int words, uint32_t from) {
	for (int i = (int)(from / 64); i < words; i++) {
		uint64_t left = i == (int)(from / 64) ? set[i] >> (from % 64) << (from % 64) : set[i];
		if (left != 0)
			return 64 * i + __builtin_ctzll(left);
	}
	return -1;
}

uint16_t roster_set_list(const uint64_t *set, int words, uint16_t *places, uint16_t room) {
	uint16_t n = 0;
	for (int at = roster_set_next(set, words, 0); at >= 0 && n < room;
		 at = roster_set_next(set, words, (uint32_t)at + 1))
		places[n++] = (uint16_t)at;
	return n;
}

void roster_set_of(uint64_t *set, int words, const uint16_t *places, uint16_t n) {
	memset(set, 0, (size_t)words * sizeof set[0]);
	for (int i = 0; i < n; i++)
		if (places[i] < 64 * words)
			roster_set_add(set, places[i]);
}
