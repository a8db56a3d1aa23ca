/* set.h: sets of slots or of roster places, as bits of 64-bit words in the owner's memory. The
 * owner knows how many words its sets have (SET_WORDS), so a run of four pays for one word. Bits
 * past the last member of a set are zero. */
#ifndef RV_COORDINATOR_CORE_SET_H
#define RV_COORDINATOR_CORE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SET_BITS = 64 };
/* Words of a set of numbers below n: for arrays. */
#define SET_WORDS(n) (((n) + SET_BITS - 1) / SET_BITS)

static inline bool set_has(const uint64_t *set, uint32_t i) {
	return set[i / SET_BITS] >> i % SET_BITS & 1;
}
static inline void set_add(uint64_t *set, uint32_t i) {
	set[i / SET_BITS] |= UINT64_C(1) << i % SET_BITS;
}
static inline void set_drop(uint64_t *set, uint32_t i) {
	set[i / SET_BITS] &= ~(UINT64_C(1) << i % SET_BITS);
}

static inline void set_clear(uint64_t *set, int words) {
	memset(set, 0, (size_t)words * sizeof set[0]);
}
static inline void set_copy(uint64_t *to, const uint64_t *from, int words) {
	memcpy(to, from, (size_t)words * sizeof to[0]);
}
/* Makes it the set of the numbers below n. */
static inline void set_first(uint64_t *set, int n, int words) {
	for (int w = 0; w < words; w++) {
		int left = n - w * SET_BITS;
		set[w] = left >= SET_BITS ? UINT64_MAX : left > 0 ? (UINT64_C(1) << left) - 1 : 0;
	}
}

/* Adds those of `other`; keeps only those of `other`; drops those of `other`. */
static inline void set_join(uint64_t *set, const uint64_t *other, int words) {
	for (int w = 0; w < words; w++)
		set[w] |= other[w];
}
static inline void set_meet(uint64_t *set, const uint64_t *other, int words) {
	for (int w = 0; w < words; w++)
		set[w] &= other[w];
}
static inline void set_less(uint64_t *set, const uint64_t *other, int words) {
	for (int w = 0; w < words; w++)
		set[w] &= ~other[w];
}

static inline int set_count(const uint64_t *set, int words) {
	int n = 0;
	for (int w = 0; w < words; w++)
		n += __builtin_popcountll(set[w]);
	return n;
}
static inline bool set_is_empty(const uint64_t *set, int words) {
	for (int w = 0; w < words; w++)
		if (set[w] != 0)
			return false;
	return true;
}
static inline bool set_is_equal(const uint64_t *a, const uint64_t *b, int words) {
	return memcmp(a, b, (size_t)words * sizeof a[0]) == 0;
}
static inline bool set_is_within(const uint64_t *set, const uint64_t *of, int words) {
	for (int w = 0; w < words; w++)
		if ((set[w] & ~of[w]) != 0)
			return false;
	return true;
}

/* Returns the lowest number of the set that is at least `from`; -1: none. For loops over a sparse
 * set: for (int i = set_next(s, 0, w); i >= 0; i = set_next(s, i + 1, w)). */
static inline int set_next(const uint64_t *set, int from, int words) {
	int w = from / SET_BITS;
	if (w >= words)
		return -1;
	uint64_t word = set[w] & (UINT64_MAX << from % SET_BITS);
	while (word == 0 && ++w < words)
		word = set[w];
	return word != 0 ? w * SET_BITS + __builtin_ctzll(word) : -1;
}

#endif
