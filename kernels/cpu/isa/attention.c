/* attention.c: causal attention of one head, forward and backward, without ever holding a T x T matrix.
 *
 * The idea (after FlashAttention, Dao et al. 2022, and its recomputation in the backward pass): queries are taken a
 * block of TILE_COLS at a time and scores are kept *transposed*, (key, query), so that
 *   - a query is a lane: its maximum and its sum over keys are lane-wise, without horizontal reductions;
 *   - P^T is already the operand A of P V (a_i = 1), and read the other way (a_k = 1) that of P^T dO and dS^T Q:
 *     none of the five products of the backward pass repacks a score matrix.
 * Keys after a block's last query are never computed. Backward recomputes P from the saved log-sum-exp, KEY_BLOCK keys
 * at a time, so its two score blocks stay in the first-level cache. Bytes moved: q, k, v and out once each way; the
 * transposed copies live in the second-level cache.
 *
 * Measured (bench_kernels, two Zen 5 cores, B8 T256 6 heads of 64): 295 GFLOP/s forward, 300 backward, of a peak of
 * 500, counting only the causal half; the diagonal blocks' other halves, the exponentials and the copies are the rest.
 *
 * Layouts: hd = head_dim, hp = hd rounded up to VL, tp = t rounded up to VL. "T" in a name: (hd, tokens), transposed;
 * without it: (tokens, hp). Everything past the real sizes is 0. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/tile.h"
#include "kernels/cpu/isa/transpose.h"

#include <math.h>

enum { QUERIES = TILE_COLS, KEY_BLOCK = 128 };

static int min_int(int a, int b) {
	return a < b ? a : b;
}

static int round_up(int n, int to) {
	return (n + to - 1) / to * to;
}

/* (rows, hd), ld apart, to (rows, hp), scaled. */
static void pack_rows(float *dst, const float *src, ptrdiff_t ld, int rows, int hd, float scale) {
	int hp = round_up(hd, VL);
	for (int i = 0; i < rows; i++)
		for (int d = 0; d < hp; d += VL)
			vstore(dst + (ptrdiff_t)i * hp + d, vload_n(src + i * ld + d, hd - d) * scale);
}

static void unpack_rows(float *dst, ptrdiff_t ld, const float *src, int rows, int hd, float scale) {
	int hp = round_up(hd, VL);
	for (int i = 0; i < rows; i++)
		for (int d = 0; d < hd; d += VL)
			vstore_n(dst + i * ld + d, vload(src + (ptrdiff_t)i * hp + d) * scale, hd - d);
}

/* C (m, n) (+)= A B in tiles as equal as possible; n is a multiple of VL. The strides of A: see tile.h. */
RV_ALWAYS_INLINE void product(struct tile_args t, int m, int n, ptrdiff_t a_i, ptrdiff_t a_k) {
	const struct tile_args start = t;
	int n_tiles = (m + TILE_ROWS - 1) / TILE_ROWS;
	for (int j = 0; j < n; j += TILE_COLS)
		for (int s = 0; s < n_tiles; s++) {
			int i = (int)((int64_t)m * s / n_tiles), rows = (int)((int64_t)m * (s + 1) / n_tiles) - i;
			t.a = start.a + i * a_i;
			t.b = start.b + j;
			t.c = start.c + i * start.c_i + j;
			if (n - j >= TILE_COLS)
				tile(rows, 2, a_i, a_k, &t);
			else
				tile(rows, 1, a_i, a_k, &t);
		}
}

/* A column-wise in memory (a_i = 1). */
static void product_cols(const struct tile_args *t, int m, int n) {
	product(*t, m, n, 1, t->a_k);
}

/* A is a block of scores read by key: row i is QUERIES floats. */
static void product_scores(const struct tile_args *t, int m, int n) {
	product(*t, m, n, QUERIES, 1);
}

/* scores (keys, QUERIES) = K Q^T. kT is (hd, k_ld), qT (hd, QUERIES). */
static void score_block(float *scores, const float *kT, ptrdiff_t k_ld, const float *qT, int keys, int hd) {
	struct tile_args t = {.a = kT, .a_k = k_ld, .b = qT, .b_k = QUERIES, .c = scores, .c_i = QUERIES, .k = hd};
	product_cols(&t, keys, QUERIES);
}

/* Lanes of query vector `vec` of the block at query q0 that may see key `key`; `fill` elsewhere. */
RV_ALWAYS_INLINE vf causal(vf x, int key, int q0, int vec, vf fill) {
	return vkeep_from(x, key - q0 - vec * VL, fill);
}

