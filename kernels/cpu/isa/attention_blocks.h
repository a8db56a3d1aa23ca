/* attention_blocks.h: causal attention of one head, forward and backward, without ever holding a T
 * x T matrix; a template. The file that includes it has included one of the word_*.h.
 *
 * The idea (after FlashAttention, Dao et al. 2022, and its recomputation in the backward pass):
 * queries are taken a block at a time and scores are kept *transposed*, (key, query), so that
 *   - a query is a lane: its maximum and its sum over keys are lane-wise, without horizontal
 *     reductions;
 *   - P^T is already the operand A of P V, and read the other way that of P^T dO and dS^T Q: none
 *     of the five products of the backward pass moves a score matrix; where a word holds two
 *     elements, the pass that writes P and dS writes words.
 * Keys and values are operand A of the score products as rows, which is a plain copy. All operands
 * B are panels of TILE_COLS columns (pack.h). A tile of scores that causality hides is not
 * computed, and the sums of the other products stop at the last key (begin at the first query) that
 * their tile can see. Backward recomputes P from the saved log-sum-exp a block of keys at a time,
 * so that its score blocks stay near. Exponentials are powers of two: 2^(score * scale * log2 e -
 * ...) costs one multiply-add to prepare.
 *
 * Measured (bench_kernels, B8 T256, 6 heads of 64, counting the half that causality leaves): one
 * Zen 5 core 165 to 170 GFLOP/s forward and 175 to 183 backward in fp32, of 262; 250 and 285 in
 * bf16, of 475. The products themselves run at 90 % and more; the rest is packing, exponentials and
 * what memory costs although rows are asked for ahead.
 *
 * Layouts: hd = head_dim, hp = hd rounded up to VL. Rows (operand A): (slices of ROW_WORDS words,
 * tokens, ROW_WORDS). Panels (operand B): (panels, words of k, TILE_COLS). */
#ifndef RV_KERNELS_CPU_ISA_ATTENTION_BLOCKS_H
#define RV_KERNELS_CPU_ISA_ATTENTION_BLOCKS_H

#include "kernels/cpu/isa/pack.h"

#include <math.h>

/* A file with a tile of its own has defined these, and `tile` with its sizes. */
#ifndef TILES_BEGIN
#include "kernels/cpu/isa/tile.h"
#define TILES_BEGIN() ((void)0)
#define TILES_END()   ((void)0)
#endif

enum {
	QUERY_VECTORS = TILE_VECTORS,
	QUERIES = QUERY_VECTORS * VL, /* of a block */
	KEYS = 128,                   /* of a block of the backward pass */
	ROW_WORDS = 64,
	ROW = ROW_WORDS * K_PER_WORD, /* elements of a head that one slice of packed rows holds */
	AHEAD_ARRAYS = 6,
	AHEAD_TOKENS = 2 * QUERIES, /* asked for at most this far ahead */
	LINE_FLOATS = 16,           /* of a cache line */
};
_Static_assert(KEYS % K_PER_WORD == 0 && QUERIES % K_PER_WORD == 0, "blocks begin at whole words");

static const float log2_e = 0x1.715476p0f;

static int max_int(int a, int b) {
	return a > b ? a : b;
}

/* Returns the elements that the words of k elements hold. */
RV_ALWAYS_INLINE int whole_words(int k) {
	return words_of(k) * K_PER_WORD;
}

static size_t round_up(int n, int to) {
	return (size_t)((n + to - 1) / to * to);
}

/* Return the floats of packed operands: rows for A, and panels for B with `cols` columns and k
 * elements. */
static size_t rows_size(int tokens, int hd) {
	return round_up(hd, ROW) / K_PER_WORD * (size_t)tokens;
}

static size_t panels_size(int cols, int k) {
	return round_up(cols, TILE_COLS) * (size_t)words_of(k);
}

/* Returns the words between two panels whose k runs over tokens. */
static size_t token_panel(int tokens) {
	return (size_t)words_of(tokens) * TILE_COLS;
}

