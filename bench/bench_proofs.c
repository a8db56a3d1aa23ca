/* bench_proofs.c: what it costs that lies of members leave proof: commitments to contributions,
 * their signatures, seals of means, disputes and audits of means, for one participant of one round
 * in a roster of one row, beside what the same round's exchange costs without them, in the same
 * run. One thread, in its own processor time.
 *
 *     bench_proofs [CHUNKS [MBIT]]     default: 256 chunks of 65,536 values, a line of 100 Mbit/s
 *
 * Work of an exchange: encoding the own contribution, merging the own chunks (clipped), decoding
 * all means. Its bytes: contributions and means that are sent. Leaves of means are hashed for the
 * round's digest in any run, so they are no cost of seals. */
#include "base/clock.h"
#include "base/merkle.h"
#include "base/rng.h"
#include "bench/bench_report.h"
#include "net/control/evidence.h"
#include "net/control/signed_roots.h"
#include "net/reduce/reduce.h"
#include "outer/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMS = 65536, MOST_CHUNKS = 4096, MOST = MERGE_MAX_INPUTS };

struct round {
	int n;                /* participants */
	uint32_t chunks, own; /* own: chunks that each owns */
	size_t chunk_bytes;
	float *values, *scratch;
	uint8_t *encoded, *received; /* (chunks) received: contributions of all to the own chunks */
	struct rv_hash *nodes, *leaves;
	struct identity who;
	double exchange_us; /* without proofs */
};

