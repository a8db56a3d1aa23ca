/* replica_spread.h: how far apart the replicas of a round are just before they are joined: norms of
 * their outer gradients, the cosine between them, and at the end of the run the loss of the
 * replicas' mean and of one replica. */
#ifndef RV_LAB_REPLICA_SPREAD_H
#define RV_LAB_REPLICA_SPREAD_H

#include "lab/run/lab_run.h"

/* Fills out->delta_norm and delta_cosine; in the last round, with cfg.eval_replicas, also
 * r->average_loss and replica_loss. To be called between the inner steps and the outer one:
 * replicas hold theta_local, r->global theta. RV_E_NOMEM, the faults of replica_eval. */
enum rv_err replica_spread_measure(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);

#endif
