/* allreduce.c: memory and codec for the cores of an all-reduce. */
#include "worker/mesh/allreduce.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/os_memory.h"
#include "outer/committer.h"
#include "outer/partial_sum.h"
#include "outer/recode.h"
#include "outer/stands_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert((int)MERGE_MAX_INPUTS >= (int)NET_MAX_ROW && (int)ROWS_MAX_LENGTH == (int)NET_MAX_ROW, "a row");
_Static_assert((int)ROWS_MAX == (int)NET_MAX_ROWS && (int)ROWS_MAX_ROSTER == (int)NET_MAX_ROSTER, "a roster");

/* How many times as large as this worker's whole contribution something may be that limited
 * contributions give. In rows each step has room for one whose contribution is a ten-thousandth of
 * that of the one before: an honest owner passes on what it has checked by its own. */
#define MEAN_TIMES        1e4  /* the mean in one row; the sum of a row, by its weight, at its owner */
#define SUM_TIMES         1e8  /* ... of another row, at the final owner */
#define COLUMN_MEAN_TIMES 1e12 /* the mean that a final owner gives */
#define ROW_MEAN_TIMES    1e16 /* ... as it is passed on to the row */

/* Address space of which only what is touched is taken. */
struct lazy_memory {
	uint8_t *at; /* NULL: none */
	size_t bytes;
};

struct allreduce {
	struct allreduce_config cfg;
	struct chunking chunks;         /* of the round */
	size_t payload_bytes;           /* of a contribution to it, at most */
	uint8_t *reduced, *flags;       /* of the longest there is */
	float *scratch;                 /* merge_scratch() and a chunk more: measured.values */
	struct merge_measured measured; /* in this attempt, of the chunks that we own */
	struct lazy_memory held;        /* n_held vectors of the round */
	int n_held;
	/* Two levels: vectors of partial sums, of this row and n_sums others, and two chunks. */
	struct lazy_memory sums;
	int n_sums;
	struct lazy_memory sum_leaves; /* with seals: of n_sums vectors of them */
	/* With seals: the leaves of n_held contributions, and of the means; the tree of what is sent; a
	 * message. */
	struct lazy_memory leaves;
	const struct rv_hash *encoded_nodes, *own_nodes; /* of `encoded`, of `own` */
	struct rv_hash *recoded_nodes;                   /* of `recoded` */
	uint8_t *proof;
	void *grid_memory;
	struct grid *grid;                 /* NULL: not running */
	const uint8_t *encoded;            /* this worker's contribution, by the run's codec */
	const float *last;                 /* global_last_mean(): from which the rule starts; NULL: it does not */
	const uint8_t *own;                /* as it is sent: that, or `recoded` */
	uint8_t *recoded;                  /* NULL: not made in this round */
	double own_norm2;                  /* sum of squares of the contribution; INFINITY: nothing is checked by it */
	struct stands_out_chunk *compared; /* of each chunk: the contribution with the mean of another one */
	double *compare_work;              /* as many */
	bool two_levels;                   /* a roster of rows; the columns that this worker owns in its row: */
	int n_columns;
	struct owner_range columns[NET_MAX_ROW];
	uint8_t own_codec; /* id of the codec of `own`; 0: the run's */
	uint64_t round;
	uint32_t attempt;
	int n_members; /* of the row */
};

/* ---- the codec ---- */

static size_t chunk_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	const struct allreduce *a = ctx;
	const struct codec *sent = global_sent_as(a->cfg.global, codec);
	return sent->encoded_bytes(sent, chunking_len(&a->chunks, chunk));
}

static size_t chunk_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return chunking_offset_bytes(&a->chunks, global_sent_as(a->cfg.global, codec), chunk);
}

static size_t mean_bytes(void *ctx, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return a->cfg.global->codec->encoded_bytes(a->cfg.global->codec, chunking_len(&a->chunks, chunk));
}

static size_t mean_offset(void *ctx, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return chunking_offset_bytes(&a->chunks, a->cfg.global->codec, chunk);
}

static float largest_magnitude(const float *x, size_t n) {
	float most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(x[i]));
	return most;
}

static size_t sum_bytes(void *ctx, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return merge_partial_bytes(chunking_len(&a->chunks, chunk));
}

static size_t sum_offset(void *ctx, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return merge_partial_bytes((size_t)chunk * a->chunks.chunk_elems);
}

