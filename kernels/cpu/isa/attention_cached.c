/* attention_cached.c: attention of a few queries that share one key/value head, over a cache of
 * keys and values.
 *
 * The idea: decoding reads the whole cache for every token, so memory decides; the queries that
 * read the same keys (the heads of a group, some tokens of a prompt) share that reading. They are
 * the rows of two products, scores and output, whose other operands are packed a block of keys at a
 * time. A query's scores, its softmax and its output depend on its position and on the cache alone,
 * summed over absolute blocks of keys, never on the queries beside it: the same bits in every call.
 * 8 bytes read per channel of every position, once for each ROWS queries.
 *
 * Measured (one Zen 5 core of a machine busy with other work): one token over 512 positions in the
 * second-level cache 61 GB/s, over 96 MB in memory the rate of plain reading; a prompt of 512
 * tokens 140 to 155 GFLOP/s of a peak of 250, where attention_forward does 200. */
#include "kernels/cpu/isa/word_fp32.h"

#include "kernels/cpu/isa/pack.h"
#include "kernels/cpu/isa/tile.h"

#include <math.h>

enum { ROWS = 32, KEYS = 64, FEW = 4 };
_Static_assert(KEYS % TILE_COLS == 0, "a block of scores is whole tiles");

struct cached_work {
	float *q;      /* (hd, ROWS), scaled */
	float *panels; /* a block of keys or values */
	float *out;    /* (ROWS, hp) */
	float *scores; /* (blocks of keys, rows, KEYS) */
	int hp;        /* hd rounded up to TILE_COLS */
};

static ptrdiff_t round_up(int n, int to) {
	return (ptrdiff_t)(n + to - 1) / to * to;
}

size_t ISA(attention_queries_work)(int rows, int keys, int head_dim) {
	ptrdiff_t hp = round_up(head_dim, TILE_COLS), scores = round_up(keys, KEYS) * min_int(rows, ROWS);
	return (size_t)(head_dim * ROWS + KEYS * hp + ROWS * hp + scores);
}

static struct cached_work work_of(const struct attention_queries *a) {
	struct cached_work w = {.q = a->work, .hp = (int)round_up(a->head_dim, TILE_COLS)};
	w.panels = w.q + (ptrdiff_t)a->head_dim * ROWS;
	w.out = w.panels + (ptrdiff_t)KEYS * w.hp;
	w.scores = w.out + (ptrdiff_t)ROWS * w.hp;
	return w;
}

/* Returns row `row` of the queries: token row / group, head row % group. */
static const float *query_of(const struct attention_queries *a, int row) {
	return a->q + row / a->group * a->q_ld + (ptrdiff_t)(row % a->group) * a->head_dim;
}

/* Returns how many keys the row sees. */
static int keys_of(const struct attention_queries *a, int row) {
	return a->first + row / a->group + 1;
}

/* Computes C (m, n) (+)= A B; B in panels of TILE_COLS columns, `panel` floats apart. */
RV_ALWAYS_INLINE void product(struct tile_args t, int m, int n, ptrdiff_t a_i, ptrdiff_t a_k, ptrdiff_t panel) {
	const struct tile_args start = t;
	for (int j = 0; j < n; j += TILE_COLS)
		for (int i = 0; i < m; i += TILE_ROWS) {
			t.a = start.a + i * a_i;
			t.b = start.b + j / TILE_COLS * panel;
			t.c = start.c + i * start.c_i + j;
			tile(min_int(TILE_ROWS, m - i), TILE_VECTORS, a_i, a_k, &t);
		}
}

/* Computes the scores of up to FEW rows with n <= VL keys at k, transposed in registers: packing
 * would cost more than it saves. Sums in the order of a tile. */
RV_ALWAYS_INLINE void score_few(float *scores, const float *q, const float *k, ptrdiff_t ld, int n, int m, int hd) {
	vf sum[FEW] = {0};
	for (int d = 0; d < hd; d += VL) {
		vf r[VL];
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++)
			r[i] = i < n ? vload_n(k + i * ld + d, hd - d) : vset1(0);
		vtranspose(r);
#pragma GCC unroll 16
		for (int j = 0; j < VL; j++)
			if (j < hd - d)
#pragma GCC unroll 4
				for (int i = 0; i < FEW; i++)
					if (i < m)
						sum[i] = vfma(vset1(q[(d + j) * ROWS + i]), r[j], sum[i]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < FEW; i++)
		if (i < m)
			vstore(scores + i * KEYS, sum[i]);
}

