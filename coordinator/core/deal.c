/* deal.c: see deal.h. */
#include "coordinator/core/deal.h"

#include "base/assert.h"
#include "base/order.h"
#include "base/rows.h"
#include "coordinator/core/set.h"

#include <stdlib.h>
#include <string.h>

/* ---- levels of lines ---- */

/* Two lines are alike if their rates differ by less than this factor, as in shares.c. */
enum { ALIKE_MORE = 6, ALIKE_LESS = 5 };
static const uint64_t RATE_MAX = 1ull << 40; /* bytes per second */

static uint64_t median_of_known(const uint64_t *rates, int n) {
	int known = 0;
	for (int i = 0; i < n; i++)
		known += rates[i] != 0;
	return known > 0 ? rv_nth_u64(rates, n, n - known + known / 2) : 0;
}

static uint8_t level_of(uint64_t rate, uint64_t median) {
	enum { MORE = ALIKE_MORE * ALIKE_MORE, LESS = ALIKE_LESS * ALIKE_LESS };
	int level = DEAL_MIDDLE;
	uint64_t faster = median, slower = median;
	rate = rate < RATE_MAX ? rate : RATE_MAX;
	for (; rate * ALIKE_LESS > faster * ALIKE_MORE && level > 0; level--)
		faster = faster * MORE / LESS + 1;
	for (; rate * ALIKE_MORE < slower * ALIKE_LESS && level < DEAL_LINES - 1; level++)
		slower = slower * LESS / MORE;
	RV_ASSERT(level >= 0 && level < DEAL_LINES);
	return (uint8_t)level;
}

void deal_lines(const uint64_t *rates, int n, uint8_t *level) {
	uint64_t median = median_of_known(rates, n);
	median = median < RATE_MAX ? median : RATE_MAX;
	for (int i = 0; i < n; i++)
		level[i] = rates[i] == 0 ? DEAL_MIDDLE : level_of(rates[i], median);
}

/* ---- rows ---- */

enum { WORDS = SET_WORDS(NET_MAX_ROSTER) };

struct dealing {
	const struct deal_entry *entries;
	int n, n_rows, words;
	const uint64_t *apart;
	int8_t row[NET_MAX_ROSTER]; /* of each entry; -1: none yet */
	int room[ROWS_MAX];         /* for more of the level that is being dealt */
	uint64_t owners[ROWS_MAX][WORDS];
	int gave[ROWS_MAX];                /* owners that the row gave to another one */
	uint16_t in_place[NET_MAX_ROSTER]; /* entries by the position that they had */
};

/* Returns how many of the first k cards the row gets. */
static int cards(int k, int n_rows, int row) {
	return (k + n_rows - 1 - row) / n_rows;
}

static void put(struct dealing *d, int i, int row) {
	RV_ASSERT(row >= 0 && row < d->n_rows && d->room[row] > 0 && d->row[i] < 0);
	d->row[i] = (int8_t)row;
	d->room[row]--;
	if (d->entries[i].level < DEAL_NONE)
		set_add(d->owners[row], (uint32_t)i);
}

/* Returns how many owners of the row entry `i` is apart from. */
static int apart_in(const struct dealing *d, int i, int row) {
	const uint64_t *apart = d->apart != NULL ? d->apart + (size_t)i * (size_t)d->words : NULL;
	int n = 0;
	for (int w = 0; apart != NULL && w < d->words; w++)
		n += __builtin_popcountll(apart[w] & d->owners[row][w]);
	return n;
}

/* Returns the row with room in which entry `i` is apart from the fewest owners; of several the
 * first. */
static int best_row(const struct dealing *d, int i) {
	int best = -1, least = 0;
	for (int row = 0; row < d->n_rows; row++) {
		const int apart = d->room[row] > 0 ? apart_in(d, i, row) : 0;
		if (d->room[row] == 0 || (best >= 0 && apart >= least))
			continue;
		best = row;
		least = apart;
	}
	RV_ASSERT(best >= 0);
	return best;
}

/* Sorts the entries by the position that they had, of equal ones the first first. */
static void sort_places(struct dealing *d) {
	int at[NET_MAX_ROSTER + 1] = {0};
	for (int i = 0; i < d->n; i++) {
		RV_ASSERT(d->entries[i].place < NET_MAX_ROSTER);
		at[d->entries[i].place + 1]++;
	}
	for (int place = 1; place <= NET_MAX_ROSTER; place++)
		at[place] += at[place - 1];
	for (int i = 0; i < d->n; i++)
		d->in_place[at[d->entries[i].place]++] = (uint16_t)i;
}

/* Puts those of the level that stay where they were: the first of a row, if not all. */
static void put_stayers(struct dealing *d, int level) {
	for (int k = 0; k < d->n; k++) {
		const int i = d->in_place[k];
		const int row = d->entries[i].level == level ? d->entries[i].row : -1;
		if (row >= 0 && row < d->n_rows && d->room[row] > 0 && apart_in(d, i, row) == 0)
			put(d, i, row);
	}
}

