/* test_worker_fetch_core.c: which piece is asked of whom, in virtual time: donors with rates, that
 * die, lie, fall silent, drip, have nothing, or hold another file. What has to come out: the right
 * bytes, if one honest donor stays. */
#include "base/rng.h"
#include "tests/common/check.h"
#include "worker/transfer/fetch_core.h"

#include <stdlib.h>
#include <string.h>

enum {
	N = 3 * GLOBAL_PIECE_ELEMS + 1000, /* 4 pieces a vector, 8 of a snapshot */
	ROUND = 8,
	DONORS = 6,
	SELF = 0,
	STALL_US = 500 * 1000,
	MS = 1000,
	S = 1000 * MS
};

enum temper { HONEST, LIAR, LIAR_MANIFEST, EMPTY, SILENT, DRIP, DEAD };

/* One who sends `bytes_per_us` of what was asked for, in order. */
struct giver {
	enum temper temper;
	double bytes_per_us;
	struct frame_fetch asks[FETCH_WINDOW_MAX + 1];
	int n, forgotten;
	uint32_t sent; /* of the first */
	double credit;
	uint64_t given; /* bytes */
	int max_owed;
};

struct world {
	struct global_config g;
	uint8_t *payload[3], *got[FETCH_FILES]; /* by kind */
	struct rv_hash *manifest[3];
	struct state_id id[3];
	void *memory;
	struct fetch_core *core;
	struct giver givers[DONORS + 1];
	int64_t now;
	int bad[DONORS + 1], pieces, completed;
	bool held[FETCH_FILES][64];
	struct rv_rng rng;
};

static uint32_t fragments = 1;

static void make_config(struct world *w) {
	const struct fragment_layers layers = {.begin = GLOBAL_PIECE_ELEMS, .layer_elems = 4096, .n = 30};
	w->g = (struct global_config){.n = N,
								  .chunks = chunking_of(N, 4096),
								  .codec = &codec_int8,
								  .optimizer = &outer_nesterov,
								  .run_hash = rv_hash_of("run", 3)};
	assert_int_equal(fragments_make(&w->g.chunks, fragments, &layers, &w->g.fragments, NULL), RV_OK);
}

static void make_payloads(struct world *w) {
	for (int kind = STATE_KIND_SNAPSHOT; kind <= STATE_KIND_LOG; kind++) {
		size_t bytes = state_payload_bytes(&w->g, (enum state_kind)kind, ROUND);
		w->payload[kind] = malloc(bytes);
		for (size_t i = 0; i < bytes; i++)
			w->payload[kind][i] = (uint8_t)(i * 31 + i / 4099 + (size_t)kind);
		w->manifest[kind] = malloc(state_manifest_hashes(&w->g, (enum state_kind)kind, ROUND) * sizeof(struct rv_hash));
		state_manifest_of(&w->g, (enum state_kind)kind, ROUND, w->payload[kind], w->manifest[kind]);
	}
	struct rv_hash chain = rv_hash_of("chain", 5);
	w->id[STATE_KIND_SNAPSHOT] =
		(struct state_id){.kind = STATE_KIND_SNAPSHOT,
						  .round = ROUND,
						  .chain = chain,
						  .expect = global_full_hash_of(&w->g, ROUND, &chain, w->manifest[STATE_KIND_SNAPSHOT])};
	w->id[STATE_KIND_LOG] = (struct state_id){
		.kind = STATE_KIND_LOG, .round = ROUND, .expect = global_digest_of(&w->g, ROUND, w->manifest[STATE_KIND_LOG])};
}

/* Lets these members be asked: the first 64 of them, as a set. */
static void allow(struct world *w, uint64_t members) {
	struct member_set set = {0};
	for (uint32_t m = 0; m < 64; m++)
		if ((members >> m & 1) != 0)
			(void)member_set_add(&set, m);
	fetch_core_allow(w->core, w->now, &set);
}

static void start(struct world *w) {
	struct fetch_core_config cfg = {.global = &w->g, .self_member = SELF, .stall_us = STALL_US};
	free(w->memory);
	w->memory = malloc(fetch_core_bytes(&cfg));
	memset(w->memory, 0xa5, fetch_core_bytes(&cfg));
	w->core = fetch_core_init(w->memory, &cfg, w->now);
	allow(w, ~UINT64_C(0));
}

