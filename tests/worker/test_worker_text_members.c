/* test_worker_text_members.c: a text comes from other members, of which some lie, die, hold damaged
 * files or none: the real text thread on one side, text donors over directories on the other, and
 * the test in place of the mesh. */
#include "base/clock.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"
#include "tests/worker/hostile_mirror.h"
#include "tests/worker/text_fixture.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/published.h"
#include "worker/text/text_donor_store.h"
#include "worker/text/text_members.h"
#include "worker/text/text_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS = 5, DONORS = 3, SELF = 9, TAG = 5, LIMIT_S = 120, S = 1000 * 1000 };

enum temper { HONEST, LIAR };

/* A member with a directory of its own. Donor i has number 20 + i. */
struct giver {
	char dir[256];
	struct text_donor_store *store;
	struct text_donor *donor;
	struct rate cap;
	enum temper temper;
	bool linked;
	uint64_t given;
};

static char from[256], dir[256];
static struct manifest text;
static struct rv_hash data_hash;
static struct hostile_mirror mirror;
static struct giver givers[DONORS];

static uint32_t number_of(const struct giver *g) {
	return 20 + (uint32_t)(g - givers);
}

static void nothing(void *ctx) {
	(void)ctx;
}

/* ---- setup ---- */

static int start(void **state) {
	(void)state;
	scratch_make_in_memory(from, sizeof from);
	text_fixture_make(from, SHARDS, &text, &data_hash);
	hostile_start(&mirror, from, NULL);
	return 0;
}

static int stop(void **state) {
	(void)state;
	hostile_stop(&mirror);
	scratch_remove(from);
	return 0;
}

static void link_file(const char *to, const char *name) {
	char old[600], new[600];
	(void)snprintf(old, sizeof old, "%s/%s", from, name);
	(void)snprintf(new, sizeof new, "%s/%s", to, name);
	assert_int_equal(link(old, new), 0);
}

static void open_giver(struct giver *g) {
	char name[32];
	*g = (struct giver){.cap = rate_of(0, 0)};
	scratch_make_in_memory(g->dir, sizeof g->dir);
	index_page_name(0, 0, name);
	link_file(g->dir, name);
	for (uint64_t i = 0; i < SHARDS; i++) {
		manifest_shard_name(i, name);
		link_file(g->dir, name);
	}
	assert_ok(text_donor_store_open(g->dir, &text, nothing, NULL, &g->store, &et));
	const struct text_donor_config cfg = {.donor = {.run_tag = TAG, .cap = &g->cap},
										  .source = text_donor_store_source(g->store)};
	g->donor = text_donor_init(malloc(text_donor_size()), &cfg);
}

static int open_all(void **state) {
	(void)state;
	scratch_make_in_memory(dir, sizeof dir);
	for (int i = 0; i < DONORS; i++)
		open_giver(&givers[i]);
	return 0;
}

static int close_all(void **state) {
	(void)state;
	for (int i = 0; i < DONORS; i++) {
		free(givers[i].donor);
		text_donor_store_close(givers[i].store);
		scratch_remove(givers[i].dir);
	}
	scratch_remove(dir);
	return 0;
}

/* A mirror has what comes first, and no shard. */
static struct text *open_text(uint64_t shards) {
	char url[128];
	const char *const urls[] = {url};
	struct text *t;
	hostile_url(&mirror, "gone", url);
	const struct text_config cfg = {.dir = dir,
									.data_hash = data_hash,
									.quota_bytes = shards * TEXT_FIXTURE_SHARD_BYTES,
									.mirrors = urls,
									.n_mirrors = 1,
									.met = ADDRESS_LOOPBACK,
									.tries = 1};
	assert_ok(text_open(&cfg, &t, &et));
	text_members_meet(text_members_of(t), TAG, nothing, NULL);
	return t;
}

/* ---- in place of the mesh ---- */

