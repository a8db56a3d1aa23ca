/* cpu_gemm_onednn.c: the matrix product of oneDNN (dnnl_sgemm, row-major). It generates code for
 * the processor it finds, so it is optimal on processors newer than itself; measured 456 GFLOP/s of
 * 500 on two Zen 5 cores. */
#include "kernels/cpu/cpu.h"
#include "kernels/gate.h"

#ifdef RV_HAVE_ONEDNN

#include "base/assert.h"

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>

bool cpu_gemm_has_onednn(void) {
	return true;
}

void cpu_gemm_onednn(struct cpu_backend *be, const struct gemm *g) {
	/* A team's size is a property of the calling thread; several backends may live in one
	 * process. */
	const int threads = gate_threads(be->base.threads);
	if (omp_get_max_threads() != threads)
		omp_set_num_threads(threads);
	dnnl_status_t st = dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, 1, g->a, g->lda, g->b, g->ldb,
								  g->add ? 1 : 0, g->c, g->ldc);
	RV_ASSERT(st == dnnl_success);
}

void cpu_gemm_onednn_version(char out[32]) {
	const dnnl_version_t *v = dnnl_version();
	(void)snprintf(out, 32, "oneDNN %d.%d", v->major, v->minor);
}

#else

bool cpu_gemm_has_onednn(void) {
	return false;
}

void cpu_gemm_onednn(struct cpu_backend *be, const struct gemm *g) {
	cpu_gemm_own(be, g);
}

void cpu_gemm_onednn_version(char out[32]) {
	out[0] = '\0';
}

#endif
