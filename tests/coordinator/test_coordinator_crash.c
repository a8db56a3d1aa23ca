/* kill -9 of the real coordinator at random moments: whatever it had acknowledged or announced is
 * there afterwards, and the run goes on. Workers are played by hand over TLS; requests are under
 * way when it dies. */
#include <string.h>

#include "base/rng.h"
#include "tests/common/check.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/run_chunks.h"

enum { WORKERS = 3, KILLS = 12, STEPS_PER_LIFE = 25, ROUNDS_MAX = 1000 };

/* What this test knows because the coordinator said so. */
struct known {
	uint64_t seq, round;
	struct rv_hash digests[ROUNDS_MAX];
	uint32_t attempt; /* of `round`, the latest roster seen */
	uint16_t n_members;
	uint32_t members[NET_MAX_ROW];
};

struct world {
	struct coordinator c;
	struct rv_rng rng;
	struct client k[WORKERS];
	int phase[WORKERS]; /* of the round below */
	uint64_t round[WORKERS], seq;
	struct known known;
	struct document doc;
};

static void check(struct world *w, const struct document *d) {
	struct known *k = &w->known;
	assert_true(d->seq >= k->seq);
	assert_true(d->round >= k->round);
	for (uint64_t i = 0; i < d->n_log; i++) {
		uint64_t round = d->snapshot_round + i;
		if (round < k->round)
			assert_memory_equal(&k->digests[round], &d->log[i], sizeof d->log[i]);
		k->digests[round] = d->log[i];
	}
	if (d->phase == RUN_REDUCE && d->round == k->round && d->attempt == k->attempt) {
		assert_int_equal(d->n_members, k->n_members);
		for (int i = 0; i < d->n_members; i++)
			assert_int_equal(d->members[i].member, k->members[i]);
	}
	if (d->round == k->round && d->phase == RUN_REDUCE)
		assert_true(d->attempt >= k->attempt);
	k->seq = d->seq;
	k->attempt = d->phase == RUN_REDUCE ? d->attempt : d->round > k->round ? 0 : k->attempt;
	k->round = d->round;
	k->n_members = d->n_members;
	for (int i = 0; i < d->n_members; i++)
		k->members[i] = d->members[i].member;
}

static struct report next_report(struct world *w, uint32_t who) {
	const struct document *d = &w->doc;
	if (w->round[who] != d->round) {
		w->round[who] = d->round;
		w->phase[who] = WORKER_SYNCING;
	}
	if (w->phase[who] < WORKER_READY)
		w->phase[who]++;
	struct report rep = {.boot = 1,
						 .seq = ++w->seq,
						 .phase = (uint8_t)w->phase[who],
						 .round = d->round,
						 .tokens = 10,
						 .n_chunks = run_chunks("", 0),
						 .chain = d->chain,
						 .full_round = d->round,
						 .commitment.n = w->phase[who] >= WORKER_READY,
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	rep.full_hash = rv_hash_of(&d->round, sizeof d->round);
	if (d->phase == RUN_REDUCE && document_find(d, who) >= 0) {
		rep.phase = WORKER_VOTED;
		rep.attempt = d->attempt;
		rep.digest = rv_hash_of(&rep.full_hash, sizeof rep.full_hash);
	}
	return rep;
}

static void step(struct world *w) {
	uint32_t who = (uint32_t)rv_rng_below(&w->rng, WORKERS);
	int status = client_document(&w->k[who], 0, &w->doc);
	assert_int_equal(status, 200);
	check(w, &w->doc);
	struct report rep = next_report(w, who);
	assert_int_equal(client_report(&w->k[who], &rep), 204);
}

static void ignore(void *ctx, const struct http_reply *r) {
	(void)ctx, (void)r;
}

/* Dies with requests in its hands. */
static void die(struct world *w) {
	uint8_t body[WORKERS][NET_MAX_REPORT_BYTES];
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct report rep = next_report(w, i);
		struct rv_writer wr = rv_writer_of(body[i], sizeof body[i]);
		report_encode(&rep, CONTROL_VERSION, &wr);
		struct http_request rq = {.path = "/v1/report",
								  .body = body[i],
								  .body_bytes = rv_writer_len(&wr),
								  .max_reply_bytes = 4096,
								  .done = ignore};
		assert_ok(http_client_start(w->k[i].http, &rq, NULL, &et));
	}
	for (uint64_t n = rv_rng_below(&w->rng, 12); n > 0; n--)
		assert_ok(http_client_poll(w->k[n % WORKERS].http, NULL, 0, (int64_t)rv_rng_below(&w->rng, 1500), &et));
	process_kill(&w->c.e.coordinator);
}

