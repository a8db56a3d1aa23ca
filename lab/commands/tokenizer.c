/* tokenizer.c: `rivulet tokenizer train`: a byte-level BPE vocabulary from text. */
#include "train/text/tokenizer/tokenizer.h"
#include "base/file.h"
#include "lab/commands/commands.h"
#include "lab/run/console.h"
#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/text_blocks.h"
#include "train/text/tokenizer/trainer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tokenizer_options {
	char data[512], out[512];
	int64_t vocab, threads;
};

#define FIELD(f) offsetof(struct tokenizer_options, f)
#define CAP(f)   sizeof(((struct tokenizer_options *)0)->f)

static const struct rv_option options[] = {
	{"vocab", RV_OPT_INT, FIELD(vocab), 0, NULL, TRAINER_MIN_VOCAB, VOCAB_MAX_TOKENS, NULL,
	 "Tokens in the vocabulary, <|endoftext|> among them.", "Tokenizer"},
	{"data", RV_OPT_STRING, FIELD(data), CAP(data), NULL, 0, 0, NULL,
	 "A text file, a directory of them, or a pattern in quotes ('books/*.txt').", "Tokenizer"},
	{"out", RV_OPT_STRING, FIELD(out), CAP(out), "tokenizer.json", 0, 0, NULL, "The file to write.", "Tokenizer"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", "Tokenizer"},
	{.name = NULL},
};

struct session {
	const struct tokenizer_options *opts;
	struct console console;
	int lanes;
	struct data_files files;
	struct text_blocks blocks;
	struct piece_counter *counters[BLOCK_LANES_MAX];
	struct piece_counts counts;
};

static enum rv_err count_block(void *ctx, int lane, uint64_t index, const struct text_block *block,
							   struct rv_errtext *et) {
	struct session *s = ctx;
	(void)index;
	return piece_counter_add(s->counters[lane], block->at, block->n, et);
}

static bool count_tick(void *ctx, uint64_t bytes_done) {
	struct session *s = ctx;
	return console_progress(&s->console, "count", bytes_done, s->files.bytes, "byte", "");
}

static bool merge_tick(void *ctx, uint32_t tokens, uint32_t wanted) {
	struct session *s = ctx;
	return console_progress(&s->console, "merge", tokens, wanted, "token", "");
}

static enum rv_err count_pieces(struct session *s, struct rv_errtext *et) {
	const struct block_source source = text_blocks_source(&s->blocks);
	const struct block_lanes lanes = {
		.blocks = &source, .end = s->blocks.n, .lanes = s->lanes, .fn = count_block, .tick = count_tick, .ctx = s};
	for (int i = 0; i < s->lanes; i++)
		RV_TRY(piece_counter_new(&s->counters[i], et));
	RV_TRY(block_lanes_run(&lanes, et));
	for (int i = 0; i < s->lanes; i++) {
		RV_TRY(piece_counts_merge(&s->counts, piece_counter_counts(s->counters[i]), et));
		piece_counter_free(s->counters[i]);
		s->counters[i] = NULL;
	}
	return RV_OK;
}

static enum rv_err train(struct session *s, struct rv_errtext *et) {
	char *json;
	RV_TRY(console_open(&s->console, stdout, et));
	RV_TRY(data_files_init_text(&s->files, s->opts->data, et));
	RV_TRY(text_blocks_init(&s->blocks, &s->files, et));
	RV_TRY(count_pieces(s, et));
	RV_TRY(trainer_make_json(&s->counts, (uint32_t)s->opts->vocab, merge_tick, s, &json, et));
	enum rv_err e = rv_file_write_atomic(s->opts->out, json, strlen(json), 0644, et);
	free(json);
	return e;
}

static void close_session(struct session *s) {
	for (int i = 0; i < s->lanes; i++)
		piece_counter_free(s->counters[i]);
	piece_counts_release(&s->counts);
	text_blocks_release(&s->blocks);
	data_files_release(&s->files);
	console_close(&s->console);
}

static enum rv_err run_tokenizer(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to train a tokenizer");
	s->opts = opts;
	s->lanes = block_lanes_choose((int)s->opts->threads);
	enum rv_err e = train(s, et);
	if (s->console.events)
		rv_progress_clear(s->console.events);
	if (e == RV_OK)
		rv_event(s->console.events, RV_INFO, "done",
				 RV_FIELDS(rv_field_int("tokens", s->opts->vocab), rv_field_int("pieces", (int64_t)s->counts.n)),
				 "%s: %" PRId64 " tokens from %" PRIu64 " bytes of text with %zu different pieces", s->opts->out,
				 s->opts->vocab, s->files.bytes, s->counts.n);
	close_session(s);
	free(s);
	return e;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	if (strcmp(args->at[0], "train") != 0)
		return rv_fail(et, RV_E_INVALID, "tokenizer %s: there is only `tokenizer train`", args->at[0]);
	return RV_OK;
}

const struct rv_command tokenizer_command = {
	.name = "tokenizer",
	.synopsis = "train",
	.args_min = 1,
	.args_max = 1,
	.help = "Make a byte-level BPE vocabulary from text.",
	.details =
		"Writes a tokenizer.json in the Hugging Face layout, with GPT-2's pre-tokenizer. The same text gives the\n"
		"same file, whatever --threads is. Memory grows with the number of different words: a few hundred MB of text\n"
		"that is typical of the rest are enough.\n"
		"\n"
		"  rivulet tokenizer train --vocab 16384 --data 'books/*.txt' --out tokenizer.json\n"
		"  rivulet train --tokenizer tokenizer.json --data 'books/*.txt'",
	.options = options,
	.opts_bytes = sizeof(struct tokenizer_options),
	.check = check,
	.run = run_tokenizer,
};
