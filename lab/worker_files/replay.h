/* replay.h: a run of real workers repeated in one process, from their traces: the same replicas
 * take the same steps in the same order, the same participants are averaged with the same weights.
 * So it ends in the same bits, whatever happened to the network; a different state hash shows that
 * a worker computed something else. */
#ifndef RV_LAB_REPLAY_H
#define RV_LAB_REPLAY_H

#include "lab/run/lab_run.h"
#include "lab/worker_files/replay_reads.h"
#include "lab/worker_files/replay_without.h"
#include "lab/worker_files/trace_read.h"

struct replay;

/* Makes a replay; borrows everything. run: a lab_run of method diloco whose replica i reads for
 * traces[i].member (lab_config.members). RV_E_INVALID: traces of two workers contradict each other
 * about a round, or a member occurs twice; RV_E_NOTFOUND: a participant of a round has no trace;
 * the text names round and member. RV_E_NOMEM. */
enum rv_err replay_new(struct lab_run *run, const struct trace_record *traces, int n, struct replay **out,
					   struct rv_errtext *et);
void replay_free(struct replay *p); /* NULL is fine */

uint64_t replay_rounds(const struct replay *p); /* proven by the traces */
/* Measures in each round from now on what this member's contribution does to it. RV_E_NOTFOUND: its
 * trace is not here; RV_E_UNSUPPORTED. */
enum rv_err replay_leave_out(struct replay *p, uint32_t member, struct rv_errtext *et);
/* Sets *out to what the last round came to; returns false if the member had no part in it,
 * or was alone. */
bool replay_left_out(const struct replay *p, struct replay_without *out);
/* Repeats the next round: brings every worker to its contribution, averages and applies them.
 * RV_E_PROTOCOL: the state hash differs from the recorded one, or a trace cannot be followed;
 * RV_E_CANCELLED (lab_run_stop); RV_E_UNSUPPORTED: a worker went back further than a round. */
enum rv_err replay_round(struct replay *p, struct rv_errtext *et);
/* Counts what the rounds so far read of a text that the run leases; zeros: it does not.
 * RV_E_PROTOCOL names a sequence that was read twice in a pass. */
enum rv_err replay_count(struct replay *p, struct replay_counted *out, struct rv_errtext *et);

#endif