/* Packs tokens [from, from + n) of `tokens` as rows. */
static void pack_rows(float *dst, size_t tokens, const float *src, ptrdiff_t ld, int from, int n, int hd) {
	for (int d = 0; d < hd; d += ROW, dst += tokens * ROW_WORDS)
		for (int i = from; i < from + n; i++)
			for (int j = 0; j < min_int(ROW, hd - d); j += VL * K_PER_WORD)
				vstore(dst + i * ROW_WORDS + j / K_PER_WORD, words_along_k(src + i * ld + d + j, hd - d - j));
}

/* Packs columns that are tokens; k runs over the head. */
static void pack_columns(float *dst, const float *src, ptrdiff_t ld, int tokens, int hd) {
	const struct pack_source s = {.p = src, .ld = ld};
	pack_row_major(dst, TILE_COLS, &s, tokens, hd);
}

/* Packs columns that are the head's elements; k runs over `tokens`, of which [from, from + n) are
 * packed; from is whole words. */
static void pack_tokens(float *dst, int tokens, const float *src, ptrdiff_t ld, int from, int n, int hd) {
	const struct pack_source s = {.p = src + from * ld, .ld = ld, .k_major = true, .ahead = TOKENS_AHEAD};
	pack_k_major(dst + from / K_PER_WORD * TILE_COLS, TILE_COLS, token_panel(tokens), &s, hd, n);
}

static void unpack(float *dst, ptrdiff_t ld, const float *src, int rows, int hd, float scale) {
	size_t hp = round_up(hd, VL);
	for (int i = 0; i < rows; i++)
		for (int d = 0; d < hd; d += VL)
			vstore_n(dst + i * ld + d, vload(src + (size_t)i * hp + d) * scale, hd - d);
}

/* Rows that later blocks will read or write: some are prefetched with every tile, so that memory
 * works while the tiles compute. */
struct ahead {
	struct {
		const float *p; /* NULL: none */
		ptrdiff_t ld;
	} from[AHEAD_ARRAYS];
	int row, end, hd; /* the next row, and where to stop for now */
	int per_tile;     /* rows */
};

RV_ALWAYS_INLINE void look_ahead(struct ahead *a) {
	for (int i = 0; i < a->per_tile && a->row < a->end; i++, a->row++)
		for (int j = 0; j < AHEAD_ARRAYS && a->from[j].p; j++)
			for (int d = 0; d < a->hd; d += LINE_FLOATS)
				__builtin_prefetch(a->from[j].p + a->row * a->from[j].ld + d, 0, 2);
}

/* Starts prefetching for the block at `token` of `tokens`. */
static void look_from(struct ahead *a, int token, int tokens) {
	a->row = max_int(a->row, token);
	a->end = min_int(tokens, token + AHEAD_TOKENS);
}

/* A score block: queries [q0, q0 + n) and keys [key0, key0 + keys). */
struct block {
	int q0, n, key0, keys;
	struct ahead *ahead;
};

/* Rows [begin, begin + count): tile s of `tiles` equal ones. */
struct tile_rows {
	int begin, count;
};

static struct tile_rows tile_rows_of(int m, int tiles, int s) {
	int begin = (int)((int64_t)m * s / tiles);
	return (struct tile_rows){begin, (int)((int64_t)m * (s + 1) / tiles) - begin};
}

static int tiles_of(int m) {
	return (m + TILE_ROWS - 1) / TILE_ROWS;
}

RV_ALWAYS_INLINE void tile_of_width(int rows, bool narrow, ptrdiff_t a_i, ptrdiff_t a_k, const struct tile_args *t) {
	if (narrow)
		tile(rows, 1, a_i, a_k, t);
	else
		tile(rows, 2, a_i, a_k, t);
}

/* Computes scores (keys, QUERIES) = rows . columns, where a query of the block may see the key.
 * `rows`: of all tokens. */
static void score_block(float *scores, const float *rows, size_t tokens, const float *columns, const struct block *b,
						int hd) {
	int tiles = tiles_of(b->keys);
	for (int d = 0; d < hd; d += ROW, rows += tokens * ROW_WORDS)
		for (int j = 0; j < b->n; j += TILE_COLS)
			for (int s = 0; s < tiles; s++) {
				struct tile_rows r = tile_rows_of(b->keys, tiles, s);
				int hidden = b->key0 + r.begin - (b->q0 + j), skip = hidden >= VL ? VL : 0;
				if (hidden >= TILE_COLS)
					break;
				struct tile_args t = {.a = rows + (b->key0 + r.begin) * ROW_WORDS,
									  .b = columns + j * words_of(hd) + d / K_PER_WORD * TILE_COLS + skip,
									  .b_k = TILE_COLS,
									  .c = scores + r.begin * QUERIES + j + skip,
									  .c_i = QUERIES,
									  .k = words_of(min_int(ROW, hd - d)),
									  .add = d > 0};
				look_ahead(b->ahead);
				tile_of_width(r.count, skip || whole_words(b->n - j) <= VL, ROW_WORDS, 1, &t);
			}
}

