/* kind_tiktoken.c: rank files, one `base64 rank` per line. A pair merges if its concatenation is a
 * token; the rank is the id. Loading finds the pairs; encoding is that of any BPE. */
#include "train/text/tokenizer/patterns.h"
#include "train/text/tokenizer/tokenizer_internal.h"

#include <sodium/utils.h>
#include <stdlib.h>
#include <string.h>

/* Limit on the sum over all tokens of length squared: the time to find their splits. */
static const uint64_t max_split_work = (uint64_t)1 << 32;

enum { BASE64_MAX_BYTES = (VOCAB_MAX_TOKEN_BYTES + 2) / 3 * 4 + 4, RANK_MAX_DIGITS = 9 };

static bool is_base64(uint8_t c) {
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
		   c == '=';
}

static bool recognise(const uint8_t *data, size_t n) {
	size_t i = 0;
	while (i < n && i < BASE64_MAX_BYTES && is_base64(data[i]))
		i++;
	return i > 0 && i + 1 < n && data[i] == ' ' && data[i + 1] >= '0' && data[i + 1] <= '9';
}

struct line {
	const char *base64;
	size_t base64_n;
	uint32_t rank;
};

static size_t count_lines(const uint8_t *data, size_t n) {
	size_t lines = 0;
	for (size_t i = 0; i < n; i++)
		lines += data[i] == '\n';
	return lines + (n > 0 && data[n - 1] != '\n');
}

/* Parses data[0, n), one line without its end. */
static enum rv_err parse_line(const uint8_t *data, size_t n, size_t number, struct line *out, struct rv_errtext *et) {
	const uint8_t *space = memchr(data, ' ', n);
	size_t digits = space ? (size_t)(data + n - space - 1) : 0;
	if (digits == 0 || digits > RANK_MAX_DIGITS)
		return rv_fail(et, RV_E_INVALID, "line %zu: must be a token in base64, a space and its rank", number);
	*out = (struct line){.base64 = (const char *)data, .base64_n = (size_t)(space - data)};
	for (size_t i = 1; i <= digits; i++) {
		if (space[i] < '0' || space[i] > '9')
			return rv_fail(et, RV_E_INVALID, "line %zu: the rank is not a number", number);
		out->rank = out->rank * 10 + (uint32_t)(space[i] - '0');
	}
	if (out->base64_n > BASE64_MAX_BYTES)
		return rv_fail(et, RV_E_RANGE, "line %zu: a token of more than %d bytes", number, VOCAB_MAX_TOKEN_BYTES);
	return RV_OK;
}

static enum rv_err put_line(struct vocab *v, const uint8_t *data, size_t n, size_t number, uint8_t *token,
							struct rv_errtext *et) {
	struct line line = {0};
	struct rv_errtext why = {0};
	size_t len;
	RV_TRY(parse_line(data, n, number, &line, et));
	if (sodium_base642bin(token, BASE64_MAX_BYTES, line.base64, line.base64_n, NULL, &len, NULL,
						  sodium_base64_VARIANT_ORIGINAL) != 0)
		return rv_fail(et, RV_E_INVALID, "line %zu: not base64", number);
	enum rv_err e = vocab_put(v, line.rank, token, len, true, &why);
	return e == RV_OK ? RV_OK : rv_fail(et, e, "line %zu: %s", number, why.text);
}

static enum rv_err put_lines(struct vocab *v, const uint8_t *data, size_t n, struct rv_errtext *et) {
	uint8_t *token = malloc(BASE64_MAX_BYTES);
	if (!token)
		return rv_fail(et, RV_E_NOMEM, "no memory for a token");
	enum rv_err e = RV_OK;
	for (size_t number = 1; n > 0 && e == RV_OK; number++) {
		const uint8_t *end = memchr(data, '\n', n);
		size_t whole = end ? (size_t)(end - data) + 1 : n, len = end ? whole - 1 : n;
		len -= len > 0 && data[len - 1] == '\r';
		e = put_line(v, data, len, number, token, et);
		data += whole;
		n -= whole;
	}
	free(token);
	return e;
}

