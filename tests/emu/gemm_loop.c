/* gemm_loop.c: the matrix product of kernels/cuda/gemm.h as loops, in place of cuBLASLt, with sums
 * of rows by the kernel behind it. Enqueued like a kernel, so that lazy streams see it. TEST
 * ONLY. */
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/launch_epilogue.h"
#include "tests/emu/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gemm {
	int unused;
};

static float get(const void *p, size_t i, enum dtype d) {
	float f;
	if (d == DTYPE_F32)
		return ((const float *)p)[i];
	uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static void put(void *p, size_t i, enum dtype d, float f) {
	if (d == DTYPE_F32) {
		((float *)p)[i] = f;
		return;
	}
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
	((uint16_t *)p)[i] = nan ? 0x7fff : (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float tanh_of(float x) {
	return tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x));
}

static float gelu(float x) {
	return 0.5f * x * (1 + tanh_of(x));
}

static float gelu_grad(float x) {
	float t = tanh_of(x);
	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456080286535588f * (1 + 3 * 0.044715f * x * x);
}

/* Element `at` of d from the product's sum. */
static void epilogue(const struct gemm_call *g, size_t at, int column, float sum) {
	if (g->epilogue == GEMM_BIAS || (g->epilogue == GEMM_GELU && g->bias))
		sum += get(g->bias, (size_t)column, g->in);
	if (g->epilogue == GEMM_GELU) {
		put(g->aux, at, g->out, sum);
		sum = gelu(sum);
	}
	if (g->epilogue == GEMM_DGELU)
		sum *= gelu_grad(get(g->aux, at, g->out));
	if (g->accumulate)
		sum += get(g->d, at, g->out);
	put(g->d, at, g->out, sum);
}

/* op(x) (rows, columns) as floats, row-major. */
static float *unpack(const void *x, int rows, int columns, int ld, bool transposed, enum dtype d) {
	float *out = malloc((size_t)rows * columns * sizeof *out);
	for (int i = 0; out && i < rows; i++)
		for (int j = 0; j < columns; j++)
			out[(size_t)i * columns + j] = get(x, transposed ? (size_t)j * ld + i : (size_t)i * ld + j, d);
	return out;
}

static void run(const void *arg) {
	const struct gemm_call *g = arg;
	float *a = unpack(g->a, g->m, g->k, g->lda, g->a_transposed, g->in);
	float *b = unpack(g->b, g->k, g->n, g->ldb, g->b_transposed, g->in), *row = malloc((size_t)g->n * sizeof *row);
	if (!a || !b || !row)
		abort();
	for (int i = 0; i < g->m; i++) {
		memset(row, 0, (size_t)g->n * sizeof *row);
		for (int k = 0; k < g->k; k++) {
			float x = a[(size_t)i * g->k + k];
			for (int j = 0; j < g->n; j++)
				row[j] += x * b[(size_t)k * g->n + j];
		}
		for (int j = 0; j < g->n; j++)
			epilogue(g, (size_t)i * g->ldd + j, j, row[j]);
	}
	free(a);
	free(b);
	free(row);
}

enum rv_err gemm_open(struct gemm **out, struct rv_errtext *et) {
	*out = calloc(1, sizeof **out);
	return *out ? RV_OK : rv_fail(et, RV_E_NOMEM, "gemm: no memory for its handle");
}

size_t gemm_workspace_bytes(void) {
	return 0;
}

void gemm_close(struct gemm *g) {
	free(g);
}

bool gemm_run(struct gemm *g, cudaStream_t stream, const struct gemm_call *call) {
	(void)g;
	(void)emu_enqueue(stream, run, call, sizeof *call);
	if (call->epilogue == GEMM_SUMS)
		launch_epilogue(stream, call);
	return true;
}
