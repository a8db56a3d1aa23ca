/* bench_codec.c: the codecs and the outer step against the memory of the machine: bytes that an
 * operation must move, divided by its time, compared with memcpy (read + written) in the same
 * rounds. One thread, vectors far larger than the caches, medians of interleaved rounds.
 *
 *     bench_codec [VALUES [ROUNDS]]     default: 33554432 9 */
#include "base/clock.h"
#include "base/rng.h"
#include "bench/bench_report.h"
#include "outer/global.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 32 << 20, ROUNDS_MAX = 9, WORKERS = 4 };

struct buffers {
	size_t n; /* values */
	float *theta, *local, *momentum, *acc, *scratch;
	uint8_t *code, *sparse, *reduced, *contributions[WORKERS];
	struct merge_measured measured;
	struct global_state g;
};

/* Fills x with values like an outer gradient's; drawing 32 M normals would take longer than the
 * measurements. */
static void fill(float *x, size_t n, uint64_t seed) {
	enum { PERIOD = 65521 };
	struct rv_rng r = rv_rng_of(seed, 0);
	for (size_t i = 0; i < n && i < PERIOD; i++)
		x[i] = (float)(1e-3 * rv_rng_normal(&r));
	for (size_t i = PERIOD; i < n; i++)
		x[i] = x[i - PERIOD];
}

static void *must_alloc(size_t bytes) {
	void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!p) {
		(void)fprintf(stderr, "bench_codec: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	memset(p, 1, bytes);
	return p;
}

static void must(enum rv_err e, const struct rv_errtext *et) {
	if (e != RV_OK) {
		(void)fprintf(stderr, "bench_codec: %s\n", et->text);
		exit(1);
	}
}

static void prepare(struct buffers *b) {
	struct rv_errtext et = {0};
	b->theta = must_alloc(b->n * sizeof(float));
	b->local = must_alloc(b->n * sizeof(float));
	b->momentum = must_alloc(b->n * sizeof(float));
	b->acc = must_alloc(b->n * sizeof(float));
	fill(b->theta, b->n, 1);
	fill(b->local, b->n, 2);
	fill(b->momentum, b->n, 3);
	fill(b->acc, b->n, 4);
	struct global_config cfg = {.n = b->n,
								.chunks = chunking_of(b->n, chunking_default_elems(b->n)),
								.codec = &codec_int8,
								.optimizer = &outer_nesterov,
								.params = {.lr = 0.7f, .momentum = 0.9f}};
	must(global_init(&b->g, &cfg, b->theta, &et), &et);
	size_t bytes = chunking_total_bytes(&cfg.chunks, &codec_int8);
	b->code = must_alloc(bytes);
	b->reduced = must_alloc(bytes);
	must(global_encode_delta(&b->g, b->local, b->code, &et), &et);
	for (int i = 0; i < WORKERS; i++) {
		b->contributions[i] = must_alloc(bytes);
		memcpy(b->contributions[i], b->code, bytes);
	}
	b->sparse = must_alloc(bytes);
	b->measured.values = must_alloc(cfg.chunks.chunk_elems * sizeof(float));
	b->scratch = must_alloc((1 + WORKERS) * cfg.chunks.chunk_elems * sizeof(float));
}

/* Runs `op` on every chunk's part of the vectors, as the outer loop does. */
typedef void chunk_op(struct buffers *b, size_t at, size_t n, uint8_t *code);

static void per_chunk(struct buffers *b, chunk_op *op) {
	const struct chunking *c = &b->g.cfg.chunks;
	for (uint32_t i = 0; i < c->n_chunks; i++)
		op(b, i * c->chunk_elems, chunking_len(c, i), b->code + chunking_offset_bytes(c, &codec_int8, i));
}

static void encode(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)codec_int8.encode(&codec_int8, b->theta + at, n, code, NULL);
}

static void encode_delta(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)codec_int8.encode_delta(&codec_int8, b->theta + at, b->local + at, n, code, NULL);
}

static void decode(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)codec_int8.decode(&codec_int8, code, n, b->acc + at, NULL);
}

static void decode_add(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)codec_int8.decode_add(&codec_int8, code, n, 1, b->acc + at, NULL);
}

/* Merges contributions as a real owner does: each in memory of its own, far larger than the
 * caches. */
static void merge(struct buffers *b, size_t at, size_t n, uint8_t *code, const struct merge_ops *ops,
				  struct merge_measured *measured) {
	const uint32_t weights[WORKERS] = {1, 1, 1, 1};
	const uint8_t *in[WORKERS];
	const struct merge_rule rule = {.ops = ops,
									.contributions = &codec_int8,
									.mean = &codec_int8,
									.params = {.clip = 1.25, .trim_share = 0.25},
									.center = b->momentum + at};
	for (int i = 0; i < WORKERS; i++)
		in[i] = b->contributions[i] + (code - b->code);
	(void)merge_chunk(&rule, in, weights, WORKERS, n, b->scratch, NULL, b->reduced + (code - b->code), measured, NULL);
}

static void reduce_mean(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	merge(b, at, n, code, &merge_mean, NULL);
}

static void reduce_clipped(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	merge(b, at, n, code, &merge_clipped, NULL);
}

static void reduce_measured(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	merge(b, at, n, code, &merge_clipped, &b->measured);
}

static void reduce_centered(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	merge(b, at, n, code, &merge_centered, NULL);
}

static void reduce_agreed(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	merge(b, at, n, code, &merge_agreed, NULL);
}

static void reduce_trimmed(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	merge(b, at, n, code, &merge_trimmed, NULL);
}