/* Computes c (n, hd) (+)= p^T . panels: sums over the keys that a tile's last query sees. p (words
 * of keys, QUERIES). */
static void sum_over_keys(float *c, const float *p, const float *panels, size_t panel, const struct block *b, int hd,
						  bool add) {
	ptrdiff_t hp = (ptrdiff_t)round_up(hd, VL);
	int tiles = tiles_of(b->n);
	for (int j = 0; j < hd; j += TILE_COLS, panels += panel)
		for (int s = 0; s < tiles; s++) {
			struct tile_rows r = tile_rows_of(b->n, tiles, s);
			int keys = min_int(b->keys, b->q0 + r.begin + r.count - b->key0);
			if (keys <= 0)
				continue;
			struct tile_args t = {.a = p + r.begin,
								  .a_k = QUERIES,
								  .b = panels,
								  .b_k = TILE_COLS,
								  .c = c + r.begin * hp + j,
								  .c_i = hp,
								  .k = words_of(keys),
								  .add = add};
			look_ahead(b->ahead);
			tile_of_width(r.count, hd - j <= VL, 1, QUERIES, &t);
		}
}

/* Computes c (keys, hd) += p . panels: sums over the queries that see a tile's first key. p (keys,
 * words of QUERIES). */
static void sum_over_queries(float *c, const float *p, const float *panels, size_t panel, const struct block *b,
							 int hd) {
	enum { P_ROW = QUERIES / K_PER_WORD };
	ptrdiff_t hp = (ptrdiff_t)round_up(hd, VL);
	int tiles = tiles_of(b->keys);
	for (int j = 0; j < hd; j += TILE_COLS, panels += panel)
		for (int s = 0; s < tiles; s++) {
			struct tile_rows r = tile_rows_of(b->keys, tiles, s);
			int first = max_int(0, b->key0 + r.begin - b->q0) / (K_PER_WORD * WORDS_STEP) * WORDS_STEP;
			struct tile_args t = {.a = p + r.begin * P_ROW + first,
								  .b = panels + first * TILE_COLS,
								  .b_k = TILE_COLS,
								  .c = c + r.begin * hp + j,
								  .c_i = hp,
								  .k = words_of(b->n) - first,
								  .add = true};
			look_ahead(b->ahead);
			tile_of_width(r.count, hd - j <= VL, P_ROW, 1, &t);
		}
}

/* Returns the first lane of queries of vector `v` of the block that sees key `key`: <= 0 all do, >=
 * VL none. */
RV_ALWAYS_INLINE int first_lane(int key, int q0, int v) {
	return key - q0 - v * VL;
}

/* Returns 2^(score * scale - shift), 0 in the lanes before `first`. */
RV_ALWAYS_INLINE vf probability(const float *score, vf scale, vf shift, int first) {
	vf e = vexp2(vfma(vload(score), scale, -shift));
	return first > 0 ? vkeep_from(e, first, vset1(0)) : e;
}

static void largest_scores(vf largest[QUERY_VECTORS], const float *scores, int q0, int keys) {
	for (int v = 0; v < QUERY_VECTORS; v++) {
		int all = min_int(q0 + v * VL + 1, keys), some = min_int(q0 + (v + 1) * VL, keys);
		const float *at = scores + v * VL;
		vf m = vload(at); /* every query sees key 0 */
		for (int j = 1; j < all; j++)
			m = vmax(vload(at + j * QUERIES), m);
		for (int j = all; j < some; j++)
			m = vmax(vkeep_from(vload(at + j * QUERIES), first_lane(j, q0, v), m), m);
		largest[v] = m;
	}
}

/* Replaces scores (keys, QUERIES) by words (words of keys, QUERIES) of e^(score - largest), 0 where
 * a query does not see the key; writes the log-sum-exp and the inverse sum per query. */
