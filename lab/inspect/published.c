/* published.c: a directory of published text, by its manifest. */
#include "lab/inspect/inspect.h"
#include "lab/worker_files/facts.h"
#include "train/text/published/manifest.h"

static json_t *list_of(const char *items, size_t cap, int64_t n) {
	json_t *list = json_array();
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(items + (size_t)i * cap));
	return list;
}

enum rv_err inspect_published(const char *path, json_t *facts, struct rv_errtext *et) {
	struct manifest m;
	struct rv_hash hash;
	RV_TRY(manifest_read(path, &m, et));
	RV_TRY(manifest_hash(&m, &hash, et));
	const int64_t blocks = m.n_tokens / MANIFEST_BLOCK_TOKENS;
	facts_put_hash(facts, "data-hash", &hash);
	facts_put(facts, "{sI sI sI}", "tokens", (json_int_t)m.n_tokens, "shards", (json_int_t)m.n_shards, "shard_tokens",
			  (json_int_t)m.shard_tokens);
	facts_put(facts, "{ss sI so}", "tokenizer", m.tokenizer_file[0] ? m.tokenizer_file : "bytes", "vocab",
			  (json_int_t)m.vocab, "separator", m.separator < 0 ? json_null() : json_integer(m.separator));
	if (m.tokenizer_file[0])
		facts_put_hash(facts, "tokenizer-hash", &m.tokenizer_hash);
	facts_put(facts, "{sI sI}", "holdout_every", (json_int_t)m.holdout_every, "heldout_tokens",
			  (json_int_t)(blocks / m.holdout_every * MANIFEST_BLOCK_TOKENS));
	facts_put(facts, "{ss ss}", "license", m.license, "description", m.description);
	facts_put(facts, "{so sI so}", "sources", list_of(m.sources[0], sizeof m.sources[0], m.n_named), "sources_total",
			  (json_int_t)m.n_sources, "mirrors", list_of(m.mirrors[0], sizeof m.mirrors[0], m.n_mirrors));
	return RV_OK;
}
