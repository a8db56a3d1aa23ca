/* run_text.c: see run_text.h. */
#include "coordinator/commands/run_text.h"

#include "base/clean_text.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/signals.h"
#include "coordinator/commands/serving.h"
#include "train/text/documents/documents.h"
#include "train/text/publish/publish_text.h"
#include "train/text/published/mirror_hosts.h"
#include "train/text/published/published.h"
#include "train/text/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATHS_MAX = 512 };

#define FIELD(f) offsetof(struct run_text_options, f), sizeof(((struct run_text_options *)0)->f)

void run_text_table(size_t offset, struct rv_option out[static RUN_TEXT_OPTIONS]) {
	static const struct rv_option table[] = {
		{"data", RV_OPT_LIST, FIELD(data), "", 0, 0, NULL,
		 "The run's text: a directory of `rivulet data publish`, or files, patterns and Hugging Face directories, "
		 "which "
		 "are published into DIR/text; may be given several times. Workers then need nothing but a link.",
		 "Text"},
		{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), "bytes", 0, 0, NULL,
		 "Of files to be published: a tokenizer.json, a tiktoken file, or \"bytes\".", "Text"},
		{"data-field", RV_OPT_STRING, FIELD(field), DOCUMENTS_FIELD_DEFAULT, 0, 0, NULL,
		 "Of files to be published: " DOCUMENTS_FIELD_HELP, "Text"},
		{"license", RV_OPT_STRING, FIELD(license), "", 0, 0, NULL,
		 "Of files to be published: what members may do with the text, best an SPDX identifier.", "Text"},
		{"description", RV_OPT_STRING, FIELD(description), "", 0, 0, NULL,
		 "Of files to be published: a sentence about the text.", "Text"},
		{"mirror", RV_OPT_LIST, FIELD(mirrors), "", 0, 0, NULL,
		 "Of files to be published: a URL where a copy of DIR/text is or will be; may be given several times.", "Text"},
		{.name = NULL},
	};
	_Static_assert(sizeof table / sizeof table[0] == RUN_TEXT_OPTIONS, "the table, with its end");
	memcpy(out, table, sizeof table);
	for (int i = 0; i < RUN_TEXT_OPTIONS - 1; i++)
		out[i].offset += offset;
}

/* Returns true if the only path is a directory that is published already; writes it. */
static bool is_published(const struct run_text_options *o, char dir[static PATH_MAX]) {
	const char *list = o->data;
	return rv_list_next(&list, dir, PATH_MAX) && *list == '\0' && manifest_recognise(dir);
}

/* ---- what it decides of the run ---- */

static enum rv_err adopt_hash(const char *name, const struct rv_hash *is, char of_run[static 2 * RV_HASH_BYTES + 1],
							  struct rv_errtext *et) {
	struct rv_hash asked = {{0}};
	if (of_run[0] && (!rv_hex_decode(of_run, asked.b, sizeof asked.b) || !rv_hash_equal(&asked, is)))
		return rv_fail(et, RV_E_INVALID, "%s = %s: the text of --data has another: leave it out", name, of_run);
	if (!rv_hash_is_zero(is))
		rv_hex_encode(is->b, sizeof is->b, of_run);
	return RV_OK;
}

/* Notes a vocabulary that is more than padded: a preset's, with a text of bytes. */
static void note_vocab(int64_t least, int64_t vocab) {
	enum { PADDING = 1024 };
	if (vocab >= 2 * least && vocab - least >= PADDING)
		(void)fprintf(stderr,
					  "note: vocab = %" PRId64 ", and all tokens of the text are below %" PRId64 ": %" PRId64
					  " rows of the token table learn nothing, and take memory and line; give --vocab %" PRId64
					  ", or the --tokenizer that was meant\n",
					  vocab, least, vocab - least, least);
}

static enum rv_err adopt_vocab(int64_t least, struct run_config *run, struct rv_errtext *et) {
	struct run_config usual;
	run_config_defaults(&usual);
	if (run->vocab == usual.vocab && least > usual.vocab)
		run->vocab = least;
	note_vocab(least, run->vocab);
	return run->vocab >= least ? RV_OK
							   : rv_fail(et, RV_E_RANGE,
										 "vocab = %" PRId64 ": the tokens of the text are below %" PRId64
										 "; leave it out, or give at least that",
										 run->vocab, least);
}

/* Refuses a text of which nothing would be held out: no worker could evaluate. */
static enum rv_err check_size(const char *dir, const struct manifest *m, const char *advice, struct rv_errtext *et) {
	const int64_t least = m->holdout_every * MANIFEST_BLOCK_TOKENS;
	return m->n_tokens >= least
			   ? RV_OK
			   : rv_fail(et, RV_E_RANGE,
						 "%s: %" PRId64 " tokens, and holdout-every = %" PRId64 " needs at least %" PRId64 ": %s", dir,
						 m->n_tokens, m->holdout_every, least, advice);
}

