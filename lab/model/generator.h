/* generator.h: a model that writes: a prompt in, one token at a time out, keys and values of what was seen kept. */
#ifndef RV_LAB_GENERATOR_H
#define RV_LAB_GENERATOR_H

#include "base/rng.h"
#include "lab/model/loaded_model.h"
#include "lab/model/sampler.h"

struct generator; /* one thread */

/* Borrows `m`. RV_E_NOMEM. */
enum rv_err generator_new(struct loaded_model *m, const struct sampler_params *params, uint64_t seed,
						  struct generator **out, struct rv_errtext *et);
void generator_free(struct generator *g); /* NULL is fine */

/* Reads n >= 1 tokens. Of more than the context only the last are looked at. */
void generator_read(struct generator *g, const int32_t *tokens, size_t n);
/* Draws the next token and reads it. When the context is full, the model goes on from its latter half: what came before
 * is forgotten, and the cost per token stays bounded. */
int32_t generator_next(struct generator *g);

#endif