/* Returns how many owners entry `i` is apart from. */
static int apart_in_all(const struct dealing *d, int i) {
	int n = 0;
	for (int row = 0; row < d->n_rows && d->apart != NULL; row++)
		n += apart_in(d, i, row);
	return n;
}

/* Returns the row, with room or not, in which entry `i` costs the fewest owners. */
static int cheapest_row(const struct dealing *d, int i) {
	int best = 0;
	for (int row = 1; row < d->n_rows; row++)
		if (apart_in(d, i, row) + d->gave[row] < apart_in(d, i, best) + d->gave[best])
			best = row;
	return best;
}

/* Returns the last of the least able owners of a row; -1: it has none. */
static int last_owner(const struct dealing *d, int row) {
	int last = -1;
	for (int i = set_next(d->owners[row], 0, WORDS); i >= 0; i = set_next(d->owners[row], i + 1, WORDS))
		last = last < 0 || d->entries[i].level >= d->entries[last].level ? i : last;
	return last;
}

/* Returns true if entry `i` is apart from all owners of a row: there nobody could own anything, and
 * another row can give it an owner, and keeps one itself. */
static bool strands(const struct dealing *d, int i, int row, int other) {
	const int apart = apart_in(d, i, row);
	return apart > 0 && apart == set_count(d->owners[row], WORDS) && apart_in(d, i, other) == 0 &&
		   set_count(d->owners[other], WORDS) > 1;
}

/* Puts an entry into the best row. Where one without room is far better, an owner of that one
 * changes over to make room. */
static void put_well(struct dealing *d, int i) {
	enum { FAR = 2 };
	const int row = best_row(d, i), other = cheapest_row(d, i);
	const bool far = apart_in(d, i, row) >= apart_in(d, i, other) + d->gave[other] + FAR || strands(d, i, row, other);
	const int owner = far && d->room[other] == 0 ? last_owner(d, other) : -1;
	if (owner >= 0) {
		set_drop(d->owners[other], (uint32_t)owner);
		d->row[owner] = -1;
		d->room[other]++;
		d->gave[other]++;
		put(d, owner, row);
		put(d, i, other);
		return;
	}
	put(d, i, row);
}

/* Puts the others: those first that are apart from the most owners, as they can choose least. */
static void put_others(struct dealing *d, int level) {
	uint16_t from[NET_MAX_ROSTER];
	int most = 0;
	for (int i = 0; i < d->n; i++) {
		from[i] = (uint16_t)(d->row[i] < 0 && d->entries[i].level == level ? apart_in_all(d, i) : 0);
		most = from[i] > most ? from[i] : most;
	}
	while (most >= 0) {
		int next = -1;
		for (int i = 0; i < d->n; i++) {
			if (d->row[i] >= 0 || d->entries[i].level != level)
				continue;
			if (from[i] == most)
				put_well(d, i);
			else
				next = from[i] > next ? from[i] : next;
		}
		most = next;
	}
}

static void deal_level(struct dealing *d, int level) {
	put_stayers(d, level);
	put_others(d, level);
}

/* ---- two of one row that are apart ---- */

/* Returns how many owners of a row but `without` entry `i` is apart from. */
static int apart_without(const struct dealing *d, int i, int row, int without) {
	const bool counted = set_has(d->owners[row], (uint32_t)without);
	const bool apart = d->apart != NULL && set_has(d->apart + (size_t)i * (size_t)d->words, (uint32_t)without);
	return apart_in(d, i, row) - (counted && apart);
}

static bool both_own(const struct dealing *d, int i, int j) {
	return (d->entries[i].level < DEAL_NONE) == (d->entries[j].level < DEAL_NONE);
}

/* Returns the entry of another row, an owner as entry `i` is or not, with which it can change rows
 * so that fewer are apart from an owner of their row; of several the one of the nearest level. -1:
 * none. */
static int find_partner(const struct dealing *d, int i) {
	int best = -1, nearest = 0;
	for (int j = 0; j < d->n; j++) {
		const int here = d->row[i], there = d->row[j], far = abs(d->entries[i].level - d->entries[j].level);
		if (here == there || !both_own(d, i, j) || (best >= 0 && far >= nearest))
			continue;
		if (apart_without(d, i, there, j) + apart_without(d, j, here, i) >=
			apart_in(d, i, here) + apart_in(d, j, there))
			continue;
		best = j;
		nearest = far;
	}
	return best;
}

static void change_rows(struct dealing *d, int i, int j) {
	const int8_t here = d->row[i], there = d->row[j];
	if (d->entries[i].level < DEAL_NONE) {
		set_drop(d->owners[here], (uint32_t)i);
		set_drop(d->owners[there], (uint32_t)j);
		set_add(d->owners[there], (uint32_t)i);
		set_add(d->owners[here], (uint32_t)j);
	}
	d->row[i] = there;
	d->row[j] = here;
}

/* Parts those of one row that are apart where levels, with few of each, left no choice: better an
 * owner that is slower than the others of its row than two that owe each other what never comes. */
static void part_rows(struct dealing *d) {
	for (int i = 0; i < d->n && d->apart != NULL; i++) {
		const int j = apart_in(d, i, d->row[i]) > 0 ? find_partner(d, i) : -1;
		if (j >= 0)
			change_rows(d, i, j);
	}
}