static void *must_alloc(size_t bytes) {
	void *p = calloc(1, bytes);
	if (p == NULL) {
		(void)fprintf(stderr, "bench_proofs: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return p;
}

static void must(bool holds, const char *what) {
	if (!holds) {
		(void)fprintf(stderr, "bench_proofs: %s\n", what);
		exit(1);
	}
}

static struct merge_rule rule_of(void) {
	return (struct merge_rule){
		.ops = &merge_clipped, .contributions = &codec_int8, .mean = &codec_int8, .params = {.clip = 1.25}};
}

static const uint8_t *received(const struct round *r, uint32_t chunk, int from) {
	return r->received + (size_t)(chunk * (uint32_t)r->n + (uint32_t)from) * r->chunk_bytes;
}

static void open_round(struct round *r, int n, uint32_t chunks) {
	struct rv_errtext et = {0};
	struct rv_rng rng = rv_rng_of(1, 0);
	const struct merge_rule rule = rule_of();
	*r = (struct round){.n = n, .own = chunks / (uint32_t)n};
	r->chunks = r->own * (uint32_t)n;
	r->chunk_bytes = codec_int8.encoded_bytes(&codec_int8, ELEMS);
	r->values = must_alloc(ELEMS * sizeof *r->values);
	r->scratch = must_alloc(merge_scratch(&rule, ELEMS, n) * sizeof *r->scratch);
	r->encoded = must_alloc(r->chunks * r->chunk_bytes);
	r->received = must_alloc(r->chunks * r->chunk_bytes);
	r->nodes = must_alloc(merkle_nodes(r->chunks) * sizeof *r->nodes);
	r->leaves = must_alloc(r->chunks * sizeof *r->leaves);
	for (int i = 0; i < ELEMS; i++)
		r->values[i] = (float)(1e-3 * rv_rng_normal(&rng));
	for (uint32_t c = 0; c < r->chunks; c++)
		must(codec_int8.encode(&codec_int8, r->values, ELEMS, r->received + c * r->chunk_bytes, &et) == RV_OK, et.text);
	must(identity_make(&r->who, &et) == RV_OK, et.text);
}

static void close_round(struct round *r) {
	free(r->values);
	free(r->scratch);
	free(r->encoded);
	free(r->received);
	free(r->nodes);
	free(r->leaves);
}

/* ---- what is timed: microseconds ---- */

static double merge_own(const struct round *r, uint32_t chunks) {
	const struct merge_rule rule = rule_of();
	const uint8_t *in[MOST];
	uint32_t weights[MOST];
	uint8_t *out = must_alloc(r->chunk_bytes);
	const int64_t from_us = rv_clock_thread_us();
	for (uint32_t c = 0; c < chunks; c++) {
		for (int i = 0; i < r->n; i++) {
			in[i] = received(r, c, i);
			weights[i] = 16;
		}
		must(merge_chunk(&rule, in, weights, r->n, ELEMS, r->scratch, NULL, out, NULL, NULL) == RV_OK, "no mean");
	}
	const double us = (double)(rv_clock_thread_us() - from_us);
	free(out);
	return us;
}

static double exchange_once(const struct round *r) {
	const int64_t from_us = rv_clock_thread_us();
	for (uint32_t c = 0; c < r->chunks; c++)
		(void)codec_int8.encode(&codec_int8, r->values, ELEMS, r->encoded + c * r->chunk_bytes, NULL);
	for (uint32_t c = 0; c < r->chunks; c++)
		(void)codec_int8.decode(&codec_int8, r->encoded + c * r->chunk_bytes, ELEMS, r->values, NULL);
	return (double)(rv_clock_thread_us() - from_us) + merge_own(r, r->own);
}

/* The least of some: the first ones touch the memory. */
static double exchange(const struct round *r) {
	enum { TIMES = 5 };
	double least = exchange_once(r);
	for (int i = 1; i < TIMES; i++) {
		const double us = exchange_once(r);
		least = us < least ? us : least;
	}
	return least;
}

static void hash_leaves(const struct round *r, const uint8_t *data) {
	for (uint32_t c = 0; c < r->chunks; c++)
		r->leaves[c] = merkle_leaf(c, data + c * r->chunk_bytes, r->chunk_bytes);
}

/* Commits to the own contribution, proves each owner its leaves, and checks those of all others. */
static double commitments(const struct round *r) {
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const int64_t from_us = rv_clock_thread_us();
	hash_leaves(r, r->encoded);
	memcpy(r->nodes, r->leaves, r->chunks * sizeof *r->nodes);
	merkle_build(r->nodes, r->chunks);
	const struct rv_hash root = merkle_root(r->nodes, r->chunks);
	for (int i = 1; i < r->n; i++) {
		const struct merkle_range range = {r->chunks, (uint32_t)i * r->own, r->own};
		const uint32_t n_proof = merkle_prove(r->nodes, &range, proof);
		must(merkle_check(&root, &range, r->leaves + range.first, proof, n_proof), "leaves without a proof");
	}
	hash_leaves(r, r->received);
	return (double)(rv_clock_thread_us() - from_us);
}

static struct rv_hash root_of_own(const struct round *r, int owner) {
	struct merkle_sum sum = {.n = 0};
	for (uint32_t c = 0; c < r->own; c++)
		merkle_add(&sum, &r->leaves[(uint32_t)owner * r->own + c]);
	return merkle_sum_root(&sum);
}

/* Seals the own means, and checks the seals of all others. */
static double seals(const struct round *r) {
	const struct seal_scope scope = {.round = 1, .attempt = 1, .kind = SEAL_ROW};
	struct seal seal;
	const int64_t from_us = rv_clock_thread_us();
	const struct rv_hash root = root_of_own(r, 0);
	seal_sign(&r->who, &scope, &root, &seal);
	for (int i = 1; i < r->n; i++) {
		(void)root_of_own(r, i);
		must(seal_verify(r->who.key, &scope, &seal), "a seal that its owner has not signed");
	}
	return (double)(rv_clock_thread_us() - from_us);
}

/* Signs the own root, and checks those of all others, which a document of the roster names. */
static double signed_roots(const struct round *r) {
	struct report m = {.phase = WORKER_READY, .round = 1, .commitment = {.n = 1, .roots = {{0, root_of_own(r, 0)}}}};
	const struct seal_ops ops = seal_ed25519(&r->who);
	const uint8_t run_id[NET_RUN_ID_BYTES] = {1};
	const int64_t from_us = rv_clock_thread_us();
	report_sign(&m, run_id, &ops);
	for (int i = 1; i < r->n; i++)
		must(report_check_signed(&m, run_id, r->who.key, &ops, NULL) == RV_OK, "a root that is not signed");
	return (double)(rv_clock_thread_us() - from_us);
}

/* Checks a chunk of every contribution, and merges them. */
static double audit(const struct round *r) {
	const int64_t from_us = rv_clock_thread_us();
	struct rv_hash leaf = {{0}}, proof[MERKLE_MAX_PROOF];
	const struct merkle_range range = {r->chunks, 0, 1};
	const struct rv_hash root = merkle_root(r->nodes, r->chunks);
	const uint32_t n_proof = merkle_prove(r->nodes, &range, proof);
	for (int i = 1; i < r->n; i++) {
		leaf = merkle_leaf(0, r->encoded, r->chunk_bytes);
		must(merkle_check(&root, &range, &leaf, proof, n_proof), "a chunk without a proof");
	}
	return (double)(rv_clock_thread_us() - from_us) + merge_own(r, 1);
}

/* ---- bytes ---- */

static double exchange_bytes(const struct round *r) {
	return 2 * (double)(r->chunks - r->own) * (double)(r->chunk_bytes + REDUCE_HEADER_BYTES);
}

static double commitment_bytes(const struct round *r) {
	double bytes = RV_HASH_BYTES;
	for (int i = 1; i < r->n; i++) {
		const struct merkle_range range = {r->chunks, (uint32_t)i * r->own, r->own};
		bytes += REDUCE_HEADER_BYTES + 4 + RV_HASH_BYTES * (double)(r->own + merkle_proof_hashes(&range));
	}
	return bytes;
}

static double audit_bytes(const struct round *r) {
	const struct merkle_range range = {r->chunks, 0, 1};
	return (double)(r->n - 1) * ((double)r->chunk_bytes + RV_HASH_BYTES * (double)merkle_proof_hashes(&range));
}

static void put(const struct round *r, const char *what, double us, double bytes, double mbit) {
	const double all_us = exchange_bytes(r) * 8 / mbit;
	(void)printf("{\"bench\":\"proofs\",\"members\":%d,\"what\":\"%s\",\"ms\":%.3f,\"of_work\":%.4f,\"bytes\":%.0f,"
				 "\"of_bytes\":%.5f,\"of_time\":%.5f}\n",
				 r->n, what, us / 1000, us / r->exchange_us, bytes, bytes / exchange_bytes(r),
				 (us + bytes * 8 / mbit) / all_us);
	(void)printf("%3d members  %-34s %10.2f ms %7.2f %% of the work %10.0f bytes %7.3f %% %7.3f %% of the time\n", r->n,
				 what, us / 1000, 100 * us / r->exchange_us, bytes, 100 * bytes / exchange_bytes(r),
				 100 * (us + bytes * 8 / mbit) / all_us);
}

int main(int argc, char **argv) {
	static const int members[] = {4, 16, 64};
	const uint32_t chunks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 256;
	const double mbit = argc > 2 ? strtod(argv[2], NULL) : 100;
	must(chunks >= MOST && chunks <= MOST_CHUNKS && mbit > 0, "64 to 4096 chunks, a line of more than 0 Mbit/s");
	bench_warn_if_busy();
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		struct round r;
		open_round(&r, members[i], chunks);
		r.exchange_us = exchange(&r);
		put(&r, "the exchange", r.exchange_us, exchange_bytes(&r), mbit);
		put(&r, "commitments", commitments(&r), commitment_bytes(&r), mbit);
		put(&r, "signed roots", signed_roots(&r), (double)(1 + r.n) * NET_SIG_BYTES, mbit);
		put(&r, "seals", seals(&r), (double)(r.n - 1) * (REDUCE_HEADER_BYTES + SEAL_BYTES), mbit);
		put(&r, "an audit of one chunk", audit(&r), audit_bytes(&r), mbit);
		put(&r, "evidence in a dispute (two show it)", seals(&r), (double)evidence_max_bytes(r.chunks), mbit);
		close_round(&r);
	}
	return 0;
}
