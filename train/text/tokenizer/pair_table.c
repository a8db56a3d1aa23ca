/* pair_table.c: fills the table; the lookup is inline in the header. */
#include "train/text/tokenizer/pair_table.h"

#include "base/assert.h"

#include <sodium/randombytes.h>
#include <stdlib.h>
#include <string.h>

enum rv_err pair_table_init(struct pair_table *t, size_t max_pairs, struct rv_errtext *et) {
	*t = (struct pair_table){0};
	if (max_pairs > PAIR_TABLE_MAX)
		return rv_fail(et, RV_E_RANGE, "%zu merges: the limit is %d", max_pairs, PAIR_TABLE_MAX);
	size_t n_slots = 64;
	while (n_slots < 2 * max_pairs)
		n_slots *= 2;
	t->slots = malloc(n_slots * sizeof *t->slots);
	if (!t->slots)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu merges", max_pairs);
	memset(t->slots, 0xff, n_slots * sizeof *t->slots);
	t->mask = n_slots - 1;
	randombytes_buf(&t->seed, sizeof t->seed);
	return RV_OK;
}

void pair_table_release(struct pair_table *t) {
	free(t->slots);
	*t = (struct pair_table){0};
}

bool pair_table_put(struct pair_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t into) {
	RV_ASSERT(2 * t->n <= t->mask);
	struct pair_slot *slot = &t->slots[pair_table_find(t, left, right) - t->slots];
	if (slot->key != UINT64_MAX)
		return false;
	*slot = (struct pair_slot){.key = pair_key(left, right), .rank = rank, .into = into};
	t->n++;
	return true;
}
