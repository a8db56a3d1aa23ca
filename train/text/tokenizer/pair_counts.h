/* pair_counts.h: counts pairs of adjacent tokens and the words they occur in, and finds the most
 * frequent. Inner part of bpe_train.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PAIR_COUNTS_H
#define RV_TRAIN_TEXT_TOKENIZER_PAIR_COUNTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair_count {
	uint64_t key; /* left id << 32 | right id */
	int64_t count;
	uint32_t *words; /* (n_words) ascending; some may no longer contain the pair */
	uint32_t n_words, cap_words;
	bool gained; /* occurs more often than at its last offer */
	bool taken;  /* was the most frequent pair; never a candidate again */
};

struct pair_candidate {
	int64_t count; /* count at its offer */
	uint64_t key;
};

/* Zero-initialised by the caller. */
struct pair_counts {
	struct pair_count *at;
	size_t n, cap;
	uint32_t *slots; /* open addressing: index into `at`, or UINT32_MAX; no file chooses the keys */
	size_t n_slots;
	uint32_t *gained; /* (cap) indices into `at` */
	size_t n_gained;
	struct pair_candidate *heap; /* binary heap: highest count first, among equals the lowest key */
	size_t heap_n, heap_cap;
};

/* Adds `delta` to the count of a pair in `word`, recorded if delta > 0. Returns RV_E_NOMEM. */
enum rv_err pair_counts_add(struct pair_counts *c, uint64_t key, int64_t delta, uint32_t word, struct rv_errtext *et);
/* Makes candidates of the pairs that gained since the last call. Returns RV_E_NOMEM. */
enum rv_err pair_counts_offer(struct pair_counts *c, struct rv_errtext *et);
/* Takes the most frequent pair, whose words the caller frees. Returns false if no pair occurs. */
bool pair_counts_take(struct pair_counts *c, struct pair_count *out);
void pair_counts_release(struct pair_counts *c);

#endif
