/* pull.h: moving a replica's weights part of the way to others. */
#ifndef RV_LAB_PULL_H
#define RV_LAB_PULL_H

#include "worker/train/replica.h"

/* theta_i <- theta_i + share (towards - theta_i), elementwise; share 0 changes nothing, share 1 makes them equal, to the
 * bit. towards (n). RV_E_NOMEM. */
enum rv_err pull_replica(struct replica *r, const float *towards, float share, struct rv_errtext *et);

#endif
