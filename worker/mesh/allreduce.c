/* allreduce.c: memory and codec for the all-reduce core. */
#include "worker/mesh/allreduce.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert((int)MERGE_MAX_INPUTS >= (int)NET_MAX_MEMBERS, "a roster can be merged");

struct allreduce {
	struct allreduce_config cfg;
	struct chunking chunks;         /* of the round */
	size_t payload_bytes;           /* of a contribution to it */
	uint8_t *reduced, *flags;       /* of the longest there is */
	float *scratch;                 /* merge_scratch() and a chunk more: measured.values */
	struct merge_measured measured; /* in this attempt, of the chunks that we own */
	uint8_t *held;                  /* NET_MAX_MEMBERS vectors of the round, reserved; NULL between rounds */
	void *core_memory;
	struct reduce *core;              /* NULL: not running */
	int8_t index_of[NET_MAX_MEMBERS]; /* roster index of a member, -1: none */
	uint64_t round;
	uint32_t attempt;
	int n_members; /* of its roster */
};

/* ---- the codec ---- */

static size_t chunk_bytes(void *ctx, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return global_sent(a->cfg.global)->encoded_bytes(global_sent(a->cfg.global), chunking_len(&a->chunks, chunk));
}

static size_t chunk_offset(void *ctx, uint32_t chunk) {
	const struct allreduce *a = ctx;
	return chunking_offset_bytes(&a->chunks, global_sent(a->cfg.global), chunk);
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

/* Returns the input that is no encoding, which merge_chunk does not name. If all are encodings, the
 * sum overflowed, and the sender of the largest value is to blame: without one above FLT_MAX /
 * NET_MAX_WEIGHT_SUM = 2e31 there is no overflow, and no outer gradient of a sane model comes
 * near. */
static int find_bad(struct allreduce *a, const uint8_t *const *in, int n_in, size_t n) {
	float most = -1;
	int largest = -1;
	for (int i = 0; i < n_in; i++) {
		if (global_sent(a->cfg.global)->decode(global_sent(a->cfg.global), in[i], n, a->scratch, NULL) != RV_OK)
			return i;
		float magnitude = largest_magnitude(a->scratch, n);
		if (magnitude > most) {
			most = magnitude;
			largest = i;
		}
	}
	return largest;
}

static enum rv_err reduce_chunk(void *ctx, uint32_t chunk, const uint8_t *const *in, const uint32_t *weights, int n_in,
								uint8_t *out, int *bad, struct rv_errtext *et) {
	struct allreduce *a = ctx;
	size_t n = chunking_len(&a->chunks, chunk);
	*bad = -1;
	const struct global_config *g = a->cfg.global;
	const struct merge_rule rule = global_merge(g);
	enum rv_err e = merge_chunk(&rule, in, weights, n_in, n, a->scratch, NULL, out, &a->measured, et);
	if (e != RV_OK)
		*bad = find_bad(a, in, n_in, n);
	RV_FAILPOINT("reduce.chunk-reduced");
	return e;
}

static enum rv_err check_chunk(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	struct allreduce *a = ctx;
	return a->cfg.global->codec->decode(a->cfg.global->codec, data, chunking_len(&a->chunks, chunk), a->scratch, et);
}

/* ---- life ---- */

enum rv_err allreduce_new(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et) {
	const struct global_config *g = cfg->global;
	struct allreduce *a = calloc(1, sizeof *a);
	if (!a)
		return rv_fail(et, RV_E_NOMEM, "no memory for the all-reduce");
	a->cfg = *cfg;
	a->reduced = malloc(global_max_payload_bytes(g));
	a->flags = malloc(reduce_flags_bytes(g->chunks.n_chunks));
	const struct merge_rule rule = global_merge(g);
	const size_t merging = merge_scratch(&rule, g->chunks.chunk_elems, NET_MAX_MEMBERS);
	a->scratch = malloc((merging + g->chunks.chunk_elems) * sizeof(float));
	a->core_memory = malloc(reduce_size());
	if (!a->reduced || !a->flags || !a->scratch || !a->core_memory) {
		enum rv_err e =
			rv_fail(et, RV_E_NOMEM, "no memory for the all-reduce of %zu bytes", global_max_payload_bytes(g));
		allreduce_free(a);
		return e;
	}
	a->measured.values = a->scratch + merging;
	*out = a;
	return RV_OK;
}

static void unmap_held(struct allreduce *a) {
	if (a->held)
		munmap(a->held, NET_MAX_MEMBERS * a->payload_bytes);
	a->held = NULL;
}

void allreduce_free(struct allreduce *a) {
	if (!a)
		return;
	unmap_held(a);
	free(a->reduced);
	free(a->flags);
	free(a->scratch);
	free(a->core_memory);
	free(a);
}

/* For every member, not only this roster's: a later attempt may bring others. */
static enum rv_err map_held(struct allreduce *a, struct rv_errtext *et) {
	size_t bytes = NET_MAX_MEMBERS * a->payload_bytes;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return rv_fail(et, RV_E_NOMEM, "no address space for the contributions of others (%zu bytes)", bytes);
	a->held = p;
	return RV_OK;
}

static void adopt(struct allreduce *a, const struct document *d) {
	memset(a->index_of, -1, sizeof a->index_of);
	for (int i = 0; i < d->n_members; i++)
		a->index_of[d->members[i].member] = (int8_t)i;
	a->round = d->round;
	a->attempt = d->attempt;
	a->n_members = d->n_members;
	a->measured = (struct merge_measured){.values = a->measured.values};
}

enum rv_err allreduce_start(struct allreduce *a, int64_t now_us, const struct document *d, const uint8_t *own,
							struct rv_errtext *et) {
	RV_ASSERT(!a->core);
	a->chunks = global_round_chunks(a->cfg.global, d->round);
	a->payload_bytes = chunking_total_bytes(&a->chunks, global_sent(a->cfg.global));
	RV_TRY(map_held(a, et));
	struct reduce_config cfg = {.n_chunks = a->chunks.n_chunks,
								.codec = {.ctx = a,
										  .chunk_bytes = chunk_bytes,
										  .chunk_offset = chunk_offset,
										  .reduce = reduce_chunk,
										  .check = check_chunk,
										  .mean_bytes = mean_bytes,
										  .mean_offset = mean_offset},
								.silence_us = a->cfg.silence.silent * RV_US_PER_MS,
								.stall_us = a->cfg.silence.withheld * RV_US_PER_MS,
								.ping_interval_us = a->cfg.silence.ping * RV_US_PER_MS,
								.patience_gather = 1};
	struct reduce_memory mem = {.own = own, .reduced = a->reduced, .flags = a->flags};
	for (size_t m = 0; m < NET_MAX_MEMBERS; m++)
		mem.held[m] = a->held + m * a->payload_bytes;
	adopt(a, d);
	const struct reduce_roster roster = reduce_roster_of(d, a->cfg.self_member);
	a->core = reduce_init(a->core_memory, &cfg, &mem, &roster, now_us);
	return RV_OK;
}

void allreduce_restart(struct allreduce *a, int64_t now_us, const struct document *d) {
	RV_ASSERT(a->core && d->round == a->round);
	adopt(a, d);
	const struct reduce_roster roster = reduce_roster_of(d, a->cfg.self_member);
	reduce_restart(a->core, &roster, now_us);
}

void allreduce_stop(struct allreduce *a) {
	a->core = NULL;
	unmap_held(a);
}

/* ---- the core, by member ---- */

static int index_of(const struct allreduce *a, uint32_t member) {
	return a->core && member < NET_MAX_MEMBERS ? a->index_of[member] : -1;
}

enum rv_err allreduce_receive(struct allreduce *a, int64_t now_us, uint32_t member, const struct reduce_msg *m,
							  struct rv_errtext *et) {
	int from = index_of(a, member);
	return from >= 0 ? reduce_receive(a->core, now_us, from, m, et) : RV_OK;
}

void allreduce_part(struct allreduce *a, int64_t now_us, uint32_t member, bool bulk) {
	int from = index_of(a, member);
	if (from >= 0)
		reduce_part(a->core, now_us, from, bulk);
}

bool allreduce_send(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out) {
	int to = index_of(a, member);
	return to >= 0 && reduce_send(a->core, now_us, to, out);
}

bool allreduce_send_control(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out) {
	int to = index_of(a, member);
	return to >= 0 && reduce_send_control(a->core, now_us, to, out);
}

void allreduce_link_up(struct allreduce *a, int64_t now_us, uint32_t member) {
	int peer = index_of(a, member);
	if (peer >= 0)
		reduce_link_up(a->core, now_us, peer);
}

void allreduce_link_down(struct allreduce *a, int64_t now_us, uint32_t member, bool fatal) {
	int peer = index_of(a, member);
	if (peer >= 0)
		reduce_link_down(a->core, now_us, peer, fatal);
}

void allreduce_tick(struct allreduce *a, int64_t now_us) {
	if (a->core)
		reduce_tick(a->core, now_us);
}

int64_t allreduce_deadline_us(const struct allreduce *a) {
	return a->core ? reduce_deadline_us(a->core) : INT64_MAX;
}

bool allreduce_running(const struct allreduce *a) {
	return a->core != NULL;
}

uint64_t allreduce_round(const struct allreduce *a) {
	return a->round;
}

uint32_t allreduce_attempt(const struct allreduce *a) {
	return a->attempt;
}

bool allreduce_done(const struct allreduce *a) {
	return a->core && reduce_done(a->core);
}

uint64_t allreduce_suspects(const struct allreduce *a) {
	return a->core ? reduce_suspects(a->core) : 0;
}

uint64_t allreduce_silent_members(const struct allreduce *a) {
	uint64_t members = 0;
	for (uint64_t left = allreduce_suspects(a); left != 0; left &= left - 1)
		members |= UINT64_C(1) << reduce_member(a->core, __builtin_ctzll(left));
	return members;
}

const uint8_t *allreduce_reduced(const struct allreduce *a) {
	return a->reduced;
}

int allreduce_participants(const struct allreduce *a) {
	return a->n_members;
}

const struct merge_measured *allreduce_measured(const struct allreduce *a) {
	return &a->measured;
}

struct reduce_info allreduce_info(const struct allreduce *a) {
	RV_ASSERT(a->core);
	return reduce_info(a->core);
}
