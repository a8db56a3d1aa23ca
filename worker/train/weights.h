/* weights.h: a trained model in one safetensors file: Hugging Face's GPT-2 tensor names and layout, and in the metadata
 * the run's configuration, so that the file alone is enough to evaluate and to sample.
 *
 * GPT-2 checkpoints keep the matrices of attention and MLP as (in, out); the flat block keeps (out, in). They are
 * transposed on the way.
 */
#ifndef RV_WORKER_TRAIN_WEIGHTS_H
#define RV_WORKER_TRAIN_WEIGHTS_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "worker/train/model.h"

#define WEIGHTS_FILE "model.safetensors"

/* Where the weights stand in their run. */
struct weights_origin {
	uint64_t round, step, tokens;
	struct rv_hash state; /* global_full_hash, or zero */
};

/* params (layout->n_params), host memory. Atomic. RV_E_IO, RV_E_FULL, RV_E_NOMEM. */
enum rv_err weights_save(const char *path, const struct run_config *cfg, const struct model_layout *layout,
						 const float *params, const struct weights_origin *origin, struct rv_errtext *et);

/* The configuration kept in the file, validated. RV_E_CORRUPT when the file has none. */
enum rv_err weights_load_config(const char *path, struct run_config *cfg, struct rv_errtext *et);
/* Fills params (layout->n_params; padding becomes zero). RV_E_CORRUPT names a tensor that is missing, superfluous or of
 * another shape. */
enum rv_err weights_load(const char *path, const struct model_layout *layout, float *params, struct rv_errtext *et);

#endif
