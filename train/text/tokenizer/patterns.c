/* patterns.c: the table of known patterns. */
#include "train/text/tokenizer/patterns.h"

#include <stdio.h>
#include <string.h>

const char pattern_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

#define PATTERN_CL100K                                                                                                 \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"           \
	"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define PATTERN_O200K                                                                                                  \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER                \
	"*" CONTRACTIONS "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static enum rv_err add(struct special_set *s, const char *text, uint32_t id, struct rv_errtext *et) {
	return specials_add(s, text, strlen(text), &(struct special){.id = id}, et);
}

static enum rv_err gpt2_specials(struct special_set *s, uint32_t n_ranks, struct rv_errtext *et) {
	return add(s, "<|endoftext|>", n_ranks, et);
}

static enum rv_err cl100k_specials(struct special_set *s, uint32_t n_ranks, struct rv_errtext *et) {
	RV_TRY(add(s, "<|endoftext|>", n_ranks + 1, et));
	RV_TRY(add(s, "<|fim_prefix|>", n_ranks + 2, et));
	RV_TRY(add(s, "<|fim_middle|>", n_ranks + 3, et));
	RV_TRY(add(s, "<|fim_suffix|>", n_ranks + 4, et));
	return add(s, "<|endofprompt|>", n_ranks + 20, et);
}

static enum rv_err o200k_specials(struct special_set *s, uint32_t n_ranks, struct rv_errtext *et) {
	RV_TRY(add(s, "<|endoftext|>", n_ranks + 1, et));
	return add(s, "<|endofprompt|>", n_ranks + 20, et);
}

/* Adds ten named tokens and 246 reserved ones; five of the named are reserved ones too. */
static enum rv_err llama3_specials(struct special_set *s, uint32_t n_ranks, struct rv_errtext *et) {
	enum { SPECIALS = 256, NAMED = 10, RESERVED_AMONG_NAMED = 5 };
	static const char *const named[NAMED] = {
		"<|begin_of_text|>",
		"<|end_of_text|>",
		"<|reserved_special_token_0|>",
		"<|reserved_special_token_1|>",
		"<|reserved_special_token_2|>",
		"<|reserved_special_token_3|>",
		"<|start_header_id|>",
		"<|end_header_id|>",
		"<|reserved_special_token_4|>",
		"<|eot_id|>",
	};
	for (uint32_t i = 0; i < SPECIALS; i++) {
		char text[48];
		(void)snprintf(text, sizeof text, "<|reserved_special_token_%u|>", i - NAMED + RESERVED_AMONG_NAMED);
		RV_TRY(add(s, i < NAMED ? named[i] : text, n_ranks + i, et));
	}
	return RV_OK;
}

const struct known_pattern known_patterns[] = {
	{"cl100k_base", PATTERN_CL100K, 100256, cl100k_specials},
	{"gpt2", pattern_gpt2, 50256, gpt2_specials},
	{"llama3", PATTERN_CL100K, 128000, llama3_specials},
	{"o200k_base", PATTERN_O200K, 199998, o200k_specials},
	{.name = NULL},
};

const struct known_pattern *known_pattern_find(const char *name) {
	for (const struct known_pattern *p = known_patterns; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

const struct known_pattern *known_pattern_of_ranks(size_t n_ranks) {
	for (const struct known_pattern *p = known_patterns; p->name; p++)
		if (p->n_ranks == n_ranks)
			return p;
	return NULL;
}
