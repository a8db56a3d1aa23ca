/* patterns.h: the pre-tokenizers that are known by name, with the special tokens that go with them: tiktoken files hold
 * neither. The patterns are those that OpenAI (tiktoken, MIT) and Meta (Llama 3) published with their vocabularies. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PATTERNS_H
#define RV_TRAIN_TEXT_TOKENIZER_PATTERNS_H

#include "train/text/tokenizer/specials.h"

struct known_pattern {
	const char *name;
	const char *pattern;
	uint32_t n_ranks; /* of the vocabulary it was published with */
	/* Adds the special tokens; their ids follow n_ranks. */
	enum rv_err (*add_specials)(struct special_set *s, uint32_t n_ranks, struct rv_errtext *et);
};

extern const struct known_pattern known_patterns[]; /* ended by name == NULL */

/* GPT-2's, which the "ByteLevel" pre-tokenizer uses too. */
extern const char pattern_gpt2[];

/* By name, or NULL. */
const struct known_pattern *known_pattern_find(const char *name);
/* By the number of ranks, or NULL. */
const struct known_pattern *known_pattern_of_ranks(size_t n_ranks);

#endif
