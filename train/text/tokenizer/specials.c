/* specials.c: a sorted array serves as a trie: entries with a common prefix are one range of it. */
#include "train/text/tokenizer/specials.h"

#include "train/text/tokenizer/buffers.h"
#include "train/text/tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

enum rv_err specials_add(struct special_set *s, const char *text, size_t n, const struct special *kind,
						 struct rv_errtext *et) {
	uint32_t id = kind->id;
	if (s->n == SPECIALS_MAX)
		return rv_fail(et, RV_E_RANGE, "more than %d special tokens", SPECIALS_MAX);
	if (n == 0 || n > SPECIAL_MAX_BYTES)
		return rv_fail(et, RV_E_RANGE, "special token %u has %zu bytes: must have 1 to %d", id, n, SPECIAL_MAX_BYTES);
	struct special *grown = list_grow(s->at, &s->cap, s->n, 1, sizeof *grown, et);
	if (!grown)
		return RV_E_NOMEM;
	s->at = grown;
	char *copy = malloc(n);
	if (!copy)
		return rv_fail(et, RV_E_NOMEM, "no memory for special token %u", id);
	memcpy(copy, text, n);
	s->at[s->n++] = (struct special){
		.text = copy, .n = (uint32_t)n, .id = id, .plain = kind->plain, .normalized = kind->normalized};
	s->n_of[kind->plain][kind->normalized]++;
	s->first_byte[(uint8_t)text[0]] = true;
	return RV_OK;
}

void specials_release(struct special_set *s) {
	for (size_t i = 0; i < s->n; i++)
		free(s->at[i].text);
	free(s->at);
	*s = (struct special_set){0};
}

static int compare(const char *a, size_t n_a, const char *b, size_t n_b) {
	int c = memcmp(a, b, n_a < n_b ? n_a : n_b);
	return c != 0 ? c : (n_a > n_b) - (n_a < n_b);
}

static int by_text(const void *a, const void *b) {
	const struct special *x = a, *y = b;
	return compare(x->text, x->n, y->text, y->n);
}

enum rv_err specials_sort(struct special_set *s, struct rv_errtext *et) {
	if (s->n > 1)
		qsort(s->at, s->n, sizeof *s->at, by_text);
	for (size_t i = 1; i < s->n; i++) {
		const struct special *x = &s->at[i - 1], *y = &s->at[i];
		char quoted[VOCAB_QUOTE_BYTES];
		if (by_text(x, y) == 0)
			return rv_fail(et, RV_E_INVALID, "special token \"%s\" occurs twice, as %u and as %u",
						   vocab_quote((const uint8_t *)x->text, x->n, quoted), x->id, y->id);
	}
	return RV_OK;
}

const struct special *specials_find(const struct special_set *s, const char *text, size_t n) {
	size_t lo = 0, hi = s->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = compare(s->at[mid].text, s->at[mid].n, text, n);
		if (c == 0)
			return &s->at[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Returns the first of the entries [lo, hi), which share their first `depth` bytes, whose next byte
 * is >= c; an entry that ends there comes before all. */
static size_t first_with(const struct special_set *s, size_t lo, size_t hi, size_t depth, int c) {
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int next = s->at[mid].n > depth ? (uint8_t)s->at[mid].text[depth] : -1;
		if (next < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool wanted(const struct special *s, struct special_filter f) {
	return (s->plain || f.with_special) && s->normalized == f.normalized;
}

/* Returns the longest token that text[0, n) begins with, or NULL. */
static const struct special *longest_at(const struct special_set *s, const uint8_t *text, size_t n,
										struct special_filter filter) {
	const struct special *best = NULL;
	size_t lo = 0, hi = s->n;
	for (size_t depth = 0; depth < n && lo < hi; depth++) {
		size_t from = first_with(s, lo, hi, depth, text[depth]);
		hi = first_with(s, from, hi, depth, text[depth] + 1);
		lo = from;
		if (lo < hi && s->at[lo].n == depth + 1 && wanted(&s->at[lo], filter))
			best = &s->at[lo];
	}
	return best;
}

const struct special *specials_next(const struct special_set *s, const uint8_t *text, size_t n,
									struct special_filter filter, size_t *at) {
	size_t candidates =
		s->n_of[true][filter.normalized] + (filter.with_special ? s->n_of[false][filter.normalized] : 0);
	for (*at = 0; *at < n && candidates > 0; ++*at) {
		if (!s->first_byte[text[*at]])
			continue;
		const struct special *found = longest_at(s, text + *at, n - *at, filter);
		if (found)
			return found;
	}
	*at = n;
	return NULL;
}
