/* initial_weights.c: loads weights and checks their hash. */
#include "train/files/initial_weights.h"

#include "base/hex.h"
#include "train/files/weights.h"

#include <stdlib.h>
#include <string.h>

/* Loads the block of c's model, whatever its hash. */
static enum rv_err load_block(const char *where, const struct run_config *c, float **theta, size_t *n,
							  struct rv_errtext *et) {
	struct model_layout layout;
	RV_TRY(weights_load(where, c, &layout, theta, et));
	*n = layout.n_params;
	model_layout_release(&layout);
	return RV_OK;
}

static void hash_in_hex(const float *theta, size_t n, char hex[static 2 * RV_HASH_BYTES + 1]) {
	struct rv_hash h = weights_hash(theta, n);
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
}

enum rv_err initial_weights_adopt(const char *where, struct run_config *c, struct rv_errtext *et) {
	struct run_config usual, found;
	float *theta;
	size_t n;
	run_config_defaults(&usual);
	found = usual;
	RV_TRY(weights_load_config(where, &found, et));
	if (c->context != usual.context)
		found.context = c->context;
	run_config_take_model(c, &found);
	RV_TRY(load_block(where, c, &theta, &n, et));
	hash_in_hex(theta, n, c->init_hash);
	free(theta);
	return RV_OK;
}

enum rv_err initial_weights_load(const char *where, const struct run_config *c, float **theta, size_t *n,
								 struct rv_errtext *et) {
	char hex[2 * RV_HASH_BYTES + 1];
	RV_TRY(load_block(where, c, theta, n, et));
	hash_in_hex(*theta, *n, hex);
	if (strcmp(hex, c->init_hash) == 0)
		return RV_OK;
	free(*theta);
	*theta = NULL;
	return rv_fail(et, RV_E_INVALID, "the weights in %s have the hash %s; the run starts from %s", where, hex,
				   c->init_hash[0] ? c->init_hash : "weights drawn from its seed: leave out --init");
}
