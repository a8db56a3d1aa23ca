/* run_config.h: what all workers of a run must agree on: model, inner loop, outer loop. Its canonical text is what the
 * coordinator stores and hands out, and what run_hash covers. Parsed with base/options.h; every value is bounded. */
#ifndef RV_BASE_RUN_CONFIG_H
#define RV_BASE_RUN_CONFIG_H

#include "base/err.h"
#include "base/options.h"

#include <stdbool.h>
#include <stdint.h>

struct run_config {
	/* model */
	char model[32]; /* family: "gpt2" */
	int64_t n_layer, n_head, n_embd, vocab, context;
	/* data: bytes of text are the tokens (vocab 256); one block of every holdout_every is never trained on */
	int64_t data_shards; /* a member reads shard (member % data_shards) */
	int64_t holdout_every;
	/* inner loop */
	int64_t batch, grad_accum;       /* sequences per micro-batch; micro-batches per step */
	int64_t steps_per_round, rounds; /* H, R */
	double lr, min_lr_ratio;
	int64_t warmup_steps;
	double beta1, beta2, eps, weight_decay, clip;
	int64_t seed;
	/* outer loop */
	char outer[32], codec[32];
	double outer_lr, outer_momentum;
	int64_t chunk_elems; /* 0: chunking_default_elems(n) */
	int64_t base_every;  /* rounds between full-state snapshots */
	char late[16];       /* keep|discard */
	/* round */
	int64_t min_workers;
	int64_t grace_ms, liveness_ms, peer_timeout_ms;
	bool weight_by_tokens;
};

extern const struct rv_option run_config_options[];

void run_config_defaults(struct run_config *c);
/* Parses and then validates what spans several fields (n_embd % n_head, vocab, ...). */
enum rv_err run_config_parse(struct run_config *c, const char *source, const char *text, struct rv_errtext *et);
enum rv_err run_config_validate(const struct run_config *c, struct rv_errtext *et);

#endif