static void softmax_block(float *scores, int q0, int keys, float scale, float lse[QUERIES], float inverse[QUERIES]) {
	vf largest[QUERY_VECTORS];
	largest_scores(largest, scores, q0, keys);
	for (int v = 0; v < QUERY_VECTORS; v++) {
		vf sum = vset1(0), factor = vset1(scale * log2_e), shift = largest[v] * factor;
		for (int j = 0; j < whole_words(keys); j += K_PER_WORD) {
			vf e[K_PER_WORD];
			for (int i = 0; i < K_PER_WORD; i++) {
				int first = first_lane(j + i, q0, v);
				bool seen = j + i < keys && first < VL;
				e[i] = seen ? probability(scores + (j + i) * QUERIES + v * VL, factor, shift, first) : vset1(0);
				sum += e[i];
			}
			vstore(scores + j / K_PER_WORD * QUERIES + v * VL, word_rows(e));
		}
		vstore(inverse + v * VL, vset1(1) / sum);
		for (int i = 0; i < VL; i++)
			lse[v * VL + i] = largest[v][i] * scale + logf(sum[i]);
	}
}

static size_t head_work(int t, int hd) {
	return rows_size(t, hd) + panels_size(hd, t) + panels_size(QUERIES, hd) +
		   (size_t)QUERIES * (round_up(t, QUERIES) + round_up(hd, VL));
}

static void attention_head(const struct attention_head *a) {
	int hd = a->head_dim;
	float scale = 1 / sqrtf((float)hd), lse[QUERIES], inverse[QUERIES];
	float *k = a->work, *v = k + rows_size(a->t, hd), *q = v + panels_size(hd, a->t);
	float *out = q + panels_size(QUERIES, hd), *scores = out + QUERIES * round_up(hd, VL);
	TILES_BEGIN();
	struct ahead ahead = {
		.from = {{a->q, a->ld}, {a->k, a->ld}, {a->v, a->ld}, {a->out, a->out_ld}}, .hd = hd, .per_tile = 4};
	for (int q0 = 0; q0 < a->t; q0 += QUERIES) {
		int n = min_int(QUERIES, a->t - q0);
		const struct block b = {.q0 = q0, .n = n, .keys = q0 + n, .ahead = &ahead};
		look_from(&ahead, q0, a->t);
		pack_rows(k, (size_t)a->t, a->k, a->ld, q0, n, hd);
		pack_tokens(v, a->t, a->v, a->ld, q0, n, hd);
		pack_columns(q, a->q + q0 * a->ld, a->ld, n, hd);
		score_block(scores, k, (size_t)a->t, q, &b, hd);
		softmax_block(scores, q0, b.keys, scale, lse, inverse);
		sum_over_keys(out, scores, v, token_panel(a->t), &b, hd, false);
		for (int i = 0; i < n; i++)
			unpack(a->out + (q0 + i) * a->out_ld, 0, out + (size_t)i * round_up(hd, VL), 1, hd, inverse[i]);
		memcpy(a->lse + q0, lse, (size_t)n * sizeof *lse);
	}
	TILES_END();
}

/* The workspace of the backward pass. */
struct group_work {
	float *k, *v;                /* rows of the key/value head */
	float *k_panels;             /* the keys once more: k runs over tokens */
	float *dk, *dv;              /* sums over the group's queries, (t, hp) */
	float *q, *dout;             /* of one block of queries: columns, */
	float *q_panels, *do_panels; /* and k over tokens */
	float *dq;                   /* (QUERIES, hp) */
	float *p, *ds;               /* scores and their gradients, (KEYS, QUERIES); then words of both, (KEYS, words) */
	float *ds_keys;   /* words of the latter along keys, (words of KEYS, QUERIES); ds when words are elements */
	float *lse, *dot; /* (QUERIES): log-sum-exp in powers of two, and dout . out */
	int t, hd;
	size_t hp;
};