static size_t pack_sum(void *ctx, uint32_t chunk, const uint8_t *sum, uint8_t *out) {
	const struct allreduce *a = ctx;
	return partial_sum_pack(sum, chunking_len(&a->chunks, chunk), out);
}

static enum rv_err unpack_sum(void *ctx, uint32_t chunk, const uint8_t *in, size_t bytes, uint8_t *sum,
							  struct rv_errtext *et) {
	const struct allreduce *a = ctx;
	return partial_sum_unpack(in, bytes, chunking_len(&a->chunks, chunk), sum, et);
}

/* Returns the input that is no encoding of its codec, which merging does not name. If all are, the
 * sum overflowed, and the sender of the largest value is to blame: without one above FLT_MAX /
 * NET_MAX_WEIGHT_SUM = 2e31 there is no overflow, and no outer gradient of a sane model comes
 * near. */
static int find_bad(struct allreduce *a, const struct codec *const *codecs, const struct reduce_inputs *in, size_t n) {
	float most = -1;
	int largest = -1;
	for (int i = 0; i < in->n; i++) {
		if (codecs[i]->decode(codecs[i], in->data[i], n, a->scratch, NULL) != RV_OK)
			return i;
		float magnitude = largest_magnitude(a->scratch, n);
		if (magnitude > most) {
			most = magnitude;
			largest = i;
		}
	}
	return largest;
}

/* Sets `codecs` to those of contributions, and returns the run's rule for the chunk with them. */
static struct merge_rule rule_of(struct allreduce *a, uint32_t chunk, const struct reduce_inputs *in,
								 const struct codec *codecs[NET_MAX_ROW]) {
	struct merge_rule rule = global_merge(a->cfg.global);
	for (int i = 0; i < in->n; i++)
		codecs[i] = global_sent_as(a->cfg.global, in->codecs[i]);
	rule.codecs = codecs;
	rule.center = global_center(a->cfg.global, a->last, a->round, chunk);
	a->measured.places = in->places;
	return rule;
}

static enum rv_err reduce_chunk(void *ctx, uint32_t chunk, const struct reduce_inputs *in, uint8_t *out, int *bad,
								struct rv_errtext *et) {
	struct allreduce *a = ctx;
	size_t n = chunking_len(&a->chunks, chunk);
	*bad = -1;
	const struct codec *codecs[NET_MAX_ROW];
	const struct merge_rule rule = rule_of(a, chunk, in, codecs);
	struct feedback room;
	const struct feedback *residual = mean_residual_of(a->cfg.mean_residual, a->cfg.global, chunk, &room);
	enum rv_err e = merge_chunk(&rule, in->data, in->weights, in->n, n, a->scratch, residual, out, &a->measured, et);
	if (e != RV_OK)
		*bad = find_bad(a, codecs, in, n);
	RV_FAILPOINT("reduce.chunk-reduced");
	return e;
}

static double sum_of_squares(const float *x, size_t n) {
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

/* Returns RV_E_RANGE if a partial sum, divided by its weight, is more than `times` as large as this
 * worker's whole contribution. */
static enum rv_err check_sum(const struct allreduce *a, uint32_t chunk, const uint8_t *sum, uint32_t weight,
							 double times, struct rv_errtext *et) {
	const double norm2 = sum_of_squares((const float *)(const void *)sum, chunking_len(&a->chunks, chunk)) /
						 ((double)weight * (double)weight);
	if (norm2 <= times * times * a->own_norm2)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "the partial sum of chunk %u is %.3g times as large as this worker's whole contribution; at most "
				   "%g: no limited contributions give that",
				   chunk, sqrt(norm2 / a->own_norm2), times);
}

/* Two levels: the partial sum of this row. */
static enum rv_err sum_chunk(void *ctx, uint32_t chunk, const struct reduce_inputs *in, uint8_t *out, int *bad,
							 struct rv_errtext *et) {
	struct allreduce *a = ctx;
	const struct codec *codecs[NET_MAX_ROW];
	const struct merge_rule rule = rule_of(a, chunk, in, codecs);
	size_t n = chunking_len(&a->chunks, chunk);
	RV_ASSERT(out == NULL && a->sums.at != NULL);
	*bad = -1;
	uint8_t *sum = a->sums.at + sum_offset(a, chunk);
	uint32_t weight = 0;
	for (int i = 0; i < in->n; i++)
		weight += in->weights[i];
	enum rv_err e = merge_partial(&rule, in->data, in->weights, in->n, n, a->scratch, sum, &a->measured, et);
	if (e == RV_OK)
		e = check_sum(a, chunk, sum, weight, MEAN_TIMES, et);
	if (e != RV_OK)
		*bad = find_bad(a, codecs, in, n);
	return e;
}

