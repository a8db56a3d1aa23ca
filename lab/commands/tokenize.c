/* tokenize.c: `rivulet tokenize`: text files to token files, once, on all cores. */
#include "base/file.h"
#include "lab/commands/commands.h"
#include "lab/run/console.h"
#include "train/text/documents/document_source.h"
#include "train/text/documents/documents.h"
#include "train/text/documents/hub_directory.h"
#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <inttypes.h>
#include <string.h>

struct tokenize_options {
	char tokenizer[512], pattern[4096], data[512], field[DOCUMENTS_FIELD_BYTES], split[128], out[400], separator[128];
	int64_t shard_tokens, threads;
};

#define FIELD(f) offsetof(struct tokenize_options, f)
#define CAP(f)   sizeof(((struct tokenize_options *)0)->f)

static const struct rv_option options[] = {
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), NULL, 0, 0, NULL,
	 "A tokenizer.json, a tiktoken file, or \"bytes\".", "Tokenize"},
	{"pattern", RV_OPT_STRING, FIELD(pattern), CAP(pattern), "auto", 0, 0, NULL,
	 "For tiktoken files: cl100k_base, gpt2, llama3, o200k_base, a regular expression, or auto (by the number of "
	 "ranks).",
	 "Tokenize"},
	{"data", RV_OPT_STRING, FIELD(data), CAP(data), NULL, 0, 0, NULL,
	 "A file, a directory, a Hugging Face data set's directory, or a pattern in quotes ('books/*.txt'): text, JSON "
	 "Lines, both also as .gz or .zst, Parquet.",
	 "Tokenize"},
	{"field", RV_OPT_STRING, FIELD(field), CAP(field), DOCUMENTS_FIELD_DEFAULT, 0, 0, NULL, DOCUMENTS_FIELD_HELP,
	 "Tokenize"},
	{"split", RV_OPT_STRING, FIELD(split), CAP(split), "", 0, 0, NULL,
	 "Of a Hugging Face data set's directory, the files whose names begin with it. Empty: train, or all where names "
	 "tell no split.",
	 "Tokenize"},
	{"out", RV_OPT_STRING, FIELD(out), CAP(out), NULL, 0, 0, NULL, "The directory for tokens-000000.bin, ...",
	 "Tokenize"},
	{"separator", RV_OPT_STRING, FIELD(separator), CAP(separator), "auto", 0, 0, NULL,
	 "The special token before each document; auto: the tokenizer's end of text; none.", "Tokenize"},
	{"shard-tokens", RV_OPT_INT, FIELD(shard_tokens), 0, "100000000", 1, 2147483647, NULL, "Tokens in a file.",
	 "Tokenize"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", "Tokenize"},
	{.name = NULL},
};

struct session {
	const struct tokenize_options *opts;
	struct console console;
	int lock;
	struct tokenizer *tokenizer;
	struct data_files files;
	struct document_source text;
};

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	struct session *s = ctx;
	char note[48];
	(void)snprintf(note, sizeof note, "%" PRIu64 " files written", shards);
	return console_progress(&s->console, "tokenize", bytes_done, s->files.bytes, "byte", note);
}

static enum rv_err choose_separator(const struct session *s, uint32_t *id, struct rv_errtext *et) {
	const char *name = s->opts->separator;
	*id = TOKENIZER_NO_TOKEN;
	if (strcmp(name, "none") == 0)
		return RV_OK;
	bool automatic = strcmp(name, "auto") == 0;
	*id = automatic ? tokenizer_end_of_text(s->tokenizer) : tokenizer_special(s->tokenizer, name);
	if (*id == TOKENIZER_NO_TOKEN && !automatic)
		return rv_fail(et, RV_E_NOTFOUND, "separator = %s: the tokenizer %s has no such special token", name,
					   s->opts->tokenizer);
	return RV_OK;
}

/* Takes the files that `rivulet data publish` takes of the same path. */
static enum rv_err choose_files(struct session *s, struct rv_errtext *et) {
	const struct tokenize_options *o = s->opts;
	char license[HUB_LICENSE_BYTES];
	RV_TRY(hub_directory_add(&s->files, o->data, o->split, license, et));
	return s->files.n_files > 0 ? RV_OK : rv_fail(et, RV_E_NOTFOUND, "data = %s: only empty files", o->data);
}