/* Sets each part, in the order of struct group_work; returns the total in floats. */
static size_t group_parts(float **parts[], float *base, const struct group_work *w) {
	size_t head = (size_t)w->t * w->hp, block = panels_size(QUERIES, w->hd), tokens = panels_size(w->hd, QUERIES);
	const size_t sizes[] = {rows_size(w->t, w->hd),
							rows_size(w->t, w->hd),
							panels_size(w->hd, w->t),
							head,
							head,
							block,
							block,
							tokens,
							tokens,
							QUERIES * w->hp,
							KEYS * QUERIES,
							KEYS * QUERIES,
							K_PER_WORD > 1 ? KEYS * QUERIES / K_PER_WORD : 0,
							QUERIES,
							QUERIES};
	size_t at = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		if (parts)
			*parts[i] = base + at;
		at += sizes[i];
	}
	return at;
}

static size_t group_work(int t, int hd) {
	const struct group_work w = {.t = t, .hd = hd, .hp = round_up(hd, VL)};
	return group_parts(NULL, NULL, &w);
}

static struct group_work group_work_of(const struct attention_group *a) {
	struct group_work w = {.t = a->t, .hd = a->head_dim, .hp = round_up(a->head_dim, VL)};
	float **parts[] = {&w.k,         &w.v,  &w.k_panels, &w.dk, &w.dv,      &w.q,   &w.dout, &w.q_panels,
					   &w.do_panels, &w.dq, &w.p,        &w.ds, &w.ds_keys, &w.lse, &w.dot};
	(void)group_parts(parts, a->work, &w);
	if (K_PER_WORD == 1)
		w.ds_keys = w.ds;
	return w;
}

static float row_dot(const float *a, const float *b, int n) {
	vf s = vset1(0);
	for (int i = 0; i < n; i += VL)
		s = vfma(vload_n(a + i, n - i), vload_n(b + i, n - i), s);
	return vreduce_add(s);
}

/* Packs all data of a block of n queries of query head `head` that its keys will need. */
static void load_queries(const struct group_work *w, const struct attention_group *a, int head, int q0, int n) {
	const float *q = a->q + head * w->hd + q0 * a->ld;
	ptrdiff_t out_at = head * w->hd + q0 * a->out_ld;
	pack_columns(w->q, q, a->ld, n, w->hd);
	pack_tokens(w->q_panels, n, q, a->ld, 0, n, w->hd);
	pack_columns(w->dout, a->dout + out_at, a->out_ld, n, w->hd);
	pack_tokens(w->do_panels, n, a->dout + out_at, a->out_ld, 0, n, w->hd);
	memset(w->dq, 0, QUERIES * w->hp * sizeof *w->dq);
	for (int i = 0; i < QUERIES; i++) {
		ptrdiff_t at = out_at + i * a->out_ld;
		w->lse[i] = i < n ? a->lse[(ptrdiff_t)head * w->t + q0 + i] * log2_e : 0;
		w->dot[i] = i < n ? row_dot(a->dout + at, a->out + at, w->hd) : 0;
	}
}

/* Computes, for key `i` of the block and vector v of queries, p = e^(score - lse) and ds = p (dp -
 * dot), 0 where the query does not see the key; before, p holds scores and ds holds dp. */
RV_ALWAYS_INLINE void recompute(const struct group_work *w, const struct block *b, int i, int v, vf factor, vf *p,
								vf *ds) {
	int first = first_lane(b->key0 + i, b->q0, v), at = i * QUERIES + v * VL;
	*p = *ds = vset1(0);
	if (i >= b->keys || first >= VL)
		return;
	*p = probability(w->p + at, factor, vload(w->lse + v * VL), first);
	*ds = *p * (vload(w->ds + at) - vload(w->dot + v * VL));
	if (first > 0) /* dp of a hidden query was not computed */
		*ds = vkeep_from(*ds, first, vset1(0));
}

/* Recomputes a block, K_PER_WORD keys at a time, since words of ds are written along both. A row of
 * words is written over a row of scores that has been read. */