static void set_link(struct text *t, struct giver *g, bool up) {
	g->linked = up;
	if (up) {
		text_members_link_up(text_members_of(t), number_of(g));
		return;
	}
	text_members_link_down(text_members_of(t), number_of(g));
	text_donor_link_down(g->donor, SELF);
}

static void body_of(const struct peers_message *m, uint8_t *out) {
	assert_int_equal(m->header.body_bytes, m->part_bytes[0] + m->part_bytes[1]);
	memcpy(out, m->part[0], m->part_bytes[0]);
	if (m->part_bytes[1] > 0)
		memcpy(out + m->part_bytes[0], m->part[1], m->part_bytes[1]);
}

static void carry(struct text *t, struct giver *g, int slices) {
	static uint8_t body[FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES];
	struct text_members *m = text_members_of(t);
	const int64_t now_us = rv_clock_monotonic_us();
	struct peers_message msg;
	while (text_members_send(m, number_of(g), &msg)) {
		body_of(&msg, body);
		assert_ok(text_donor_receive(g->donor, now_us, SELF, &msg.header, body, &et));
	}
	while (slices-- > 0 && text_donor_send(g->donor, now_us, SELF, &msg)) {
		body_of(&msg, body);
		g->given += msg.part_bytes[1];
		if (msg.header.type == FRAME_PIECE && g->temper == LIAR)
			body[FRAME_PIECE_BYTES] ^= 1;
		assert_ok(text_members_receive(m, number_of(g), &msg.header, body, &et));
	}
	text_donor_store_reap(g->store, now_us);
}

static int n_here(void) {
	char path[600], name[32];
	int n = 0;
	for (uint64_t i = 0; i < SHARDS; i++) {
		manifest_shard_name(i, name);
		(void)snprintf(path, sizeof path, "%s/%s", dir, name);
		n += access(path, R_OK) == 0;
	}
	return n;
}

/* Wants all shards, and carries frames until they are here, or `giver` has given `bytes`. */
static void fetch(struct text *t, const struct giver *g, uint64_t bytes) {
	static const uint64_t shards[SHARDS] = {0, 1, 2, 3, 4};
	const int64_t end = rv_clock_monotonic_us() + LIMIT_S * (int64_t)S;
	text_want(t, shards, SHARDS);
	while (n_here() < SHARDS && (!g || g->given < bytes)) {
		for (int i = 0; i < DONORS; i++)
			if (givers[i].linked)
				carry(t, &givers[i], 8);
		(void)usleep(500);
		if (rv_clock_monotonic_us() > end)
			fail_msg("%d of %d shards after %d s", n_here(), (int)SHARDS, (int)LIMIT_S);
	}
}

static void check_text(void) {
	struct published *p;
	assert_ok(published_open(dir, &p, &et));
	for (uint64_t i = 0; i < SHARDS; i++)
		assert_ok(published_check_shard(p, i, &et));
	published_close(p);
}

/* Returns how often notices name a member as a liar. */
static uint32_t lies_of(struct text *t, const struct giver *g) {
	char notice[TEXT_NOTICE_BYTES], name[32];
	uint32_t n = 0;
	(void)snprintf(name, sizeof name, "member %u gave wrong", number_of(g));
	while (text_notice(t, notice)) {
		print_message("  %s\n", notice);
		n += strstr(notice, name) != NULL;
	}
	return n;
}

/* ---- fetching ---- */

static void a_text_comes_from_members(void **state) {
	struct text *t = open_text(SHARDS);
	(void)state;
	for (int i = 0; i < DONORS; i++)
		set_link(t, &givers[i], true);
	fetch(t, NULL, 0);
	/* The text thread counts the last range once its file is whole. */
	for (struct deadline d = deadline_in(LIMIT_S, "the bytes of all shards");
		 text_stats(t).bytes[TEXT_MEMBER] < SHARDS * (uint64_t)TEXT_FIXTURE_SHARD_BYTES;)
		deadline_pause(&d);
	const struct text_stats s = text_stats(t);
	assert_int_equal(s.bytes[TEXT_MIRROR], SHARDS * RV_HASH_BYTES);
	assert_int_equal(s.lies, 0);
	for (int i = 0; i < DONORS; i++)
		print_message("member %d: %d bytes\n", i, (int)givers[i].given);
	text_close(t);
	check_text();
}

