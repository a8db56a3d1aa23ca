/* trace.h: what a worker does with its replica as lines of DIR/trace.jsonl (base/json_lines.h),
 * enough for `rivulet replay` to repeat it in one process: the steps trained, the contributions
 * encoded, the rounds applied with their rosters, and each restart. docs/metrics.md describes the
 * lines.
 *
 * A line is one write(): a killed process loses no line that it has written. One thread. */
#ifndef RV_WORKER_SESSION_TRACE_H
#define RV_WORKER_SESSION_TRACE_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"
#include "train/savings.h"
#include "train/text/reading.h"

#include <stdbool.h>
#include <stdint.h>

#define TRACE_FILE "trace.jsonl"
/* The version of the lines; each `start` names it, as another release may append to the file. */
enum { TRACE_VERSION = 1 };

struct json_t; /* jansson */

/* The members whose contributions an attempt averages, from its REDUCE document: those of one row,
 * and the weights of all rows, if there are several. */
struct trace_roster {
	uint64_t round;
	uint32_t attempt;
	int row, n_rows; /* n_rows 1: the whole roster */
	uint32_t row_weights[NET_MAX_ROWS];
	int n;
	struct {
		uint32_t member, weight;
		uint64_t boot;
		uint8_t codec, part; /* as member_ref's */
	} members[NET_MAX_ROW];
};
void trace_roster_of(const struct document *d, struct trace_roster *out);

/* The chunks of the round's vector whose means this worker makes in an attempt. */
struct trace_range {
	uint32_t first, count;
};
struct trace_owns {
	uint64_t round;
	uint32_t attempt;
	bool residual; /* it holds what it left of the last round that exchanged them (outer/mean_residual.h) */
	int n;
	struct trace_range *ranges; /* (n) ascending; the owner's of the struct */
};
/* Sets out->ranges to `room`. */
void trace_owns_of(const struct document *d, uint32_t member, struct trace_range room[static NET_MAX_RANGES],
				   struct trace_owns *out);

/* Each of the functions below makes the line of one event: a reference, which rv_json_lines_write()
 * takes; NULL: no memory. The comment says what the event tells. */

/* The start of a process, in `round`. saved: the replica is the copy (round, steps) in replica.rvp;
 * exact: and it belongs to this very state, so theta_local is kept. Otherwise theta_local is the
 * shared theta. */
struct trace_started {
	uint32_t member;
	uint64_t boot, round;
	bool saved, exact;
	uint64_t saved_round, saved_steps;
	/* Facts of the backend that decide the bits of results. */
	int threads;
	const char *dtype;  /* "fp32", "bf16": of its products */
	const char *device; /* device_kind; NULL: not known */
	const char *data;   /* dataset_content; NULL: not known */
	struct savings savings;
};
struct json_t *trace_start(const struct trace_started *s);
/* Inner steps [from, to) of the contribution to `round`; steps of the round after the one
 * held are ahead of the outer step (overlap-steps). `reads`: the positions that they read of a text
 * that is leased, in this order; NULL: the run has no leases. */
struct json_t *trace_train(uint64_t round, uint64_t from, uint64_t to, const struct reading *reads);
/* The contribution's leases were lost: theta_local is the shared theta of `round` again. */
struct json_t *trace_start_over(uint64_t round);
/* An encoding. !ok: it was not finite, and theta_local is the shared theta again. copy: the
 * replica was copied for the disk. */
struct json_t *trace_encode(uint64_t round, uint64_t boot, bool ok, bool copy);
/* An attempt begins, in a run with error feedback of means. */
struct json_t *trace_owned(const struct trace_owns *o);
/* The result of an attempt is about to be stored, which makes it a vote: the process that does the
 * outer step with it, possibly a later one that knows no document of that round, names the
 * attempt. */
struct json_t *trace_vote(const struct trace_roster *r);
/* The outer step. */
struct trace_applied {
	uint64_t round;
	bool participated;    /* this worker's outer gradient is in the mean */
	bool keep;            /* it is not, and theta_local was moved along, not replaced */
	bool copy;            /* the replica was copied for the disk right after it */
	struct rv_hash chain; /* of the state after it */
	uint32_t attempt;     /* the attempt whose result it is, a vote of this worker; 0: fetched */
};
struct json_t *trace_apply(const struct trace_applied *a);
/* A fetched state is installed: theta_local is the shared theta of `round`. */
struct json_t *trace_install(uint64_t round);
/* The operator took back `round` and later rounds; a process with that state follows. */
struct json_t *trace_rollback(uint64_t round);
/* The replica was copied for the disk in the middle of `round`. */
struct json_t *trace_save(uint64_t round, uint64_t steps);

#endif