static void recompute_block(const struct group_work *w, const struct block *b) {
	vf factor = vset1(log2_e / sqrtf((float)w->hd));
	for (int i = 0; i < whole_words(b->keys); i += K_PER_WORD)
		for (int v = 0; v < QUERY_VECTORS; v += K_PER_WORD) {
			vf p[K_PER_WORD][K_PER_WORD], ds[K_PER_WORD][K_PER_WORD];
			for (int j = 0; j < K_PER_WORD; j++)
				for (int u = 0; u < K_PER_WORD; u++)
					recompute(w, b, i + j, v + u, factor, &p[j][u], &ds[j][u]);
			for (int j = 0; j < K_PER_WORD; j++) {
				int at = ((i + j) * QUERIES + v * VL) / K_PER_WORD;
				vstore(w->p + at, word_lanes(p[j]));
				vstore(w->ds + at, word_lanes(ds[j]));
			}
			for (int u = 0; K_PER_WORD > 1 && u < K_PER_WORD; u++) {
				vf column[K_PER_WORD];
				for (int j = 0; j < K_PER_WORD; j++)
					column[j] = ds[j][u];
				vstore(w->ds_keys + i / K_PER_WORD * QUERIES + (v + u) * VL, word_rows(column));
			}
		}
}

static void backward_block(const struct group_work *w, const struct block *b) {
	size_t key0 = (size_t)b->key0, panel = token_panel(b->n);
	score_block(w->p, w->k, (size_t)w->t, w->q, b, w->hd);
	score_block(w->ds, w->v, (size_t)w->t, w->dout, b, w->hd);
	recompute_block(w, b);
	sum_over_queries(w->dv + key0 * w->hp, w->p, w->do_panels, panel, b, w->hd);
	sum_over_queries(w->dk + key0 * w->hp, w->ds, w->q_panels, panel, b, w->hd);
	sum_over_keys(w->dq, w->ds_keys, w->k_panels + key0 / K_PER_WORD * TILE_COLS, token_panel(w->t), b, w->hd, true);
}

/* Packs keys and values, for the first query that sees them. */
static void load_keys(const struct group_work *w, const struct attention_group *a, int from, int n) {
	pack_rows(w->k, (size_t)w->t, a->k, a->ld, from, n, w->hd);
	pack_rows(w->v, (size_t)w->t, a->v, a->ld, from, n, w->hd);
	pack_tokens(w->k_panels, w->t, a->k, a->ld, from, n, w->hd);
}

static struct ahead ahead_of(const struct attention_group *a, int head) {
	ptrdiff_t at = head * a->head_dim;
	struct ahead ahead = {
		.from = {{a->q + at, a->ld}, {a->dout + at, a->out_ld}, {a->out + at, a->out_ld}, {a->dq + at, a->ld}},
		.hd = a->head_dim,
		.per_tile = 2};
	if (head == 0) {
		ahead.from[4].p = a->k;
		ahead.from[5].p = a->v;
		ahead.from[4].ld = ahead.from[5].ld = a->ld;
	}
	return ahead;
}

static void attention_query_head(const struct group_work *w, const struct attention_group *a, int head) {
	struct ahead ahead = ahead_of(a, head);
	for (int q0 = 0; q0 < w->t; q0 += QUERIES) {
		int n = min_int(QUERIES, w->t - q0);
		if (head == 0)
			load_keys(w, a, q0, n);
		load_queries(w, a, head, q0, n);
		look_from(&ahead, q0, w->t);
		if (head + 1 == a->group && q0 + n == w->t) /* the sums over queries are next */
			ahead = (struct ahead){.from = {{a->dk, a->ld}, {a->dv, a->ld}}, .end = w->t, .hd = w->hd, .per_tile = 4};
		for (int key0 = 0; key0 < q0 + n; key0 += KEYS) {
			const struct block b = {q0, n, key0, min_int(KEYS, q0 + n - key0), &ahead};
			backward_block(w, &b);
		}
		unpack(a->dq + head * w->hd + q0 * a->ld, a->ld, w->dq, n, w->hd, 1 / sqrtf((float)w->hd));
	}
}

static void attention_group(const struct attention_group *a) {
	struct group_work w = group_work_of(a);
	memset(w.dk, 0, 2 * (size_t)w.t * w.hp * sizeof *w.dk); /* and dv */
	TILES_BEGIN();
	for (int head = 0; head < a->group; head++)
		attention_query_head(&w, a, head);
	TILES_END();
	unpack(a->dk, a->ld, w.dk, w.t, w.hd, 1 / sqrtf((float)w.hd));
	unpack(a->dv, a->ld, w.dv, w.t, w.hd, 1);
}

#define ATTENTION_KERNELS                                                                                              \
	{ .head_work = head_work, .head = attention_head, .group_work = group_work, .group = attention_group }

#endif
