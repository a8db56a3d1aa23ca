/* metrics.h: what a training process records about its run: one JSON object a line in DIR/metrics.jsonl. The real
 * worker and the lab write through these functions, so that `rivulet report` can set them side by side.
 *
 * The fields of a line are the fields of the struct, plus "kind". docs/metrics.md is the reference for readers.
 * A file may be appended to by a resumed run; a reader lets the later line of a round win. One thread at a time.
 */
#ifndef RV_TRAIN_METRICS_H
#define RV_TRAIN_METRICS_H

#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>

#define METRICS_FILE "metrics.jsonl"

/* The run line's "version". 2: compute_us of `ddp` is of one worker, not of all k together; evaluations along the way and
 * at the end are of the same text. */
enum { METRICS_VERSION = 2 };

/* {"kind":"run"}: the first line; again after a resume. */
struct metrics_run {
	const char *name;   /* "worker0", "data-parallel": what a legend shows */
	const char *role;   /* "worker": measured over a network; "lab": one process, bytes by formula */
	const char *method; /* "diloco", "ddp" */
	const char *codec, *outer;
	uint32_t member;  /* of a worker: its number in the run; 0 in the lab */
	uint32_t workers; /* replicas that share the run, as planned */
	uint64_t n_params;
	uint64_t rounds, steps_per_round, tokens_per_step; /* of one worker */
	uint64_t payload_bytes;  /* of one encoded vector: an outer gradient, or a gradient (ddp) */
	const char *device;      /* backend_ops.describe */
	const char *data;        /* dataset_content; "": not known */
	int threads;             /* that compute one worker's step */
	uint64_t heldout_tokens; /* that an evaluation of all held-out text predicts */
};

/* {"kind":"round"}: after a round was applied. Bytes and time are this worker's; sums are since the start of the run.
 */
struct metrics_round {
	uint64_t round;  /* rounds completed, this one included */
	uint64_t step;   /* inner steps of each worker so far */
	uint64_t tokens; /* trained on by all workers together so far */
	uint32_t participants;
	double train_loss;      /* mean over the round's steps, nats per token */
	double lr, grad_norm;   /* of the last step */
	uint64_t bytes_sent;    /* sum: all that this worker put on the wire for averaging, headers included */
	uint64_t formula_bytes; /* sum: 2 (k-1)/k payload, what an ideal all-reduce of k participants sends */
	uint64_t bytes_donated; /* sum: the run's state, given to workers that lacked it; not in bytes_sent */
	int64_t compute_us;     /* of this round: inner steps, encoding, applying; of one worker, in the lab their mean */
	int64_t reduce_us;      /* of this round: from having encoded and the roster known to holding the whole result */
	int64_t overlap_us;     /* of reduce_us: inner steps went on */
	int64_t idle_us;        /* of this round: waiting for others */
	int64_t wall_us;        /* since the process started; in the lab of the run, over all processes */
	int64_t checkpoint_us;  /* of compute_us: training stood still while its state was copied for the disk */
	int64_t
		modelled_us; /* of this round, in the lab: what its compute takes by a model of the workers' speeds. 0: none */
	struct rv_hash chain; /* state hash of the new state; zero when there is none (ddp) */
	/* Between the workers' outer gradients, before encoding; the lab sees them all. 0: not known. */
	double delta_norm;   /* mean L2 norm */
	double delta_cosine; /* mean over pairs */
	/* What encoding did to them, means over the workers; 0: not known, or (the error) nothing. */
	double codec_error;  /* |decoded - encoded from| / |encoded from| */
	double codec_cosine; /* between the two */
};

/* {"kind":"eval"}: the shared weights on text that was never trained on. */
struct metrics_eval {
	uint64_t round, step, tokens;
	double loss;          /* nats per token (a token is a byte) */
	uint64_t bytes_sent;  /* as in metrics_round, at this moment */
	uint64_t eval_tokens; /* predicted: of all evaluations of a run, the last one too, the same */
};

/* {"kind":"end"}: the run is complete. */
struct metrics_end {
	uint64_t round, step, tokens;
	double loss; /* of the last evaluation */
	uint64_t bytes_sent, formula_bytes, bytes_donated;
	int64_t wall_us;
	struct rv_hash chain, state; /* global_full_hash; for ddp: H of the parameters */
	/* Held-out, as `loss`, just before the last outer step: of the mean of the replicas' weights, and of replica 0's.
	 * 0: not looked at. */
	double average_loss, replica_loss;
};

/* {"kind":"diverged"}: numbers stopped being finite, and the run is over: instead of "end". */
struct metrics_diverged {
	uint64_t round; /* in which, counted from 1 */
	int worker;     /* whose; negative: no single one's */
	uint64_t step;  /* inner steps of that worker, or of each, by then */
	int64_t wall_us;
};

/* {"kind":"rollback"}: the operator has taken back what follows `round`. */
struct metrics_rollback {
	uint64_t round;                     /* rounds completed from now on */
	uint64_t from_round;                /* rounds that this worker had completed */
	uint64_t term;                      /* the one that begins */
	uint64_t tokens;                    /* what counted by then; what was trained on since is given up */
	uint64_t bytes_sent, formula_bytes; /* these were sent all the same */
};

struct metrics; /* opaque: an open file */

/* Opens `path` for appending (a torn last line is ended first), or afresh. RV_E_IO and kin. */
enum rv_err metrics_open(const char *path, bool append, struct metrics **out, struct rv_errtext *et);
/* The last line that was there when it was opened says the run's end. */
bool metrics_ended(const struct metrics *m);
void metrics_close(struct metrics *m); /* NULL is fine */
/* All that was written is on the disk. RV_E_IO, RV_E_FULL name the file. */
enum rv_err metrics_sync(struct metrics *m, struct rv_errtext *et);
/* Each writes one whole line at once. RV_E_IO, RV_E_FULL name the file. */
enum rv_err metrics_write_run(struct metrics *m, const struct metrics_run *r, struct rv_errtext *et);
enum rv_err metrics_write_round(struct metrics *m, const struct metrics_round *r, struct rv_errtext *et);
enum rv_err metrics_write_eval(struct metrics *m, const struct metrics_eval *e, struct rv_errtext *et);
enum rv_err metrics_write_rollback(struct metrics *m, const struct metrics_rollback *r, struct rv_errtext *et);
enum rv_err metrics_write_diverged(struct metrics *m, const struct metrics_diverged *d, struct rv_errtext *et);
enum rv_err metrics_write_end(struct metrics *m, const struct metrics_end *e, struct rv_errtext *et);

enum { METRICS_MAX_FILE_BYTES = 256 << 20 };
/* `tokens` as the file's last line of a round says that is not after `round`; 0: there is none, or no such file.
 * RV_E_IO and kin, RV_E_RANGE: more than METRICS_MAX_FILE_BYTES. */
enum rv_err metrics_tokens_at(const char *path, uint64_t round, uint64_t *tokens, struct rv_errtext *et);
/* `bytes_donated` as the file's last line of a round says; else as above. */
enum rv_err metrics_donated(const char *path, uint64_t *bytes, struct rv_errtext *et);

/* Bytes that one of k workers sends to average a payload with a ring, or with direct reduce-scatter and all-gather:
 * 2 (k-1)/k payload, rounded up; 0 for one worker. */
uint64_t metrics_allreduce_bytes(uint64_t payload_bytes, uint32_t k);
/* The same where a contribution and the mean are encoded differently: (k-1)/k (sent + mean). */
uint64_t metrics_exchange_bytes(uint64_t sent_bytes, uint64_t mean_bytes, uint32_t k);

#endif
