/* tokens.c: tokenizers and files of tokens. */
#include "lab/inspect/inspect.h"
#include "lab/worker_files/facts.h"

#include "base/file.h"
#include "train/text/tokenizer/shard.h"
#include "train/text/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* Adds the added tokens of a tokenizer.json, which tokenizer_load has accepted. */
static void put_added(const uint8_t *text, size_t n, json_t *facts) {
	json_t *root = json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL), *added;
	json_t *list = json_array();
	size_t i;
	json_array_foreach(json_object_get(root, "added_tokens"), i, added) {
		json_array_append_new(list, json_pack("{sO sO sb}", "token", json_object_get(added, "content"), "id",
											  json_object_get(added, "id"), "special",
											  json_is_true(json_object_get(added, "special"))));
	}
	json_object_set_new(facts, "added_tokens", list);
	json_decref(root);
}

enum rv_err inspect_tokenizer(const char *path, json_t *facts, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	struct tokenizer *t;
	RV_TRY(rv_file_read(path, TOKENIZER_MAX_FILE_BYTES, &text, &n, et));
	enum rv_err e = tokenizer_load(path, text, n, "auto", &t, et);
	if (e == RV_OK) {
		uint32_t end = tokenizer_end_of_text(t);
		facts_put(facts, "{ss sI so}", "sort", tokenizer_kind(t), "vocab", (json_int_t)tokenizer_vocab(t),
				  "end_of_text", end == TOKENIZER_NO_TOKEN ? json_null() : json_integer(end));
		if (strcmp(tokenizer_kind(t), "huggingface") == 0)
			put_added(text, n, facts);
		facts_put_hash(facts, "tokenizer-hash", tokenizer_hash(t));
		tokenizer_free(t);
	}
	free(text);
	return e;
}

/* Adds the smallest and the largest id of the whole file. */
static enum rv_err put_range(const struct shard *s, json_t *facts, struct rv_errtext *et) {
	enum { PIECE = 4096 };
	int32_t ids[PIECE], least = INT32_MAX, most = 0;
	for (uint64_t at = 0; at < s->n_tokens; at += PIECE) {
		size_t n = s->n_tokens - at < PIECE ? (size_t)(s->n_tokens - at) : PIECE;
		RV_TRY(shard_read(s, SHARD_ANY_TOKEN, at, n, ids, et));
		for (size_t i = 0; i < n; i++) {
			least = ids[i] < least ? ids[i] : least;
			most = ids[i] > most ? ids[i] : most;
		}
	}
	if (s->n_tokens > 0)
		facts_put(facts, "{si si}", "least_id", (int)least, "largest_id", (int)most);
	return RV_OK;
}

enum rv_err inspect_shard(const char *path, json_t *facts, struct rv_errtext *et) {
	struct shard s;
	RV_TRY(shard_open(&s, path, et));
	const bool header = s.tokens_at > 0, narrow = s.token_bytes == 2;
	json_object_set_new(facts, "header", header ? json_string("llm.c") : json_null());
	if (header)
		facts_put(facts, "{sI si}", "magic", (json_int_t)(narrow ? SHARD_MAGIC_U16 : SHARD_MAGIC_U32), "version",
				  narrow ? SHARD_VERSION_U16 : SHARD_VERSION_U32);
	facts_put(facts, "{si sI}", "bits", 8 * (int)s.token_bytes, "tokens", (json_int_t)s.n_tokens);
	enum rv_err e = put_range(&s, facts, et);
	shard_close(&s);
	return e;
}
