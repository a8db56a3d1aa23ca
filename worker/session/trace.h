/* trace.h: writes what a worker does with its replica as lines of DIR/trace.jsonl, enough for
 * `rivulet replay` to repeat it in one process: the steps trained, the contributions encoded, the
 * rounds applied with their rosters, and each restart. docs/metrics.md describes the lines.
 *
 * A line is one write(): a killed process loses no line that it has written. One thread. */
#ifndef RV_WORKER_SESSION_TRACE_H
#define RV_WORKER_SESSION_TRACE_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"

#include <stdbool.h>
#include <stdint.h>

#define TRACE_FILE "trace.jsonl"
/* The version of the lines; each `start` names it, as another release may append to the file. */
enum { TRACE_VERSION = 1 };

struct trace;

/* The members whose contributions an attempt averages, from its REDUCE document. */
struct trace_roster {
	uint64_t round;
	uint32_t attempt;
	int n;
	struct {
		uint32_t member, weight;
		uint64_t boot;
	} members[NET_MAX_MEMBERS];
};
void trace_roster_of(const struct document *d, struct trace_roster *out);

/* Opens the file for appending; a torn last line is ended first. RV_E_IO, RV_E_FULL, RV_E_NOMEM. */
enum rv_err trace_open(const char *path, struct trace **out, struct rv_errtext *et);
void trace_close(struct trace *t); /* NULL is fine */

/* The start of a process, in `round`. saved: the replica is the copy (round, steps) in replica.rvp;
 * exact: and it belongs to this very state, so theta_local is kept. Otherwise theta_local is the
 * shared theta. */
struct trace_start {
	uint32_t member;
	uint64_t boot, round;
	bool saved, exact;
	uint64_t saved_round, saved_steps;
	/* Facts of the backend that decide the bits of results. */
	int threads;
	const char *dtype;  /* "fp32", "bf16": of its products */
	const char *device; /* device_kind; NULL: not known */
	const char *data;   /* dataset_content; NULL: not known */
};
/* Each trace_write_*: RV_E_IO, RV_E_FULL name the file. */
enum rv_err trace_write_start(struct trace *t, const struct trace_start *s, struct rv_errtext *et);
/* Writes inner steps [from, to) of the contribution to `round`; steps of the round after the one
 * held are ahead of the outer step (overlap-steps). */
enum rv_err trace_write_train(struct trace *t, uint64_t round, uint64_t from, uint64_t to, struct rv_errtext *et);
/* Writes an encoding. !ok: it was not finite, and theta_local is the shared theta again. copy: the
 * replica was copied for the disk. */
enum rv_err trace_write_encode(struct trace *t, uint64_t round, uint64_t boot, bool ok, bool copy,
							   struct rv_errtext *et);
/* Writes that the result of an attempt is about to be stored, which makes it a vote: the process
 * that does the outer step with it, possibly a later one that knows no document of that round,
 * names the attempt. */
enum rv_err trace_write_vote(struct trace *t, const struct trace_roster *r, struct rv_errtext *et);
/* The outer step. */
struct trace_apply {
	uint64_t round;
	bool participated;    /* this worker's outer gradient is in the mean */
	bool keep;            /* it is not, and theta_local was moved along, not replaced */
	bool copy;            /* the replica was copied for the disk right after it */
	struct rv_hash chain; /* of the state after it */
	uint32_t attempt;     /* the attempt whose result it is, a vote of this worker; 0: fetched */
};
enum rv_err trace_write_apply(struct trace *t, const struct trace_apply *a, struct rv_errtext *et);
/* Writes that a fetched state is installed: theta_local is the shared theta of `round`. */
enum rv_err trace_write_install(struct trace *t, uint64_t round, struct rv_errtext *et);
/* Writes that the operator took back `round` and later rounds; a process with that state
 * follows. */
enum rv_err trace_write_rollback(struct trace *t, uint64_t round, struct rv_errtext *et);
/* Writes that the replica was copied for the disk in the middle of `round`. */
enum rv_err trace_write_save(struct trace *t, uint64_t round, uint64_t steps, struct rv_errtext *et);

#endif
