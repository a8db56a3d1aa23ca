/* cpu_backend.c: opening, closing, workspaces and the ops table of the `cpu` backend. */
#include "base/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_into(struct cpu_backend *c) {
	char product[32];
	if (c->onednn)
		cpu_gemm_onednn_version(product);
	else
		(void)snprintf(product, sizeof product, "own %s", c->gemm->name);
	int n = c->base.threads;
	(void)snprintf(c->description, sizeof c->description, "cpu %s (%s), %d thread%s", c->isa->name, product, n,
				   n == 1 ? "" : "s");
}

static enum rv_err refuse_isa(const char *limit, struct rv_errtext *et) {
	char names[64] = "";
	size_t used = 0;
	for (int i = 0; cpu_isa_name(i) && used < sizeof names; i++)
		used += (size_t)snprintf(names + used, sizeof names - used, ", %s", cpu_isa_name(i));
	return rv_fail(et, RV_E_INVALID, "isa = \"%s\": on this kind of processor it must be one of auto%s", limit, names);
}

static enum rv_err cpu_open(const struct backend_options *opt, struct backend **out, struct rv_errtext *et) {
	*out = NULL;
	const char *limit = opt->isa ? opt->isa : "auto";
	bool best;
	const struct isa_kernels *isa = cpu_isa_choose(limit, &best);
	if (!isa)
		return refuse_isa(limit, et);
	struct cpu_backend *c = calloc(1, sizeof *c);
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "cpu backend: no memory for its handle");
	c->base = (struct backend){.ops = &cpu_ops, .act = DTYPE_F32, .threads = cpu_thread_count(opt->threads)};
	c->isa = isa;
	c->gemm = cpu_isa_gemm(isa, opt->compute);
	c->attention = cpu_isa_attention(isa, opt->compute);
	c->onednn = opt->compute == DTYPE_F32 && best && isa != &isa_kernels_portable && cpu_gemm_has_onednn();
	describe_into(c);
	*out = &c->base;
	return RV_OK;
}

static void cpu_close(struct backend *be) {
	struct cpu_backend *c = cpu_of(be);
	for (int i = 0; i < WORKSPACE_COUNT; i++)
		free(c->workspaces[i].p);
	free(c);
}

static const char *cpu_describe(const struct backend *be) {
	return ((const struct cpu_backend *)be)->description;
}

float *cpu_workspace(struct cpu_backend *be, enum workspace which, size_t n) {
	if (n > be->workspaces[which].n) {
		free(be->workspaces[which].p);
		be->workspaces[which].p = host_zalloc(n * sizeof(float));
		RV_ASSERT(be->workspaces[which].p); /* some megabytes, allocated in the first step */
		be->workspaces[which].n = n;
	}
	return be->workspaces[which].p;
}

enum { TASK_BYTES = 1 << 20 };

struct zero_args {
	char *p;
	size_t bytes;
};

static void zero_task(void *ctx, int task, int thread) {
	(void)thread;
	const struct zero_args *a = ctx;
	struct cpu_range r = cpu_range_of(a->bytes, TASK_BYTES, task);
	memset(a->p + r.begin, 0, r.count);
}

static void cpu_zero(struct backend *be, void *p, size_t bytes) {
	struct zero_args a = {p, bytes};
	cpu_parallel(cpu_of(be), cpu_tasks(bytes, TASK_BYTES), zero_task, &a);
}

const struct backend_ops cpu_ops = {.name = "cpu",
									.open = cpu_open,
									.close = cpu_close,
									.describe = cpu_describe,
									.alloc = host_backend_alloc,
									.free = host_backend_free,
									.upload = host_backend_copy,
									.download = host_backend_copy,
									.zero = cpu_zero,
									.sync = host_backend_sync,
									.step_memory = cpu_step_memory,
									COMPUTING_OPS(OP_ENTRY, cpu)};
