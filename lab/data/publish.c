/* publish.c: `rivulet data publish`. */
#include "base/file.h"
#include "base/hex.h"
#include "lab/data/data.h"
#include "lab/data/publish_input.h"
#include "lab/run/console.h"
#include "train/text/published/publish_job.h"
#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct session {
	const struct data_options *o;
	struct console console;
	struct tokenizer *tokenizer;
	struct publish_input input;
	int lock;
	uint64_t shards;
};

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	struct session *s = ctx;
	char note[48];
	(void)snprintf(note, sizeof note, "%" PRIu64 " shards written", shards);
	return console_progress(&s->console, "publish", bytes_done, s->input.files.bytes, "byte", note);
}

static enum rv_err choose_separator(const struct session *s, int64_t *id, struct rv_errtext *et) {
	const char *name = s->o->separator;
	const bool is_automatic = strcmp(name, "auto") == 0;
	*id = -1;
	if (s->input.holds_tokens || strcmp(name, "none") == 0)
		return RV_OK;
	uint32_t found = is_automatic ? tokenizer_end_of_text(s->tokenizer) : tokenizer_special(s->tokenizer, name);
	if (found == TOKENIZER_NO_TOKEN && !is_automatic)
		return rv_fail(et, RV_E_NOTFOUND, "separator = %s: the tokenizer %s has no such special token", name,
					   s->o->tokenizer);
	if (found != TOKENIZER_NO_TOKEN)
		*id = found;
	return RV_OK;
}

/* Takes URLs with blanks between them. */
static enum rv_err take_mirrors(const char *text, struct manifest *m, struct rv_errtext *et) {
	while (text[strspn(text, " ")] != '\0') {
		text += strspn(text, " ");
		size_t n = strcspn(text, " ");
		if (m->n_mirrors == MANIFEST_MIRRORS)
			return rv_fail(et, RV_E_RANGE, "--mirror: more than %d", MANIFEST_MIRRORS);
		if (n >= sizeof m->mirrors[0])
			return rv_fail(et, RV_E_RANGE, "--mirror %.80s...: longer than %zu bytes", text, sizeof m->mirrors[0] - 1);
		char *url = m->mirrors[m->n_mirrors++];
		memcpy(url, text, n);
		url[n] = '\0';
		RV_TRY(manifest_check_mirror(url, et));
		text += n;
	}
	return RV_OK;
}

static enum rv_err state_facts(const struct session *s, struct manifest *m, struct rv_errtext *et) {
	const struct data_options *o = s->o;
	const bool is_tiktoken = strcmp(tokenizer_kind(s->tokenizer), "tiktoken") == 0;
	*m = (struct manifest){.shard_tokens = o->shard_tokens, .holdout_every = o->holdout_every};
	RV_TRY(choose_separator(s, &m->separator, et));
	if (is_tiktoken)
		(void)snprintf(m->tokenizer_pattern, sizeof m->tokenizer_pattern, "%s", o->pattern);
	(void)snprintf(m->license, sizeof m->license, "%s", o->license[0] ? o->license : s->input.license);
	(void)snprintf(m->description, sizeof m->description, "%s", o->description);
	publish_input_sources(&s->input, m);
	return take_mirrors(o->mirrors, m, et);
}

static enum rv_err open_session(struct session *s, const char *const *files, int n_files, struct rv_errtext *et) {
	const struct data_options *o = s->o;
	RV_TRY(console_open(&s->console, stdout, et));
	RV_TRY(tokenizer_open(o->tokenizer, o->pattern, &s->tokenizer, et));
	RV_TRY(publish_input_open(&s->input, o, files, n_files, tokenizer_vocab(s->tokenizer), et));
	RV_TRY(rv_dir_make(o->out, 0755, et));
	return rv_dir_lock(o->out, &s->lock, et);
}

/* Releases the directory; a published one holds nothing but what its manifest names. */
static void unlock(struct session *s) {
	char lock[512], manifest[512];
	if (s->lock < 0)
		return;
	(void)snprintf(lock, sizeof lock, "%s/lock", s->o->out);
	(void)snprintf(manifest, sizeof manifest, "%s/" MANIFEST_NAME, s->o->out);
	if (access(manifest, F_OK) == 0)
		(void)unlink(lock);
	rv_dir_unlock(s->lock);
}

static void close_session(struct session *s) {
	unlock(s);
	publish_input_release(&s->input);
	tokenizer_free(s->tokenizer);
	console_close(&s->console);
}

static enum rv_err publish(struct session *s, struct manifest *m, struct rv_errtext *et) {
	struct manifest stated;
	RV_TRY(state_facts(s, &stated, et));
	const bool has_file = strcmp(tokenizer_kind(s->tokenizer), "bytes") != 0;
	const struct publish_config c = {.tokenizer = s->tokenizer,
									 .tokenizer_file = has_file ? s->o->tokenizer : NULL,
									 .blocks = &s->input.source,
									 .out = s->o->out,
									 .threads = block_lanes_choose((int)s->o->threads),
									 .stated = &stated,
									 .tick = tick,
									 .ctx = s};
	return publish_job_run(&c, m, &s->shards, et);
}

static enum rv_err tell_done(const struct session *s, const struct manifest *m, struct rv_errtext *et) {
	struct rv_hash hash;
	char hex[2 * RV_HASH_BYTES + 1];
	RV_TRY(manifest_hash(m, &hash, et));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	rv_event(s->console.events, RV_INFO, "published",
			 RV_FIELDS(rv_field_str("dir", s->o->out), rv_field_str("data-hash", hex),
					   rv_field_int("tokens", m->n_tokens), rv_field_int("shards", m->n_shards),
					   rv_field_int("bytes_read", (int64_t)s->input.files.bytes)),
			 "%s: %" PRId64 " tokens in %" PRId64 " shards; data-hash = %s", s->o->out, m->n_tokens, m->n_shards, hex);
	if (!m->license[0])
		rv_event(s->console.events, RV_WARN, "no_license", RV_NO_FIELDS,
				 "no license is stated: members cannot tell what they may do with the text (--license)");
	return RV_OK;
}

enum rv_err data_publish(const struct data_options *o, const char *const *files, int n_files, struct rv_errtext *et) {
	struct session s = {.o = o, .lock = -1, .console = {.signals = -1}};
	struct manifest m;
	enum rv_err e = open_session(&s, files, n_files, et);
	if (e == RV_OK)
		e = publish(&s, &m, et);
	if (s.console.events)
		rv_progress_clear(s.console.events);
	if (e == RV_OK)
		e = tell_done(&s, &m, et);
	if (e == RV_E_CANCELLED)
		e = rv_fail(et, e, "stopped with %" PRIu64 " shards written in %s; the same command continues", s.shards,
					o->out);
	close_session(&s);
	return e;
}