static enum rv_err check_split_work(const struct vocab *v, struct rv_errtext *et) {
	uint64_t work = 0;
	for (uint32_t id = 0; id < v->n_ids; id++)
		work += (uint64_t)v->tokens[id].n * v->tokens[id].n;
	if (work > max_split_work)
		return rv_fail(et, RV_E_RANGE,
					   "too many long tokens: the squares of their lengths add up to %llu, the limit is %llu",
					   (unsigned long long)work, (unsigned long long)max_split_work);
	return RV_OK;
}

/* Returns how many pairs of tokens make up a token, and adds them to `pairs` unless NULL. */
static size_t find_splits(const struct vocab *v, uint32_t id, struct pair_table *pairs) {
	size_t n, found = 0;
	const uint8_t *bytes = vocab_bytes(v, id, &n);
	for (size_t cut = 1; bytes && cut < n; cut++) {
		uint32_t left = vocab_find(v, bytes, cut), right = VOCAB_NONE;
		if (left != VOCAB_NONE)
			right = vocab_find(v, bytes + cut, n - cut);
		if (right == VOCAB_NONE)
			continue;
		found++;
		if (pairs)
			(void)pair_table_put(pairs, left, right, id, id); /* never a duplicate: a pair has one concatenation */
	}
	return found;
}

static enum rv_err find_pairs(struct bpe *b, struct rv_errtext *et) {
	size_t n_pairs = 0;
	RV_TRY(check_split_work(&b->vocab, et));
	for (uint32_t id = 0; id < b->vocab.n_ids; id++)
		n_pairs += find_splits(&b->vocab, id, NULL);
	RV_TRY(pair_table_init(&b->pairs, n_pairs, et));
	for (uint32_t id = 0; id < b->vocab.n_ids; id++)
		(void)find_splits(&b->vocab, id, &b->pairs);
	return RV_OK;
}

static enum rv_err choose_pattern(const char *pattern, size_t n_ranks, const struct known_pattern **out,
								  struct rv_errtext *et) {
	bool automatic = strcmp(pattern, "auto") == 0;
	*out = automatic ? known_pattern_of_ranks(n_ranks) : known_pattern_find(pattern);
	if (automatic && !*out)
		return rv_fail(et, RV_E_INVALID,
					   "%zu ranks match no known vocabulary: give the pattern (cl100k_base, gpt2, llama3, o200k_base, "
					   "or a regular expression)",
					   n_ranks);
	return RV_OK;
}

/* Adds the special tokens, whose ids may leave holes above the ranks: tokens that never occur. */
static enum rv_err put_specials(struct tokenizer *t, struct rv_errtext *et) {
	for (size_t i = 0; i < t->specials.n; i++) {
		const struct special *s = &t->specials.at[i];
		RV_TRY(vocab_put(&t->bpe.vocab, s->id, (const uint8_t *)s->text, s->n, false, et));
	}
	return RV_OK;
}

static enum rv_err load(struct tokenizer *t, const uint8_t *data, size_t n, const char *pattern,
						struct rv_errtext *et) {
	size_t n_ranks = count_lines(data, n), n_ids = n_ranks;
	const struct known_pattern *known;
	if (n_ranks > VOCAB_MAX_TOKENS)
		return rv_fail(et, RV_E_RANGE, "%zu ranks: the limit is %d", n_ranks, VOCAB_MAX_TOKENS);
	RV_TRY(choose_pattern(pattern, n_ranks, &known, et));
	const char *regex = known ? known->pattern : pattern;
	RV_TRY(pretokenizer_add(&t->pretokenizer, regex, strlen(regex), false, et));
	if (known)
		RV_TRY(known->add_specials(&t->specials, (uint32_t)n_ranks, et));
	for (size_t i = 0; i < t->specials.n; i++)
		n_ids = t->specials.at[i].id >= n_ids ? t->specials.at[i].id + 1 : n_ids;
	RV_TRY(vocab_init(&t->bpe.vocab, n_ids, et));
	RV_TRY(put_lines(&t->bpe.vocab, data, n, et));
	RV_TRY(vocab_check_no_holes(&t->bpe.vocab, (uint32_t)n_ranks, et));
	RV_TRY(bpe_find_bytes(&t->bpe, et));
	t->bpe.whole_pieces_first = true;
	RV_TRY(find_pairs(&t->bpe, et));
	return put_specials(t, et);
}

const struct tokenizer_kind tokenizer_kind_tiktoken = {
	.name = "tiktoken",
	.recognise = recognise,
	.load = load,
	.encode = encoder_encode_bpe,
};