static enum rv_err adopt_published(const char *dir, struct run_config *run, struct rv_errtext *et) {
	struct manifest m;
	struct rv_hash hash;
	struct run_config usual;
	run_config_defaults(&usual);
	RV_TRY(manifest_read(dir, &m, et));
	RV_TRY(manifest_hash(&m, &hash, et));
	RV_TRY(check_size(dir, &m, "publish more text, or with a smaller holdout-every, into another directory", et));
	if (run->holdout_every != usual.holdout_every && run->holdout_every != m.holdout_every)
		return rv_fail(et, RV_E_INVALID, "holdout-every = %" PRId64 ": %s was published with %" PRId64 "; leave it out",
					   run->holdout_every, dir, m.holdout_every);
	run->holdout_every = m.holdout_every;
	RV_TRY(adopt_hash("data-hash", &hash, run->data_hash, et));
	RV_TRY(adopt_hash("tokenizer-hash", &m.tokenizer_hash, run->tokenizer_hash, et));
	return adopt_vocab(m.vocab, run, et);
}

static enum rv_err adopt_tokenizer(const struct run_text_options *o, struct run_config *run, struct rv_errtext *et) {
	struct tokenizer *t;
	if (run->data_hash[0])
		return rv_fail(et, RV_E_INVALID,
					   "data-hash = %s: --data names files, whose hash is known once they are published: leave it out",
					   run->data_hash);
	RV_TRY(tokenizer_open(o->tokenizer, "auto", &t, et));
	enum rv_err e = adopt_hash("tokenizer-hash", tokenizer_hash(t), run->tokenizer_hash, et);
	if (e == RV_OK)
		e = adopt_vocab(tokenizer_vocab(t), run, et);
	tokenizer_free(t);
	return e;
}

/* Refuses options of files where none are published. */
static enum rv_err check_unused(const struct run_text_options *o, const char *why, struct rv_errtext *et) {
	const char *given = strcmp(o->tokenizer, "bytes") != 0               ? "tokenizer"
						: strcmp(o->field, DOCUMENTS_FIELD_DEFAULT) != 0 ? "data-field"
						: o->license[0]                                  ? "license"
						: o->description[0]                              ? "description"
						: o->mirrors[0]                                  ? "mirror"
																		 : NULL;
	return given ? rv_fail(et, RV_E_INVALID, "--%s: is for files that are published here, and %s", given, why) : RV_OK;
}

enum rv_err run_text_adopt(const struct run_text_options *o, struct run_config *run, struct rv_errtext *et) {
	char dir[PATH_MAX];
	if (!o->data[0])
		return check_unused(o, "there is no --data", et);
	if (!is_published(o, dir))
		return adopt_tokenizer(o, run, et);
	RV_TRY(
		check_unused(o, "--data is published already (mirrors are in its manifest.json, and may be added there)", et));
	return adopt_published(dir, run, et);
}

void run_text_license(const struct run_text_options *o, char *out, size_t cap) {
	char dir[PATH_MAX];
	struct manifest m;
	(void)snprintf(out, cap, "%s", o->license);
	if (is_published(o, dir) && manifest_read(dir, &m, NULL) == RV_OK)
		(void)snprintf(out, cap, "%s", m.license);
	clean_text(out); /* it may be cut, or of a stranger */
}

static void add_host(char *hosts, size_t cap, const char *url) {
	if (!mirror_hosts_add(hosts, cap, url))
		(void)fprintf(stderr,
					  "note: no worker will ask the mirror %s: its host cannot be read, or has no room in text-hosts "
					  "(%zu bytes); give --text-hosts\n",
					  url, cap - 1);
}

void run_text_hosts(const struct run_text_options *o, char *out, size_t cap) {
	char dir[PATH_MAX], list[sizeof o->mirrors];
	struct manifest m;
	out[0] = '\0';
	if (is_published(o, dir)) {
		const bool is_read = manifest_read(dir, &m, NULL) == RV_OK;
		for (int64_t i = 0; is_read && i < m.n_mirrors; i++)
			add_host(out, cap, m.mirrors[i]);
		return;
	}
	memcpy(list, o->mirrors, sizeof list);
	for (char *url = list; *url;) {
		char *end = url + strcspn(url, "\n");
		const bool is_last = *end == '\0';
		*end = '\0';
		add_host(out, cap, url);
		url = end + !is_last;
	}
}

/* ---- its files ---- */

/* The paths of --data, one after the other. */
struct paths {
	char text[sizeof((struct run_text_options *)0)->data];
	const char *at[PATHS_MAX];
	int n;
};

static enum rv_err take_paths(const struct run_text_options *o, struct paths *p, struct rv_errtext *et) {
	memcpy(p->text, o->data, sizeof p->text);
	p->n = 0;
	for (char *at = p->text; *at;) {
		if (p->n == PATHS_MAX)
			return rv_fail(et, RV_E_RANGE,
						   "--data: given more than %d times; a directory or a pattern names many files", PATHS_MAX);
		p->at[p->n++] = at;
		at += strcspn(at, "\n");
		if (*at)
			*at++ = '\0';
	}
	return RV_OK;
}

