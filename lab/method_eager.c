/* method_eager.c: outer steps that do not wait for their all-reduce, eager (lab/overlapped.h; arXiv 2502.12996). */
#include "lab/averaging.h"
#include "lab/overlapped.h"

static enum rv_err eager_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	return overlapped_round(r, OVERLAPPED_EAGER, out, et);
}

const struct lab_method lab_method_eager = {
	.name = "eager",
	.averages = true,
	.n_replicas = averaging_replicas,
	.n_extra = overlapped_extra,
	.start = overlapped_start,
	.reference = overlapped_reference,
	.round = eager_round,
	.theta = overlapped_theta,
	.state_hash = overlapped_state_hash,
	.payload_bytes = averaging_payload_bytes,
};
