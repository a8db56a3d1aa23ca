/* step_bounds.h: the steps of a run as a backend sees them, for backend_ops.reserve: made from the configuration, so that
 * a plan of the memory and the replica that takes it have the same. */
#ifndef RV_TRAIN_STEP_BOUNDS_H
#define RV_TRAIN_STEP_BOUNDS_H

#include "train/inner.h"
#include "train/model/model.h"

struct step_source {
	const struct run_config *run;
	const struct model_ops *family;
	const struct model_shape *shape; /* resolved */
	const struct model_layout *layout;
	const struct inner_optimizer *inner;
	int devices;       /* that a step's sequences are divided among */
	int shards;        /* of the data that a step reads: replica_options.step_shards */
	bool forward_only; /* one sequence, and no step */
};

/* Returns what one device is asked for, with params NULL. Steps, evaluations, and the smaller micro-batches at the end of
 * a device's share are within it. */
struct step_bounds step_bounds_of(const struct step_source *s);

#endif
