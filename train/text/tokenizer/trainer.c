/* trainer.c: counts pieces with the pre-tokenizer, and writes the layout of tokenizer.json. */
#include "train/text/tokenizer/trainer.h"

#include "train/text/tokenizer/byte_level.h"
#include "train/text/tokenizer/huggingface_json.h"
#include "train/text/tokenizer/patterns.h"
#include "train/text/tokenizer/pretokenizer.h"
#include "train/text/tokenizer/utf8.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct piece_counter {
	struct pretokenizer pretokenizer;
	struct pretokenizer_scratch *matcher;
	struct piece_counts counts;
};

enum rv_err piece_counter_new(struct piece_counter **out, struct rv_errtext *et) {
	struct piece_counter *c = calloc(1, sizeof *c);
	*out = NULL;
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "no memory to count pieces");
	enum rv_err e = pretokenizer_add(&c->pretokenizer, pattern_gpt2, strlen(pattern_gpt2), false, et);
	if (e == RV_OK)
		e = pretokenizer_scratch_new(&c->matcher, et);
	if (e == RV_OK)
		*out = c;
	else
		piece_counter_free(c);
	return e;
}

void piece_counter_free(struct piece_counter *c) {
	if (!c)
		return;
	pretokenizer_release(&c->pretokenizer);
	pretokenizer_scratch_free(c->matcher);
	piece_counts_release(&c->counts);
	free(c);
}

static enum rv_err count(void *ctx, const uint8_t *piece, size_t n, struct rv_errtext *et) {
	return piece_counts_add(ctx, piece, n, 1, et);
}

/* Counts as encoding cuts (tokenizer.h): each run of bytes that are not UTF-8 is a piece. */
enum rv_err piece_counter_add(struct piece_counter *c, const uint8_t *text, size_t n, struct rv_errtext *et) {
	while (n > 0) {
		size_t valid = utf8_valid_prefix(text, n);
		RV_TRY(pretokenizer_run(&c->pretokenizer, c->matcher, text, valid, count, &c->counts, et));
		size_t invalid = utf8_invalid_prefix(text + valid, n - valid);
		RV_TRY(piece_counts_add(&c->counts, text + valid, invalid, 1, et));
		text += valid + invalid;
		n -= valid + invalid;
	}
	return RV_OK;
}

struct piece_counts *piece_counter_counts(struct piece_counter *c) {
	return &c->counts;
}

/* Writes the byte-level text of a token. Returns its length in bytes. */
static size_t token_text(const struct vocab *v, uint32_t id, char out[static 4 * PIECE_COUNTS_MAX_BYTES]) {
	size_t n;
	const uint8_t *bytes = vocab_bytes(v, id, &n);
	return byte_level_encode(bytes, n, out);
}

static json_t *vocab_object(const struct trained_bpe *b, const char *end_of_text) {
	json_t *o = json_object();
	char text[4 * PIECE_COUNTS_MAX_BYTES];
	int failed = 0;
	for (uint32_t id = 0; id < b->vocab.n_ids; id++)
		failed |= json_object_setn_new(o, text, token_text(&b->vocab, id, text), json_integer(id));
	failed |= json_object_set_new(o, end_of_text, json_integer(b->vocab.n_ids));
	if (!failed)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *merges_array(const struct trained_bpe *b) {
	json_t *list = json_array();
	char text[8 * PIECE_COUNTS_MAX_BYTES + 1];
	int failed = 0;
	for (size_t i = 0; i < b->n_merges; i++) {
		size_t n = token_text(&b->vocab, b->merges[i].left, text);
		text[n++] = ' ';
		n += token_text(&b->vocab, b->merges[i].right, text + n);
		failed |= json_array_append_new(list, json_stringn(text, n));
	}
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

static char *make_text(const struct trained_bpe *b) {
	static const char end_of_text[] = "<|endoftext|>";
	json_t *added = json_pack("[{si ss sb sb sb sb sb}]", "id", (int)b->vocab.n_ids, "content", end_of_text,
							  "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
	return huggingface_json(vocab_object(b, end_of_text), merges_array(b), added, byte_level_json());
}

enum rv_err trainer_make_json(const struct piece_counts *pieces, uint32_t vocab, bpe_train_progress *progress,
							  void *ctx, char **json, struct rv_errtext *et) {
	struct trained_bpe trained;
	*json = NULL;
	if (vocab < TRAINER_MIN_VOCAB || vocab > VOCAB_MAX_TOKENS)
		return rv_fail(et, RV_E_RANGE, "a vocabulary of %u tokens: must have %d to %d", vocab, TRAINER_MIN_VOCAB,
					   VOCAB_MAX_TOKENS);
	RV_TRY(bpe_train(pieces, vocab - 1, progress, ctx, &trained, et));
	*json = make_text(&trained);
	trained_bpe_release(&trained);
	return *json ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a tokenizer.json of %u tokens", vocab);
}
