/* sample.c: `rivulet sample`: text from a trained model, streamed as it is drawn. */
#include "base/signals.h"
#include "kernels/device.h"
#include "lab/commands/commands.h"
#include "lab/model/generator.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/files/weights.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT_BYTES_MAX = 1 << 20 };

struct sample_options {
	char prompt[4096], tokenizer[512], device[DEVICE_TEXT_BYTES];
	int dtype; /* enum run_dtype */
	int64_t tokens, top_k, seed, threads;
	double temperature, top_p;
	bool ignore_end;
};

#define FIELD(f) offsetof(struct sample_options, f)
#define CAP(f)   sizeof(((struct sample_options *)0)->f)

static const struct rv_option options[] = {
	{"prompt", RV_OPT_STRING, FIELD(prompt), CAP(prompt), "", 0, 0, NULL,
	 "Text to begin with; -: standard input; empty: the beginning of a document.", "Sampling"},
	{"tokens", RV_OPT_INT, FIELD(tokens), 0, "400", 1, 10000000, NULL, "How many tokens to add at most.", "Sampling"},
	{"temperature", RV_OPT_DOUBLE, FIELD(temperature), 0, "0.8", 0, 100, NULL,
	 "Below 1: likelier tokens are favoured; 0: always the likeliest.", "Sampling"},
	{"top-k", RV_OPT_INT, FIELD(top_k), 0, "0", 0, 1048576, NULL, "Draw among the k likeliest tokens; 0: all.",
	 "Sampling"},
	{"top-p", RV_OPT_DOUBLE, FIELD(top_p), 0, "1", 0.000001, 1, NULL,
	 "Draw among the likeliest tokens that hold this share of the probability.", "Sampling"},
	{"seed", RV_OPT_INT, FIELD(seed), 0, "1", 0, 9007199254740992.0, NULL, "The same seed draws the same text.",
	 "Sampling"},
	{"ignore-end", RV_OPT_BOOL, FIELD(ignore_end), 0, "false", 0, 0, NULL,
	 "Continue after the token that ends a document.", "Sampling"},
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), "", 0, 0, NULL,
	 "A tokenizer.json or a tiktoken file, or bytes; empty: the one beside the weights.", "Model"},
	{"dtype", RV_OPT_CHOICE, FIELD(dtype), 0, "auto", 0, 0, "auto|fp32|bf16",
	 "Operands of matrix products; auto: as the model was trained.", "Model"},
	{"device", RV_OPT_STRING, FIELD(device), CAP(device), "auto", 0, 0, NULL, DEVICE_HELP, "Model"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", "Model"},
	{.name = NULL},
};

/* Prints text without control characters on a terminal: a model may write anything. */
static void show(const uint8_t *bytes, size_t n, bool terminal) {
	for (size_t i = 0; i < n; i++) {
		bool control = (bytes[i] < 0x20 && bytes[i] != '\n' && bytes[i] != '\t') || bytes[i] == 0x7f;
		putchar(terminal && control ? '?' : bytes[i]);
	}
	fflush(stdout);
}

static enum rv_err read_prompt(const struct sample_options *o, struct byte_list *text, struct rv_errtext *et) {
	if (strcmp(o->prompt, "-") != 0)
		return byte_list_append(text, o->prompt, strlen(o->prompt), et);
	uint8_t piece[4096];
	for (size_t n; (n = fread(piece, 1, sizeof piece, stdin)) > 0;) {
		if (text->n + n > PROMPT_BYTES_MAX)
			return rv_fail(et, RV_E_RANGE, "the prompt is longer than %d bytes", PROMPT_BYTES_MAX);
		RV_TRY(byte_list_append(text, piece, n, et));
	}
	return RV_OK;
}

/* Returns the token before a document: the one that ends a document, or a new line. */
static int32_t first_token(const struct tokenizer *t) {
	uint32_t end = tokenizer_end_of_text(t);
	return end != TOKENIZER_NO_TOKEN ? (int32_t)end : '\n';
}

static enum rv_err feed_prompt(struct generator *g, const struct loaded_model *m, const struct byte_list *text,
							   struct rv_errtext *et) {
	struct encoder *encoder;
	struct token_list tokens = {0};
	RV_TRY(encoder_new(m->tokenizer, &encoder, et));
	enum rv_err e = tokenizer_encode(encoder, text->bytes, text->n, SPECIALS_RECOGNISED, &tokens, et);
	if (e == RV_OK && tokens.n > 0)
		generator_read(g, (const int32_t *)tokens.ids, tokens.n);
	else if (e == RV_OK)
		generator_read(g, &(int32_t){first_token(m->tokenizer)}, 1);
	token_list_release(&tokens);
	encoder_free(encoder);
	return e;
}

