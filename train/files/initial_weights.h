/* initial_weights.h: weights from elsewhere that a run starts from.
 *
 * A run whose configuration has an init_hash starts from the weights with that hash. Whoever makes the run, and every
 * worker that is there at its beginning, has the files; who joins later gets the state from the others.
 */
#ifndef RV_TRAIN_FILES_INITIAL_WEIGHTS_H
#define RV_TRAIN_FILES_INITIAL_WEIGHTS_H

#include "base/err.h"
#include "base/run_config.h"

#include <stddef.h>

/* The model of the files in `where` (train/files/weights.h) becomes that of *c, and init_hash what they hold. A
 * context other than the default that c asks for is kept: where positions are not learned it may be any. What
 * weights_load refuses; RV_E_NOMEM. Reads all of the weights. */
enum rv_err initial_weights_adopt(const char *where, struct run_config *c, struct rv_errtext *et);

/* The parameter block (n, host memory, to be freed) of c's model as the files in `where` have it. RV_E_INVALID: they
 * are not those of c->init_hash; what weights_load refuses. */
enum rv_err initial_weights_load(const char *where, const struct run_config *c, float **theta, size_t *n,
								 struct rv_errtext *et);

#endif
