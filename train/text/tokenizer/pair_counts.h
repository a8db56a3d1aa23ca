/* pair_counts.h: how often each pair of adjacent tokens occurs, in which words, and which is the most frequent. Inner
 * part of bpe_train.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PAIR_COUNTS_H
#define RV_TRAIN_TEXT_TOKENIZER_PAIR_COUNTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair_count {
	uint64_t key; /* left id << 32 | right id */
	int64_t count;
	uint32_t *words; /* ascending as they were added; some may no longer hold the pair */
	uint32_t n_words, cap_words;
	bool gained; /* occurs more often than when it was last offered */
	bool taken;  /* never a candidate again */
};

struct pair_candidate {
	int64_t count; /* when it was offered */
	uint64_t key;
};

/* Zero-initialise. */
struct pair_counts {
	struct pair_count *at;
	size_t n, cap;
	uint32_t *slots; /* open addressing: index into `at`, or UINT32_MAX; keys are our own, not an attacker's */
	size_t n_slots;
	uint32_t *gained; /* (cap) indices into `at` */
	size_t n_gained;
	struct pair_candidate *heap; /* the first is the best: highest count, among equals the lowest key */
	size_t heap_n, heap_cap;
};

/* Adds `delta` to the count of a pair in a word; the word is remembered when delta > 0. RV_E_NOMEM. */
enum rv_err pair_counts_add(struct pair_counts *c, uint64_t key, int64_t delta, uint32_t word, struct rv_errtext *et);
/* Makes candidates of the pairs that have gained since the last call. RV_E_NOMEM. */
enum rv_err pair_counts_offer(struct pair_counts *c, struct rv_errtext *et);
/* Takes the most frequent pair: false when none occurs any more. `out` owns its words: free() them. */
bool pair_counts_take(struct pair_counts *c, struct pair_count *out);
void pair_counts_release(struct pair_counts *c);

#endif
