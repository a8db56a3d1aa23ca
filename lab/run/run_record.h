/* run_record.h: metrics.jsonl read back (docs/metrics.md), and the records of one run's workers put
 * together. */
#ifndef RV_LAB_RUN_RECORD_H
#define RV_LAB_RUN_RECORD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RECORD_NAME_BYTES = 64,
	RECORD_PROGRAM_BYTES = 64,
	RECORD_DATA_BYTES = 80,
	RECORD_MAX_ROUNDS = 1000000,
	RECORD_MAX_FILE_BYTES = 256 << 20
};

struct record_round {
	uint64_t round, tokens, participants;
	double train_loss, bytes_sent, formula_bytes;
	double compute_s, reduce_s, idle_s;                         /* reduce_s: exchanging without inner steps */
	double delta_norm, delta_cosine, codec_error, codec_cosine; /* NaN: unknown */
	double modelled_s;                                          /* 0: no model of the workers' speeds */
};

struct record_eval {
	uint64_t round, tokens;
	double loss, bytes_sent;
};

/* One process's file. */
struct run_record {
	char name[RECORD_NAME_BYTES], role[16], method[16], codec[16], outer[32];
	char program[RECORD_PROGRAM_BYTES], data[RECORD_DATA_BYTES]; /* "": not known */
	bool newer;                                                  /* of a later METRICS_VERSION: it is not read */
	uint32_t member, workers, threads;                           /* of one worker; 0: not known */
	uint64_t n_params, steps_per_round;
	uint64_t heldout_tokens, eval_tokens; /* available; predicted by evaluations; 0: unknown */
	struct record_round *rounds;          /* ascending, each round once */
	struct record_eval *evals;            /* likewise */
	int n_rounds, n_evals;
	int skipped_lines; /* not JSON */
	bool ended;
	struct {
		uint64_t round, tokens;
		double bytes_sent, formula_bytes;
	} end;                   /* the last line of an ended run; sums since its start */
	uint64_t diverged_round; /* counted from 1; 0: it has not diverged */
	double final_loss, wall_s;
	double average_loss, replica_loss; /* NaN: not measured */
};

/* Reads a metrics.jsonl. RV_E_NOTFOUND, RV_E_RANGE (too large), RV_E_CORRUPT: no `run` line;
 * RV_E_UNSUPPORTED: of a later version. */
enum rv_err run_record_read(const char *path, struct run_record *out, struct rv_errtext *et);
void run_record_release(struct run_record *r);

/* Returns the first of the rounds 1..upto without a line; 0: all have one. A worker's rounds may be
 * missing rightly: it may have joined late, or been away. */
uint64_t run_record_missing(const struct run_record *r, uint64_t upto);

/* Sums of a record. Times are over the rounds present; counts are the latest, of the `end` line if
 * there is one. */
struct record_totals {
	double compute_s, reduce_s, idle_s, bytes_sent, formula_bytes;
	double modelled_s; /* modelled time of computing; 0: no model */
	uint64_t rounds, steps, tokens;
	double loss; /* at the end; before it, of the latest evaluation; NaN: not measured */
	double delta_norm, delta_cosine, codec_error, codec_cosine; /* means over the rounds that have them; NaN: none */
};
struct record_totals run_record_totals(const struct run_record *r);
/* Returns the bytes that data-parallel training with fp32 gradients would have sent per worker for
 * the same steps. */
double run_record_ddp_bytes(const struct run_record *r);

#endif
