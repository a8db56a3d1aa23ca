/* cmd_sample.c: `rivulet sample`: text from a trained model, one byte at a time. */
#include "base/signals.h"
#include "lab/commands.h"
#include "lab/loaded_model.h"
#include "lab/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sample_options {
	char prompt[4096];
	int64_t tokens, top_k, seed, threads;
	double temperature, top_p;
};

#define FIELD(f) offsetof(struct sample_options, f)

static const struct rv_option options[] = {
	{"prompt", RV_OPT_STRING, FIELD(prompt), sizeof(((struct sample_options *)0)->prompt), "", 0, 0, NULL,
	 "Text to begin with; empty: a new line.", "Sampling"},
	{"tokens", RV_OPT_INT, FIELD(tokens), 0, "400", 1, 10000000, NULL, "How many tokens to add.", "Sampling"},
	{"temperature", RV_OPT_DOUBLE, FIELD(temperature), 0, "0.8", 0, 100, NULL,
	 "Below 1: likelier tokens are favoured; 0: always the likeliest.", "Sampling"},
	{"top-k", RV_OPT_INT, FIELD(top_k), 0, "0", 0, 1000000, NULL, "Draw among the k likeliest tokens; 0: all.",
	 "Sampling"},
	{"top-p", RV_OPT_DOUBLE, FIELD(top_p), 0, "1", 0.000001, 1, NULL,
	 "Draw among the likeliest tokens that hold this share of the probability.", "Sampling"},
	{"seed", RV_OPT_INT, FIELD(seed), 0, "1", 0, 9007199254740992.0, NULL, "The same seed draws the same text.",
	 "Sampling"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", "Sampling"},
	{.name = NULL},
};

/* The text so far: the last `context` tokens of it are what the model sees. */
struct text {
	int32_t *tokens;
	size_t n;
};

/* A model may write anything; a terminal must not be told to do anything. */
static void show(const char *bytes, size_t n, bool terminal) {
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];
		bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
		putchar(terminal && control ? '?' : c);
	}
	fflush(stdout);
}

static int next_token(struct loaded_model *m, const struct text *t, float *logits, struct sampler *s,
					  struct rv_rng *rng) {
	size_t context = (size_t)m->cfg.context, seen = t->n < context ? t->n : context;
	model_forward(m->model, m->params, t->tokens + t->n - seen, 1, (int)seen);
	model_logits(m->model, m->params, (int)seen - 1, 1, logits);
	return sampler_next(s, logits, rng);
}

static enum rv_err write_text(struct loaded_model *m, const struct sample_options *o, struct sampler *s, struct text *t,
							  float *logits, int signals, struct rv_errtext *et) {
	struct rv_rng rng = rv_rng_of((uint64_t)o->seed, 0);
	bool terminal = isatty(STDOUT_FILENO);
	show(o->prompt, strlen(o->prompt), terminal);
	for (int64_t i = 0; i < o->tokens; i++) {
		if (rv_signals_take(signals) != 0) {
			putchar('\n');
			return rv_fail(et, RV_E_CANCELLED, "stopped");
		}
		int token = next_token(m, t, logits, s, &rng);
		t->tokens[t->n++] = token;
		char byte = (char)token;
		show(&byte, token < 256 ? 1 : 0, terminal);
	}
	putchar('\n');
	return RV_OK;
}

static enum rv_err sample_from(struct loaded_model *m, const struct sample_options *o, int signals,
							   struct rv_errtext *et) {
	const struct sampler_params params = {o->temperature, (int)o->top_k, o->top_p};
	size_t prompt_bytes = strlen(o->prompt);
	int vocab = (int)m->cfg.vocab;
	struct sampler *s = NULL;
	struct text t = {.tokens = malloc((prompt_bytes + 1 + (size_t)o->tokens) * sizeof *t.tokens)};
	float *logits = malloc((size_t)vocab * sizeof *logits);
	enum rv_err e = t.tokens && logits ? sampler_new(&params, vocab, &s, et)
									   : rv_fail(et, RV_E_NOMEM, "no memory for %zu tokens", (size_t)o->tokens);
	if (e == RV_OK) {
		for (size_t i = 0; i < prompt_bytes; i++)
			t.tokens[t.n++] = (unsigned char)o->prompt[i];
		if (t.n == 0)
			t.tokens[t.n++] = '\n';
		e = write_text(m, o, s, &t, logits, signals, et);
	}
	sampler_free(s);
	free(logits);
	free(t.tokens);
	return e;
}

static enum rv_err run_sample(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct sample_options *o = opts;
	const struct backend_options device = {.threads = (int)o->threads, .compute = DTYPE_F32, .isa = "auto"};
	struct loaded_model *m;
	int signals;
	RV_TRY(rv_signals_open(&signals, et));
	enum rv_err e = loaded_model_open(args->at[0], &device, &m, et);
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
		"RUN is the directory of a run, WEIGHTS a safetensors file. The text streams to the terminal; Ctrl-C ends it.",
	.options = options,
	.opts_bytes = sizeof(struct sample_options),
	.run = run_sample,
};
