/* deal.h: which participants of a roster in several rows share a row, and in which order. Pure
 * functions. The order that comes out is recorded as that of the roster: rows are cut from it
 * (base/rows.h), and the k-th owner of each row owns column k (rows.c).
 *
 * A column is as fast as the slowest of its owners, and a row as able as the number of its owners.
 * So participants are dealt to the rows as cards are: of each level (about equal lines, best owners
 * first) each row gets as many, give or take one. In its row the best come first, so column k has
 * the k-th best of every row. Those that may own nothing are dealt last, each to a row in which it
 * is apart from the fewest owners.
 *
 * A participant stays in the row of the last roster if there is room for its level, and at its
 * position there if that is one of its level: so links last, and columns stay with their owners.
 * The first positions stay first; others fill the rows, and the gaps in them, in the order of their
 * numbers. Without a last roster, and with equal lines, rows are neighbours by number.
 *
 * Two owners that are apart from few come into different rows and, where a place of the same level
 * allows it, at different positions: then they exchange nothing, and both may own. If levels leave
 * them no other row, one changes rows with another member, of the nearest level. */
#ifndef RV_COORDINATOR_CORE_DEAL_H
#define RV_COORDINATOR_CORE_DEAL_H

#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	DEAL_LINES = 17,            /* levels of lines: a step is a factor of 1.44 */
	DEAL_MIDDLE = 8,            /* the level of the median, within 1.2 of it, and of lines that are not known */
	DEAL_RELAYED = DEAL_LINES,  /* added for owners that need a relay */
	DEAL_NONE = 2 * DEAL_LINES, /* may own nothing */
	DEAL_LEVELS = DEAL_NONE + 1
};

/* A participant, by ascending number. */
struct deal_entry {
	uint8_t level;  /* below DEAL_LEVELS; the lower, the better an owner it is */
	int8_t row;     /* that it had in the last roster, if that had as many rows; -1: none */
	uint16_t place; /* its position in that row: the first column that it owned, or behind all owners */
};

/* Sets level[i] (n) to the level of line i, below DEAL_LINES, among all: rates in bytes/s, 0: not
 * known. */
void deal_lines(const uint64_t *rates, int n, uint8_t *level);
/* Sets order[place] (n) to the index of the entry that comes there: row after row. `apart`: for
 * each entry the set of those that it cannot exchange data with, `words` words each; NULL: nobody
 * is apart. */
void deal_rows(const struct deal_entry *entries, int n, int n_rows, const uint64_t *apart, int words, uint16_t *order);

#endif
