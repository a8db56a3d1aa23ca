/* export_source.h: weights and the files that belong to them, from a Hugging Face directory, a
 * safetensors file, a run of the lab, or any round of a worker. */
#ifndef RV_LAB_EXPORT_SOURCE_H
#define RV_LAB_EXPORT_SOURCE_H

#include "base/event.h"
#include "base/run_config.h"
#include "train/files/weights.h"
#include "train/model/model.h"

#include <limits.h>

struct export_source {
	struct run_config cfg;
	struct model_layout layout;
	float *params; /* (layout.n_params) */
	struct weights_origin origin;
	char tokenizer[PATH_MAX]; /* its file; "": the tokens are bytes */
};

/* Opens the weights. `round` < 0: the newest. `tokenizer`: "" for the one beside the weights.
 * Reports a worker's damaged files, which it skips, to `events`. RV_E_NOTFOUND (the round: the text
 * lists the available ones), RV_E_INVALID (the tokenizer is not the run's, or none is known), and
 * the faults of worker_rounds_replay and weights_load. On a fault *s is released. */
enum rv_err export_source_open(const char *where, int64_t round, const char *tokenizer, struct rv_events *events,
							   struct export_source *s, struct rv_errtext *et);
void export_source_release(struct export_source *s);

#endif
