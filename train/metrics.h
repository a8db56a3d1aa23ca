/* metrics.h: a training process's records of its run, one JSON object per line of
 * DIR/metrics.jsonl. The worker and the lab use these functions, so that `rivulet report` can
 * compare them.
 *
 * A line has the fields of its struct and "kind"; docs/metrics.md is the reference for readers. A
 * resumed run appends; readers use the last line of a round. One thread at a time. */
#ifndef RV_TRAIN_METRICS_H
#define RV_TRAIN_METRICS_H

#include "base/err.h"
#include "base/hash.h"
#include "base/json_lines.h"

#include <stdbool.h>
#include <stdint.h>

#define METRICS_FILE "metrics.jsonl"

/* Version in the run line. */
enum { METRICS_VERSION = 1 };

/* {"kind":"run"}: the first line; again after a resume. */
struct metrics_run {
	const char *name;   /* name in legends: "worker0", "data-parallel" */
	const char *role;   /* "worker": measured over a network; "lab": one process, bytes by formula */
	const char *method; /* "diloco", "ddp" */
	const char *codec, *outer;
	uint32_t member;  /* number of a worker in the run; 0 in the lab */
	uint32_t workers; /* planned number of replicas */
	uint64_t n_params;
	uint64_t rounds, steps_per_round, tokens_per_step; /* figures of one worker */
	uint64_t payload_bytes;                            /* size of an encoded outer gradient, or gradient (ddp) */
	const char *device;                                /* backend_ops.describe */
	const char *data;                                  /* dataset_content; "": unknown */
	int threads;                                       /* threads of one worker's step */
	uint64_t heldout_tokens;                           /* tokens in all held-out text */
};

/* {"kind":"round"}: an applied round. Bytes and time are this worker's; sums are the run's. */
struct metrics_round {
	uint64_t round;  /* rounds completed, this one included */
	uint64_t step;   /* inner steps of each worker so far */
	uint64_t tokens; /* trained on by all workers so far */
	uint32_t participants;
	double train_loss;            /* mean over the round's steps, nats per token */
	double lr, grad_norm;         /* values of the last step */
	uint64_t bytes_sent;          /* sum of bytes that this worker sent for averaging, with headers */
	uint64_t formula_bytes;       /* sum of 2 (k-1)/k payload, the bytes of an ideal all-reduce of k participants */
	uint64_t bytes_donated;       /* sum of bytes of the run's state and text given to others; not in bytes_sent */
	uint64_t given_rounds;        /* contributions of this worker to committed rounds, since its first start */
	uint64_t given_tokens;        /* tokens of these contributions */
	uint64_t bytes_relayed;       /* bytes of both that went through relays, since the process started */
	int64_t compute_us;           /* this round's inner steps, encoding, applying; in the lab a worker's mean */
	int64_t reduce_us;            /* this round's time from the encoding and the roster to the whole result */
	int64_t overlap_us;           /* part of reduce_us in which inner steps went on */
	int64_t idle_us;              /* this round's waiting for others */
	int64_t wall_us;              /* since the process started; in the lab the run's, over all processes */
	int64_t checkpoint_us;        /* part of compute_us in which training stood still while its state was copied */
	int64_t data_stall_us;        /* this round's time in which training or an evaluation waited for text */
	uint64_t text_bytes;          /* bytes of text that it fetched, since the process started */
	int64_t modelled_us;          /* lab only: this round's compute by a model of the workers' speeds; 0: none */
	int64_t modelled_exchange_us; /* lab only: this round's exchange by a model of the workers' lines; 0: none */
	struct rv_hash chain;         /* hash of the new state; zero if there is none (ddp) */
	/* Norm and cosine of the workers' outer gradients before encoding, known in the lab. 0:
	 * unknown. */
	double delta_norm;   /* mean L2 norm */
	double delta_cosine; /* mean over pairs */
	/* Effect of encoding, means over the workers. 0: unknown, or no error. */
	double codec_error;  /* |decoded - encoded from| / |encoded from| */
	double codec_cosine; /* between the two */
};

