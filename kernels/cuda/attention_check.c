/* attention_check.c: see attention_check.h. */
#include "kernels/cuda/attention_check.h"

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMPARED_MAX = 3, ALIGN_BYTES = 256 };

/* An array that both sides computed: `rows` rows of `width` elements per sequence, `ld` apart. */
struct compared {
	const char *name;
	enum dtype type;
	const void *theirs; /* of the first sequence */
	const void *ours;   /* of one sequence */
	size_t rows, width, ld;
	bool absolute; /* limits the absolute difference */
	double limit;
	float *sums; /* device, (B, rows, 2): see launch_row_difference */
};

struct comparison {
	struct attention_call ours; /* of one sequence, outputs in `memory` */
	float *delta;
	void *memory;
	struct compared list[COMPARED_MAX];
	int n;
};

/* Takes bytes from a block; with base NULL it only counts. */
static void *take(char *base, size_t *at, size_t bytes) {
	void *p = base ? base + *at : NULL;
	*at += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	return p;
}

static const void *column(const void *rows, size_t at) {
	return rows ? (const uint16_t *)rows + at : NULL;
}

static struct compared rounded(const char *name, const void *theirs, const void *ours, size_t rows, size_t width,
							   size_t ld) {
	return (struct compared){name, DTYPE_BF16, theirs, ours, rows, width, ld, false, ATTENTION_RMS_MAX, NULL};
}

static void list_arrays(struct comparison *k, const struct attention_call *c) {
	struct attention_shape s = c->shape;
	size_t t = (size_t)s.t, q = attention_out_width(s), kv = (size_t)s.kv_heads * (size_t)s.head_dim;
	size_t row = attention_qkv_width(s);
	if (!c->backward) {
		k->list[k->n++] = rounded("out", c->out, k->ours.out, t, q, q);
		k->list[k->n++] = (struct compared){.name = "lse",
											.type = DTYPE_F32,
											.theirs = c->lse,
											.ours = k->ours.lse,
											.rows = (size_t)s.heads * t,
											.width = 1,
											.ld = 1,
											.absolute = true,
											.limit = ATTENTION_LSE_MAX};
		return;
	}
	k->list[k->n++] = rounded("dq", c->dqkv, k->ours.dqkv, t, q, row);
	k->list[k->n++] = rounded("dk", column(c->dqkv, q), column(k->ours.dqkv, q), t, kv, row);
	k->list[k->n++] = rounded("dv", column(c->dqkv, q + kv), column(k->ours.dqkv, q + kv), t, kv, row);
}

/* Lays everything out in the block at `base`; returns its size in bytes. */
static size_t lay_out(struct comparison *k, const struct attention_call *c, char *base) {
	struct attention_shape one = c->shape;
	size_t at = 0, t = (size_t)one.t;
	one.b = 1;
	*k = (struct comparison){.ours = *c, .memory = base};
	k->ours.shape = one;
	if (c->backward) {
		k->ours.dqkv = take(base, &at, t * attention_qkv_width(one) * dtype_bytes(DTYPE_BF16));
		k->delta = take(base, &at, attention_rows(one) * sizeof(float));
	} else {
		k->ours.out = take(base, &at, t * attention_out_width(one) * dtype_bytes(DTYPE_BF16));
		k->ours.lse = take(base, &at, attention_rows(one) * sizeof(float));
	}
	list_arrays(k, c);
	for (int i = 0; i < k->n; i++)
		k->list[i].sums = take(base, &at, (size_t)c->shape.b * k->list[i].rows * 2 * sizeof(float));
	return at;
}

/* Computes sequence i with our own kernels. */
static void compute(const struct comparison *k, cudaStream_t stream, const struct attention_call *c, size_t i) {
	struct attention_call one = k->ours;
	size_t t = (size_t)one.shape.t, out = i * t * attention_out_width(one.shape);
	one.qkv = column(c->qkv, i * t * attention_qkv_width(one.shape));
	if (c->backward) {
		one.out = (act_t *)(uintptr_t)column(c->out, out); /* only read, as lse is */
		one.lse = c->lse + i * attention_rows(one.shape);
		one.dout = column(c->dout, out);
	}
	attention_own(stream, DTYPE_BF16, &one, k->delta);
}

static void compare(const struct comparison *k, cudaStream_t stream, size_t i) {
	for (int a = 0; a < k->n; a++) {
		const struct compared *x = &k->list[a];
		const char *theirs = (const char *)x->theirs + i * x->rows * x->ld * dtype_bytes(x->type);
		launch_row_difference(stream, x->type, x->sums + 2 * x->rows * i, theirs, x->ours, (int)x->rows, (int)x->width,
							  (int)x->ld);
	}
}

/* Returns the largest difference of a row, in the unit of the limit; NaN if one is. */
static double worst_row(const struct compared *x, const float *sums, size_t n, double rms) {
	double worst = 0;
	for (size_t i = 0; i < n; i++) {
		double apart = sqrt(sums[2 * i] / (double)x->width), level = sqrt(sums[2 * i + 1] / (double)x->width);
		double measure = x->absolute || apart == 0 ? apart : apart / (level + rms);
		if (!(measure <= worst))
			worst = measure;
		if (isnan(worst))
			break;
	}
	return worst;
}

static enum attention_verdict judge(const struct compared *x, const float *sums, size_t n, char *why, size_t cap) {
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += sums[2 * i + 1];
	double rms = sqrt(squares / (double)(n * x->width)), worst = worst_row(x, sums, n, rms);
	if (!isfinite(rms))
		return ATTENTION_UNKNOWN;
	if (worst <= x->limit)
		return ATTENTION_AGREES;
	(void)snprintf(why, cap, "%s is off by %.3g%s from our own kernels' (limit %.3g)", x->name, worst,
				   x->absolute ? "" : " of its rms", x->limit);
	return ATTENTION_DIFFERS;
}

static enum attention_verdict judge_all(struct cuda_backend *cu, const struct comparison *k, size_t b, char *why,
										size_t cap) {
	enum attention_verdict verdict = ATTENTION_AGREES;
	for (int i = 0; i < k->n && verdict == ATTENTION_AGREES; i++) {
		const struct compared *x = &k->list[i];
		size_t n = b * x->rows;
		float *sums = malloc(2 * n * sizeof *sums);
		if (!sums) {
			(void)snprintf(why, cap, "no host memory to compare it with our own kernels");
			return ATTENTION_DIFFERS;
		}
		cuda_fetch(cu, sums, x->sums, 2 * n * sizeof *sums);
		verdict = judge(x, sums, n, why, cap);
		free(sums);
	}
	return verdict;
}

enum attention_verdict attention_check(struct cuda_backend *cu, const struct attention_call *c, char *why, size_t cap) {
	struct comparison k;
	size_t bytes = lay_out(&k, c, NULL), b = (size_t)c->shape.b;
	void *borrowed = sdpa_borrow(cu->sdpa, bytes), *memory = borrowed;
	if (!memory && cudaMalloc(&memory, bytes) != cudaSuccess) {
		(void)cudaGetLastError();
		(void)snprintf(why, cap, "no memory (%zu bytes) to compare it with our own kernels", bytes);
		return ATTENTION_DIFFERS;
	}
	(void)lay_out(&k, c, memory);
	for (size_t i = 0; i < b; i++) {
		compute(&k, cu->stream, c, i);
		compare(&k, cu->stream, i);
	}
	enum attention_verdict verdict = judge_all(cu, &k, b, why, cap);
	if (!borrowed)
		(void)cudaFree(memory);
	return verdict;
}
