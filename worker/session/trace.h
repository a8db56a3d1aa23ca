/* trace.h: what a worker did with its replica, step by step, as lines of DIR/trace.jsonl: enough to do it again in one
 * process (`rivulet replay`): which steps it trained, what it encoded, which rounds it applied and over whom, where it
 * started again and from what. docs/metrics.md describes the lines.
 *
 * A line is one write(); a process that is killed loses none that it has written, and what it did after the last one
 * was lost with it. One thread. */
#ifndef RV_WORKER_SESSION_TRACE_H
#define RV_WORKER_SESSION_TRACE_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"

#include <stdbool.h>
#include <stdint.h>

#define TRACE_FILE "trace.jsonl"

struct trace;

/* Over whom an attempt at a round averages: of its REDUCE document. */
struct trace_roster {
	uint64_t round;
	uint32_t attempt; /* read back: 0 in a trace of an older version, which told it with the outer step */
	int n;
	struct {
		uint32_t member, weight;
		uint64_t boot;
	} members[NET_MAX_MEMBERS];
};
void trace_roster_of(const struct document *d, struct trace_roster *out);

/* Appends to the file, whose torn last line, if any, is ended first. RV_E_IO and kin. */
enum rv_err trace_open(const char *path, struct trace **out, struct rv_errtext *et);
void trace_close(struct trace *t); /* NULL is fine */

/* The process begins in `round`. saved: the replica is that of the copy (round, steps) of replica.rvp; exact: and
 * it is of this very state, so that theta_local is kept. Otherwise theta_local is the shared theta. */
struct trace_start {
	uint32_t member;
	uint64_t boot, round;
	bool saved, exact;
	uint64_t saved_round, saved_steps;
	/* Of the backend: part of what makes results bit-identical. */
	int threads;
	const char *dtype;  /* "fp32", "bf16": of its products */
	const char *device; /* device_kind; NULL: not known */
	const char *data;   /* dataset_content; NULL: not known */
};
/* Each trace_write_*: RV_E_IO, RV_E_FULL name the file. */
enum rv_err trace_write_start(struct trace *t, const struct trace_start *s, struct rv_errtext *et);
/* Inner steps [from, to) of the contribution to `round`; of the round after the one that is held, ahead of its outer
 * step (overlap-steps). */
enum rv_err trace_write_train(struct trace *t, uint64_t round, uint64_t from, uint64_t to, struct rv_errtext *et);
/* !ok: it was not finite, and theta_local is the shared theta again. copy: the replica was copied for the disk. */
enum rv_err trace_write_encode(struct trace *t, uint64_t round, uint64_t boot, bool ok, bool copy,
							   struct rv_errtext *et);
/* The result of the attempt is about to be stored, which makes it a vote: whoever does the outer step with it, though
 * it be a later process that knows no document of that round, names the attempt. */
enum rv_err trace_write_vote(struct trace *t, const struct trace_roster *r, struct rv_errtext *et);
/* The outer step. */
struct trace_apply {
	uint64_t round;
	bool participated;    /* our outer gradient is in the mean */
	bool keep;            /* it is not, and theta_local was moved along, not replaced */
	bool copy;            /* the replica was copied for the disk right after it */
	struct rv_hash chain; /* of the state after it */
	uint32_t attempt;     /* whose result it is, a vote of this worker; 0: fetched */
};
enum rv_err trace_write_apply(struct trace *t, const struct trace_apply *a, struct rv_errtext *et);
/* A fetched state: theta_local is the shared theta of `round`. */
enum rv_err trace_write_install(struct trace *t, uint64_t round, struct rv_errtext *et);
/* The operator has taken back `round` and what followed: a process with that state comes next. */
enum rv_err trace_write_rollback(struct trace *t, uint64_t round, struct rv_errtext *et);
/* The replica was copied for the disk, in the middle of `round`. */
enum rv_err trace_write_save(struct trace *t, uint64_t round, uint64_t steps, struct rv_errtext *et);

#endif