/* Two levels: the mean of a chunk of which this worker is the final owner. */
static enum rv_err join_chunk(void *ctx, uint32_t chunk, const struct reduce_inputs *in, uint8_t *out, int *bad,
							  struct rv_errtext *et) {
	struct allreduce *a = ctx;
	const struct merge_rule rule = global_merge(a->cfg.global);
	const struct codec *fp32[NET_MAX_ROWS];
	size_t n = chunking_len(&a->chunks, chunk);
	struct feedback room;
	const struct feedback *residual = mean_residual_of(a->cfg.mean_residual, a->cfg.global, chunk, &room);
	*bad = -1;
	for (int i = 0; i < in->n; i++) {
		fp32[i] = &codec_fp32;
		*bad = i;
		RV_TRY(check_sum(a, chunk, in->data[i], in->weights[i], SUM_TIMES, et));
	}
	*bad = -1;
	enum rv_err e = merge_join(&rule, in->data, in->weights, in->n, n, a->scratch, residual, out, et);
	if (e != RV_OK)
		*bad = find_bad(a, fp32, in, n);
	RV_FAILPOINT("reduce.chunk-reduced");
	return e;
}

/* Returns how many times as large as this worker's whole contribution a mean may be. */
static double mean_times(const struct allreduce *a, uint32_t chunk) {
	bool own = false;
	for (int i = 0; i < a->n_columns; i++)
		own = own || chunk - a->columns[i].first < a->columns[i].count;
	return !a->two_levels ? MEAN_TIMES : own ? COLUMN_MEAN_TIMES : ROW_MEAN_TIMES;
}

/* Compares the mean in `scratch` with this worker's own contribution. */
static enum rv_err compare(struct allreduce *a, uint32_t chunk, size_t n, double norm2, struct rv_errtext *et) {
	const struct codec *sent = global_sent(a->cfg.global);
	float *own = a->measured.values; /* free while nothing is merged */
	struct stands_out_chunk *c = &a->compared[chunk];
	RV_TRY(sent->decode(sent, a->encoded + chunking_offset_bytes(&a->chunks, sent, chunk), n, own, et));
	double both = 0;
	for (size_t i = 0; i < n; i++)
		both += (double)own[i] * (double)a->scratch[i];
	*c = (struct stands_out_chunk){.own = c->own, .mean = norm2 / (double)n, .both = both / (double)n, .known = true};
	return RV_OK;
}

/* Checks an owner's mean. Where contributions are limited to a multiple of their median norm
 * (outer/merge.h), no mean is MEAN_TIMES as large as this worker's whole contribution, unless that
 * one is next to nothing: 500 steps beside one give some 500. In rows an honest owner passes on
 * what it has checked by its own contribution, so the limits grow on the way. */
static enum rv_err check_chunk(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	struct allreduce *a = ctx;
	const size_t n = chunking_len(&a->chunks, chunk);
	RV_TRY(a->cfg.global->codec->decode(a->cfg.global->codec, data, n, a->scratch, et));
	const double norm2 = sum_of_squares(a->scratch, n), times = mean_times(a, chunk);
	RV_TRY(compare(a, chunk, n, norm2, et));
	if (norm2 <= times * times * a->own_norm2)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "the mean of chunk %u is %.3g times as large as this worker's whole contribution; at most %g: no "
				   "limited contributions give that",
				   chunk, sqrt(norm2 / a->own_norm2), times);
}

/* Begins a->compared, and sets a->own_norm2, by which means are checked. In rows owners check the
 * sums of short rows, too, in which nothing is limited: so all sums and means are limited there. */
static enum rv_err measure_own(struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	const struct merge_rule rule = global_merge(a->cfg.global);
	const struct codec *sent = global_sent(a->cfg.global);
	const int n_in = d->n_rows > 1 ? NET_MAX_ROW : d->n_members;
	const bool limited = rule.ops->wants_norms != NULL && rule.ops->wants_norms(&rule.params, n_in);
	double sum = 0;
	for (uint32_t c = 0; c < a->chunks.n_chunks; c++) {
		const size_t n = chunking_len(&a->chunks, c);
		RV_TRY(sent->decode(sent, a->encoded + chunking_offset_bytes(&a->chunks, sent, c), n, a->scratch, et));
		const double norm2 = sum_of_squares(a->scratch, n);
		a->compared[c] = (struct stands_out_chunk){.own = norm2 / (double)n};
		sum += norm2;
	}
	a->own_norm2 = limited && sum > 0 ? sum : INFINITY;
	return RV_OK;
}

