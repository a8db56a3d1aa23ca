/* state_fixture.c: see state_fixture.h. */
#include "state_fixture.h"
#include "tests/common/scratch.h"

#include "base/assert.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_notice(void *ctx, enum rv_err why, const char *text) {
	struct state_fixture *f = ctx;
	(void)why;
	snprintf(f->notice, sizeof f->notice, "%s", text);
}

static uint32_t fragments = 1;

void state_fixture_fragments(uint32_t n) {
	fragments = n;
}

static struct global_config config(void) {
	const struct fragment_layers layers = {.begin = 512, .layer_elems = 512, .n = 4};
	struct global_config c = {.n = STATE_FIXTURE_N,
							  .codec = &codec_int8,
							  .optimizer = &outer_nesterov,
							  .params = {.lr = 0.7f, .momentum = 0.9f}};
	c.chunks = chunking_of(c.n, 512);
	RV_ASSERT(fragments_make(&c.chunks, fragments, &layers, &c.fragments, NULL) == RV_OK);
	c.run_hash = rv_hash_of("a run", 5);
	return c;
}

enum rv_err state_fixture_theta0(struct state_fixture *f, struct global_state *g) {
	float theta0[STATE_FIXTURE_N];
	for (int i = 0; i < STATE_FIXTURE_N; i++)
		theta0[i] = (float)(i % 17) * 0.1f - 0.5f;
	return global_init(g, &f->store.cfg, theta0, NULL);
}

struct state_fixture *state_fixture_new(void) {
	struct state_fixture *f = calloc(1, sizeof *f);
	f->store = (struct statestore){.cfg = config(),
								   .schedule = {.snapshot_every = STATE_FIXTURE_SNAPSHOT_EVERY},
								   .policy = {.keep_snapshots = 2},
								   .notice = on_notice,
								   .notice_ctx = f};
	scratch_make(f->store.dir, sizeof f->store.dir);
	RV_ASSERT(state_fixture_theta0(f, &f->g) == RV_OK);
	f->full[0] = global_full_hash(&f->g);
	return f;
}

void state_fixture_free(struct state_fixture *f) {
	scratch_remove(f->store.dir);
	global_release(&f->g);
	free(f);
}

static void play_one(struct state_fixture *f, uint32_t attempt) {
	struct global_state *g = &f->g;
	float local[STATE_FIXTURE_N];
	uint8_t *payload = malloc(state_payload_bytes(&f->store.cfg, STATE_KIND_LOG, g->round));
	for (int i = 0; i < STATE_FIXTURE_N; i++)
		local[i] = g->theta[i] - 0.01f * (float)((i + (int)g->round) % 7);
	RV_ASSERT(global_encode_delta(g, local, payload, NULL) == RV_OK);
	struct state_log_info info = {.round = g->round, .attempt = attempt};
	RV_ASSERT(statestore_write_log(&f->store, &info, payload, NULL) == RV_OK);
	RV_ASSERT(global_apply(g, payload, &info.digest, NULL) == RV_OK);
	f->full[g->round] = global_full_hash(g);
	free(payload);
}

void state_fixture_play(struct state_fixture *f, uint64_t rounds, uint32_t attempt) {
	while (f->g.round < rounds) {
		play_one(f, attempt);
		if (f->g.round % STATE_FIXTURE_SNAPSHOT_EVERY == 0 && f->g.round < rounds)
			RV_ASSERT(statestore_write_snapshot(&f->store, &f->g, NULL, NULL) == RV_OK);
	}
}

void state_fixture_save_replica(struct state_fixture *f, uint64_t round) {
	static const uint8_t bytes[100];
	struct state_replica_info info = {
		.round = round, .chain = f->g.chain, .steps_done = 3, .tokens = 30, .payload_bytes = sizeof bytes};
	struct state_whole whole = {bytes, sizeof bytes};
	const struct state_pieces_of payload = state_pieces_of_whole(&whole);
	RV_ASSERT(statestore_write_replica(&f->store, &info, &payload, NULL) == RV_OK);
}

void state_fixture_remove(struct state_fixture *f, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(&f->store, kind, round, path);
	(void)unlink(path);
}