/* ---- positions in a row ---- */

enum { NOBODY = UINT16_MAX };

/* A row that is being put in order: those of a level have the positions first to last - 1. */
struct line_up {
	const struct dealing *d;
	int row, length, first, last;
	uint16_t *at; /* entry by position; NOBODY */
};

static bool stays_in(const struct line_up *l, int i) {
	return l->d->entries[i].row == l->row;
}

static bool has(const struct line_up *l, int position) {
	return position >= l->first && position < l->last && l->at[position] == NOBODY;
}

static void put_first_free(struct line_up *l, int i) {
	int position = l->first;
	while (!has(l, position))
		position++;
	RV_ASSERT(position < l->last);
	l->at[position] = (uint16_t)i;
}

/* Gives those of the level their former positions; the others, those that stay first, what is
 * free. */
static void put_level(struct line_up *l, int level) {
	const struct dealing *d = l->d;
	uint16_t others[2][NET_MAX_ROSTER];
	int n[2] = {0};
	for (int pass = 0; pass < 2; pass++)
		for (int k = 0; k < d->n; k++) {
			const int i = pass == 0 ? d->in_place[k] : k;
			if (d->row[i] != l->row || d->entries[i].level != level || stays_in(l, i) != (pass == 0))
				continue;
			if (pass == 0 && has(l, d->entries[i].place))
				l->at[d->entries[i].place] = (uint16_t)i;
			else
				others[pass][n[pass]++] = (uint16_t)i;
		}
	for (int pass = 0; pass < 2; pass++)
		for (int k = 0; k < n[pass]; k++)
			put_first_free(l, others[pass][k]);
}

/* Returns true if the entry at the same position of an earlier row is apart from `i`. */
static bool meets_one_apart(const struct line_up *l, const uint16_t *order, int i, int position) {
	const struct dealing *d = l->d;
	if (d->apart == NULL || d->entries[i].level >= DEAL_NONE)
		return false;
	for (int row = 0; row < l->row; row++) {
		const int other = order[rows_first(d->n, d->n_rows, row) + position];
		if (d->entries[other].level < DEAL_NONE && set_has(d->apart + (size_t)i * (size_t)d->words, (uint32_t)other))
			return true;
	}
	return false;
}

/* Returns the position of the level with which `position` may change: one of another that has come
 * new, if it can be, else the last. -1: none. */
static int find_exchange(const struct line_up *l, const uint16_t *order, int position) {
	int best = -1;
	for (int p = l->first; p < l->last; p++) {
		if (p == position || meets_one_apart(l, order, l->at[position], p) ||
			meets_one_apart(l, order, l->at[p], position))
			continue;
		if (best < 0 || !stays_in(l, l->at[p]) || stays_in(l, l->at[best]))
			best = p;
	}
	return best;
}

/* Lets those of the level change places, so that no two that are apart share a column. */
static void part_columns(struct line_up *l, const uint16_t *order) {
	for (int p = l->first; p < l->last; p++) {
		if (!meets_one_apart(l, order, l->at[p], p))
			continue;
		const int other = find_exchange(l, order, p);
		if (other < 0)
			continue;
		const uint16_t i = l->at[p];
		l->at[p] = l->at[other];
		l->at[other] = i;
	}
}

static void put_row(const struct dealing *d, int row, uint16_t *order) {
	struct line_up l = {.d = d, .row = row, .length = rows_length(d->n, d->n_rows, row)};
	int of_level[DEAL_LEVELS] = {0};
	l.at = order + rows_first(d->n, d->n_rows, row);
	for (int p = 0; p < l.length; p++)
		l.at[p] = NOBODY;
	for (int i = 0; i < d->n; i++)
		of_level[d->entries[i].level] += d->row[i] == row;
	for (int level = 0; level < DEAL_LEVELS; level++) {
		l.last = l.first + of_level[level];
		if (of_level[level] > 0) {
			put_level(&l, level);
			part_columns(&l, order);
		}
		l.first = l.last;
	}
	RV_ASSERT(l.first == l.length);
}

void deal_rows(const struct deal_entry *entries, int n, int n_rows, const uint64_t *apart, int words, uint16_t *order) {
	struct dealing d = {.entries = entries, .n = n, .n_rows = n_rows, .words = words, .apart = apart};
	RV_ASSERT(n > 0 && n <= NET_MAX_ROSTER && n_rows > 0 && n_rows <= ROWS_MAX && words <= WORDS);
	memset(d.row, -1, sizeof d.row);
	sort_places(&d);
	int dealt = 0;
	for (int level = 0; level < DEAL_LEVELS; level++) {
		int of_level = 0;
		for (int i = 0; i < n; i++)
			of_level += entries[i].level == level;
		for (int row = 0; row < n_rows && of_level > 0; row++)
			d.room[row] = cards(dealt + of_level, n_rows, row) - cards(dealt, n_rows, row);
		if (of_level > 0)
			deal_level(&d, level);
		dealt += of_level;
	}
	part_rows(&d);
	for (int row = 0; row < n_rows; row++)
		put_row(&d, row, order);
}