/* ---- life ---- */

enum rv_err allreduce_new(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et) {
	const struct global_config *g = cfg->global;
	struct allreduce *a = calloc(1, sizeof *a);
	if (!a)
		return rv_fail(et, RV_E_NOMEM, "no memory for the all-reduce");
	a->cfg = *cfg;
	a->reduced = malloc(global_max_payload_bytes(g));
	a->flags = malloc(grid_flags_bytes(g->chunks.n_chunks));
	const struct merge_rule rule = global_merge(g);
	const size_t merging = merge_scratch(&rule, g->chunks.chunk_elems, NET_MAX_ROW);
	a->scratch = malloc((merging + g->chunks.chunk_elems) * sizeof(float));
	a->grid_memory = malloc(grid_size());
	a->proof = malloc(REDUCE_LEAVES_BYTES);
	a->compared = calloc(g->chunks.n_chunks, sizeof *a->compared);
	a->compare_work = calloc(g->chunks.n_chunks, sizeof *a->compare_work);
	if (!a->compared || !a->compare_work || !a->reduced || !a->flags || !a->scratch || !a->grid_memory || !a->proof) {
		enum rv_err e =
			rv_fail(et, RV_E_NOMEM, "no memory for the all-reduce of %zu bytes", global_max_payload_bytes(g));
		allreduce_free(a);
		return e;
	}
	a->measured.values = a->scratch + merging;
	*out = a;
	return RV_OK;
}

static void unmap(struct lazy_memory *m) {
	if (m->at)
		munmap(m->at, m->bytes);
	*m = (struct lazy_memory){.at = NULL};
}

void allreduce_free(struct allreduce *a) {
	if (!a)
		return;
	unmap(&a->held);
	unmap(&a->sums);
	unmap(&a->leaves);
	unmap(&a->sum_leaves);
	free(a->reduced);
	free(a->recoded);
	free(a->recoded_nodes);
	free(a->proof);
	free(a->compared);
	free(a->compare_work);
	free(a->flags);
	free(a->scratch);
	free(a->grid_memory);
	free(a);
}

static enum rv_err map(struct lazy_memory *m, size_t bytes, const char *of, struct rv_errtext *et) {
	void *p = os_memory_map_lazily(bytes);
	if (!p)
		return rv_fail(et, RV_E_NOMEM, "no address space for %s (%zu bytes)", of, bytes);
	*m = (struct lazy_memory){p, bytes};
	return RV_OK;
}

static void adopt_columns(struct allreduce *a, const struct document *d) {
	a->two_levels = d->n_rows > 1;
	a->n_columns = a->two_levels ? d->n_sections : 0;
	for (int i = 0; i < a->n_columns; i++)
		a->columns[i] = (struct owner_range){.first = d->sections[i].first, .count = d->sections[i].count};
}

static void adopt(struct allreduce *a, const struct document *d) {
	adopt_columns(a, d);
	a->round = d->round;
	a->attempt = d->attempt;
	a->n_members = d->n_members;
	a->measured = (struct merge_measured){.values = a->measured.values};
	mean_residual_prove(a->cfg.mean_residual, a->cfg.global, d->round, d->former_attempt);
	mean_residual_begin(a->cfg.mean_residual, a->cfg.global, d->round, d->attempt);
}

static struct grid_config config_of(struct allreduce *a) {
	return (struct grid_config){.self_member = a->cfg.self_member,
								.n_chunks = a->chunks.n_chunks,
								.codec = {.row = {.ctx = a,
												  .chunk_bytes = chunk_bytes,
												  .chunk_offset = chunk_offset,
												  .reduce = reduce_chunk,
												  .check = check_chunk,
												  .mean_bytes = mean_bytes,
												  .mean_offset = mean_offset},
										  .sum_bytes = sum_bytes,
										  .sum_offset = sum_offset,
										  .sum = sum_chunk,
										  .join = join_chunk,
										  .pack = pack_sum,
										  .unpack = unpack_sum},
								.seals = a->cfg.seals,
								.silence_us = a->cfg.silence.silent * RV_US_PER_MS,
								.stall_us = a->cfg.silence.withheld * RV_US_PER_MS,
								.ping_interval_us = a->cfg.silence.ping * RV_US_PER_MS};
}