static int setup(void **state) {
	struct world *w = calloc(1, sizeof *w);
	make_config(w);
	make_payloads(w);
	for (int i = 0; i < FETCH_FILES; i++)
		w->got[i] = malloc(state_payload_bytes(&w->g, STATE_KIND_SNAPSHOT, ROUND));
	start(w);
	*state = w;
	return 0;
}

static int teardown(void **state) {
	struct world *w = *state;
	for (int kind = STATE_KIND_SNAPSHOT; kind <= STATE_KIND_LOG; kind++) {
		free(w->payload[kind]);
		free(w->manifest[kind]);
	}
	for (int i = 0; i < FETCH_FILES; i++)
		free(w->got[i]);
	free(w->memory);
	free(w);
	return 0;
}

static void link(struct world *w, uint32_t m, enum temper temper, double bytes_per_us) {
	w->givers[m] = (struct giver){.temper = temper, .bytes_per_us = bytes_per_us};
	fetch_core_link_up(w->core, w->now, m);
}

static int want(struct world *w, enum state_kind first, enum state_kind second) {
	struct state_id ids[2] = {w->id[first], w->id[second]};
	int slots[2];
	fetch_core_want(w->core, w->now, ids, first == second ? 1 : 2, slots);
	return slots[0];
}

/* ---- what a donor sends ---- */

static uint32_t bytes_of(const struct world *w, const struct frame_fetch *f, const uint8_t **data) {
	enum state_kind kind = (enum state_kind)f->kind;
	size_t bytes;
	if (f->part == FRAME_PART_MANIFEST) {
		*data = (const uint8_t *)w->manifest[kind];
		return state_manifest_hashes(&w->g, kind, ROUND) * RV_HASH_BYTES;
	}
	*data = w->payload[kind] + state_piece_at(&w->g, kind, ROUND, f->index, &bytes);
	return (uint32_t)bytes;
}

static void take_piece(struct world *w, const struct fetch_event *e) {
	uint64_t done, total;
	size_t bytes;
	fetch_core_progress(w->core, e->slot, &done, &total);
	enum state_kind kind =
		total == state_payload_bytes(&w->g, STATE_KIND_SNAPSHOT, ROUND) ? STATE_KIND_SNAPSHOT : STATE_KIND_LOG;
	size_t at = state_piece_at(&w->g, kind, ROUND, e->index, &bytes);
	assert_false(w->held[e->slot][e->index]);
	w->held[e->slot][e->index] = true;
	memcpy(w->got[e->slot] + at, e->stored, bytes);
	w->pieces++;
	if (!e->complete)
		return;
	w->completed++;
	assert_int_equal(done, total);
	assert_memory_equal(w->got[e->slot], w->payload[kind], total);
}

static void on_event(struct world *w, uint32_t m, const struct fetch_event *e) {
	if (e->type == FETCH_BAD_DONOR) {
		assert_true(w->givers[m].temper == LIAR || w->givers[m].temper == LIAR_MANIFEST);
		assert_non_null(strstr(e->text.text, "member"));
		w->bad[m]++;
	} else if (e->type == FETCH_PIECE) {
		take_piece(w, e);
	}
}

static void say_none(struct world *w, uint32_t m) {
	struct giver *g = &w->givers[m];
	struct fetch_event e;
	struct frame_fetch first = g->asks[0];
	memmove(g->asks, g->asks + 1, (size_t)--g->n * sizeof g->asks[0]);
	g->forgotten -= g->forgotten > 0;
	g->sent = 0;
	assert_int_equal(fetch_core_none(w->core, w->now, m, &first, NULL), RV_OK);
	on_event(w, m, &e);
}

/* The next slice of the first request, if it may. False: not yet. */
static bool give_slice(struct world *w, uint32_t m, uint32_t most) {
	struct giver *g = &w->givers[m];
	uint8_t slice[NET_MAX_SLICE_BYTES];
	const uint8_t *data;
	uint32_t total = bytes_of(w, &g->asks[0], &data), n = total - g->sent < most ? total - g->sent : most;
	if (g->credit < n)
		return false;
	struct frame_piece p = {.of = g->asks[0], .offset = g->sent, .total = total, .data = slice, .data_bytes = n};
	memcpy(slice, data + g->sent, n);
	bool lies = g->temper == LIAR || (g->temper == LIAR_MANIFEST && g->asks[0].part == FRAME_PART_MANIFEST);
	if (lies && (g->temper == LIAR_MANIFEST || g->asks[0].part == FRAME_PART_PIECE))
		slice[n - 1] ^= 1;
	g->credit -= n;
	g->given += n;
	g->sent += n;
	if (g->sent == total) {
		g->sent = 0;
		memmove(g->asks, g->asks + 1, (size_t)--g->n * sizeof g->asks[0]);
	}
	struct fetch_event e;
	assert_int_equal(fetch_core_piece(w->core, w->now, m, &p, &e, NULL), RV_OK);
	on_event(w, m, &e);
	return true;
}

