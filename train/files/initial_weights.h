/* initial_weights.h: given weights that a run starts from.
 *
 * A run with an init_hash starts from the weights with that hash. The operator and the workers
 * present at its start have the files; later joiners fetch the state from other workers. */
#ifndef RV_TRAIN_FILES_INITIAL_WEIGHTS_H
#define RV_TRAIN_FILES_INITIAL_WEIGHTS_H

#include "base/err.h"
#include "base/run_config.h"

#include <stddef.h>

/* Sets the model of *c to that of the files in `where` (weights.h) and init_hash to the hash of
 * their weights, all of which it reads. Keeps a context other than the default that *c asks for,
 * where positions are not learned. Returns what weights_load returns, and RV_E_NOMEM. */
enum rv_err initial_weights_adopt(const char *where, struct run_config *c, struct rv_errtext *et);

/* Loads the parameter block of c's model from `where` (n values, host memory, freed by the caller).
 * Returns RV_E_INVALID if its hash is not c->init_hash, and what weights_load returns. */
enum rv_err initial_weights_load(const char *where, const struct run_config *c, float **theta, size_t *n,
								 struct rv_errtext *et);

#endif
