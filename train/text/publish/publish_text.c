/* publish_text.c: see publish_text.h. */
#include "train/text/publish/publish_text.h"

#include "base/file.h"
#include "base/options.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/publish_job.h"
#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct publishing {
	const struct publish_text *p;
	struct tokenizer *tokenizer;
	struct publish_input input;
	int lock;
	uint64_t shards;
};

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	struct publishing *s = ctx;
	return !s->p->tick || s->p->tick(s->p->ctx, bytes_done, s->input.files.bytes, shards);
}

static void repaired(void *ctx, uint64_t shard) {
	const struct publishing *s = ctx;
	s->p->repaired(s->p->ctx, shard);
}

static enum rv_err choose_separator(const struct publishing *s, int64_t *id, struct rv_errtext *et) {
	const char *name = s->p->separator;
	const bool is_automatic = strcmp(name, "auto") == 0;
	*id = -1;
	if (s->input.holds_tokens || strcmp(name, "none") == 0)
		return RV_OK;
	uint32_t found = is_automatic ? tokenizer_end_of_text(s->tokenizer) : tokenizer_special(s->tokenizer, name);
	if (found == TOKENIZER_NO_TOKEN && !is_automatic)
		return rv_fail(et, RV_E_NOTFOUND, "separator = %s: the tokenizer %s has no such special token", name,
					   s->p->tokenizer);
	if (found != TOKENIZER_NO_TOKEN)
		*id = found;
	return RV_OK;
}

static enum rv_err take_mirrors(const char *list, struct manifest *m, struct rv_errtext *et) {
	char url[RV_ERRTEXT_BYTES + sizeof m->mirrors[0]];
	while (rv_list_next(&list, url, sizeof url)) {
		if (m->n_mirrors == MANIFEST_MIRRORS)
			return rv_fail(et, RV_E_RANGE, "--mirror: more than %d", MANIFEST_MIRRORS);
		RV_TRY(manifest_check_mirror(url, et));
		(void)snprintf(m->mirrors[m->n_mirrors++], sizeof m->mirrors[0], "%s", url);
	}
	return RV_OK;
}

static enum rv_err state_facts(const struct publishing *s, struct manifest *m, struct rv_errtext *et) {
	const struct publish_text *p = s->p;
	const bool is_tiktoken = strcmp(tokenizer_kind(s->tokenizer), "tiktoken") == 0;
	*m = (struct manifest){.shard_tokens = p->shard_tokens, .holdout_every = p->holdout_every};
	RV_TRY(choose_separator(s, &m->separator, et));
	if (is_tiktoken)
		(void)snprintf(m->tokenizer_pattern, sizeof m->tokenizer_pattern, "%s", p->pattern);
	(void)snprintf(m->license, sizeof m->license, "%s", p->license[0] ? p->license : s->input.license);
	(void)snprintf(m->description, sizeof m->description, "%s", p->description);
	publish_input_sources(&s->input, m);
	return take_mirrors(p->mirrors, m, et);
}

static enum rv_err open_all(struct publishing *s, struct rv_errtext *et) {
	const struct publish_text *p = s->p;
	RV_TRY(tokenizer_open(p->tokenizer, p->pattern, &s->tokenizer, et));
	RV_TRY(publish_input_open(&s->input, &p->choice, p->paths, p->n_paths, tokenizer_vocab(s->tokenizer), et));
	RV_TRY(rv_dir_make(p->out, 0755, et));
	return rv_dir_lock(p->out, &s->lock, et);
}

/* Releases the directory; a published one holds nothing but what its manifest names. */
static void unlock(const struct publishing *s) {
	char lock[512], manifest[512];
	if (s->lock < 0)
		return;
	(void)snprintf(lock, sizeof lock, "%s/lock", s->p->out);
	(void)snprintf(manifest, sizeof manifest, "%s/" MANIFEST_NAME, s->p->out);
	if (access(manifest, F_OK) == 0)
		(void)unlink(lock);
	rv_dir_unlock(s->lock);
}

static enum rv_err run(struct publishing *s, struct manifest *m, struct rv_errtext *et) {
	struct manifest stated;
	RV_TRY(open_all(s, et));
	RV_TRY(state_facts(s, &stated, et));
	const bool has_file = strcmp(tokenizer_kind(s->tokenizer), "bytes") != 0;
	const struct publish_config c = {.tokenizer = s->tokenizer,
									 .tokenizer_file = has_file ? s->p->tokenizer : NULL,
									 .blocks = &s->input.source,
									 .out = s->p->out,
									 .threads = block_lanes_choose(s->p->threads),
									 .stated = &stated,
									 .tick = tick,
									 .repaired = s->p->repaired ? repaired : NULL,
									 .ctx = s};
	return publish_job_run(&c, m, &s->shards, et);
}

static void remove_in(const char *dir, const char *name) {
	char path[PATH_MAX];
	if (name[0] != '\0' && snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path)
		(void)unlink(path);
}

void publish_remove(const char *out, const struct manifest *m) {
	const struct index_shape shape = index_shape_of(m);
	char name[32];
	remove_in(out, MANIFEST_NAME); /* first: what is left of it is no published text */
	remove_in(out, m->tokenizer_file);
	for (int level = 0; level < shape.levels; level++)
		for (uint64_t i = 0; i < shape.n[level]; i++) {
			index_page_name(level, i, name);
			remove_in(out, name);
		}
	for (uint64_t i = 0; i < shape.n_shards; i++) {
		manifest_shard_name(i, name);
		remove_in(out, name);
	}
	(void)rmdir(out);
}

enum rv_err publish_text(const struct publish_text *p, struct manifest *m, uint64_t *bytes, struct rv_errtext *et) {
	struct publishing s = {.p = p, .lock = -1};
	enum rv_err e = run(&s, m, et);
	*bytes = s.input.files.bytes;
	if (e == RV_E_CANCELLED)
		e = rv_fail(et, e, "stopped with %" PRIu64 " shards written in %s; the same command continues", s.shards,
					p->out);
	unlock(&s);
	publish_input_release(&s.input);
	tokenizer_free(s.tokenizer);
	return e;
}
