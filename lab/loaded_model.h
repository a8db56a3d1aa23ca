/* loaded_model.h: trained weights, on a backend, ready for a forward pass. */
#ifndef RV_LAB_LOADED_MODEL_H
#define RV_LAB_LOADED_MODEL_H

#include "base/run_config.h"
#include "worker/train/model.h"

#include <limits.h>

struct loaded_model {
	struct run_config cfg; /* of the run that trained it */
	struct backend *be;
	struct model *model; /* planned for one sequence */
	float *params;       /* backend memory */
};

/* `where`: a weights file, or a directory of a run that holds one. */
void loaded_model_path(const char *where, char path[static PATH_MAX]);
/* What weights_load, backend_open and model_new refuse. */
enum rv_err loaded_model_open(const char *where, const struct backend_options *options, struct loaded_model **out,
							  struct rv_errtext *et);
void loaded_model_close(struct loaded_model *m); /* NULL is fine */

#endif