static enum rv_err open_session(struct session *s, struct rv_errtext *et) {
	const struct tokenize_options *o = s->opts;
	RV_TRY(console_open(&s->console, stdout, et));
	RV_TRY(tokenizer_open(o->tokenizer, o->pattern, &s->tokenizer, et));
	RV_TRY(choose_files(s, et));
	RV_TRY(document_source_open(&s->text, &s->files, o->field, et));
	RV_TRY(rv_dir_make(o->out, 0755, et));
	return rv_dir_lock(o->out, &s->lock, et);
}

static void close_session(struct session *s) {
	document_source_release(&s->text);
	data_files_release(&s->files);
	tokenizer_free(s->tokenizer);
	if (s->lock >= 0)
		rv_dir_unlock(s->lock);
	console_close(&s->console);
}

static enum rv_err tokenize(struct session *s, struct tokenize_state *done, struct rv_errtext *et) {
	struct tokenize_config c = {.tokenizer = s->tokenizer,
								.blocks = &s->text.source,
								.out = s->opts->out,
								.shard_tokens = (uint64_t)s->opts->shard_tokens,
								.threads = block_lanes_choose((int)s->opts->threads),
								.tick = tick,
								.ctx = s};
	RV_TRY(choose_separator(s, &c.separator, et));
	RV_TRY(tokenize_made_of(&c, &c.made_of, et));
	return tokenize_job_run(&c, done, et);
}

static void tell_done(const struct session *s, const struct tokenize_state *done) {
	char rest[64];
	if (s->text.documents != NULL)
		(void)snprintf(rest, sizeof rest, "%" PRIu64 " documents", document_blocks_documents(s->text.documents));
	else
		(void)snprintf(rest, sizeof rest, "%.3f bytes per token",
					   (double)s->files.bytes / (double)(done->tokens > 0 ? done->tokens : 1));
	rv_event(s->console.events, RV_INFO, "done",
			 RV_FIELDS(rv_field_int("tokens", (int64_t)done->tokens), rv_field_int("files", (int64_t)done->shards)),
			 "%s: %" PRIu64 " tokens in %" PRIu64 " files, %s", s->opts->out, done->tokens, done->shards, rest);
}

static enum rv_err run_tokenize(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	struct session s = {.opts = opts, .lock = -1};
	struct tokenize_state done = {0};
	enum rv_err e = open_session(&s, et);
	if (e == RV_OK)
		e = tokenize(&s, &done, et);
	if (s.console.events)
		rv_progress_clear(s.console.events);
	if (e == RV_OK)
		tell_done(&s, &done);
	if (e == RV_E_CANCELLED)
		e = rv_fail(et, e, "stopped with %" PRIu64 " files written in %s; the same command continues", done.shards,
					s.opts->out);
	close_session(&s);
	return e;
}

const struct rv_command tokenize_command = {
	.name = "tokenize",
	.synopsis = "",
	.help = "Turn text files into token files, once.",
	.details =
		"Writes llm.c's format: 16-bit tokens for vocabularies up to 65536, 32-bit ones above. The files do not\n"
		"depend on --threads. Ctrl-C stops; the same command goes on after the last whole file. Memory does not\n"
		"grow with the text.\n"
		"\n"
		"Each file of text is a document, each line of JSON Lines, each row of Parquet that is not null.\n"
		"\n"
		"  rivulet tokenize --tokenizer tokenizer.json --data 'books/*.txt' --out tokens\n"
		"  rivulet tokenize --tokenizer tokenizer.json --data fineweb/ --field text --out tokens\n"
		"  rivulet train --tokenizer tokenizer.json --data tokens\n"
		"\n"
		"Runs that are given text and a tokenizer do the same by themselves and keep the tokens in their cache.",
	.options = options,
	.opts_bytes = sizeof(struct tokenize_options),
	.run = run_tokenize,
};