static void a_liar_is_named_and_left(void **state) {
	struct text *t = open_text(SHARDS);
	(void)state;
	givers[1].temper = LIAR;
	for (int i = 0; i < DONORS; i++)
		set_link(t, &givers[i], true);
	fetch(t, NULL, 0);
	/* The text thread may still be checking a copy that came after the last shard was whole. */
	uint32_t named = 0;
	for (struct deadline d = deadline_in(LIMIT_S, "a notice of each lie"); named == 0 || named != text_stats(t).lies;) {
		deadline_pause(&d);
		named += lies_of(t, &givers[1]);
	}
	text_close(t);
	check_text();
}

static void one_that_dies_is_left(void **state) {
	struct text *t = open_text(SHARDS);
	(void)state;
	set_link(t, &givers[0], true);
	fetch(t, &givers[0], 1200000); /* in the middle of a range */
	assert_true(n_here() < SHARDS);
	set_link(t, &givers[0], false);
	set_link(t, &givers[1], true);
	fetch(t, &givers[1], 100000);
	set_link(t, &givers[0], true); /* it is back */
	fetch(t, NULL, 0);
	assert_int_equal(text_stats(t).lies, 0);
	/* What had come was kept: at most the ranges under way are given twice, and copies. */
	assert_true(givers[0].given + givers[1].given < (SHARDS + 4) * (uint64_t)TEXT_FIXTURE_SHARD_BYTES);
	text_close(t);
	check_text();
}

/* A member whose disk rots gives nothing of that file, and is no liar. */
static void damaged_files_are_not_given(void **state) {
	char path[600], name[32];
	struct text *t = open_text(SHARDS);
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		size_t n;
		manifest_shard_name(i, name);
		uint8_t *bytes = text_fixture_read(givers[0].dir, name, &n);
		bytes[n / 2] ^= 1;
		(void)snprintf(path, sizeof path, "%s/%s", givers[0].dir, name);
		assert_int_equal(unlink(path), 0);
		scratch_write(givers[0].dir, name, bytes, n);
		free(bytes);
	}
	set_link(t, &givers[0], true);
	fetch(t, &givers[0], 2 * TEXT_FIXTURE_SHARD_BYTES);
	set_link(t, &givers[1], true);
	fetch(t, NULL, 0);
	assert_int_equal(text_stats(t).lies, 0);
	text_close(t);
	check_text();
}

static void the_quota_holds(void **state) {
	struct text *t = open_text(2);
	(void)state;
	static const uint64_t wanted[][2] = {{0, 1}, {2, 3}, {4, 0}};
	set_link(t, &givers[0], true);
	for (size_t k = 0; k < 3; k++) {
		char path[600], name[32];
		text_want(t, wanted[k], 2);
		for (int here = 0; here < 2;) {
			here = 0;
			carry(t, &givers[0], 8);
			for (int i = 0; i < 2; i++) {
				manifest_shard_name(wanted[k][i], name);
				(void)snprintf(path, sizeof path, "%s/%s", dir, name);
				here += access(path, R_OK) == 0;
			}
			assert_true(text_stats(t).cached_bytes <= 2 * (uint64_t)TEXT_FIXTURE_SHARD_BYTES);
			(void)usleep(500);
		}
	}
	text_close(t);
}

/* ---- giving ---- */

static void take_frame(struct giver *g, int64_t now_us, uint32_t member, const struct frame_header *h,
					   const uint8_t *body, enum rv_err expected) {
	assert_int_equal(text_donor_receive(g->donor, now_us, member, h, body, NULL), expected);
}

static void ask_for(struct giver *g, uint32_t member, uint64_t file, uint32_t index) {
	uint8_t body[FRAME_FETCH_BYTES];
	const struct frame_fetch f = {.kind = FRAME_FETCH_TEXT, .round = file, .index = index};
	const struct frame_header h = frame_fetch_encode(&f, TAG, body);
	take_frame(g, 0, member, &h, body, RV_OK);
}

