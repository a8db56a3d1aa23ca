/* synchronous.h: a round in which all who take part apply the same outer step, as real workers do.
 *
 * Round r: H inner steps; the part of the outer gradient in fragment r mod P is encoded and
 * averaged; the outer step is applied, and adopted by the replicas
 * (train/participant/participant.h), overlap_steps inner steps after the encoding, during which the
 * exchange has the line to itself; with updates = delayed or eager all H of the next round, which
 * begin from the weights that outer/eager.h describes. The last round's exchange is waited for. */
#ifndef RV_LAB_SYNCHRONOUS_H
#define RV_LAB_SYNCHRONOUS_H

#include "lab/methods/averaging.h"
#include "lab/run/lab_run.h"

/* Sets the fields of a method that is this and nothing else. */
#define SYNCHRONOUS_METHOD AVERAGING_METHOD, .synchronous = true, .round = synchronous_round

/* Runs one round, as lab_run_round. RV_E_RANGE: it diverged. */
enum rv_err synchronous_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);

#endif