static void give(struct world *w, uint32_t m, int64_t us) {
	struct giver *g = &w->givers[m];
	g->credit = g->n > 0 ? g->credit + g->bytes_per_us * (double)us : 0;
	while (g->n > 0 && g->temper != SILENT && g->temper != DEAD) {
		if (g->temper == EMPTY || g->forgotten > 0 || g->asks[0].index == UINT32_MAX)
			say_none(w, m);
		else if (!give_slice(w, m, g->temper == DRIP ? 1 : 16384))
			return;
	}
}

static bool same(const struct frame_fetch *a, const struct frame_fetch *b) {
	return a->kind == b->kind && a->part == b->part && a->index == b->index;
}

static void collect(struct world *w, uint32_t m) {
	struct giver *g = &w->givers[m];
	struct frame_fetch f;
	while (g->temper != DEAD && fetch_core_send(w->core, w->now, m, &f)) {
		assert_true(g->n < FETCH_WINDOW_MAX);
		if (f.part == FRAME_PART_FORGET) {
			g->forgotten = g->n;
			continue;
		}
		for (int i = 0; i < g->n; i++)
			assert_true(f.part == FRAME_PART_MANIFEST || !same(&g->asks[i], &f) || i < g->forgotten);
		g->asks[g->n++] = f;
		g->max_owed = g->n > g->max_owed ? g->n : g->max_owed;
	}
}

static void step(struct world *w, int64_t us) {
	w->now += us;
	fetch_core_tick(w->core, w->now);
	for (uint32_t m = 1; m <= DONORS; m++)
		give(w, m, us);
	for (uint32_t m = 1; m <= DONORS; m++)
		collect(w, m);
	assert_true(fetch_core_deadline_us(w->core) > w->now);
}

static int64_t run(struct world *w, int files, int64_t most_us) {
	int64_t from = w->now;
	while (w->completed < files && w->now - from < most_us)
		step(w, 5 * MS);
	return w->now - from;
}

/* ---- the tests ---- */

static void a_snapshot_and_the_next_log_come_from_all(void **state) {
	struct world *w = *state;
	for (uint32_t m = 1; m <= 3; m++)
		link(w, m, HONEST, 1.0);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_LOG);
	run(w, 2, 60 * S);
	assert_int_equal(w->completed, 2);
	for (uint32_t m = 1; m <= 3; m++)
		assert_true(w->givers[m].given > 200000);
	assert_true(fetch_core_complete(w->core, 0) && fetch_core_complete(w->core, 1));
	for (int i = 0; i < 400; i++) /* second copies are still on their way */
		step(w, 5 * MS);
	assert_int_equal(fetch_core_deadline_us(w->core), INT64_MAX);
}

static void the_line_is_kept_full(void **state) {
	struct world *w = *state;
	link(w, 1, HONEST, 1.0);
	link(w, 2, HONEST, 0.5);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	double least_us = (double)state_payload_bytes(&w->g, STATE_KIND_SNAPSHOT, ROUND) / 1.5;
	int64_t took_us = run(w, 1, 60 * S);
	assert_int_equal(w->completed, 1);
	assert_true((double)took_us < 1.2 * least_us + 100 * MS);
}

static void a_slow_donor_does_not_hold_up_the_end(void **state) {
	struct world *w = *state;
	link(w, 1, HONEST, 1.0);
	link(w, 2, HONEST, 0.01); /* 26 s a piece */
	link(w, 3, DRIP, 1e-6);   /* a byte a second */
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	int64_t took_us = run(w, 1, 60 * S);
	assert_int_equal(w->completed, 1);
	assert_true((double)took_us < 1.5 * (double)state_payload_bytes(&w->g, STATE_KIND_SNAPSHOT, ROUND) + 3.5 * S);
}