static enum rv_err check_published(const char *dir, struct rv_errtext *et) {
	struct published *text;
	RV_TRY(published_open(dir, &text, et));
	enum rv_err e = published_check_tokenizer(text, et);
	published_close(text);
	return e;
}

enum rv_err run_text_check(const struct run_text_options *o, struct rv_errtext *et) {
	char dir[PATH_MAX];
	struct paths paths;
	struct tokenizer *t;
	struct publish_input input = {.holds_tokens = false};
	const struct publish_choice choice = {.field = o->field, .split = ""};
	if (!o->data[0])
		return RV_OK;
	if (is_published(o, dir))
		return check_published(dir, et);
	RV_TRY(take_paths(o, &paths, et));
	RV_TRY(tokenizer_open(o->tokenizer, "auto", &t, et));
	enum rv_err e = publish_input_open(&input, &choice, paths.at, paths.n, tokenizer_vocab(t), et);
	publish_input_release(&input);
	tokenizer_free(t);
	return e;
}

static bool tick(void *ctx, uint64_t done, uint64_t total, uint64_t shards) {
	const struct serving *with = ctx;
	char note[48];
	(void)snprintf(note, sizeof note, "%" PRIu64 " shards written", shards);
	rv_progress(with->events, rv_clock_monotonic_us(), "publish", done, total, "byte", note);
	return rv_signals_take(with->signal_fd) == 0;
}

static enum rv_err publish(const struct run_text_options *o, const struct run_dir *d, struct run_config *run,
						   struct serving *with, struct rv_errtext *et) {
	struct paths paths;
	struct manifest m;
	struct rv_hash hash;
	uint64_t bytes;
	RV_TRY(take_paths(o, &paths, et));
	const struct publish_text p = {.paths = paths.at,
								   .n_paths = paths.n,
								   .choice = {.field = o->field, .split = ""},
								   .tokenizer = o->tokenizer,
								   .pattern = "auto",
								   .separator = "auto",
								   .shard_tokens = MANIFEST_SHARD_TOKENS,
								   .holdout_every = run->holdout_every,
								   .license = o->license,
								   .description = o->description,
								   .mirrors = o->mirrors,
								   .out = d->text,
								   .tick = tick,
								   .ctx = with};
	enum rv_err e = publish_text(&p, &m, &bytes, et);
	rv_progress_clear(with->events);
	RV_TRY(e);
	e = check_size("--data", &m, "give more text, or a smaller --holdout-every; what was published of it is removed",
				   et);
	if (e != RV_OK)
		publish_remove(d->text, &m);
	RV_TRY(e);
	RV_TRY(manifest_hash(&m, &hash, et));
	rv_hex_encode(hash.b, sizeof hash.b, run->data_hash);
	(void)printf("Published %" PRIu64 " bytes as %" PRId64 " tokens in %" PRId64 " shards: %s\n", bytes, m.n_tokens,
				 m.n_shards, d->text);
	if (!m.license[0])
		(void)fprintf(stderr, "note: no license is stated: members cannot tell what they may do with the text; "
							  "--license states one\n");
	return RV_OK;
}

/* Writes the absolute path of a directory; "" if it is RUN_DIR/text. */
static enum rv_err place_of(const char *dir, const struct run_dir *d, char place[static RUN_TEXT_BYTES],
							struct rv_errtext *et) {
	char *is = realpath(dir, NULL), *own = realpath(d->text, NULL);
	const bool fits = is && strlen(is) < RUN_TEXT_BYTES;
	(void)snprintf(place, RUN_TEXT_BYTES, "%s", !fits || (own && strcmp(is, own) == 0) ? "" : is);
	free(is);
	free(own);
	return fits ? RV_OK
				: rv_fail(et, RV_E_RANGE, "%.200s...: its path has more than %d bytes", dir, RUN_TEXT_BYTES - 1);
}

enum rv_err run_text_make(const struct run_text_options *o, const struct run_dir *d, struct run_config *run,
						  char place[static RUN_TEXT_BYTES], struct rv_errtext *et) {
	char dir[PATH_MAX];
	struct serving with;
	place[0] = '\0';
	if (!o->data[0])
		return RV_OK;
	if (is_published(o, dir)) {
		RV_TRY(check_published(dir, et));
		return place_of(dir, d, place, et);
	}
	if (manifest_recognise(d->text))
		return rv_fail(et, RV_E_BUSY, "%s: a text is published there already: take it with --data %s, or remove it",
					   d->text, d->text);
	RV_TRY(serving_open("", &with, et));
	enum rv_err e = publish(o, d, run, &with, et);
	serving_close(&with);
	return e;
}
