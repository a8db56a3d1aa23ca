/* replay_means.h: which residual the means of a replayed round have, from what their owners
 * recorded (outer/mean_residual.h states the rule; worker/session/trace.h the lines). */
#ifndef RV_LAB_REPLAY_MEANS_H
#define RV_LAB_REPLAY_MEANS_H

#include "lab/run/lab_run.h"
#include "lab/worker_files/trace_read.h"

struct replay_means {
	uint32_t *owner;    /* (chunks of the whole vector) of the mean in the last committed round that had it */
	uint32_t *owns_now; /* the same in the round under way */
	bool *held;         /* (chunks) and still has what it left, it says */
};

/* Makes one for a run, without any owner. RV_E_NOMEM; *m may be released then. */
enum rv_err replay_means_init(struct replay_means *m, const struct lab_run *r, struct rv_errtext *et);
void replay_means_release(struct replay_means *m);
/* Loses the residuals of r->mean_residual that the attempt of the roster at r's round did not have.
 * `traces`: those of all workers. RV_E_NOTFOUND: no trace says who made a mean; RV_E_PROTOCOL: two
 * made the same. */
enum rv_err replay_means_begin(struct replay_means *m, struct lab_run *r, const struct trace_record *const *traces,
							   int n, const struct trace_roster *roster, struct rv_errtext *et);
/* Commits the round. */
void replay_means_commit(struct replay_means *m, struct lab_run *r);

#endif