static void liars_are_named_and_others_finish(void **state) {
	struct world *w = *state;
	link(w, 1, LIAR, 1.0);
	link(w, 2, LIAR_MANIFEST, 1.0);
	link(w, 3, HONEST, 0.3);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	run(w, 1, 60 * S);
	assert_int_equal(w->completed, 1);
	assert_true(w->bad[1] > 0);
	assert_int_equal(w->bad[3], 0);
}

static void only_liars_never_complete(void **state) {
	struct world *w = *state;
	link(w, 1, LIAR, 1.0);
	link(w, 2, EMPTY, 1.0);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	run(w, 1, 100 * S);
	assert_int_equal(w->completed, 0);
	assert_in_range(w->bad[1], 2, 6); /* it is left alone for longer each time */
	link(w, 3, HONEST, 1.0);
	run(w, 1, 10 * S);
	assert_int_equal(w->completed, 1);
}

static void what_a_dead_donor_owed_is_asked_of_others(void **state) {
	struct world *w = *state;
	link(w, 1, HONEST, 1.0);
	link(w, 2, SILENT, 1.0);
	link(w, 3, HONEST, 0.5);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	for (int i = 0; i < 100; i++)
		step(w, 5 * MS);
	w->givers[1].temper = DEAD;
	w->givers[1].n = 0;
	fetch_core_link_down(w->core, w->now, 1);
	run(w, 1, 60 * S);
	assert_int_equal(w->completed, 1);
}

static void what_was_held_before_is_not_asked_again(void **state) {
	struct world *w = *state;
	uint8_t held[64] = {0};
	int slot = want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	for (uint32_t i = 0; i < state_pieces(&w->g, STATE_KIND_SNAPSHOT, ROUND); i++) {
		size_t bytes, at = state_piece_at(&w->g, STATE_KIND_SNAPSHOT, ROUND, i, &bytes);
		held[i] = i != 3;
		memcpy(w->got[slot] + at, w->payload[STATE_KIND_SNAPSHOT] + at, bytes);
	}
	assert_false(fetch_core_resume(w->core, slot, w->manifest[STATE_KIND_SNAPSHOT], held));
	link(w, 1, HONEST, 1.0);
	run(w, 1, 60 * S);
	assert_int_equal(w->completed, 1);
	assert_int_equal(w->pieces, 1);
	w->held[slot][3] = false;
	w->completed = 0;
	fetch_core_lost(w->core, slot, 3);
	run(w, 1, 60 * S);
	assert_int_equal(w->pieces, 2);
	held[3] = 1;
	assert_true(fetch_core_resume(w->core, slot, w->manifest[STATE_KIND_SNAPSHOT], held));
}

static void a_cancelled_file_is_taken_up_without_confusion(void **state) {
	struct world *w = *state;
	link(w, 1, HONEST, 1.0);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	for (int i = 0; i < 60; i++)
		step(w, 5 * MS);
	fetch_core_want(w->core, w->now, NULL, 0, NULL);
	memset(w->held, 0, sizeof w->held);
	step(w, MS);
	want(w, STATE_KIND_LOG, STATE_KIND_SNAPSHOT); /* late pieces of the snapshot are still on their way */
	run(w, 2, 60 * S);
	assert_int_equal(w->completed, 2);
}

static void breaches_are_told(void **state) {
	struct world *w = *state;
	struct frame_fetch f;
	struct fetch_event e;
	uint8_t data[64] = {0};
	struct frame_piece p = {
		.of = {.kind = FRAME_FETCH_SNAPSHOT, .round = 8}, .total = 64, .data = data, .data_bytes = 64};
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_E_PROTOCOL);
	link(w, 1, HONEST, 1.0);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	assert_true(fetch_core_send(w->core, 0, 1, &f));
	assert_int_equal(f.part, FRAME_PART_MANIFEST);
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_E_PROTOCOL); /* another */
	p.of = f;
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_E_PROTOCOL); /* of another size */
	p.total = state_manifest_hashes(&w->g, STATE_KIND_SNAPSHOT, ROUND) * RV_HASH_BYTES;
	p.offset = 64;
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_E_PROTOCOL); /* not from the start */
	p.offset = 0;
	p.encoding = FRAME_ZSTD;
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_E_PROTOCOL);
	p.encoding = FRAME_RAW;
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_OK);
	assert_int_equal(fetch_core_piece(w->core, 0, 1, &p, &e, NULL), RV_E_PROTOCOL); /* the same slice twice */
	f.index = 1;
	assert_int_equal(fetch_core_none(w->core, 0, 1, &f, NULL), RV_E_PROTOCOL);
	f.index = 0;
	assert_int_equal(fetch_core_none(w->core, 0, 1, &f, NULL), RV_OK);
	assert_true(fetch_core_nowhere(w->core, 0)); /* it lacks it, and nobody else is linked */
}

