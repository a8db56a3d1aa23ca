/* loaded_model.h: trained weights, on a backend, ready for forward passes, with the tokenizer that belongs to them. */
#ifndef RV_LAB_LOADED_MODEL_H
#define RV_LAB_LOADED_MODEL_H

#include "base/run_config.h"
#include "train/model/model.h"
#include "train/text/tokenizer/tokenizer.h"

struct loaded_model {
	struct run_config cfg; /* of the run that trained it, or what its config.json says */
	bool of_a_run;         /* the former: cfg says which part of the text was held out */
	struct backend *be;
	char why_not_gpu[RV_ERRTEXT_BYTES]; /* as struct device_choice has it: for one line to people, or "" */
	struct model *model;                /* forward passes only */
	float *params;                      /* backend memory */
	struct tokenizer *tokenizer;
};

struct loaded_model_options {
	const char *where; /* a directory or file of weights, as train/files/weights.h has them; a run's directory is one */
	const char *tokenizer; /* a file, or "bytes"; "": as weights_tokenizer.h has it */
	enum run_dtype dtype;  /* RUN_DTYPE_AUTO: as it was trained */
	int max_batch;         /* sequences of the model's context in a forward pass; 0: about 4096 tokens */
	int threads;           /* 0: all cores */
	const char *device;    /* as kernels/device.h has it; of several the first; NULL: "cpu" */
};

/* What weights_load_new, device_choose, backend_open, model_new and weights_tokenizer_open refuse. */
enum rv_err loaded_model_open(const struct loaded_model_options *o, struct loaded_model **out, struct rv_errtext *et);
void loaded_model_close(struct loaded_model *m); /* NULL is fine */

#endif