static void rise(struct world *w) {
	coordinator_start(&w->c);
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct join_reply reply;
		client_release(&w->k[i]);
		client_init(&w->k[i], &w->c, i, NULL);
		assert_int_equal(client_join(&w->k[i], &w->c, NULL, &reply), 200); /* no token: it is a member */
		assert_int_equal(reply.member, i);
	}
}

static void test_nothing_acknowledged_is_lost(void **state) {
	(void)state;
	static struct world w;
	struct invite spent;
	struct client thief;
	memset(&w, 0, sizeof w);
	w.rng = rv_rng_of(2026, 11);
	coordinator_make(&w.c, "rounds = 900\nmin-workers = 3\nsilence-ms = 3600000\n");
	for (uint32_t i = 0; i < WORKERS; i++) {
		client_init(&w.k[i], &w.c, i, NULL);
		coordinator_invite(&w.c, &spent);
		assert_int_equal(client_join(&w.k[i], &w.c, &spent, NULL), 200);
	}
	struct report first = {.boot = 1,
						   .seq = ++w.seq,
						   .phase = WORKER_SYNCING,
						   .n_chunks = run_chunks("", 0),
						   .n_candidates = 1,
						   .candidates[0].addr = ":7000"};
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_int_equal(client_report(&w.k[i], &first), 204);
	for (int life = 0; life < KILLS; life++) {
		uint64_t before = w.known.round;
		for (int i = 0; i < STEPS_PER_LIFE || w.known.round == before; i++)
			step(&w);
		die(&w);
		rise(&w);
	}
	client_init(&thief, &w.c, 50, NULL);
	assert_int_equal(client_join(&thief, &w.c, &spent, NULL), 403);
	client_release(&thief);
	assert_true(w.known.round >= KILLS);
	for (uint32_t i = 0; i < WORKERS; i++)
		client_release(&w.k[i]);
	coordinator_remove(&w.c);
}

enum { AT_ONCE_MAX = 6 };

/* Sends joins of `n`, the first of them `who`, at once; kills the coordinator at a random moment,
 * and starts it again. */
static void start_joins_and_die(struct coordinator *c, struct rv_rng *rng, uint32_t who, uint32_t n,
								const struct invite *in) {
	struct client k[AT_ONCE_MAX];
	uint8_t body[512];
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .name = "w"};
	memcpy(rq.run_id, c->run_id, sizeof rq.run_id);
	memcpy(rq.token, in->token, sizeof rq.token);
	struct rv_writer w = rv_writer_of(body, sizeof body);
	join_request_encode(&rq, &w);
	const struct http_request http = {
		.path = "/v1/join", .body = body, .body_bytes = rv_writer_len(&w), .max_reply_bytes = 65536, .done = ignore};
	for (uint32_t i = 0; i < n; i++) {
		client_init(&k[i], c, who + i, NULL);
		assert_ok(http_client_start(k[i].http, &http, NULL, &et));
	}
	for (uint64_t left = rv_rng_below(rng, 12) * n; left > 0; left--)
		assert_ok(http_client_poll(k[left % n].http, NULL, 0, (int64_t)rv_rng_below(rng, 2000 / n), &et));
	process_kill(&c->e.coordinator);
	for (uint32_t i = 0; i < n; i++)
		client_release(&k[i]);
	coordinator_start(c);
}

static void start_join_and_die(struct coordinator *c, struct rv_rng *rng, uint32_t who, const struct invite *in) {
	start_joins_and_die(c, rng, who, 1, in);
}

