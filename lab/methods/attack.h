/* attack.h: workers of the lab that send something else in place of their outer gradient, to
 * compare what aggregation rules let them do. Their training goes on as everybody's. */
#ifndef RV_LAB_METHODS_ATTACK_H
#define RV_LAB_METHODS_ATTACK_H

#include "lab/run/lab_run.h"

/* Reads NAME=NUMBER: scale=S (its outer gradient times S: -1 flips it, 0 sends zeros) or noise=F
 * (noise of F times the norm of each chunk of it); "" is none. RV_E_INVALID, RV_E_RANGE. */
enum rv_err attack_parse(const char *text, struct lab_attack *out, struct rv_errtext *et);
/* Replaces the encoded contribution of worker i if it is one of the last cfg.attack.workers.
 * RV_E_NOMEM; RV_E_RANGE: what it makes cannot be encoded. */
enum rv_err attack_contribution(struct lab_run *r, int i, struct rv_errtext *et);

#endif
