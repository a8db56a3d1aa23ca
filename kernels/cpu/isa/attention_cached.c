/* attention_cached.c: attention of a few queries that share one key/value head, over a cache of keys and values.
 *
 * The idea: decoding reads the whole cache for every token, so memory decides; all queries that read the same keys (the
 * heads of a group, some tokens) take them while they are in the first-level cache. VL keys at a time give one vector
 * of scores per query: the products are summed across lanes for all of them at once (vsum_each). A query's row depends
 * on its position and on the cache alone, never on the queries beside it, so its bits are the same in every call.
 * 8 bytes read per channel of every position, once for each group of queries. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/transpose.h"

#include <math.h>

enum { VALUE_BLOCK = 64, VALUE_VECTORS = 4 };

static int min_int(int a, int b) {
	return a < b ? a : b;
}

/* Where row `row` of the task is: token row / group, head row % group. */
static const float *query_of(const struct attention_queries *a, int row) {
	return a->q + row / a->group * a->q_ld + (ptrdiff_t)(row % a->group) * a->head_dim;
}

static float *out_of(const struct attention_queries *a, int row) {
	return a->out + row / a->group * a->out_ld + (ptrdiff_t)(row % a->group) * a->head_dim;
}

static float *scores_of(const struct attention_queries *a, int row) {
	return a->scores + row * a->scores_ld;
}

/* q . k of VL keys from `key` on; past the last of `keys` that one is taken again. */
static vf dot_keys(const struct attention_queries *a, const float *q, int key, int keys) {
	vf sum[VL];
	const float *k[VL];
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) {
		sum[i] = vset1(0);
		k[i] = a->k + min_int(key + i, keys - 1) * a->ld;
	}
	int d = 0;
	for (; d + VL <= a->head_dim; d += VL) {
		vf x = vload(q + d);
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++)
			sum[i] = vfma(x, vload(k[i] + d), sum[i]);
	}
	if (d < a->head_dim) {
		vf x = vload_n(q + d, a->head_dim - d);
		for (int i = 0; i < VL; i++)
			sum[i] = vfma(x, vload_n(k[i] + d, a->head_dim - d), sum[i]);
	}
	return vsum_each(sum);
}

/* The first n of p, which hold scores, become probabilities. The rest of the last vector counts for nothing. */
static void softmax(float *p, int n) {
	for (int i = n; i % VL != 0; i++)
		p[i] = -INFINITY;
	vf largest = vload(p), sum = vset1(0);
	for (int i = VL; i < n; i += VL)
		largest = vmax(vload(p + i), largest);
	largest = vset1(vreduce_max(largest));
	for (int i = 0; i < n; i += VL) {
		vf e = vexp(vload(p + i) - largest);
		sum += e;
		vstore(p + i, e);
	}
	vf share = vset1(1 / vreduce_add(sum));
	for (int i = 0; i < n; i += VL)
		vstore(p + i, vload(p + i) * share);
}

/* out (hd) = or += the sum over n keys of p v. */
static void add_values(float *out, const float *p, const float *v, ptrdiff_t ld, int n, int hd, bool add) {
	for (int d = 0; d < hd; d += VALUE_VECTORS * VL) {
		int vectors = min_int(VALUE_VECTORS, (hd - d + VL - 1) / VL);
		vf sum[VALUE_VECTORS] = {0};
		for (int i = 0; add && i < vectors; i++)
			sum[i] = vload_n(out + d + i * VL, hd - d - i * VL);
		if (hd - d >= VALUE_VECTORS * VL)
			for (int j = 0; j < n; j++)
#pragma GCC unroll 4
				for (int i = 0; i < VALUE_VECTORS; i++)
					sum[i] = vfma(vset1(p[j]), vload(v + j * ld + d + i * VL), sum[i]);
		else
			for (int j = 0; j < n; j++)
				for (int i = 0; i < vectors; i++)
					sum[i] = vfma(vset1(p[j]), vload_n(v + j * ld + d + i * VL, hd - d - i * VL), sum[i]);
		for (int i = 0; i < vectors; i++)
			vstore_n(out + d + i * VL, sum[i], hd - d - i * VL);
	}
}

void ISA(attention_queries)(const struct attention_queries *a) {
	int rows = a->tokens * a->group, keys = a->first + a->tokens;
	vf scale = vset1(1 / sqrtf((float)a->head_dim));
	for (int key = 0; key < keys; key += VL)
		for (int row = 0; row < rows; row++)
			if (key <= a->first + row / a->group)
				vstore(scores_of(a, row) + key, dot_keys(a, query_of(a, row), key, keys) * scale);
	for (int row = 0; row < rows; row++)
		softmax(scores_of(a, row), a->first + row / a->group + 1);
	for (int key = 0; key < keys; key += VALUE_BLOCK)
		for (int row = 0; row < rows; row++) {
			int n = min_int(VALUE_BLOCK, a->first + row / a->group + 1 - key);
			if (n > 0)
				add_values(out_of(a, row), scores_of(a, row) + key, a->v + key * a->ld, a->ld, n, a->head_dim, key > 0);
		}
}