static void invite_four(struct coordinator *c, struct invite *out) {
	char text[8192];
	assert_int_equal(
		coordinator_command(text, sizeof text, (const char *const[]){"invite", "--dir", c->dir, "--uses", "4", NULL}),
		0);
	text[strcspn(text, "\n")] = '\0';
	assert_ok(invite_parse(text, out, &et));
}

/* A join whose answer was never seen is repeated with the same token, and gives one member, not
 * two. */
static void test_join_cut_short(void **state) {
	(void)state;
	struct coordinator c;
	struct rv_rng rng = rv_rng_of(7, 7);
	coordinator_make(&c, "rounds = 5\n");
	for (uint32_t who = 0; who < 6; who++) {
		struct client k;
		struct invite in;
		struct join_reply reply;
		coordinator_invite(&c, &in);
		start_join_and_die(&c, &rng, who, &in);
		client_init(&k, &c, who, NULL);
		assert_int_equal(client_join(&k, &c, &in, &reply), 200);
		assert_int_equal(reply.member, who);
		client_release(&k);
	}
	coordinator_remove(&c);
}

/* One link for four, and six who come by it: each dies with the coordinator before it has its
 * answer, and asks again. Four are members, whichever; none of them twice. */
static void test_uses_are_neither_lost_nor_doubled(void **state) {
	(void)state;
	enum { USES = 4, COMERS = 6 };
	struct coordinator c;
	struct rv_rng rng = rv_rng_of(7, 8);
	struct invite in;
	char text[8192];
	bool seen[USES] = {false};
	int joined = 0;
	coordinator_make(&c, "rounds = 5\n");
	invite_four(&c, &in);
	for (uint32_t who = 0; who < COMERS; who++) {
		struct client k;
		struct join_reply reply;
		start_join_and_die(&c, &rng, who, &in);
		client_init(&k, &c, who, NULL);
		int status = client_join(&k, &c, &in, &reply);
		client_release(&k);
		assert_int_equal(status, joined < USES ? 200 : 403);
		if (status != 200)
			continue;
		joined++;
		assert_in_range(reply.member, 0, USES - 1);
		assert_false(seen[reply.member]);
		seen[reply.member] = true;
	}
	assert_int_equal(joined, USES);
	assert_int_equal(
		coordinator_command(text, sizeof text, (const char *const[]){"invite", "list", "--dir", c.dir, NULL}), 0);
	assert_non_null(strstr(text, "0 of 4"));
	assert_non_null(strstr(text, "0, 1, 2, 3\n"));
	coordinator_remove(&c);
}

/* One link for four, and six who come by it at once, whose joins are one transaction or several:
 * the coordinator dies, three times, at any moment. Four are members in the end, by numbers
 * without a gap; a member stays one. */
static void test_joins_at_once_cut_short(void **state) {
	(void)state;
	enum { USES = 4, LIVES = 3 };
	struct coordinator c;
	struct rv_rng rng = rv_rng_of(7, 9);
	struct invite in;
	struct join_reply reply;
	bool seen[USES] = {false};
	int joined = 0;
	coordinator_make(&c, "rounds = 5\n");
	invite_four(&c, &in);
	for (int life = 0; life < LIVES; life++)
		start_joins_and_die(&c, &rng, 0, AT_ONCE_MAX, &in);
	for (int again = 0; again < 2; again++)
		for (uint32_t who = 0; who < AT_ONCE_MAX; who++) {
			struct client k;
			client_init(&k, &c, who, NULL);
			int status = client_join(&k, &c, &in, &reply);
			client_release(&k);
			assert_true(status == 200 || status == 403);
			if (status != 200)
				continue;
			joined++;
			assert_in_range(reply.member, 0, USES - 1);
			assert_int_equal(seen[reply.member], again == 1);
			seen[reply.member] = true;
		}
	assert_int_equal(joined, 2 * USES);
	coordinator_remove(&c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_acknowledged_is_lost),
		cmocka_unit_test(test_join_cut_short),
		cmocka_unit_test(test_uses_are_neither_lost_nor_doubled),
		cmocka_unit_test(test_joins_at_once_cut_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