/* Returns the type of the next frame for a member once there is one. */
static uint8_t answer(struct giver *g, int64_t now_us, uint32_t member, struct peers_message *m) {
	while (!text_donor_send(g->donor, now_us, member, m)) {
		text_donor_store_reap(g->store, now_us);
		(void)usleep(200);
	}
	return m->header.type;
}

static void what_is_not_the_texts_is_not_given(void **state) {
	const uint64_t files[] = {SHARDS, UINT64_MAX, (uint64_t)1 << 48 | 1, (uint64_t)1 << 48 | (uint64_t)1 << 40, 3};
	struct giver *g = &givers[0];
	struct peers_message m;
	char path[600], name[32];
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		ask_for(g, SELF, files[i], 0);
		assert_int_equal(answer(g, 0, SELF, &m), FRAME_NONE);
	}
	ask_for(g, SELF, 3, 5); /* behind its end */
	assert_int_equal(answer(g, 0, SELF, &m), FRAME_NONE);
	ask_for(g, SELF, 3, 4); /* its last 1,024 bytes */
	assert_int_equal(answer(g, 0, SELF, &m), FRAME_PIECE);
	assert_int_equal(m.part_bytes[1], 1024);
	/* It is removed while it is open. */
	manifest_shard_name(3, name);
	(void)snprintf(path, sizeof path, "%s/%s", g->dir, name);
	assert_int_equal(unlink(path), 0);
	struct text_donor_source source = text_donor_store_source(g->store);
	assert_false(source.holds(source.ctx, 3));
	assert_true(source.holds(source.ctx, 2));
}

static void a_question_at_a_time_is_answered(void **state) {
	const uint64_t files[] = {4, SHARDS, 0, UINT64_MAX, (uint64_t)1 << 48};
	uint8_t body[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES];
	const struct frame_header h = frame_text_ask_encode(files, 5, TAG, body);
	struct giver *g = &givers[0];
	struct peers_message m;
	(void)state;
	take_frame(g, 1000, SELF, &h, body, RV_OK);
	take_frame(g, 1000, SELF, &h, body, RV_E_PROTOCOL);
	assert_true(text_donor_answer(g->donor, 1000, SELF, &m));
	assert_int_equal(m.header.type, FRAME_TEXT_HELD);
	assert_int_equal(frame_text_held_decode(m.part[0]), 1 | 4 | 16);
	take_frame(g, 1001, SELF, &h, body, RV_OK);
	assert_false(text_donor_answer(g->donor, 1001, SELF, &m)); /* not all the time */
	assert_int_equal(text_donor_deadline_us(g->donor, 1001), 1000 + TEXT_ANSWER_US);
	assert_true(text_donor_answer(g->donor, 1000 + TEXT_ANSWER_US, SELF, &m));
	text_donor_link_down(g->donor, SELF);
	assert_false(text_donor_answer(g->donor, 9 * S, SELF, &m));
}

/* Bytes that two members get in ten seconds, which always want more. */
static void give_for_10_s(struct giver *g, uint64_t got[2]) {
	struct peers_message m;
	uint32_t waiting[2] = {0};
	for (int64_t now = 0; now < 10 * (int64_t)S; now += 5000)
		for (uint32_t i = 0; i < 2; i++) {
			for (; waiting[i] < 6; waiting[i]++)
				ask_for(g, SELF + i, waiting[i] % 2, waiting[i] % 4);
			while (text_donor_send(g->donor, now, SELF + i, &m)) {
				struct frame_piece p;
				uint8_t head[FRAME_PIECE_BYTES + 1];
				got[i] += FRAME_HEADER_BYTES + m.header.body_bytes;
				memcpy(head, m.part[0], FRAME_PIECE_BYTES);
				memcpy(&p.total, head + 12, sizeof p.total);
				memcpy(&p.offset, head + 8, sizeof p.offset);
				waiting[i] -= p.offset + m.part_bytes[1] == p.total;
			}
		}
}