/* scores become e^(score - largest), 0 where not causal; returns the log-sum-exp and the inverse sum per query. */
static void softmax_block(float *scores, int q0, int keys, float lse[QUERIES], float inverse[QUERIES]) {
	vf largest[TILE_VECTORS], sum[TILE_VECTORS];
	for (int v = 0; v < TILE_VECTORS; v++) {
		largest[v] = vload(scores + v * VL); /* every query sees key 0 */
		sum[v] = vset1(0);
	}
	for (int j = 1; j < keys; j++)
		for (int v = 0; v < TILE_VECTORS; v++) {
			vf x = vload(scores + j * QUERIES + v * VL);
			largest[v] = vmax(j > q0 ? causal(x, j, q0, v, largest[v]) : x, largest[v]);
		}
	for (int j = 0; j < keys; j++)
		for (int v = 0; v < TILE_VECTORS; v++) {
			float *at = scores + j * QUERIES + v * VL;
			vf e = vexp(vload(at) - largest[v]);
			if (j > q0)
				e = causal(e, j, q0, v, vset1(0));
			sum[v] += e;
			vstore(at, e);
		}
	for (int v = 0; v < TILE_VECTORS; v++)
		for (int i = 0; i < VL; i++) {
			lse[v * VL + i] = largest[v][i] + logf(sum[v][i]);
			inverse[v * VL + i] = 1 / sum[v][i];
		}
}

size_t ISA(attention_head_work)(int t, int head_dim) {
	size_t tp = (size_t)round_up(t, VL), hd = (size_t)head_dim, hp = (size_t)round_up(head_dim, VL);
	return hd * tp + tp * hp + hd * QUERIES + (tp + QUERIES) * QUERIES + QUERIES * hp;
}

void ISA(attention_head)(const struct attention_head *a) {
	int hd = a->head_dim, hp = round_up(hd, VL), tp = round_up(a->t, VL);
	float *kT = a->work, *v = kT + (size_t)hd * tp, *qT = v + (size_t)tp * hp, *scores = qT + (size_t)hd * QUERIES;
	float *out = scores + (size_t)(tp + QUERIES) * QUERIES, lse[QUERIES], inverse[QUERIES];
	transpose(kT, tp, a->k, a->ld, a->t, hd, 1);
	pack_rows(v, a->v, a->ld, a->t, hd, 1);
	for (int q0 = 0; q0 < a->t; q0 += QUERIES) {
		int n = min_int(QUERIES, a->t - q0), keys = q0 + n;
		memset(qT, 0, (size_t)hd * QUERIES * sizeof *qT);
		transpose(qT, QUERIES, a->q + q0 * a->ld, a->ld, n, hd, 1 / sqrtf((float)hd));
		score_block(scores, kT, tp, qT, keys, hd);
		softmax_block(scores, q0, keys, lse, inverse);
		struct tile_args t = {.a = scores, .a_k = QUERIES, .b = v, .b_k = hp, .c = out, .c_i = hp, .k = keys};
		product_cols(&t, n, hp);
		for (int i = 0; i < n; i++)
			unpack_rows(a->out + (q0 + i) * a->out_ld, 0, out + (ptrdiff_t)i * hp, 1, hd, inverse[i]);
		memcpy(a->lse + q0, lse, (size_t)n * sizeof *lse);
	}
}

/* The workspace of the backward pass. */
struct group_work {
	float *kT, *vT, *k; /* of the key/value head */
	float *dk, *dv;     /* sums over the group's queries, (tp, hp) */
	float *qT, *doT;    /* (hd, QUERIES) of one block of queries, q scaled */
	float *q, *dout;    /* (QUERIES, hp), q scaled */
	float *dq;          /* (QUERIES, hp) */
	float *p, *ds;      /* (KEY_BLOCK, QUERIES) */
	float *lse, *dot;   /* (QUERIES); dot = dout . out */
	int t, hd, hp, tp;
};

size_t ISA(attention_group_work)(int t, int head_dim) {
	size_t tp = (size_t)round_up(t, VL), hd = (size_t)head_dim, hp = (size_t)round_up(head_dim, VL);
	return 2 * hd * tp + 3 * tp * hp + 2 * hd * QUERIES + 3 * QUERIES * hp + 2 * KEY_BLOCK * QUERIES + 2 * QUERIES;
}

static struct group_work group_work_of(const struct attention_group *a) {
	struct group_work w = {.t = a->t, .hd = a->head_dim, .hp = round_up(a->head_dim, VL), .tp = round_up(a->t, VL)};
	size_t transposed = (size_t)w.hd * w.tp, packed = (size_t)w.tp * w.hp;
	w.kT = a->work;
	w.vT = w.kT + transposed;
	w.k = w.vT + transposed;
	w.dk = w.k + packed;
	w.dv = w.dk + packed;
	w.qT = w.dv + packed;
	w.doT = w.qT + w.hd * QUERIES;
	w.q = w.doT + w.hd * QUERIES;
	w.dout = w.q + QUERIES * w.hp;
	w.dq = w.dout + QUERIES * w.hp;
	w.p = w.dq + QUERIES * w.hp;
	w.ds = w.p + KEY_BLOCK * QUERIES;
	w.lse = w.ds + KEY_BLOCK * QUERIES;
	w.dot = w.lse + QUERIES;
	return w;
}