static struct grid_memory memory_of(const struct allreduce *a) {
	struct grid_memory mem = {.own = a->own, .reduced = a->reduced, .flags = a->flags};
	const size_t sum = merge_partial_bytes(a->chunks.n);
	for (int i = 0; i < a->n_held; i++)
		mem.held[i] = a->held.at + (size_t)i * a->payload_bytes;
	struct rv_hash *leaves = (struct rv_hash *)(void *)a->leaves.at;
	for (int i = 0; leaves && i < a->n_held; i++)
		mem.leaves[i] = leaves + (size_t)i * a->chunks.n_chunks;
	mem.means = leaves ? leaves + (size_t)a->n_held * a->chunks.n_chunks : NULL;
	for (int i = 0; a->sum_leaves.at && i < a->n_sums; i++)
		mem.sum_leaves[i] = (struct rv_hash *)(void *)a->sum_leaves.at + (size_t)i * a->chunks.n_chunks;
	mem.own_nodes = a->own_nodes;
	mem.proof = a->proof;
	mem.sum = a->sums.at;
	for (int i = 0; a->sums.at && i < a->n_sums; i++)
		mem.row_sums[i] = a->sums.at + (1 + (size_t)i) * sum;
	if (a->sums.at) {
		mem.packed = a->sums.at + (1 + (size_t)a->n_sums) * sum;
		mem.unpacked = mem.packed + merge_partial_bytes(a->chunks.chunk_elems);
	}
	return mem;
}

/* Checks that the document has a section for each column that this worker owns in its row. */
static enum rv_err check_sections(const struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	const int self = document_find(d, a->cfg.self_member);
	int own = 0;
	for (int i = 0; d->n_rows > 1 && i < d->n_ranges; i++)
		own += d->ranges[i].owner == self;
	if (d->n_rows <= 1 || own == d->n_sections)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "document %llu: this worker owns %d columns in its row, and %u are described",
				   (unsigned long long)d->seq, own, d->n_sections);
}

/* Checks that every contribution comes by the run's codec or a coarser one: so it fits. */
static enum rv_err check_codecs(const struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	for (int i = 0; i < d->n_members; i++)
		if (!global_sent_as(a->cfg.global, d->members[i].codec))
			return rv_fail(et, RV_E_INVALID,
						   "document %llu: members[%d].codec = %u: no codec that is coarser than the run's, %s",
						   (unsigned long long)d->seq, i, d->members[i].codec, global_sent(a->cfg.global)->name);
	return RV_OK;
}

static enum rv_err check(const struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	RV_TRY(check_codecs(a, d, et));
	return check_sections(a, d, et);
}

/* Makes a->own what the document says is sent of this worker's contribution. */
static enum rv_err make_own(struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	const uint8_t id = d->members[document_find(d, a->cfg.self_member)].codec;
	const struct codec *sent = global_sent(a->cfg.global), *as = global_sent_as(a->cfg.global, id);
	a->own = a->encoded;
	a->own_nodes = a->encoded_nodes;
	a->own_codec = id;
	if (id == 0)
		return RV_OK;
	if (!a->recoded && !(a->recoded = malloc(a->payload_bytes)))
		return rv_fail(et, RV_E_NOMEM, "no memory for a coarser contribution (%zu bytes)", a->payload_bytes);
	if (!a->recoded_nodes && !(a->recoded_nodes = calloc(merkle_nodes(a->chunks.n_chunks), sizeof *a->recoded_nodes)))
		return rv_fail(et, RV_E_NOMEM, "no memory for the hashes of a coarser contribution");
	a->own = a->recoded;
	a->own_nodes = a->recoded_nodes;
	RV_TRY(recode_vector(&a->chunks, sent, as, a->encoded, a->recoded, a->scratch, et));
	committer_tree(&a->chunks, as, a->recoded, a->recoded_nodes);
	return RV_OK;
}

