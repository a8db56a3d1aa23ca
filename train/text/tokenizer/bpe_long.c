/* bpe_long.c: merges long pieces: a linked list of tokens, a binary heap of pairs.
 *
 * A changed pair stays in the heap: when it surfaces, merging skips it because the pair at its
 * position has another rank. Every merge adds at most two entries, so n bytes make at most 3 n. */
#include "train/text/tokenizer/bpe.h"

#include "base/assert.h"

#include <stdlib.h>

#define NO_POSITION UINT32_MAX

struct bpe_symbol {
	uint32_t id; /* VOCAB_NONE: merged into an earlier one */
	uint32_t before, after;
};

struct merging {
	const struct bpe *bpe;
	struct bpe_scratch *s;
};

void bpe_scratch_release(struct bpe_scratch *s) {
	free(s->symbols);
	free(s->heap);
	*s = (struct bpe_scratch){0};
}

static enum rv_err reserve(struct bpe_scratch *s, size_t n, struct rv_errtext *et) {
	if (n <= s->cap)
		return RV_OK;
	bpe_scratch_release(s);
	s->symbols = malloc(n * sizeof *s->symbols);
	s->heap = malloc(3 * n * sizeof *s->heap);
	if (!s->symbols || !s->heap) {
		bpe_scratch_release(s);
		return rv_fail(et, RV_E_NOMEM, "no memory to merge a piece of %zu bytes", n);
	}
	s->cap = n;
	s->heap_cap = 3 * n;
	return RV_OK;
}

static void sift_down(struct bpe_scratch *s, size_t at) {
	uint64_t moved = s->heap[at];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= s->heap_n)
			break;
		if (child + 1 < s->heap_n && s->heap[child + 1] < s->heap[child])
			child++;
		if (s->heap[child] >= moved)
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = moved;
}

static void push(struct bpe_scratch *s, uint64_t entry) {
	RV_ASSERT(s->heap_n < s->heap_cap);
	size_t at = s->heap_n++;
	for (; at > 0 && s->heap[(at - 1) / 2] > entry; at = (at - 1) / 2)
		s->heap[at] = s->heap[(at - 1) / 2];
	s->heap[at] = entry;
}

static uint64_t pop(struct bpe_scratch *s) {
	uint64_t top = s->heap[0];
	s->heap[0] = s->heap[--s->heap_n];
	if (s->heap_n > 0)
		sift_down(s, 0);
	return top;
}

/* Returns the slot of the pair that begins at `at`, or NULL if it cannot merge. */
static const struct pair_slot *pair_at(const struct merging *m, uint32_t at) {
	const struct bpe_symbol *left = &m->s->symbols[at];
	if (left->id == VOCAB_NONE || left->after == NO_POSITION)
		return NULL;
	const struct pair_slot *slot = pair_table_find(&m->bpe->pairs, left->id, m->s->symbols[left->after].id);
	return slot->rank == PAIR_NO_RANK ? NULL : slot;
}

static void offer(struct merging *m, uint32_t at) {
	const struct pair_slot *slot = pair_at(m, at);
	if (slot)
		push(m->s, (uint64_t)slot->rank << 32 | at);
}

static void begin(struct merging *m, const uint8_t *piece, uint32_t n) {
	struct bpe_scratch *s = m->s;
	for (uint32_t i = 0; i < n; i++)
		s->symbols[i] = (struct bpe_symbol){.id = m->bpe->byte_token[piece[i]],
											.before = i > 0 ? i - 1 : NO_POSITION,
											.after = i + 1 < n ? i + 1 : NO_POSITION};
	s->heap_n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct pair_slot *slot = pair_at(m, i);
		if (slot)
			s->heap[s->heap_n++] = (uint64_t)slot->rank << 32 | i;
	}
	for (size_t i = s->heap_n / 2; i-- > 0;)
		sift_down(s, i);
}

static void merge_at(struct merging *m, uint32_t at, uint32_t into) {
	struct bpe_symbol *symbols = m->s->symbols, *left = &symbols[at], *right = &symbols[left->after];
	left->id = into;
	right->id = VOCAB_NONE;
	left->after = right->after;
	if (left->after != NO_POSITION)
		symbols[left->after].before = at;
	offer(m, at);
	if (left->before != NO_POSITION)
		offer(m, left->before);
}

enum rv_err bpe_merge_long(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n,
						   struct token_list *out, struct rv_errtext *et) {
	if (n > BPE_MAX_PIECE_BYTES)
		return rv_fail(et, RV_E_RANGE, "a piece of %zu bytes: the limit is %d; encode the text in parts", n,
					   BPE_MAX_PIECE_BYTES);
	struct merging m = {.bpe = b, .s = s};
	RV_TRY(reserve(s, n, et));
	begin(&m, piece, (uint32_t)n);
	while (s->heap_n > 0) {
		uint64_t top = pop(s);
		uint32_t at = (uint32_t)top;
		const struct pair_slot *slot = pair_at(&m, at);
		if (slot && slot->rank == top >> 32)
			merge_at(&m, at, slot->into);
	}
	for (uint32_t at = 0; at != NO_POSITION; at = s->symbols[at].after)
		RV_TRY(token_list_append(out, &s->symbols[at].id, 1, et));
	return RV_OK;
}
