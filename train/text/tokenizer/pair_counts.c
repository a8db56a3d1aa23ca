/* pair_counts.c: a hash table and a lazy heap. A pair that gained is offered again; one that became
 * rarer returns to the heap with its present count when it surfaces. */
#include "train/text/tokenizer/pair_counts.h"

#include "train/text/tokenizer/buffers.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1 << 12 };

static size_t slot_of(const struct pair_counts *c, uint64_t key) {
	uint64_t h = key * 0x9e3779b97f4a7c15u;
	size_t at = (h ^ h >> 32) & (c->n_slots - 1);
	while (c->slots[at] != UINT32_MAX && c->at[c->slots[at]].key != key)
		at = (at + 1) & (c->n_slots - 1);
	return at;
}

static enum rv_err grow_slots(struct pair_counts *c, struct rv_errtext *et) {
	size_t n_slots = c->n_slots ? 2 * c->n_slots : FIRST_SLOTS;
	uint32_t *slots = malloc(n_slots * sizeof *slots);
	struct pair_count *at = realloc(c->at, n_slots / 2 * sizeof *at);
	uint32_t *gained = realloc(c->gained, n_slots / 2 * sizeof *gained);
	if (at)
		c->at = at;
	if (gained)
		c->gained = gained;
	if (!slots || !at || !gained) {
		free(slots);
		return rv_fail(et, RV_E_NOMEM, "no memory to count %zu pairs", n_slots / 2);
	}
	memset(slots, 0xff, n_slots * sizeof *slots);
	free(c->slots);
	c->slots = slots;
	c->n_slots = n_slots;
	c->cap = n_slots / 2;
	for (size_t i = 0; i < c->n; i++)
		c->slots[slot_of(c, c->at[i].key)] = (uint32_t)i;
	return RV_OK;
}

static enum rv_err remember_word(struct pair_count *p, uint32_t word, struct rv_errtext *et) {
	if (p->n_words > 0 && p->words[p->n_words - 1] == word)
		return RV_OK;
	if (p->n_words == p->cap_words) {
		uint32_t cap = 2 * p->cap_words + 2;
		uint32_t *grown = realloc(p->words, cap * sizeof *grown);
		if (!grown)
			return rv_fail(et, RV_E_NOMEM, "no memory for the words of a pair");
		p->words = grown;
		p->cap_words = cap;
	}
	p->words[p->n_words++] = word;
	return RV_OK;
}

enum rv_err pair_counts_add(struct pair_counts *c, uint64_t key, int64_t delta, uint32_t word, struct rv_errtext *et) {
	if (c->n == c->cap)
		RV_TRY(grow_slots(c, et));
	size_t slot = slot_of(c, key);
	if (c->slots[slot] == UINT32_MAX) {
		c->at[c->n] = (struct pair_count){.key = key};
		c->slots[slot] = (uint32_t)c->n++;
	}
	struct pair_count *p = &c->at[c->slots[slot]];
	p->count += delta;
	if (delta <= 0 || p->taken)
		return RV_OK;
	if (!p->gained)
		c->gained[c->n_gained++] = (uint32_t)(p - c->at);
	p->gained = true;
	return remember_word(p, word, et);
}

static bool better(const struct pair_candidate *a, const struct pair_candidate *b) {
	return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static void sift_up(struct pair_counts *c, struct pair_candidate moved) {
	size_t at = c->heap_n++;
	for (; at > 0 && better(&moved, &c->heap[(at - 1) / 2]); at = (at - 1) / 2)
		c->heap[at] = c->heap[(at - 1) / 2];
	c->heap[at] = moved;
}

static struct pair_candidate pop(struct pair_counts *c) {
	struct pair_candidate top = c->heap[0], moved = c->heap[--c->heap_n];
	size_t at = 0;
	for (size_t child = 1; child < c->heap_n; child = 2 * at + 1) {
		if (child + 1 < c->heap_n && better(&c->heap[child + 1], &c->heap[child]))
			child++;
		if (!better(&c->heap[child], &moved))
			break;
		c->heap[at] = c->heap[child];
		at = child;
	}
	c->heap[at] = moved;
	return top;
}

enum rv_err pair_counts_offer(struct pair_counts *c, struct rv_errtext *et) {
	struct pair_candidate *grown = list_grow(c->heap, &c->heap_cap, c->heap_n, c->n_gained, sizeof *grown, et);
	if (!grown)
		return RV_E_NOMEM;
	c->heap = grown;
	for (size_t i = 0; i < c->n_gained; i++) {
		struct pair_count *p = &c->at[c->gained[i]];
		p->gained = false;
		if (p->count > 0)
			sift_up(c, (struct pair_candidate){.count = p->count, .key = p->key});
	}
	c->n_gained = 0;
	return RV_OK;
}

bool pair_counts_take(struct pair_counts *c, struct pair_count *out) {
	while (c->heap_n > 0) {
		struct pair_candidate top = pop(c);
		struct pair_count *p = &c->at[c->slots[slot_of(c, top.key)]];
		if (p->taken || p->count <= 0)
			continue;
		if (p->count != top.count) {
			sift_up(c, (struct pair_candidate){.count = p->count, .key = p->key});
			continue;
		}
		*out = *p;
		p->taken = true;
		p->words = NULL;
		p->n_words = p->cap_words = 0;
		return true;
	}
	return false;
}

void pair_counts_release(struct pair_counts *c) {
	for (size_t i = 0; i < c->n; i++)
		free(c->at[i].words);
	free(c->at);
	free(c->slots);
	free(c->gained);
	free(c->heap);
	*c = (struct pair_counts){0};
}