/* Makes room for the contributions of the row, and a few more that may join it. */
static enum rv_err make_room(struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	enum { MORE = 2 };
	if (d->n_members <= a->n_held)
		return RV_OK;
	const int n = d->n_members + MORE < NET_MAX_ROW ? d->n_members + MORE : NET_MAX_ROW;
	const size_t hashes = (1 + (size_t)n) * a->chunks.n_chunks;
	a->n_held = 0;
	unmap(&a->held);
	unmap(&a->leaves);
	RV_TRY(map(&a->held, (size_t)n * a->payload_bytes, "the contributions of others", et));
	if (a->cfg.seals.verify)
		RV_TRY(map(&a->leaves, hashes * sizeof(struct rv_hash), "their hashes", et));
	a->n_held = n;
	return RV_OK;
}

/* Makes room for the partial sums of the document's rows. */
static enum rv_err make_room_for_sums(struct allreduce *a, const struct document *d, struct rv_errtext *et) {
	const size_t one = merge_partial_bytes(a->chunks.chunk_elems);
	if (d->n_rows <= 1 || d->n_rows <= a->n_sums)
		return RV_OK;
	a->n_sums = 0;
	unmap(&a->sums);
	unmap(&a->sum_leaves);
	RV_TRY(map(&a->sums, (1 + (size_t)d->n_rows) * merge_partial_bytes(a->chunks.n) + 2 * one, "partial sums", et));
	if (a->cfg.seals.verify)
		RV_TRY(map(&a->sum_leaves, d->n_rows * a->chunks.n_chunks * sizeof(struct rv_hash), "hashes of sums", et));
	a->n_sums = d->n_rows;
	return RV_OK;
}

/* Begins with the document's layout; what was held is forgotten. */
static enum rv_err begin(struct allreduce *a, int64_t now_us, const struct document *d, struct rv_errtext *et) {
	RV_TRY(check(a, d, et));
	RV_TRY(make_own(a, d, et));
	RV_TRY(measure_own(a, d, et));
	RV_TRY(make_room(a, d, et));
	RV_TRY(make_room_for_sums(a, d, et));
	const struct grid_config cfg = config_of(a);
	const struct grid_memory mem = memory_of(a);
	adopt(a, d);
	a->grid = grid_init(a->grid_memory, &cfg, &mem, d, now_us);
	return RV_OK;
}

void allreduce_stop(struct allreduce *a) {
	a->grid = NULL;
	unmap(&a->held);
	unmap(&a->sums);
	unmap(&a->leaves);
	unmap(&a->sum_leaves);
	a->n_held = a->n_sums = 0;
	free(a->recoded);
	free(a->recoded_nodes);
	a->recoded = NULL;
	a->recoded_nodes = NULL;
}

/* Returns the bytes of a contribution in the codec that needs most: of tiny vectors not the
 * run's. */
static size_t most_bytes(const struct allreduce *a) {
	size_t most = 0;
	for (int i = 0; codec_registry[i]; i++) {
		const struct codec *c = global_sent_as(a->cfg.global, codec_registry[i]->id);
		const size_t bytes = chunking_total_bytes(&a->chunks, c ? c : global_sent(a->cfg.global));
		most = bytes > most ? bytes : most;
	}
	return most;
}

enum rv_err allreduce_start(struct allreduce *a, int64_t now_us, const struct document *d,
							const struct allreduce_inputs *in, struct rv_errtext *et) {
	RV_ASSERT(!a->grid && (in->last != NULL) == global_merge(a->cfg.global).ops->centers);
	RV_ASSERT(in->own_nodes || !a->cfg.seals.verify);
	a->chunks = global_round_chunks(a->cfg.global, d->round);
	a->payload_bytes = most_bytes(a);
	a->encoded = in->own;
	a->encoded_nodes = in->own_nodes;
	a->last = in->last;
	const enum rv_err e = begin(a, now_us, d, et);
	if (e != RV_OK)
		allreduce_stop(a);
	return e;
}

enum rv_err allreduce_restart(struct allreduce *a, int64_t now_us, const struct document *d, struct rv_errtext *et) {
	RV_ASSERT(a->grid && d->round == a->round && d->attempt > a->attempt);
	const bool same_codec = d->members[document_find(d, a->cfg.self_member)].codec == a->own_codec;
	if (!grid_continues(a->grid, d) || !same_codec || d->n_members > a->n_held)
		return begin(a, now_us, d, et); /* another layout, another contribution, or more members */
	RV_TRY(check(a, d, et));
	adopt(a, d);
	grid_restart(a->grid, d, now_us);
	return RV_OK;
}

/* ---- the cores, by member ---- */