/* Opens both files before the clock runs. */
static void warm(struct giver *g) {
	struct peers_message m;
	for (uint64_t file = 0; file < 2; file++) {
		ask_for(g, 77, file, 4);
		assert_int_equal(answer(g, 0, 77, &m), FRAME_PIECE);
	}
}

static void giving_keeps_the_cap_and_is_fair(void **state) {
	enum { RATE = 400000 };
	struct giver *g = &givers[0];
	uint64_t got[2] = {0};
	(void)state;
	warm(g);
	g->cap = rate_of(RATE, 0);
	give_for_10_s(g, got);
	assert_in_range(got[0] + got[1], RATE * 8, RATE * 10);
	assert_true(got[0] < got[1] + got[1] / 4 && got[1] < got[0] + got[0] / 4);
}

static void text_gives_way_to_the_all_reduce(void **state) {
	struct giver *g = &givers[0];
	struct peers_message m;
	uint64_t given = 0;
	(void)state;
	warm(g);
	donor_set_round(text_donor_pieces(g->donor), 3, true);
	for (uint32_t i = 0; i < 8; i++)
		ask_for(g, SELF, 0, i % 4);
	for (int64_t now = S; now < 2 * (int64_t)S; now += 10000) { /* it sends a megabyte */
		donor_reduce_sent(text_donor_pieces(g->donor), now, 10000);
		while (text_donor_send(g->donor, now, SELF, &m))
			given += m.header.body_bytes;
	}
	assert_in_range(given, 60000, 120000);
}

/* ---- breaches ---- */

static void seen_bytes(void *ctx, uint32_t ask, uint32_t at, const uint8_t *bytes, uint32_t n) {
	(void)ask;
	(void)at;
	(void)bytes;
	*(uint32_t *)ctx += n;
}

static void seen_none(void *ctx, uint32_t ask) {
	(void)ask;
	*(uint32_t *)ctx = 0;
}

static void seen_held(void *ctx, uint32_t member, const uint64_t *files, int n, uint64_t held) {
	(void)member;
	(void)files;
	*(uint32_t *)ctx = (uint32_t)held + (uint32_t)n;
}

static enum rv_err receive_piece(struct text_asker *a, uint64_t file, uint32_t index, uint32_t offset, uint32_t total,
								 uint32_t n) {
	static uint8_t body[FRAME_PIECE_BYTES + NET_MAX_SLICE_BYTES];
	const struct frame_piece p = {.of = {.kind = FRAME_FETCH_TEXT, .round = file, .index = index},
								  .offset = offset,
								  .total = total,
								  .data = body,
								  .data_bytes = n};
	const struct frame_header h = frame_piece_encode(&p, TAG, body);
	return text_asker_receive(a, 3, &h, body, NULL);
}

