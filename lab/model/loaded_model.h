/* loaded_model.h: trained weights, on a backend, ready for forward passes, with their tokenizer. */
#ifndef RV_LAB_LOADED_MODEL_H
#define RV_LAB_LOADED_MODEL_H

#include "base/run_config.h"
#include "train/model/model.h"
#include "train/text/tokenizer/tokenizer.h"

struct loaded_model {
	struct run_config cfg; /* of the run that trained it, or of its config.json */
	bool of_a_run;         /* the former: cfg defines the held-out text */
	struct backend *be;
	char why_not_gpu[RV_ERRTEXT_BYTES]; /* as in struct device_choice: one line for people, or "" */
	struct model *model;                /* forward passes only */
	float *params;                      /* backend memory */
	struct tokenizer *tokenizer;
};

struct loaded_model_options {
	const char *where;     /* of weights, as in train/files/weights.h, or of a run */
	const char *tokenizer; /* a file, or "bytes"; "": as in weights_tokenizer.h */
	enum run_dtype dtype;  /* RUN_DTYPE_AUTO: as it was trained */
	int max_batch;         /* sequences of the model's context in a forward pass; 0: about 4096 tokens */
	int threads;           /* 0: all cores */
	const char *device;    /* as in kernels/device.h; of several the first; NULL: "cpu" */
};

/* Opens a model; the caller closes it. The faults of weights_load, device_choose, backend_open,
 * model_new and weights_tokenizer_open. */
enum rv_err loaded_model_open(const struct loaded_model_options *o, struct loaded_model **out, struct rv_errtext *et);
/* The same for parameters that are in memory: params (n_params, of the model of `cfg`), which the
 * caller keeps. o->where: the place of the tokenizer beside it. The faults of loaded_model_open. */
enum rv_err loaded_model_of(const struct loaded_model_options *o, const struct run_config *cfg, const float *params,
							size_t n_params, struct loaded_model **out, struct rv_errtext *et);
void loaded_model_close(struct loaded_model *m); /* NULL is fine */

#endif
