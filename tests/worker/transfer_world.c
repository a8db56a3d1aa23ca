/* transfer_world.c: see transfer_world.h. */
#include "transfer_world.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void on_file(void *ctx, const struct fetched *what, bool late) {
	struct transfer_world *w = ctx;
	assert_true(!late || w->may_be_late);
	assert_true(w->may_warn || what->warning.text[0] == '\0');
	state_file_free(w->snapshot);
	blob_unref(w->log);
	w->files++;
	w->id = what->id;
	w->snapshot = what->snapshot;
	w->log = what->log;
}

static void on_failed(void *ctx, const struct state_id *id, enum rv_err e, const char *text) {
	(void)id, (void)e, (void)text;
	((struct transfer_world *)ctx)->failures++;
}

static void on_bad_donor(void *ctx, uint32_t member, const struct state_id *id, const char *text) {
	struct transfer_world *w = ctx;
	(void)id;
	assert_non_null(strstr(text, "gave a wrong"));
	w->bad++;
	w->bad_member = member;
}

static void wake(void *ctx) {
	(void)ctx;
}

void transfer_open_fetcher(struct transfer_world *w) {
	struct fetcher_config cfg = {
		.run_tag = TRANSFER_TAG,
		.self_member = TRANSFER_JOINER,
		.stall_us = 1000 * TRANSFER_MS,
		.owner = {.ctx = w, .on_file = on_file, .on_failed = on_failed, .on_bad_donor = on_bad_donor}};
	assert_int_equal(fetcher_new(&cfg, &w->target->store, w->storage, &w->fetcher, NULL), RV_OK);
	struct member_set donors = {0};
	for (uint32_t m = 0; m <= TRANSFER_DONORS; m++)
		(void)member_set_add(&donors, m);
	fetcher_allow(w->fetcher, w->now, &donors);
	for (uint32_t m = 1; m <= TRANSFER_DONORS; m++)
		fetcher_link_up(w->fetcher, w->now, m);
}

void transfer_open_storage(struct transfer_world *w) {
	assert_int_equal(jobs_new("storage", wake, w, &w->storage, NULL), RV_OK);
}

struct transfer_world *transfer_world_new(void) {
	struct transfer_world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->source = state_fixture_new();
	w->target = state_fixture_new();
	state_fixture_play(w->source, TRANSFER_ROUNDS, 1);
	for (uint32_t m = 1; m <= TRANSFER_DONORS; m++) {
		struct donor_config cfg = {.run_tag = TRANSFER_TAG};
		assert_int_equal(donor_new(&cfg, &w->source->store, &w->donors[m], NULL), RV_OK);
	}
	transfer_open_storage(w);
	transfer_open_fetcher(w);
	return w;
}

void transfer_settle(struct transfer_world *w) {
	while (!jobs_idle(w->storage)) {
		jobs_reap(w->storage);
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
	}
}

void transfer_world_free(struct transfer_world *w) {
	transfer_settle(w);
	jobs_free(w->storage);
	fetcher_free(w->fetcher);
	for (uint32_t m = 1; m <= TRANSFER_DONORS; m++)
		donor_free(w->donors[m]);
	state_file_free(w->snapshot);
	blob_unref(w->log);
	state_fixture_free(w->source);
	state_fixture_free(w->target);
	free(w);
}

/* ---- messages ---- */

/* One message's body in one piece, as the receiver sees it; until the next one. */
static uint8_t *body_of(const struct peers_message *m) {
	static uint8_t body[DONOR_SLICE_BYTES + NET_MANIFEST_PART_BYTES + FRAME_PIECE_BYTES];
	assert_in_range(m->header.body_bytes, 0, sizeof body);
	assert_int_equal(m->header.body_bytes, m->part_bytes[0] + m->part_bytes[1]);
	memcpy(body, m->part[0], m->part_bytes[0]);
	if (m->part_bytes[1] > 0)
		memcpy(body + m->part_bytes[0], m->part[1], m->part_bytes[1]);
	return body;
}

static void to_donor(struct transfer_world *w, uint32_t member, const struct peers_message *m) {
	assert_int_equal(donor_receive(w->donors[member], TRANSFER_JOINER, &m->header, body_of(m), NULL), RV_OK);
}

static void to_joiner(struct transfer_world *w, uint32_t member, const struct peers_message *m) {
	uint8_t *body = body_of(m);
	if (m->header.type == FRAME_PIECE && (w->liars >> member & 1) != 0)
		body[m->header.body_bytes - 1] ^= 1;
	w->pieces[member] += m->header.type == FRAME_PIECE;
	w->bytes += m->part_bytes[1];
	assert_int_equal(fetcher_receive(w->fetcher, w->now, member, &m->header, body, NULL), RV_OK);
}

bool transfer_say(struct transfer_world *w) {
	struct peers_message m;
	bool any = false;
	fetcher_tick(w->fetcher, w->now);
	for (uint32_t d = 1; d <= TRANSFER_DONORS; d++) {
		while (fetcher_send(w->fetcher, w->now, d, &m)) {
			any = true;
			if ((w->dead >> d & 1) == 0)
				to_donor(w, d, &m);
		}
		if ((w->dead >> d & 1) == 0 && donor_send(w->donors[d], w->now, TRANSFER_JOINER, &m)) {
			any = true;
			to_joiner(w, d, &m);
		}
	}
	w->now += TRANSFER_MS;
	return any;
}

bool transfer_step(struct transfer_world *w) {
	bool any = transfer_say(w);
	transfer_settle(w);
	return any;
}

void transfer_until(struct transfer_world *w, int files) {
	for (int i = 0; i < 200000 && w->files < files; i++)
		transfer_step(w);
	assert_int_equal(w->files, files);
}

struct state_id transfer_id(struct transfer_world *w, enum state_kind kind, uint64_t round) {
	struct state_file *f;
	assert_int_equal(statestore_open(&w->source->store, kind, round, &f, NULL), RV_OK);
	struct state_id id = *state_file_id(f);
	state_file_free(f);
	return id;
}

void transfer_want(struct transfer_world *w, const struct state_id *first, const struct state_id *next) {
	struct state_id ids[2] = {*first, next ? *next : *first};
	assert_int_equal(fetcher_want(w->fetcher, w->now, ids, next ? 2 : 1, NULL), RV_OK);
}

void transfer_assert_snapshot(struct transfer_world *w, uint64_t round) {
	struct global_state g;
	assert_non_null(w->snapshot);
	assert_int_equal(state_fixture_theta0(w->target, &g), RV_OK);
	assert_int_equal(state_file_load_snapshot(w->snapshot, &g, NULL), RV_OK);
	struct rv_hash full = global_full_hash(&g);
	assert_true(rv_hash_equal(&full, &w->source->full[round]));
	global_release(&g);
}