/* {"kind":"eval"}: the shared weights on held-out text. */
struct metrics_eval {
	uint64_t round, step, tokens;
	double loss;          /* nats per token */
	uint64_t bytes_sent;  /* sum as in metrics_round */
	uint64_t eval_tokens; /* predicted tokens, the same in all evaluations of a run */
};

/* {"kind":"end"}: the run is complete. */
struct metrics_end {
	uint64_t round, step, tokens;
	double loss; /* loss of the last evaluation, nats per token */
	uint64_t bytes_sent, formula_bytes, bytes_donated;
	int64_t wall_us;
	struct rv_hash chain, state; /* global_full_hash; for ddp: H of the parameters */
	/* Held-out losses just before the last outer step: of the mean of the replicas' weights, and of
	 * replica 0's. 0: not evaluated. */
	double average_loss, replica_loss;
};

/* {"kind":"diverged"}: the run ended because numbers were not finite; replaces "end". */
struct metrics_diverged {
	uint64_t round; /* the round of it, from 1 */
	int worker;     /* its worker; negative: not a single one */
	uint64_t step;  /* inner steps of that worker, or of each, by then */
	int64_t wall_us;
};

/* {"kind":"rollback"}: the operator took back the rounds after `round`. */
struct metrics_rollback {
	uint64_t round;                     /* rounds completed from now on */
	uint64_t from_round;                /* rounds that this worker had completed */
	uint64_t term;                      /* the new term */
	uint64_t tokens;                    /* tokens that count; later training is discarded */
	uint64_t bytes_sent, formula_bytes; /* sent nevertheless */
};

/* Reports whether the last line was the run's end when the file was opened to append
 * (rv_json_lines_open). */
bool metrics_ended(const struct rv_json_lines *m);
/* Each writes one whole line at once. Returns RV_E_IO or RV_E_FULL, naming the file. */
enum rv_err metrics_write_run(struct rv_json_lines *m, const struct metrics_run *r, struct rv_errtext *et);
enum rv_err metrics_write_round(struct rv_json_lines *m, const struct metrics_round *r, struct rv_errtext *et);
enum rv_err metrics_write_eval(struct rv_json_lines *m, const struct metrics_eval *e, struct rv_errtext *et);
enum rv_err metrics_write_rollback(struct rv_json_lines *m, const struct metrics_rollback *r, struct rv_errtext *et);
enum rv_err metrics_write_diverged(struct rv_json_lines *m, const struct metrics_diverged *d, struct rv_errtext *et);
enum rv_err metrics_write_end(struct rv_json_lines *m, const struct metrics_end *e, struct rv_errtext *et);

enum { METRICS_MAX_FILE_BYTES = 256 << 20 };
/* Reads `tokens` from the last line of a round up to `round`; 0 if there is none, or no file.
 * Returns RV_E_IO, RV_E_NOMEM, or RV_E_RANGE above METRICS_MAX_FILE_BYTES. */
enum rv_err metrics_tokens_at(const char *path, uint64_t round, uint64_t *tokens, struct rv_errtext *et);
/* Calls `visit` with each line of the file that is whole and JSON, in order; no file: never. The
 * same faults. */
enum rv_err metrics_each(const char *path, void (*visit)(void *ctx, const struct json_t *line), void *ctx,
						 struct rv_errtext *et);

/* Returns the bytes that one of k workers sends to average a payload by a ring, or by direct
 * reduce-scatter and all-gather: 2 (k-1)/k payload, rounded up; 0 for one worker. */
uint64_t metrics_allreduce_bytes(uint64_t payload_bytes, uint32_t k);
/* Returns the same for a contribution of sent_bytes and a mean of mean_bytes: (k-1)/k (sent + mean)
 * in one row. In more rows, which exchange partial sums of sum_bytes (net/reduce/grid.h): the
 * average over the k workers. Rounded up. */
uint64_t metrics_rows_bytes(uint64_t sent_bytes, uint64_t mean_bytes, uint64_t sum_bytes, uint32_t k, uint32_t n_rows);

#endif
