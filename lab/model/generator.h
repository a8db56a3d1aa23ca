/* generator.h: text from a model: a prompt in, one token at a time out; keys and values of earlier
 * tokens are kept. */
#ifndef RV_LAB_GENERATOR_H
#define RV_LAB_GENERATOR_H

#include "base/rng.h"
#include "lab/model/loaded_model.h"
#include "lab/model/sampler.h"

struct generator; /* one thread */

/* Makes a generator; the caller frees it. Borrows `m`. RV_E_NOMEM. */
enum rv_err generator_new(struct loaded_model *m, const struct sampler_params *params, uint64_t seed,
						  struct generator **out, struct rv_errtext *et);
void generator_free(struct generator *g); /* NULL is fine */

/* Reads n >= 1 tokens; of more than the context only the last. */
void generator_read(struct generator *g, const int32_t *tokens, size_t n);
/* Draws the next token and reads it. When the context is full, the model continues from its latter
 * half: earlier tokens are dropped, and the cost per token stays bounded. */
int32_t generator_next(struct generator *g);

#endif