static float row_dot(const float *a, const float *b, int n) {
	vf s = vset1(0);
	for (int i = 0; i < n; i += VL)
		s = vfma(vload_n(a + i, n - i), vload_n(b + i, n - i), s);
	return vreduce_add(s);
}

/* Everything of one block of n queries of query head `head` that its keys will need. */
static void load_queries(const struct group_work *w, const struct attention_group *a, int head, int q0, int n) {
	float scale = 1 / sqrtf((float)w->hd);
	const float *q = a->q + head * w->hd + q0 * a->ld;
	ptrdiff_t out_at = head * w->hd + q0 * a->out_ld;
	memset(w->qT, 0, 2 * (size_t)w->hd * QUERIES * sizeof *w->qT); /* and doT */
	transpose(w->qT, QUERIES, q, a->ld, n, w->hd, scale);
	transpose(w->doT, QUERIES, a->dout + out_at, a->out_ld, n, w->hd, 1);
	pack_rows(w->q, q, a->ld, n, w->hd, scale);
	pack_rows(w->dout, a->dout + out_at, a->out_ld, n, w->hd, 1);
	memset(w->dq, 0, (size_t)QUERIES * w->hp * sizeof *w->dq);
	for (int i = 0; i < QUERIES; i++) {
		ptrdiff_t at = out_at + i * a->out_ld;
		w->lse[i] = i < n ? a->lse[(ptrdiff_t)head * w->t + q0 + i] : 0;
		w->dot[i] = i < n ? row_dot(a->dout + at, a->out + at, w->hd) : 0;
	}
}

/* p = e^(score - lse) and ds = p (dp - dot), 0 where not causal; in: p holds scores, ds holds dp. */
static void recompute_block(const struct group_work *w, int q0, int key0, int keys) {
	for (int v = 0; v < TILE_VECTORS; v++) {
		vf lse = vload(w->lse + v * VL), dot = vload(w->dot + v * VL);
		for (int j = 0; j < keys; j++) {
			float *p_at = w->p + j * QUERIES + v * VL, *ds_at = w->ds + j * QUERIES + v * VL;
			vf p = vexp(vload(p_at) - lse);
			if (key0 + j > q0)
				p = causal(p, key0 + j, q0, v, vset1(0));
			vstore(p_at, p);
			vstore(ds_at, p * (vload(ds_at) - dot));
		}
	}
}

/* One block of n queries against keys [key0, key0 + keys). */
static void backward_block(const struct group_work *w, int q0, int n, int key0, int keys) {
	ptrdiff_t hp = w->hp;
	score_block(w->p, w->kT + key0, w->tp, w->qT, keys, w->hd);
	score_block(w->ds, w->vT + key0, w->tp, w->doT, keys, w->hd);
	recompute_block(w, q0, key0, keys);
	struct tile_args dv = {.a = w->p, .b = w->dout, .b_k = hp, .c = w->dv + key0 * hp, .c_i = hp, .k = n, .add = true};
	struct tile_args dk = {.a = w->ds, .b = w->q, .b_k = hp, .c = w->dk + key0 * hp, .c_i = hp, .k = n, .add = true};
	struct tile_args dq = {
		.a = w->ds, .a_k = QUERIES, .b = w->k + key0 * hp, .b_k = hp, .c = w->dq, .c_i = hp, .k = keys, .add = true};
	product_scores(&dv, keys, w->hp);
	product_scores(&dk, keys, w->hp);
	product_cols(&dq, n, w->hp);
}

void ISA(attention_group)(const struct attention_group *a) {
	struct group_work w = group_work_of(a);
	transpose(w.kT, w.tp, a->k, a->ld, w.t, w.hd, 1);
	transpose(w.vT, w.tp, a->v, a->ld, w.t, w.hd, 1);
	pack_rows(w.k, a->k, a->ld, w.t, w.hd, 1);
	memset(w.dk, 0, 2 * (size_t)w.tp * w.hp * sizeof *w.dk); /* and dv */
	for (int head = 0; head < a->group; head++)
		for (int q0 = 0; q0 < w.t; q0 += QUERIES) {
			int n = min_int(QUERIES, w.t - q0), keys = q0 + n;
			load_queries(&w, a, head, q0, n);
			for (int key0 = 0; key0 < keys; key0 += KEY_BLOCK)
				backward_block(&w, q0, n, key0, min_int(KEY_BLOCK, keys - key0));
			unpack_rows(a->dq + head * w.hd + q0 * a->ld, a->ld, w.dq, n, w.hd, 1 / sqrtf((float)w.hd));
		}
	unpack_rows(a->dk, a->ld, w.dk, w.t, w.hd, 1);
	unpack_rows(a->dv, a->ld, w.dv, w.t, w.hd, 1);
}
