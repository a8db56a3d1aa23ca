/* apart.h: which participants of a roster in several rows may own chunks, although some are apart:
 * cannot exchange data. Pure functions.
 *
 * A participant deals with its row, and an owner with owners of other rows. One that is apart from
 * few, half as many as there are rows, is light: two light ones that are apart both may own, as the
 * deal brings them into different rows and columns (deal.h). So a member that lets no link with
 * another come up, and says nothing or says that it is apart, keeps nobody from owning, and it
 * takes more than half as many of them as there are rows to keep one.
 *
 * If one of two that are apart is not light, one is taken from the owners, the one that is apart
 * from more; of equals the one that reports more of it. One that says that it is apart from
 * everybody, so that nobody should own anything, therefore costs itself only. It comes into a
 * row where it is apart from few owners, which own nothing in that roster; where it is apart
 * from a quarter of all owners, it is left out of the roster. */
#ifndef RV_COORDINATOR_CORE_APART_H
#define RV_COORDINATOR_CORE_APART_H

#include "coordinator/core/set.h"
#include "net/limits.h"

enum { APART_WORDS = SET_WORDS(NET_MAX_ROSTER) };

/* Which of n participants are apart; arrays by their index. */
struct apart {
	int n, words; /* of a set of them */
	bool any;
	uint32_t weight[NET_MAX_ROSTER]; /* of each as one that is apart */
	uint16_t from[NET_MAX_ROSTER];   /* number that each is apart from */
	uint64_t of[NET_MAX_ROSTER * APART_WORDS];
};

/* Begins with n participants, 1 to NET_MAX_ROSTER, of which none is apart. */
void apart_init(struct apart *a, int n);
/* Notes that the participant reports to be apart from `times` members, of the roster or not. */
void apart_note_claims(struct apart *a, int i, int times);
/* Notes that two are apart; each two once. */
void apart_add(struct apart *a, int i, int j);
/* Returns the set of those that `i` is apart from. */
const uint64_t *apart_from(const struct apart *a, int i);

/* Returns the number of others that a light participant is apart from at most, in `n_rows` rows. */
static inline int apart_few(int n_rows) {
	enum { SHARE = 2 };
	return n_rows / SHARE;
}
/* Sets `able` (APART_WORDS) to those that may own: no two of them are apart, but for those that
 * both are from `few` others at most. Once for each struct. */
void apart_find_able(struct apart *a, int few, uint64_t *able);
/* Returns true if `i` is none of them, and apart from a quarter of them. */
bool apart_is_outcast(const struct apart *a, const uint64_t *able, int i);
/* Drops from `able` those that are apart from one of their row: row[] has that of each. */
void apart_drop_in_rows(const struct apart *a, const uint8_t *row, uint64_t *able);

#endif