static void answers_that_are_not_due_break_the_link(void **state) {
	static struct text_asker a;
	uint32_t seen = 0;
	struct peers_message m;
	uint8_t body[FRAME_TEXT_HELD_BYTES];
	const uint64_t files[] = {1, 2};
	(void)state;
	text_asker_init(
		&a, TAG,
		&(struct text_asker_owner){.ctx = &seen, .on_bytes = seen_bytes, .on_none = seen_none, .on_held = seen_held});
	assert_int_equal(receive_piece(&a, 7, 2, 0, 100, 100), RV_E_PROTOCOL);
	text_asker_request(&a, 3, 1, 7, 1, NET_MAX_PIECE_BYTES + 100);
	assert_int_equal(receive_piece(&a, 7, 2, 0, NET_MAX_PIECE_BYTES, 100), RV_E_PROTOCOL); /* not sent yet */
	assert_true(text_asker_send(&a, 3, &m) && text_asker_send(&a, 3, &m) && !text_asker_send(&a, 3, &m));
	assert_int_equal(receive_piece(&a, 7, 3, 0, 100, 100), RV_E_PROTOCOL);
	assert_int_equal(receive_piece(&a, 8, 2, 0, NET_MAX_PIECE_BYTES, 100), RV_E_PROTOCOL);
	assert_int_equal(receive_piece(&a, 7, 2, 0, 100, 100), RV_E_PROTOCOL);
	assert_int_equal(receive_piece(&a, 7, 2, 1, NET_MAX_PIECE_BYTES, 100), RV_E_PROTOCOL);
	for (uint32_t at = 0; at < NET_MAX_PIECE_BYTES; at += 1 << 14)
		assert_ok(receive_piece(&a, 7, 2, at, NET_MAX_PIECE_BYTES, 1 << 14));
	assert_int_equal(receive_piece(&a, 7, 2, 0, NET_MAX_PIECE_BYTES, 1 << 14), RV_E_PROTOCOL);
	assert_ok(receive_piece(&a, 7, 3, 0, 100, 100));
	assert_int_equal(seen, NET_MAX_PIECE_BYTES + 100);
	/* A question. */
	struct frame_header h = frame_text_held_encode(1, TAG, body);
	assert_int_equal(text_asker_receive(&a, 3, &h, body, NULL), RV_E_PROTOCOL);
	assert_true(text_asker_question(&a, 3, files, 2));
	assert_true(text_asker_send(&a, 3, &m));
	h = frame_text_held_encode(4, TAG, body);
	assert_int_equal(text_asker_receive(&a, 3, &h, body, NULL), RV_E_PROTOCOL);
	h = frame_text_held_encode(2, TAG, body);
	assert_ok(text_asker_receive(&a, 3, &h, body, &et));
	assert_int_equal(seen, 4);
	assert_int_equal(text_asker_receive(&a, 3, &h, body, NULL), RV_E_PROTOCOL);
}

/* What is cancelled before it was sent is never asked for, what was sent is forgotten. */
static void what_is_not_needed_is_forgotten(void **state) {
	static struct text_asker a;
	uint32_t seen = 0;
	struct peers_message m;
	struct frame_fetch f;
	(void)state;
	text_asker_init(
		&a, TAG,
		&(struct text_asker_owner){.ctx = &seen, .on_bytes = seen_bytes, .on_none = seen_none, .on_held = seen_held});
	text_asker_request(&a, 3, 1, 7, 0, 100);
	text_asker_request(&a, 3, 2, 8, 0, 100);
	assert_true(text_asker_send(&a, 3, &m));
	text_asker_cancel(&a, 2);
	assert_false(text_asker_send(&a, 3, &m));
	text_asker_cancel(&a, 1);
	assert_true(text_asker_send(&a, 3, &m));
	assert_ok(frame_fetch_decode(&m.header, m.part[0], &f, &et));
	assert_true(f.kind == FRAME_FETCH_TEXT && f.part == FRAME_PART_FORGET);
	assert_ok(receive_piece(&a, 7, 0, 0, 100, 50)); /* it was on its way */
	assert_int_equal(seen, 0);
	assert_ok(receive_piece(&a, 7, 0, 50, 100, 50));
	assert_false(text_asker_send(&a, 3, &m));
}

int main(void) {
#define WITH_GIVERS(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)
	const struct CMUnitTest tests[] = {
		WITH_GIVERS(a_text_comes_from_members),
		WITH_GIVERS(a_liar_is_named_and_left),
		WITH_GIVERS(one_that_dies_is_left),
		WITH_GIVERS(damaged_files_are_not_given),
		WITH_GIVERS(the_quota_holds),
		WITH_GIVERS(what_is_not_the_texts_is_not_given),
		WITH_GIVERS(a_question_at_a_time_is_answered),
		WITH_GIVERS(giving_keeps_the_cap_and_is_fair),
		WITH_GIVERS(text_gives_way_to_the_all_reduce),
		cmocka_unit_test(answers_that_are_not_due_break_the_link),
		cmocka_unit_test(what_is_not_needed_is_forgotten),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
