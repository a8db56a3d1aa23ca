/* verify.c: `rivulet data verify`: the pages first, then the shards, each on a thread. */
#include "lab/data/data.h"
#include "lab/run/console.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/published.h"
#include "train/text/tokenizer/block_lanes.h"

#include "base/parallel.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum { DAMAGES_TOLD = 100 };

struct verification {
	const struct published *text;
	struct console console;
	struct index_shape shape;
	int level; /* of the pages that are checked; -1: the shards */
	atomic_uint_fast64_t done_bytes, damaged;
	atomic_bool stopped;
	uint64_t total_bytes;
};

static uint64_t item_bytes(const struct verification *v, uint64_t i) {
	if (v->level < 0)
		return manifest_shard_bytes(published_manifest(v->text), i);
	return index_page_hashes(&v->shape, v->level, i) * RV_HASH_BYTES;
}

static void tell_damage(struct verification *v, uint64_t i, const char *why) {
	char name[32];
	if (v->level < 0)
		manifest_shard_name(i, name);
	else
		index_page_name(v->level, i, name);
	if (atomic_fetch_add(&v->damaged, 1) < DAMAGES_TOLD)
		rv_event(v->console.events, RV_ERROR, "damaged",
				 RV_FIELDS(rv_field_str("file", name), rv_field_str("why", why)), "%s", why);
}

static void check_item(void *ctx, int i) {
	struct verification *v = ctx;
	struct rv_errtext why = {0};
	if (atomic_load(&v->stopped))
		return;
	enum rv_err e = v->level < 0 ? published_check_shard(v->text, (uint64_t)i, &why)
								 : published_check_page(v->text, v->level, (uint64_t)i, &why);
	if (e != RV_OK)
		tell_damage(v, (uint64_t)i, why.text);
	atomic_fetch_add(&v->done_bytes, item_bytes(v, (uint64_t)i));
}

static void tick(void *ctx) {
	struct verification *v = ctx;
	if (!console_progress(&v->console, "verify", atomic_load(&v->done_bytes), v->total_bytes, "byte", ""))
		atomic_store(&v->stopped, true);
}

/* Checks all pages of a level, or (-1) all shards. */
static enum rv_err check_all(struct verification *v, int level, int threads, struct rv_errtext *et) {
	v->level = level;
	const uint64_t n = level < 0 ? v->shape.n_shards : v->shape.n[level];
	const struct parallel_loop loop = {.n = (int)n, .threads = threads, .fn = check_item, .tick = tick, .ctx = v};
	RV_TRY(parallel_run(&loop, et));
	if (atomic_load(&v->stopped))
		return rv_fail(et, RV_E_CANCELLED, "stopped");
	const uint64_t damaged = atomic_load(&v->damaged);
	if (damaged == 0)
		return RV_OK;
	return rv_fail(
		et, RV_E_CORRUPT, "%" PRIu64 " of %" PRIu64 " %s are damaged or missing%s", damaged, n,
		level < 0 ? "shards" : "index pages",
		level < 0
			? ": fetch them again from where they came, or publish what they were made of into this directory again"
			: ": the shards below them cannot be checked");
}

static enum rv_err verify(struct verification *v, int threads, struct rv_errtext *et) {
	const struct manifest *m = published_manifest(v->text);
	v->shape = index_shape_of(m);
	v->total_bytes = manifest_text_bytes(m) + (uint64_t)m->n_shards * RV_HASH_BYTES;
	RV_TRY(published_check_tokenizer(v->text, et));
	for (int level = v->shape.levels - 1; level >= 0; level--)
		RV_TRY(check_all(v, level, threads, et));
	return check_all(v, -1, threads, et);
}

static void tell_done(const struct verification *v, const char *dir) {
	const struct manifest *m = published_manifest(v->text);
	rv_event(v->console.events, RV_INFO, "verified",
			 RV_FIELDS(rv_field_str("dir", dir), rv_field_int("shards", m->n_shards),
					   rv_field_int("tokens", m->n_tokens),
					   rv_field_int("bytes", (int64_t)atomic_load(&v->done_bytes))),
			 "%s: all %" PRId64 " shards are as published", dir, m->n_shards);
}

enum rv_err data_verify(const struct data_options *o, const char *dir, struct rv_errtext *et) {
	struct verification v = {.console = {.signals = -1}};
	struct published *text = NULL;
	enum rv_err e = console_open(&v.console, stdout, et);
	if (e == RV_OK)
		e = published_open(dir, &text, et);
	v.text = text;
	if (e == RV_OK)
		e = verify(&v, block_lanes_choose((int)o->threads), et);
	if (v.console.events)
		rv_progress_clear(v.console.events);
	if (e == RV_OK)
		tell_done(&v, dir);
	published_close(text);
	console_close(&v.console);
	return e;
}