/* As long as in int8 there is room for it. */
static void sparse_encode(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)codec_topk64.encode(&codec_topk64, b->theta + at, n, b->sparse + (code - b->code), NULL);
}

static void sparse_decode_add(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)codec_topk64.decode_add(&codec_topk64, b->sparse + (code - b->code), n, 1, b->acc + at, NULL);
}

/* The owner's residual is added, and becomes what is left. */
static void sparse_mean(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	const uint32_t weights[WORKERS] = {1, 1, 1, 1};
	const uint8_t *in[WORKERS];
	const struct merge_rule rule = {.ops = &merge_mean, .contributions = &codec_topk64, .mean = &codec_topk64};
	const struct feedback feedback = {.beta = 0.95f, .kept = b->local + at, .left = b->acc + at};
	for (int i = 0; i < WORKERS; i++)
		in[i] = b->sparse + (code - b->code);
	(void)merge_chunk(&rule, in, weights, WORKERS, n, b->scratch, &feedback, b->reduced + (code - b->code), NULL, NULL);
}

static void nesterov(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	float *state[] = {b->momentum + at};
	(void)code;
	outer_nesterov.step(b->theta + at, state, b->local + at, n, &b->g.cfg.params);
}

static void copy(struct buffers *b, size_t at, size_t n, uint8_t *code) {
	(void)code;
	memcpy(b->acc + at, b->theta + at, n * sizeof(float));
}

static void apply(struct buffers *b) {
	const struct rv_hash digest = {{1}}; /* any but zero, which means none: its own cost is not measured */
	(void)global_apply(&b->g, b->code, &digest, NULL);
}

struct operation {
	const char *name;
	chunk_op *op; /* NULL: apply */
	double bytes_per_value;
	double seconds[ROUNDS_MAX];
};

static int ascending(const void *a, const void *b) {
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static double gigabytes_per_s(struct operation *o, size_t values, int rounds) {
	qsort(o->seconds, (size_t)rounds, sizeof o->seconds[0], ascending);
	return o->bytes_per_value * (double)values / o->seconds[rounds / 2] * 1e-9;
}

static void release(struct buffers *b) {
	global_release(&b->g);
	free(b->theta);
	free(b->local);
	free(b->momentum);
	free(b->acc);
	free(b->code);
	free(b->reduced);
	for (int i = 0; i < WORKERS; i++)
		free(b->contributions[i]);
	free(b->measured.values);
	free(b->scratch);
}

static void time_once(struct buffers *b, struct operation *o, int round) {
	int64_t started_us = rv_clock_monotonic_us();
	if (o->op)
		per_chunk(b, o->op);
	else
		apply(b);
	o->seconds[round] = (double)(rv_clock_monotonic_us() - started_us) * 1e-6;
}

int main(int argc, char **argv) {
	const long values = argc > 1 ? strtol(argv[1], NULL, 10) : VALUES;
	const int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : ROUNDS_MAX;
	if (argc > 3 || values < 1 || values > 1 << 30 || rounds < 1 || rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: bench_codec [VALUES 1..2^30 [ROUNDS 1..%d]]\n", (int)ROUNDS_MAX);
		return 2;
	}
	const double code = 1 + 4.0 / 256;
	/* zero, four times decode and add, divide, encode: passes over a chunk that stays in the
	 * second-level cache */
	const double mean = 4 + WORKERS * (code + 8) + 8 + 4 + code;
	struct operation ops[] = {
		{.name = "memcpy", .op = copy, .bytes_per_value = 8},
		{.name = "int8 encode", .op = encode, .bytes_per_value = 4 + code},
		{.name = "int8 encode of a difference", .op = encode_delta, .bytes_per_value = 8 + code},
		{.name = "int8 decode", .op = decode, .bytes_per_value = code + 4},
		{.name = "int8 decode and add", .op = decode_add, .bytes_per_value = code + 8},
		/* The other rules count the bytes of the mean, and take longer. */
		{.name = "int8 mean of 4", .op = reduce_mean, .bytes_per_value = mean},
		{.name = "int8 clipped mean of 4", .op = reduce_clipped, .bytes_per_value = mean},
		{.name = "int8 clipped mean of 4, measured", .op = reduce_measured, .bytes_per_value = mean},
		{.name = "int8 centered mean of 4", .op = reduce_centered, .bytes_per_value = mean},
		{.name = "int8 trimmed mean of 4", .op = reduce_trimmed, .bytes_per_value = mean},
		{.name = "int8 agreed mean of 4", .op = reduce_agreed, .bytes_per_value = mean},
		{.name = "topk64 encode", .op = sparse_encode, .bytes_per_value = 4},
		{.name = "topk64 decode and add", .op = sparse_decode_add, .bytes_per_value = 0.03},
		{.name = "topk64 mean of 4, with a residual", .op = sparse_mean, .bytes_per_value = 12},
		{.name = "nesterov step", .op = nesterov, .bytes_per_value = 20},
		{.name = "check, decode and step", .op = NULL, .bytes_per_value = 2 * code + 16},
	};
	enum { N_OPS = sizeof ops / sizeof ops[0] };
	static struct buffers b;
	b.n = (size_t)values;
	bench_warn_if_busy();
	prepare(&b);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < N_OPS; i++)
			time_once(&b, &ops[i], round);
	struct bench_report report = {.bench = "codec"};
	double peer = gigabytes_per_s(&ops[0], b.n, rounds);
	for (int i = 1; i < N_OPS; i++)
		bench_more_is_better(&report, ops[i].name, "memcpy", gigabytes_per_s(&ops[i], b.n, rounds), peer, "GB/s");
	bench_print_table(&report);
	release(&b);
	return 0;
}