/* Computes the scores of m rows with n keys from `key` on. */
static void score_keys(const struct cached_work *w, const struct attention_queries *a, int key, int n, int m) {
	if (m <= FEW) {
		for (int i = 0; i < n; i += VL)
			score_few(w->scores + (ptrdiff_t)key * m + i, w->q, a->k + (key + i) * a->ld, a->ld, n - i, m, a->head_dim);
		return;
	}
	const struct pack_source keys = {.p = a->k + key * a->ld, .ld = a->ld};
	pack_row_major(w->panels, TILE_COLS, &keys, n, a->head_dim);
	struct tile_args t = {.a = w->q,
						  .b = w->panels,
						  .b_k = TILE_COLS,
						  .c = w->scores + (ptrdiff_t)key * m,
						  .c_i = KEYS,
						  .k = a->head_dim};
	product(t, m, n, 1, ROWS, (ptrdiff_t)a->head_dim * TILE_COLS);
}

/* Computes out (+)= the scores of m rows times n values from `key` on. */
static void add_values(const struct cached_work *w, const struct attention_queries *a, int key, int n, int m) {
	struct tile_args t = {.a = w->scores + (ptrdiff_t)key * m,
						  .b = a->v + key * a->ld,
						  .b_k = a->ld,
						  .c = w->out,
						  .c_i = w->hp,
						  .k = n,
						  .add = key > 0};
	if (m <= FEW && a->head_dim % TILE_COLS == 0) { /* unpacked */
		product(t, m, w->hp, KEYS, 1, TILE_COLS);
		return;
	}
	const struct pack_source values = {.p = t.b, .ld = a->ld, .k_major = true, .ahead = TOKENS_AHEAD};
	size_t panel = (size_t)n * TILE_COLS;
	pack_k_major(w->panels, TILE_COLS, panel, &values, a->head_dim, n);
	t.b = w->panels;
	t.b_k = TILE_COLS;
	product(t, m, w->hp, KEYS, 1, (ptrdiff_t)panel);
}

/* Replaces the scores of one row, in blocks `block` floats apart, by e^(score - largest), and by 0
 * from key n to `end`, which is whole blocks. Returns the inverse of their sum. */
static float softmax(float *p, ptrdiff_t block, int n, int end) {
	vf none = vset1(-INFINITY), largest = none, sum = vset1(0);
	for (int key = 0; key < n; key += VL) {
		vf x = vload(p + key / KEYS * block + key % KEYS);
		largest = vmax(largest, key + VL > n ? vkeep_from(none, n - key, x) : x);
	}
	largest = vset1(vreduce_max(largest));
	for (int key = 0; key < end; key += VL) {
		float *at = p + key / KEYS * block + key % KEYS;
		vf e = vexp(vload(at) - largest);
		if (key + VL > n)
			e = vkeep_from(vset1(0), n - key, e);
		sum += e;
		vstore(at, e);
	}
	return 1 / vreduce_add(sum);
}

/* Computes attention of rows [row, row + m). */
static void attend(const struct cached_work *w, const struct attention_queries *a, int row, int m) {
	int keys = keys_of(a, row + m - 1), hd = a->head_dim;
	float scale = 1 / sqrtf((float)hd), share[ROWS];
	for (int i = 0; i < m; i++)
		for (int d = 0; d < hd; d++)
			w->q[(ptrdiff_t)d * ROWS + i] = query_of(a, row + i)[d] * scale;
	for (int key = 0; key < keys; key += KEYS)
		score_keys(w, a, key, min_int(KEYS, keys - key), m);
	for (int i = 0; i < m; i++)
		share[i] = softmax(w->scores + i * KEYS, (ptrdiff_t)m * KEYS, keys_of(a, row + i), (int)round_up(keys, KEYS));
	for (int key = 0; key < keys; key += KEYS)
		add_values(w, a, key, min_int(KEYS, keys - key), m);
	for (int i = 0; i < m; i++) {
		float *out = a->out + (row + i) / a->group * a->out_ld + (ptrdiff_t)((row + i) % a->group) * hd;
		for (int d = 0; d < hd; d += VL)
			vstore_n(out + d, vload(w->out + (ptrdiff_t)i * w->hp + d) * vset1(share[i]), hd - d);
	}
}

void ISA(attention_queries)(const struct attention_queries *a) {
	struct cached_work w = work_of(a);
	int rows = a->tokens * a->group;
	for (int row = 0; row < rows; row += ROWS)
		attend(&w, a, row, min_int(ROWS, rows - row));
}
