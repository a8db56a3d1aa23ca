/* ref_backend.c: opening, closing and the ops table of the reference backend. */
#include "base/assert.h"
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <stdlib.h>

static enum rv_err ref_open(const struct backend_options *opt, struct backend **out, struct rv_errtext *et) {
	*out = NULL;
	if (opt->compute != DTYPE_F32)
		return rv_fail(et, RV_E_UNSUPPORTED, "ref backend: computes in fp32 only; for bf16 use backend \"cpu\"");
	struct ref_backend *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "ref backend: no memory for its handle");
	r->base = (struct backend){.ops = &ref_ops, .act = DTYPE_F32, .threads = 1};
	*out = &r->base;
	return RV_OK;
}

static void ref_close(struct backend *be) {
	struct ref_backend *r = (struct ref_backend *)be;
	free(r->scratch);
	free(r);
}

static const char *ref_describe(const struct backend *be) {
	(void)be;
	return "ref (readable loops), 1 thread";
}

double *ref_scratch(struct backend *be, size_t n) {
	struct ref_backend *r = (struct ref_backend *)be;
	if (n > r->scratch_n) {
		free(r->scratch);
		r->scratch = malloc(n * sizeof *r->scratch);
		RV_ASSERT(r->scratch);
		r->scratch_n = n;
	}
	return r->scratch;
}

const struct backend_ops ref_ops = {.name = "ref",
									.open = ref_open,
									.close = ref_close,
									.describe = ref_describe,
									.alloc = host_backend_alloc,
									.free = host_backend_free,
									.upload = host_backend_copy,
									.download = host_backend_copy,
									.zero = host_backend_zero,
									.sync = host_backend_sync,
									COMPUTING_OPS(OP_ENTRY, ref)};