static int peer_of(const struct allreduce *a, uint32_t member) {
	const int peer = a->grid ? grid_peer_of(a->grid, member) : -1;
	return peer >= 0 && member != a->cfg.self_member ? peer : -1;
}

enum rv_err allreduce_receive(struct allreduce *a, int64_t now_us, uint32_t member, const struct reduce_msg *m,
							  struct rv_errtext *et) {
	int from = peer_of(a, member);
	return from >= 0 ? grid_receive(a->grid, now_us, from, m, et) : RV_OK;
}

void allreduce_part(struct allreduce *a, int64_t now_us, uint32_t member, bool bulk) {
	int from = peer_of(a, member);
	if (from >= 0)
		grid_part(a->grid, now_us, from, bulk);
}

bool allreduce_send(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out) {
	int to = peer_of(a, member);
	return to >= 0 && grid_send(a->grid, now_us, to, out);
}

bool allreduce_send_control(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out) {
	int to = peer_of(a, member);
	return to >= 0 && grid_send_control(a->grid, now_us, to, out);
}

bool allreduce_is_awaited(struct allreduce *a, uint32_t member) {
	int to = peer_of(a, member);
	return to >= 0 && grid_is_awaited(a->grid, to);
}

double allreduce_part_left(const struct allreduce *a, uint32_t member) {
	const int to = peer_of(a, member);
	const struct reduce_load load = to >= 0 ? grid_load(a->grid, to) : (struct reduce_load){0};
	return load.all > 0 ? (double)load.left / load.all : 1;
}

void allreduce_link_up(struct allreduce *a, int64_t now_us, uint32_t member) {
	int peer = peer_of(a, member);
	if (peer >= 0)
		grid_link_up(a->grid, now_us, peer);
}

void allreduce_link_down(struct allreduce *a, int64_t now_us, uint32_t member, bool fatal) {
	int peer = peer_of(a, member);
	if (peer >= 0)
		grid_link_down(a->grid, now_us, peer, fatal);
}

void allreduce_tick(struct allreduce *a, int64_t now_us) {
	if (a->grid)
		grid_tick(a->grid, now_us);
}

int64_t allreduce_deadline_us(const struct allreduce *a) {
	return a->grid ? grid_deadline_us(a->grid) : INT64_MAX;
}

bool allreduce_running(const struct allreduce *a) {
	return a->grid != NULL;
}

uint64_t allreduce_round(const struct allreduce *a) {
	return a->round;
}

uint32_t allreduce_attempt(const struct allreduce *a) {
	return a->attempt;
}

bool allreduce_done(const struct allreduce *a) {
	return a->grid && grid_done(a->grid);
}

struct grid_suspects allreduce_suspects(const struct allreduce *a) {
	return a->grid ? grid_suspects(a->grid) : (struct grid_suspects){.n = 0};
}

int allreduce_silent_members(const struct allreduce *a, uint32_t members[NET_MAX_ROW]) {
	const struct grid_suspects s = allreduce_suspects(a);
	for (int i = 0; i < s.n; i++)
		for (int peer = 0; peer < grid_peers(a->grid); peer++)
			if (grid_place(a->grid, peer) == s.places[i])
				members[i] = grid_member(a->grid, peer);
	return s.n;
}

const uint8_t *allreduce_reduced(const struct allreduce *a) {
	return a->reduced;
}

int allreduce_row_members(const struct allreduce *a) {
	return a->n_members;
}

const struct merge_measured *allreduce_measured(const struct allreduce *a) {
	return &a->measured;
}

int64_t allreduce_stands_out(const struct allreduce *a) {
	return stands_out(a->compared, a->chunks.n_chunks, a->compare_work);
}

const uint8_t *allreduce_own(const struct allreduce *a, size_t *bytes) {
	RV_ASSERT(a->grid);
	*bytes = chunking_total_bytes(&a->chunks, global_sent_as(a->cfg.global, a->own_codec));
	return a->own;
}

const struct grid *allreduce_grid(const struct allreduce *a) {
	return a->grid;
}

bool allreduce_show(const struct allreduce *a, struct evidence *out) {
	return a->grid && grid_show(a->grid, out);
}

struct reduce_info allreduce_info(const struct allreduce *a) {
	RV_ASSERT(a->grid);
	return grid_info(a->grid);
}

int allreduce_receipts(const struct allreduce *a, struct reduce_receipt out[NET_MAX_ROW]) {
	RV_ASSERT(a->grid);
	return grid_receipts(a->grid, out);
}