static void who_is_not_allowed_is_not_asked(void **state) {
	struct world *w = *state;
	struct frame_fetch f;
	fetch_core_link_up(w->core, 0, 1);
	fetch_core_link_up(w->core, 0, SELF);
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	allow(w, UINT64_C(1) << SELF | UINT64_C(1) << 2);
	assert_false(fetch_core_send(w->core, 0, 1, &f) || fetch_core_send(w->core, 0, SELF, &f));
	assert_false(fetch_core_send(w->core, 0, 2, &f)); /* no link */
	allow(w, UINT64_C(1) << 1);
	assert_true(fetch_core_send(w->core, 0, 1, &f));
}

/* A donor may have any number; one whose link came before the document that names it is asked, too,
 * and the place of one that is no longer named goes to another. */
static void donors_of_any_number(void **state) {
	struct world *w = *state;
	const uint32_t high = 4000000000u;
	struct frame_fetch f;
	want(w, STATE_KIND_SNAPSHOT, STATE_KIND_SNAPSHOT);
	for (uint32_t k = 0; k < 200; k++) {
		const struct member_set one = {1, {high + k}};
		fetch_core_link_up(w->core, w->now, high + k);
		assert_false(fetch_core_send(w->core, w->now, high + k, &f));
		fetch_core_allow(w->core, w->now, &one);
		assert_true(fetch_core_send(w->core, w->now, high + k, &f));
		fetch_core_link_down(w->core, w->now, high + k);
		assert_false(fetch_core_send(w->core, w->now, high + k, &f));
	}
	const struct frame_piece stray = {.of = f};
	struct fetch_event e;
	assert_int_equal(fetch_core_piece(w->core, w->now, 1000000, &stray, &e, NULL), RV_E_PROTOCOL);
}

/* Many donors that change at random; one that is honest comes and stays. */
static void any_mixture_ends_with_the_right_bytes(void **state) {
	struct world *w = *state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		w->rng = rv_rng_of(seed, 7);
		memset(w->held, 0, sizeof w->held);
		memset(w->givers, 0, sizeof w->givers);
		w->completed = 0;
		start(w);
		want(w, STATE_KIND_SNAPSHOT, STATE_KIND_LOG);
		for (int i = 0; i < 400; i++) {
			uint32_t m = 2 + (uint32_t)(rv_rng_u64(&w->rng) % (DONORS - 1));
			uint64_t what = rv_rng_u64(&w->rng) % 40;
			if (what == 0) {
				fetch_core_link_down(w->core, w->now, m);
				w->givers[m] = (struct giver){.temper = DEAD};
			} else if (what == 1) {
				link(w, m, (enum temper)(rv_rng_u64(&w->rng) % DEAD), 1.0 / (double)(1 + rv_rng_u64(&w->rng) % 20));
			}
			step(w, 5 * MS);
		}
		link(w, 1, HONEST, 1.0);
		run(w, 2, 200 * S);
		assert_int_equal(w->completed, 2);
	}
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_snapshot_and_the_next_log_come_from_all),
		T(the_line_is_kept_full),
		T(a_slow_donor_does_not_hold_up_the_end),
		T(liars_are_named_and_others_finish),
		T(only_liars_never_complete),
		T(what_a_dead_donor_owed_is_asked_of_others),
		T(what_was_held_before_is_not_asked_again),
		T(a_cancelled_file_is_taken_up_without_confusion),
		T(breaches_are_told),
		T(who_is_not_allowed_is_not_asked),
		T(donors_of_any_number),
		T(any_mixture_ends_with_the_right_bytes),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	fragments = 4; /* the log is of the third, which is shorter than others */
	return failed + cmocka_run_group_tests_name("fragments", tests, NULL, NULL);
}
