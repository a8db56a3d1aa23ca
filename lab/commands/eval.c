/* eval.c: `rivulet eval`: the loss of given weights on text. */
#include "base/file.h"
#include "kernels/device.h"
#include "lab/commands/commands.h"
#include "lab/model/evaluation.h"
#include "lab/run/console.h"
#include "lab/run/text_source.h"
#include "train/text/documents/documents.h"
#include "train/text/tokenizer/shard.h"
#include "train/text/tokenizer/text_check.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum split { SPLIT_AUTO, SPLIT_HELDOUT, SPLIT_ALL };

struct eval_options {
	char data[512], field[DOCUMENTS_FIELD_BYTES], tokenizer[512], device[DEVICE_TEXT_BYTES];
	int split, dtype; /* enum split, enum run_dtype */
	int64_t tokens, batch, stride, threads;
};

#define FIELD(f) offsetof(struct eval_options, f)
#define CAP(f)   sizeof(((struct eval_options *)0)->f)

static const struct rv_option options[] = {
	{"data", RV_OPT_STRING, FIELD(data), CAP(data), NULL, 0, 0, NULL,
	 "Text, or token shards (.bin), to predict. For --split heldout: that of the training run.", "Evaluation"},
	{"field", RV_OPT_STRING, FIELD(field), CAP(field), DOCUMENTS_FIELD_DEFAULT, 0, 0, NULL,
	 "--split heldout: " DOCUMENTS_FIELD_HELP, "Evaluation"},
	{"split", RV_OPT_CHOICE, FIELD(split), 0, "auto", 0, 0, "auto|heldout|all",
	 "heldout: the part that the run never trained on; all: every token of one file; auto: heldout for weights of a "
	 "Rivulet run, all for others.",
	 "Evaluation"},
	{"tokens", RV_OPT_INT, FIELD(tokens), 0, "0", 0, 1e12, NULL,
	 "--split heldout: at most this many tokens, those of `rivulet train --eval-tokens`; 0: all held-out text.",
	 "Evaluation"},
	{"stride", RV_OPT_INT, FIELD(stride), 0, "0", 0, 1048576, NULL,
	 "--split all: windows begin this many tokens apart; smaller: more context for each token, more work; 0: the "
	 "context.",
	 "Evaluation"},
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), "", 0, 0, NULL,
	 "A tokenizer.json or a tiktoken file, or bytes; empty: the one beside the weights.", "Model"},
	{"dtype", RV_OPT_CHOICE, FIELD(dtype), 0, "auto", 0, 0, "auto|fp32|bf16",
	 "Operands of matrix products; auto: as the model was trained.", "Model"},
	{"batch", RV_OPT_INT, FIELD(batch), 0, "0", 0, 65536, NULL,
	 "Sequences at a time; changes speed and memory only. 0: about 4096 tokens.", "Model"},
	{"device", RV_OPT_STRING, FIELD(device), CAP(device), "auto", 0, 0, NULL, DEVICE_HELP, "Model"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", "Model"},
	{.name = NULL},
};

struct session {
	const struct eval_options *opts;
	struct loaded_model *model;
	struct console console; /* on stderr: stdout is the result's */
};

static bool tick(void *ctx, uint64_t done_tokens, uint64_t all_tokens) {
	struct session *s = ctx;
	return console_progress(&s->console, "eval", done_tokens, all_tokens, "token", "");
}

static enum rv_err read_shard(const char *path, uint32_t vocab, struct token_list *out, struct rv_errtext *et) {
	struct shard shard;
	RV_TRY(shard_open(&shard, path, et));
	enum rv_err e = token_list_reserve(out, shard.n_tokens, et);
	if (e == RV_OK)
		e = shard_read(&shard, vocab, 0, shard.n_tokens, (int32_t *)out->ids, et);
	if (e == RV_OK)
		out->n = shard.n_tokens;
	shard_close(&shard);
	return e;
}

