/* patterns.h: patterns and special tokens known by name, which tiktoken files do not contain: those
 * that OpenAI (tiktoken, MIT) and Meta (Llama 3) published with their vocabularies. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PATTERNS_H
#define RV_TRAIN_TEXT_TOKENIZER_PATTERNS_H

#include "train/text/tokenizer/specials.h"

struct known_pattern {
	const char *name;
	const char *pattern;
	uint32_t n_ranks; /* number of ranks of the vocabulary it was published with */
	/* Adds the special tokens, with ids from n_ranks on. Returns what specials_add returns. */
	enum rv_err (*add_specials)(struct special_set *s, uint32_t n_ranks, struct rv_errtext *et);
};

extern const struct known_pattern known_patterns[]; /* ended by name == NULL */

/* GPT-2's pattern, which the "ByteLevel" pre-tokenizer uses too. */
extern const char pattern_gpt2[];

/* Returns the pattern with this name, or NULL. */
const struct known_pattern *known_pattern_find(const char *name);
/* Returns the pattern whose vocabulary has this number of ranks, or NULL. */
const struct known_pattern *known_pattern_of_ranks(size_t n_ranks);

#endif
