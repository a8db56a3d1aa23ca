/* pull.c: see pull.h. */
#include "lab/pull.h"

#include <stdlib.h>

enum rv_err pull_replica(struct replica *r, const float *towards, float share, struct rv_errtext *et) {
	size_t n = replica_n_params(r);
	if (share == 0)
		return RV_OK;
	if (share == 1) {
		replica_set_theta(r, towards);
		return RV_OK;
	}
	const float *theta = replica_theta(r);
	float *moved = malloc(n * sizeof *moved);
	if (!moved)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu parameters", n);
	for (size_t i = 0; i < n; i++)
		moved[i] = theta[i] + share * (towards[i] - theta[i]);
	replica_set_theta(r, moved);
	free(moved);
	return RV_OK;
}