static enum rv_err write_tokens(struct generator *g, const struct loaded_model *m, const struct sample_options *o,
								int signals, struct rv_errtext *et) {
	uint32_t end = tokenizer_end_of_text(m->tokenizer);
	bool terminal = isatty(STDOUT_FILENO);
	struct byte_list bytes = {0};
	enum rv_err e = RV_OK;
	for (int64_t i = 0; e == RV_OK && i < o->tokens; i++) {
		if (rv_signals_take(signals) != 0) {
			e = rv_fail(et, RV_E_CANCELLED, "stopped after %lld tokens", (long long)i);
			break;
		}
		uint32_t token = (uint32_t)generator_next(g);
		if (token == end && !o->ignore_end)
			break;
		bytes.n = 0;
		if (token < tokenizer_vocab(m->tokenizer)) /* a model's vocabulary may be padded */
			e = tokenizer_decode(m->tokenizer, &token, 1, &bytes, et);
		show(bytes.bytes, bytes.n, terminal);
	}
	putchar('\n');
	byte_list_release(&bytes);
	return e;
}

static enum rv_err sample_from(struct loaded_model *m, const struct sample_options *o, int signals,
							   struct rv_errtext *et) {
	const struct sampler_params params = {o->temperature, (int)o->top_k, o->top_p};
	struct generator *g = NULL;
	struct byte_list prompt = {0};
	enum rv_err e = read_prompt(o, &prompt, et);
	if (e == RV_OK)
		e = generator_new(m, &params, (uint64_t)o->seed, &g, et);
	if (e == RV_OK)
		e = feed_prompt(g, m, &prompt, et);
	if (e == RV_OK) {
		show(prompt.bytes, prompt.n, isatty(STDOUT_FILENO));
		e = write_tokens(g, m, o, signals, et);
	}
	generator_free(g);
	byte_list_release(&prompt);
	return e;
}

/* Opens the newest state that a worker's directory proves, while the worker may run. */
static enum rv_err open_worker(const struct loaded_model_options *o, struct loaded_model **out, struct rv_errtext *et) {
	struct worker_rounds w;
	struct global_state g;
	RV_TRY(worker_rounds_open(o->where, &w, et));
	enum rv_err e = worker_rounds_replay(&w, -1, &g, et);
	if (e == RV_OK) {
		e = loaded_model_of(o, &w.run, g.theta, w.layout.n_params, out, et);
		global_release(&g);
	}
	worker_rounds_release(&w);
	return e;
}

/* Returns true for a worker's directory whose run is not done: it has no weights yet. */
static bool is_under_way(const char *where) {
	char weights[PATH_MAX];
	(void)snprintf(weights, sizeof weights, "%s/" WEIGHTS_FILE, where);
	return worker_rounds_is_worker(where) && access(weights, F_OK) != 0;
}

static enum rv_err run_sample(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct sample_options *o = opts;
	const struct loaded_model_options model = {.where = args->at[0],
											   .tokenizer = o->tokenizer,
											   .dtype = (enum run_dtype)o->dtype,
											   .max_batch = 1,
											   .threads = (int)o->threads,
											   .device = o->device};
	struct loaded_model *m;
	int signals;
	RV_TRY(rv_signals_open(&signals, et));
	enum rv_err e = is_under_way(model.where) ? open_worker(&model, &m, et) : loaded_model_open(&model, &m, et);
	if (e == RV_OK && m->why_not_gpu[0])
		(void)fprintf(stderr, "on the CPU: %s\n", m->why_not_gpu);
	if (e == RV_OK)
		e = sample_from(m, o, signals, et);
	loaded_model_close(m);
	rv_signals_close(signals);
	return e;
}

const struct rv_command sample_command = {
	.name = "sample",
	.synopsis = "RUN|WEIGHTS",
	.args_min = 1,
	.args_max = 1,
	.help = "Let a trained model write text.",
	.details =
		"RUN is the directory of a run, of a worker (also while it trains: its newest state), or a Hugging Face model\n"
		"directory, WEIGHTS a safetensors file. The text "
		"streams to the terminal; Ctrl-C ends it. Example:\n"
		"    rivulet sample runs/diloco --prompt 'Once upon' --temperature 0.7 --top-p 0.9",
	.options = options,
	.opts_bytes = sizeof(struct sample_options),
	.run = run_sample,
};
