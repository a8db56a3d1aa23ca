/* state_scene.c: see state_scene.h. */
#include "tests/torture/state_scene.h"

#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/torture/torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOG_TRIES = 2 };

/* What every round's reduced bytes are, and what state they lead to. */
static void make_rounds(struct state_scene *s) {
	struct global_state g;
	float local[STATE_FIXTURE_N];
	assert_int_equal(state_fixture_theta0(s->f, &g), RV_OK);
	for (uint64_t r = 0; r < SCENE_ROUNDS; r++) {
		s->full[r] = global_full_hash(&g);
		s->payload[r] = malloc(state_payload_bytes(&s->f->store.cfg, STATE_KIND_LOG, r));
		for (int i = 0; i < STATE_FIXTURE_N; i++)
			local[i] = g.theta[i] - 0.01f * (float)((i + (int)r) % 7);
		assert_int_equal(global_encode_delta(&g, local, s->payload[r], NULL), RV_OK);
		struct rv_hash digest = global_digest(&g, r, s->payload[r]);
		assert_int_equal(global_apply(&g, s->payload[r], &digest, NULL), RV_OK);
	}
	s->full[SCENE_ROUNDS] = global_full_hash(&g);
	global_release(&g);
}

struct state_scene *state_scene_new(void) {
	struct state_scene *s = calloc(1, sizeof *s);
	assert_non_null(s);
	s->f = state_fixture_new();
	scratch_remove(s->f->store.dir);
	scratch_make_in_memory(s->f->store.dir, sizeof s->f->store.dir);
	make_rounds(s);
	return s;
}

void state_scene_free(struct state_scene *s) {
	for (int r = 0; r < SCENE_ROUNDS; r++)
		free(s->payload[r]);
	global_release(&s->g);
	state_fixture_free(s->f);
	free(s);
}

void state_scene_begin_again(struct state_scene *s) {
	global_release(&s->g);
	assert_int_equal(state_fixture_theta0(s->f, &s->g), RV_OK);
	s->f->notice[0] = '\0';
}

static bool keep_log(struct state_scene *s, struct state_log_info *info) {
	struct rv_errtext et = {0};
	for (int tries = 0; tries < LOG_TRIES; tries++)
		if (torture_ok(statestore_write_log(&s->f->store, info, s->payload[info->round], &et), &et))
			return true;
	return false;
}

static void keep_replica(struct state_scene *s, struct scene_promises *acknowledged) {
	static const uint8_t bytes[100];
	struct rv_errtext et = {0};
	struct state_replica_info info = {.round = s->g.round, .chain = s->g.chain, .payload_bytes = sizeof bytes};
	struct state_whole whole = {bytes, sizeof bytes};
	const struct state_pieces_of payload = state_pieces_of_whole(&whole);
	if (torture_ok(statestore_write_replica(&s->f->store, &info, &payload, &et), &et))
		acknowledged->replica_round = s->g.round;
}

static void keep_snapshot(struct state_scene *s) {
	const struct statestore *store = &s->f->store;
	const struct checkpoint_named named = {.vouched_round = s->g.round, .logs_from = s->g.round};
	struct rv_errtext et = {0};
	if (torture_ok(statestore_write_snapshot(store, &s->g, NULL, &et), &et))
		(void)torture_ok(statestore_prune(store, &named, &et), &et);
}

void state_scene_write(struct state_scene *s, struct scene_promises *acknowledged) {
	struct rv_errtext et = {0};
	for (uint64_t r = 0; r < SCENE_ROUNDS; r++) {
		struct state_log_info info = {.round = r, .attempt = 0}; /* on the word of a document: committed */
		if (!keep_log(s, &info))
			return;
		acknowledged->round = r + 1;
		if (!torture_ok(global_apply(&s->g, s->payload[r], &info.digest, &et), &et))
			return;
		keep_replica(s, acknowledged);
		if (s->g.round % STATE_FIXTURE_SNAPSHOT_EVERY == 0)
			keep_snapshot(s);
	}
}

uint64_t state_scene_recover(struct state_scene *s, const struct scene_promises *at_least) {
	struct recovered found;
	struct rv_errtext et = {0};
	state_scene_begin_again(s);
	if (statestore_recover(&s->f->store, &s->g, &found, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	if (s->f->notice[0] != '\0')
		fail_msg("afterwards a file is damaged: %s", s->f->notice);
	assert_in_range(s->g.round, at_least->round, SCENE_ROUNDS);
	assert_in_range(found.has_replica ? found.replica.round : 0, at_least->replica_round, SCENE_ROUNDS);
	struct rv_hash full = global_full_hash(&s->g);
	assert_memory_equal(&full, &s->full[s->g.round], sizeof full);
	blob_unref(found.reduced);
	replica_file_free(found.replica_file);
	return s->g.round;
}
