/* cmd_eval.c: `rivulet eval`: how well given weights predict held-out text. */
#include "lab/commands.h"
#include "lab/loaded_model.h"
#include "lab/text_source.h"
#include "worker/train/replica.h"
#include "worker/train/weights.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

struct eval_options {
	char data[512];
	int64_t batches, threads;
};

#define FIELD(f) offsetof(struct eval_options, f)

static const struct rv_option options[] = {
	{"data", RV_OPT_STRING, FIELD(data), sizeof(((struct eval_options *)0)->data), NULL, 0, 0, NULL,
	 "The text that the run was trained on: its held-out part is used.", "Evaluation"},
	{"batches", RV_OPT_INT, FIELD(batches), 0, "0", 0, 1000000, NULL,
	 "Evaluate so many batches, spread over the held-out text; 0: all of it.", "Evaluation"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", "Evaluation"},
	{.name = NULL},
};

struct evaluation {
	struct run_config cfg;
	struct dataset *data;
	struct backend *be;
	struct replica *replica;
	float *theta;
	double loss;
};

static enum rv_err evaluate(struct evaluation *v, const char *path, const struct eval_options *o,
							struct rv_errtext *et) {
	const struct backend_options device = {.threads = (int)o->threads, .compute = DTYPE_F32, .isa = "auto"};
	const struct run_config *c = &v->cfg;
	RV_TRY(weights_load_config(path, &v->cfg, et));
	RV_TRY(text_source_open(o->data, c, NULL, NULL, &v->data, et));
	RV_TRY(backend_open("cpu", &device, &v->be, et));
	RV_TRY(replica_new(c, v->data, &(struct replica_options){.shard = 0, .n_shards = (uint32_t)c->data_shards}, v->be,
					   &v->replica, et));
	v->theta = malloc(replica_n_params(v->replica) * sizeof *v->theta);
	if (!v->theta)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu parameters", replica_n_params(v->replica));
	RV_TRY(weights_load(path, replica_model(v->replica)->ops, &replica_model(v->replica)->layout, v->theta, et));
	return replica_eval(v->replica, v->theta, (int)o->batches, &v->loss, et);
}

static enum rv_err print_result(const char *path, double loss, struct rv_errtext *et) {
	json_t *line = json_pack("{ss sf sf sf}", "weights", path, "loss", loss, "perplexity", exp(loss), "bits_per_byte",
							 loss / M_LN2);
	if (!line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(7)) != 0)
		return rv_fail(et, RV_E_IO, "cannot print the result for %s", path);
	json_decref(line);
	putchar('\n');
	return RV_OK;
}

static enum rv_err run_eval(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	char path[PATH_MAX];
	loaded_model_path(args->at[0], path);
	struct evaluation v = {0};
	enum rv_err e = evaluate(&v, path, opts, et);
	if (e == RV_OK)
		e = print_result(path, v.loss, et);
	free(v.theta);
	replica_free(v.replica);
	backend_close(v.be);
	dataset_close(v.data);
	return e;
}

const struct rv_command eval_command = {
	.name = "eval",
	.synopsis = "RUN|WEIGHTS",
	.args_min = 1,
	.args_max = 1,
	.help = "Held-out loss, perplexity and bits per byte of trained weights.",
	.details =
		"Prints one JSON object. The text must be that of the training run, so that what is held out is the same.",
	.options = options,
	.opts_bytes = sizeof(struct eval_options),
	.run = run_eval,
};