static enum rv_err encode_file(const char *path, const struct tokenizer *t, struct token_list *out,
							   struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	struct encoder *encoder = NULL;
	RV_TRY(rv_file_read(path, TOKENIZER_MAX_TEXT_BYTES, &text, &n, et));
	enum rv_err e = encoder_new(t, &encoder, et);
	if (e == RV_OK)
		e = tokenizer_encode(encoder, text, n, SPECIALS_AS_TEXT, out, et);
	encoder_free(encoder);
	free(text);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

/* Decides as dataset_open does whether `path` is a token file, and refuses what is neither. */
static enum rv_err is_shard(const char *path, bool *out, struct rv_errtext *et) {
	struct mapped_file m;
	RV_TRY(mapped_file_open(&m, path, et));
	*out = shard_recognise(&m);
	enum rv_err e = *out ? RV_OK : text_check(&m, et);
	mapped_file_close(&m);
	return e;
}

static enum rv_err evaluate_all(struct session *s, struct evaluation *out, struct rv_errtext *et) {
	const char *path = s->opts->data;
	struct loaded_model *m = s->model;
	struct token_list tokens = {0};
	int64_t stride = s->opts->stride > 0 && s->opts->stride < m->cfg.context ? s->opts->stride : m->cfg.context;
	bool shard = false;
	RV_TRY(is_shard(path, &shard, et));
	enum rv_err e =
		shard ? read_shard(path, (uint32_t)m->cfg.vocab, &tokens, et) : encode_file(path, m->tokenizer, &tokens, et);
	if (e == RV_OK)
		e = evaluation_text(m, tokens.ids, tokens.n, (int)stride, tick, s, out, et);
	token_list_release(&tokens);
	return e;
}

static enum rv_err evaluate_heldout(struct session *s, struct evaluation *out, struct rv_errtext *et) {
	struct loaded_model *m = s->model;
	struct dataset *data;
	/* A run on bytes has no tokenizer, and its text is not tokenized. */
	const struct tokenizer *t = m->cfg.tokenizer_hash[0] ? m->tokenizer : NULL;
	if (!m->of_a_run)
		return rv_fail(et, RV_E_INVALID,
					   "--split heldout: these weights are not of a Rivulet run, so the held-out text is unknown; "
					   "use --split all");
	const struct text_source source = {.path = s->opts->data,
									   .field = s->opts->field,
									   .tokenizer = t,
									   .events = s->console.events,
									   .signals = s->console.signals};
	RV_TRY(text_source_open(&source, &m->cfg, &data, et));
	enum rv_err e = evaluation_heldout(m, data, (uint64_t)s->opts->tokens, tick, s, out, et);
	dataset_close(data);
	return e;
}

static enum rv_err print_result(const char *weights, const char *split, const struct evaluation *v,
								struct rv_errtext *et) {
	double loss = evaluation_loss(v), perplexity = exp(loss);
	json_t *line = json_pack("{ss ss sI sI sf so sf}", "weights", weights, "split", split, "tokens",
							 (json_int_t)v->tokens, "bytes", (json_int_t)v->bytes, "loss", loss, "perplexity",
							 isfinite(perplexity) ? json_real(perplexity) : json_null(), "bits_per_byte",
							 evaluation_bits_per_byte(v));
	bool ok = line && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(7)) == 0;
	json_decref(line);
	putchar('\n');
	return ok ? RV_OK : rv_fail(et, RV_E_IO, "cannot print the result for %s", weights);
}

static enum rv_err evaluate(struct session *s, const char *where, struct rv_errtext *et) {
	const struct eval_options *o = s->opts;
	const struct loaded_model_options model = {.where = where,
											   .tokenizer = o->tokenizer,
											   .dtype = (enum run_dtype)o->dtype,
											   .max_batch = (int)o->batch,
											   .threads = (int)o->threads,
											   .device = o->device};
	RV_TRY(loaded_model_open(&model, &s->model, et));
	if (s->model->why_not_gpu[0])
		rv_event(s->console.events, RV_INFO, "no_gpu", RV_FIELDS(rv_field_str("why", s->model->why_not_gpu)),
				 "on the CPU: %s", s->model->why_not_gpu);
	bool all = o->split == SPLIT_ALL || (o->split == SPLIT_AUTO && !s->model->of_a_run);
	struct evaluation v;
	RV_TRY(all ? evaluate_all(s, &v, et) : evaluate_heldout(s, &v, et));
	rv_progress_clear(s->console.events);
	return print_result(where, all ? "all" : "heldout", &v, et);
}

static enum rv_err run_eval(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct session s = {.opts = opts};
	enum rv_err e = console_open(&s.console, stderr, et);
	if (e == RV_OK)
		e = evaluate(&s, args->at[0], et);
	loaded_model_close(s.model);
	console_close(&s.console);
	return e;
}

const struct rv_command eval_command = {
	.name = "eval",
	.synopsis = "RUN|WEIGHTS",
	.args_min = 1,
	.args_max = 1,
	.help = "Loss, perplexity and bits per byte of trained weights on text.",
	.details =
		"RUN is the directory of a run or a Hugging Face model directory, WEIGHTS a safetensors file. Prints one JSON\n"
		"object. Loss is in nats per token; bits per byte compares models with different tokenizers. Examples:\n"
		"    rivulet eval runs/diloco --data book.txt\n"
		"    rivulet eval ~/models/gpt2 --data other.txt --split all --stride 512",
	.options = options,
	.opts_bytes = sizeof(struct eval_options),
	.run = run_eval,
};
