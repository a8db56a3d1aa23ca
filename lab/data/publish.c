/* publish.c: `rivulet data publish`. */
#include "base/hex.h"
#include "lab/data/data.h"
#include "lab/run/console.h"
#include "train/text/publish/publish_text.h"

#include <inttypes.h>
#include <stdio.h>

static bool tick(void *console, uint64_t done, uint64_t total, uint64_t shards) {
	char note[48];
	(void)snprintf(note, sizeof note, "%" PRIu64 " shards written", shards);
	return console_progress(console, "publish", done, total, "byte", note);
}

static void tell_repaired(void *console, uint64_t shard) {
	struct console *c = console;
	char name[32];
	manifest_shard_name(shard, name);
	rv_progress_clear(c->events);
	rv_event(c->events, RV_WARN, "repaired", RV_FIELDS(rv_field_str("file", name)),
			 "%s was damaged or missing, and is made again", name);
}

static enum rv_err tell_done(const struct console *c, const char *out, const struct manifest *m, uint64_t bytes,
							 struct rv_errtext *et) {
	struct rv_hash hash;
	char hex[2 * RV_HASH_BYTES + 1];
	RV_TRY(manifest_hash(m, &hash, et));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	rv_event(c->events, RV_INFO, "published",
			 RV_FIELDS(rv_field_str("dir", out), rv_field_str("data-hash", hex), rv_field_int("tokens", m->n_tokens),
					   rv_field_int("shards", m->n_shards), rv_field_int("bytes_read", (int64_t)bytes)),
			 "%s: %" PRId64 " tokens in %" PRId64 " shards; data-hash = %s", out, m->n_tokens, m->n_shards, hex);
	if (!m->license[0])
		rv_event(c->events, RV_WARN, "no_license", RV_NO_FIELDS,
				 "no license is stated: members cannot tell what they may do with the text (--license)");
	return RV_OK;
}

enum rv_err data_publish(const struct data_options *o, const char *const *files, int n_files, struct rv_errtext *et) {
	struct console c = {.signals = -1};
	struct manifest m;
	uint64_t bytes = 0;
	const struct publish_text p = {.paths = files,
								   .n_paths = n_files,
								   .choice = {.format = o->format, .field = o->field, .split = o->split},
								   .tokenizer = o->tokenizer,
								   .pattern = o->pattern,
								   .separator = o->separator,
								   .shard_tokens = o->shard_tokens,
								   .holdout_every = o->holdout_every,
								   .license = o->license,
								   .description = o->description,
								   .mirrors = o->mirrors,
								   .out = o->out,
								   .threads = (int)o->threads,
								   .tick = tick,
								   .repaired = tell_repaired,
								   .ctx = &c};
	enum rv_err e = console_open(&c, stdout, et);
	if (e == RV_OK)
		e = publish_text(&p, &m, &bytes, et);
	if (c.events)
		rv_progress_clear(c.events);
	if (e == RV_OK)
		e = tell_done(&c, o->out, &m, bytes, et);
	console_close(&c);
	return e;
}
